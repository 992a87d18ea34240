"""`hopplus runs`: list runs with their progress and returns."""

from dataclasses import dataclass
from pathlib import Path

from hopplus.cli.verbs.types import Folder


@dataclass(frozen=True)
class Runs:
    """List the runs below a folder, with their progress and returns."""

    folder: Folder = Path("runs")
    """The folder to search."""

    def __call__(self) -> int:
        from hopplus.cli.runs import list_runs

        return list_runs(self)
