"""`hopplus report`: one HTML page about a run, with a viewer of episodes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.agents.config import NO_PLANNING, PlanningConfig
from hopplus.cli.verbs.types import RunPath


@dataclass(frozen=True)
class Report:
    """Write an HTML page with learning curves, a comparison of seats, and a viewer of episodes. It needs no network.

    Beside the board the viewer shows the first seat's beliefs about its co-players, and its values or probabilities of
    actions."""

    run: RunPath
    """A run folder."""
    out: Path | None = None
    """The file for the page. None: report.html in the run folder."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 6
    """Episodes of the final policies in the viewer. The seeds take turns."""
    co_players: str | None = None
    """Players for the last seats of those episodes, as in `hopplus evaluate`."""
    planning: PlanningConfig = NO_PLANNING
    """Planning of the run's policies in those episodes."""
    seed: int = 0
    """The seed of those episodes."""

    def __call__(self) -> int:
        from hopplus.cli.report import write_report

        return write_report(self)
