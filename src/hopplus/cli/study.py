"""`hopplus study run|status|report`: many runs that answer a question, on Ray."""

import shlex
import subprocess
import sys
from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from hopplus import __version__
from hopplus.evaluation.statistics import Interval
from hopplus.report.study import study_page, study_picture
from hopplus.runs.folder import write_json
from hopplus.runs.studies import Study, Trial, open_study, read_study, run_study
from hopplus.runs.studies.cluster import State
from hopplus.runs.studies.summary import (
    Answer,
    VariantSummary,
    answer,
    last_update,
    marl_eval,
    state_of,
    summarise,
)

File = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
Folder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
MARKS = {"waiting": "dim", "running": "yellow", "done": "green", "failed": "red"}


@dataclass(frozen=True)
class RunStudy:
    """Run all trials of a study that are not done yet, as many at once as there are cores.

    Ctrl-C stops it; the same command goes on, and every trial from its last checkpoint. Trials whose worker or node is
    lost are begun again by Ray. A trial that fails says why, and does not stop the others; it is tried anew next time.
    """

    file: File
    """The study, as in examples/epochs.toml."""
    out: Path
    """The study's folder: a run folder for each trial, and the page that `hopplus study report` writes."""
    address: str | None = None
    """A Ray cluster to run on, as in 10.0.0.1:6379, or `auto`. None: Ray is started on this machine."""
    gpus: float = 0.0
    """GPUs of each trial; 0.5 lets two share one. Cores it takes by its --mesh, one unless told otherwise."""

    def __call__(self) -> int:
        study = read_study(self.file)
        for command in study.before:
            if code := _run_first(command):
                return code
        display = TrialTable(study, self.out)
        try:
            with display:
                watched = {"on_state": display.tell, "on_wait": display.redraw}
                run_study(study, self.out, address=self.address, gpus=self.gpus, **watched)
        except KeyboardInterrupt:
            print(f"stopped; the same command goes on. See: hopplus study status {self.out}")
            return 130
        print(f"next: hopplus study report {self.out}")
        return 1 if display.failures else 0


@dataclass(frozen=True)
class StudyStatus:
    """Say how every trial of a study stands, whether it runs or not. Exit code 1 where one has failed."""

    folder: Folder
    """The study's folder."""

    def __call__(self) -> int:
        study = open_study(self.folder)
        table = Table(title=study.about or str(self.folder), title_justify="left")
        for column in ("variant", "trial", "state", "done", "why"):
            table.add_column(column)
        states = [(trial, *state_of(trial, self.folder)) for trial in study.all_trials()]
        for trial, state, updates, reason in states:
            share = f"{updates / trial.config.num_updates:.0%}"
            table.add_row(
                escape(trial.variant), str(trial.index), f"[{MARKS[state]}]{state}[/]", share, escape(reason or "")
            )
        Console().print(table)
        return 1 if any(state == "failed" for _, state, _, _ in states) else 0


@dataclass(frozen=True)
class ReportStudy:
    """Sum a study up: a table, answers to its questions, study.html, study.png, and marl_eval.json for other tools."""

    folder: Folder
    """The study's folder."""
    json: bool = False
    """Print everything as JSON instead of tables."""

    def __call__(self) -> int:
        study, folder = open_study(self.folder), self.folder
        variants = summarise(study, folder)
        if not variants:
            raise ValueError(f"no trial of {folder} is done yet; see `hopplus study status {folder}`")
        answers = [given for question in study.questions if (given := answer(study, folder, question))]
        (folder / "study.html").write_text(study_page(study, folder, variants, answers))
        study_picture(study, folder, folder / "study.png")
        write_json(folder / "marl_eval.json", marl_eval(study, folder))
        if self.json:
            told = {"variants": list(map(asdict, variants)), "answers": list(map(asdict, answers))}
            made = {"command": f"hopplus study report {folder} --json", "version": __version__, "about": study.about}
            print(dumps(made | told))
            return 0
        _print(variants, answers)
        print(f"wrote {folder / 'study.html'}, study.png, marl_eval.json")
        return 0


