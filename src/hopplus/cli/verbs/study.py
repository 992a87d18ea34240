"""`hopplus study run|status|report`: many runs that answer questions, on Ray."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from hopplus.cli.verbs.types import Folder, Switch

File = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class RunStudy:
    """Run all trials of a study that are not done yet, as many at once as there are cores.

    Ctrl-C stops it. The same command resumes every trial from its last checkpoint. If a worker or a node is lost, Ray
    restarts its trials. A trial that fails does not stop the others; the next `study run` tries it again.
    """

    file: File
    """The study file, as in examples/epochs.toml."""
    out: Path
    """The study's folder: a run folder for each trial, and the page of `hopplus study report`."""
    address: str | None = None
    """The address of a Ray cluster, as in 10.0.0.1:6379, or `auto`. None: Ray is started on this machine."""
    gpus: float = 0.0
    """GPUs of each trial; with 0.5 two trials share one. The CPU cores of a trial are set by its --mesh; default 1."""

    def __call__(self) -> int:
        from hopplus.cli.study import run_trials

        return run_trials(self)


@dataclass(frozen=True)
class StudyStatus:
    """Show the state of every trial of a study, running or not. Exit code 1 if a trial has failed."""

    folder: Folder
    """The study's folder."""

    def __call__(self) -> int:
        from hopplus.cli.study import print_status

        return print_status(self)


@dataclass(frozen=True)
class ReportStudy:
    """Summarise a study: a table, answers to its questions, study.html, study.png, and marl_eval.json for other
    tools."""

    folder: Folder
    """The study's folder."""
    best: float | None = None
    """The best possible return, to which optimality gaps are measured. None: the highest return of a seed."""
    json: Switch = False
    """Print one line of JSON instead of tables."""

    def __call__(self) -> int:
        from hopplus.cli.study import write_summary

        return write_summary(self)


STUDY = """Run a study: the variants and trials of one small file, on Ray, and one page of results."""
Action: Any = (
    Annotated[RunStudy, tyro.conf.subcommand("run", prefix_name=False)]
    | Annotated[StudyStatus, tyro.conf.subcommand("status", prefix_name=False)]
    | Annotated[ReportStudy, tyro.conf.subcommand("report", prefix_name=False)]
)


def run(typed: list[str]) -> int:
    """Run `hopplus study` with these arguments."""
    return tyro.cli(Action, prog="hopplus study", description=STUDY, args=typed)()
