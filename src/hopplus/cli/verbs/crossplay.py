"""`hopplus crossplay`: every run or script with every other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.agents.config import PlanningConfig
from hopplus.cli.verbs.types import Switch
from hopplus.planning.config import SearchConfig

SEARCH = PlanningConfig(kind="search", search=SearchConfig(trees=4, simulations=16, depth=8))
Players = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PLAYER")]


@dataclass(frozen=True)
class CrossPlay:
    """Play every player with every other: one in the first seat, copies of the other in all remaining seats.

    A run that plays with itself meets its other seeds, which learned independently."""

    players: Players
    """Run folders and scripts, as in runs/ppo runs/hop nearest_stag. Give at least one run: it sets the game."""
    episodes: int = 200
    """Episodes for each pair of seeds."""
    planning: PlanningConfig = SEARCH
    """Planning of the runs that learned from search (hop, direct_om). Other runs act by their policies."""
    seed: int = 0
    """The seed of all random numbers."""
    out: Path | None = None
    """A folder for crossplay.json and crossplay.png (a heat map)."""
    json: Switch = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        from hopplus.cli.crossplay import play_pairs

        return play_pairs(self)
