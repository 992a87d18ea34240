"""`hopplus study run|status|report`: many runs that answer questions, on Ray."""

import shlex
import subprocess
import sys
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.markup import escape

from hopplus import __version__
from hopplus.cli.figures import seed_words, to_json
from hopplus.cli.tables import make_table
from hopplus.cli.verbs.study import ReportStudy, RunStudy, StudyStatus
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
    performance_profile,
    state_of,
    summarise,
)
from hopplus_doctor.statistics import FEW_SEEDS, Interval

MARKS = {"waiting": "dim", "running": "yellow", "done": "green", "failed": "red"}


def run_trials(asked: RunStudy) -> int:
    """Run all trials that are not done yet."""
    study = read_study(asked.file)
    for command in study.before:
        if code := _run_first(command):
            return code
    display = TrialTable(study, asked.out)
    try:
        with display:
            callbacks = {"on_state": display.on_state, "on_wait": display.redraw}
            run_study(study, asked.out, address=asked.address, gpus=asked.gpus, **callbacks)
    except KeyboardInterrupt:
        print(f"stopped; the same command resumes it. See: hopplus study status {asked.out}")
        return 130
    print(f"next: hopplus study report {asked.out}")
    return 1 if display.failures else 0


def print_status(asked: StudyStatus) -> int:
    """Print the state of every trial."""
    study = open_study(asked.folder)
    title = escape(study.about or str(asked.folder))
    table = make_table(title, "variant", "trial", "state", "done", "why", whole=("state", "done"))
    states = [(trial, *state_of(trial, asked.folder)) for trial in study.all_trials()]
    for trial, state, updates, reason in states:
        share = f"{updates / trial.config.num_updates:.0%}"
        table.add_row(
            escape(trial.variant), str(trial.index), f"[{MARKS[state]}]{state}[/]", share, escape(reason or "")
        )
    Console().print(table)
    return 1 if any(state == "failed" for _, state, _, _ in states) else 0


def write_summary(asked: ReportStudy) -> int:
    """Summarise a study."""
    study, folder = open_study(asked.folder), asked.folder
    variants = summarise(study, folder, best=asked.best)
    if not variants:
        raise ValueError(f"no trial of {folder} is done yet; see `hopplus study status {folder}`")
    answers = [given for question in study.questions if (given := answer(study, folder, question))]
    (folder / "study.html").write_text(study_page(study, folder, variants, answers, best=asked.best), encoding="utf-8")
    study_picture(study, folder, folder / "study.png")
    write_json(folder / "marl_eval.json", marl_eval(study, folder))
    if asked.json:
        result = {
            "commands": [f"hopplus study report {folder} --json"],
            "version": __version__,
            "about": study.about,
            "variants": list(map(asdict, variants)),
            "profiles": {one.name: list(map(np.ndarray.tolist, performance_profile(one.scores))) for one in variants},
            "answers": list(map(asdict, answers)),
        }
        print(dumps(to_json(result)))
        return 0
    _print(variants, answers)
    print(f"wrote {folder / 'study.html'}, study.png, marl_eval.json")
    return 0


def _run_first(command: str) -> int:
    """Run a command of the study's `before` list, and return its exit code.

    It runs in its own process: Ray forks this one, which must not have used JAX.
    """
    program, *arguments = shlex.split(command)
    if program != "hopplus":
        raise ValueError(f"`before` has the command {program!r}; give only commands of hopplus")
    print(f"first: {command}", flush=True)
    line = [sys.executable, "-c", "from hopplus.cli.main import entry; entry()", *arguments]
    return subprocess.run(line, check=False).returncode


def _print(variants: list[VariantSummary], answers: list[Answer]) -> None:
    title = "return over the last fifth of training; IQM: interquartile mean; gap: mean shortfall from the best return"
    interval = "95% interval"
    figures = ("seeds", "mean", interval, "IQM", "gap", "minutes")
    table = make_table(title, "variant", *figures, right=figures, whole=(interval,))
    for one in variants:
        figures = (f"{one.score.estimate:.3f}", _ends(one.score, 3), f"{one.interquartile_mean:.3f}")
        gap = f"{one.optimality_gap.estimate:.3f}"
        table.add_row(escape(one.name), str(one.seeds), *figures, gap, f"{one.seconds / 60:.1f}")
    console = Console()
    console.print(table)
    for one in variants:
        if one.seeds < FEW_SEEDS:
            console.print(f"{escape(one.name)}, seed by seed: {seed_words(one.scores, 3)}")
    for given in answers:
        console.print(f"{escape(given.question.ask)}  [bold]{escape(given.verdict)}[/]")
        difference, chance = given.difference, given.probability
        console.print(
            f"  difference {difference.estimate:.3f} ({_ends(difference, 3)}); "
            f"probability of improvement {chance.estimate:.2f} ({_ends(chance, 2)})"
        )


def _ends(interval: Interval, digits: int) -> str:
    return f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"


class TrialTable:
    """Shows the trials of a running study: a live table on a terminal, elsewhere a line for each trial that ends."""

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

    def on_state(self, trial: Trial, state: State, reason: str | None) -> None:
        """Record the new state of a trial."""
        self._states[trial] = state
        if reason:
            self.failures[trial] = reason
        if not self._console.is_terminal and state in ("done", "failed"):
            ended = sum(state in ("done", "failed") for state in self._states.values())
            line = f"{ended} of {len(self._states)}: {trial.variant}, trial {trial.index}: {state} {reason or ''}"
            self._console.print(escape(line.rstrip()), soft_wrap=True)

    def redraw(self) -> None:
        """Draw the live table again."""
        if self._console.is_terminal:
            self._live.update(self._table(), refresh=True)

    def _table(self) -> Any:
        table = make_table(escape(self._study.about), "variant", *MARKS, "updates")
        for name in self._study.variants:
            states: dict[Trial, State] = {
                trial: self._started(trial, state) for trial, state in self._states.items() if trial.variant == name
            }
            counts = [sum(state == kind for state in states.values()) for kind in MARKS]
            updates = sum(self._updates(trial, state) for trial, state in states.items())
            share = updates / sum(trial.config.num_updates for trial in states)
            shown = [f"[{mark}]{count}[/]" if count else "" for mark, count in zip(MARKS.values(), counts, strict=True)]
            table.add_row(escape(name), *shown, f"{share:.0%}")
        for trial, reason in self.failures.items():
            table.add_row(f"[red]{escape(trial.variant)}, trial {trial.index}: {escape(reason)}[/]")
        return table

    def _started(self, trial: Trial, state: State) -> State:
        """The state of a trial. Ray holds more trials than it can run at once: a trial without a folder is waiting."""
        return "waiting" if state == "running" and not (self._out / trial.place).is_dir() else state

    def _updates(self, trial: Trial, state: State) -> int:
        if state == "done":
            return trial.config.num_updates
        return last_update(self._out / trial.place) if state == "running" else 0
