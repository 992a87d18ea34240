"""The progress of a run in the terminal: updates done, returns, steps per second, time left."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hopplus.runs.config import RunConfig
from hopplus.runs.metrics import Row

SHOWN = {"return": "charts/episodic_return/mean", "stags": "charts/stag_rate", "removals": "charts/removals"}


def counting_bar() -> Progress:
    """A progress bar on stderr for counted work, such as episodes; it disappears at the end."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True)


class ProgressDisplay:
    """A line that is redrawn after every block; without a terminal, a line for every tenth of the run."""

    def __init__(self, console: Console | None = None):
        self._console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> "ProgressDisplay":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def compiling(self, config: RunConfig, done: int) -> None:
        self._total = config.num_updates
        resumed = f", resumed from update {done}" if done else ""
        self._console.print(
            f"{config.agent} on {config.game}: {config.seeds} seeds x {config.num_updates} updates of "
            f"{config.learner.steps_per_update} steps{resumed}; compiling",
            soft_wrap=True,
        )
        if done and not config.evaluation_game.is_compiled:
            self._console.print(
                f"{config.game} runs in Python, so exact resume is not promised: the result can differ from that "
                "of a run that was not stopped",
                soft_wrap=True,
            )
        self._bar = self._progress.add_task(str(config.game), total=self._total, completed=done, state="compiling")
        self._next_line = done + self._total / 10

    def note(self, words: str) -> None:
        """Print a line above the progress."""
        self._console.print(words, soft_wrap=True, markup=False)

    def block(self, row: Row, updates_done: int, steps_per_second: float) -> None:
        shown = [f"{name} {_mean(row[tag])}" for name, tag in SHOWN.items() if tag in row]
        state = f"{'  '.join(shown)}  {steps_per_second:,.0f} steps/s"
        self._progress.update(self._bar, completed=updates_done, state=state)
        if not self._console.is_terminal and updates_done >= self._next_line:
            self._console.print(f"update {updates_done} of {self._total}: {state}", soft_wrap=True)
            self._next_line += self._total / 10


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.2f}" if known else "-"