def _run_first(command: str) -> int:
    """A command that the study begins with; one that is done already is done at once.

    In a process of its own: Ray starts others by forking this one, which must not have used JAX.
    """
    program, *arguments = shlex.split(command)
    if program != "hopplus":
        raise ValueError(f"`before` can hold commands of hopplus, not {program!r}")
    print(f"first: {command}", flush=True)
    line = [sys.executable, "-c", "from hopplus.cli.main import entry; entry()", *arguments]
    return subprocess.run(line, check=False).returncode


def _print(variants: list[VariantSummary], answers: list[Answer]) -> None:
    table = Table(title="return over the last fifth of training, by seed", title_justify="left")
    for column in ("variant", "seeds", "interquartile mean", "95% interval", "lowest", "highest", "minutes"):
        table.add_column(column)
    for one in variants:
        figures = (f"{one.score.estimate:.3f}", _ends(one.score, 3), f"{one.lowest:.3f}", f"{one.highest:.3f}")
        table.add_row(escape(one.name), str(one.seeds), *figures, f"{one.seconds / 60:.1f}")
    console = Console()
    console.print(table)
    for given in answers:
        console.print(f"{escape(given.question.ask)}  [bold]{escape(given.verdict)}[/]", soft_wrap=True)
        difference, chance = given.difference, given.probability
        console.print(
            f"  difference {difference.estimate:.3f} ({_ends(difference, 3)}); "
            f"probability of improvement {chance.estimate:.2f} ({_ends(chance, 2)})",
            soft_wrap=True,
        )


def _ends(interval: Interval, digits: int) -> str:
    return f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"


Action = (
    Annotated[RunStudy, tyro.conf.subcommand("run", prefix_name=False)]
    | Annotated[StudyStatus, tyro.conf.subcommand("status", prefix_name=False)]
    | Annotated[ReportStudy, tyro.conf.subcommand("report", prefix_name=False)]
)


def study(action: Annotated[Action, tyro.conf.arg(name="")]) -> int:
    """Run many trainings that answer a question, on Ray: variants x trials from one small file, and one page.

    Args:
        action: What to do with the study.
    """
    return action()


class TrialTable:
    """How the trials stand while a study runs: a live table by variant; else, a line for each that ends."""

    def __init__(self, study: Study, out: Path):
        self._study, self._out = study, out
        self._states: dict[Trial, State] = dict.fromkeys(study.all_trials(), "waiting")
        self.failures: dict[Trial, str] = {}
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=False)

    def __enter__(self) -> "TrialTable":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self.redraw()
            self._live.stop()

    def tell(self, trial: Trial, state: State, reason: str | None) -> None:
        self._states[trial] = state
        if reason:
            self.failures[trial] = reason
        if not self._console.is_terminal and state in ("done", "failed"):
            ended = sum(state in ("done", "failed") for state in self._states.values())
            said = f"{ended} of {len(self._states)}: {trial.variant}, trial {trial.index}: {state} {reason or ''}"
            self._console.print(escape(said.rstrip()), soft_wrap=True)

    def redraw(self) -> None:
        if self._console.is_terminal:
            self._live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        table = Table(title=self._study.about, title_justify="left")
        for column in ("variant", "waiting", "running", "done", "failed", "updates"):
            table.add_column(column)
        for name in self._study.variants:
            mine: dict[Trial, State] = {
                one: self._begun(one, state) for one, state in self._states.items() if one.variant == name
            }
            counts = [sum(state == kind for state in mine.values()) for kind in MARKS]
            updates = sum(self._updates(trial, state) for trial, state in mine.items())
            share = updates / sum(trial.config.num_updates for trial in mine)
            shown = [f"[{mark}]{count}[/]" if count else "" for mark, count in zip(MARKS.values(), counts, strict=True)]
            table.add_row(escape(name), *shown, f"{share:.0%}")
        for trial, reason in self.failures.items():
            table.add_row(f"[red]{escape(trial.variant)}, trial {trial.index}: {escape(reason)}[/]")
        return table

    def _begun(self, trial: Trial, state: State) -> State:
        """Ray has been given more trials than can run at once: those without a folder wait."""
        return "waiting" if state == "running" and not (self._out / trial.place).is_dir() else state

    def _updates(self, trial: Trial, state: State) -> int:
        if state == "done":
            return trial.config.num_updates
        return last_update(self._out / trial.place) if state == "running" else 0
