"""The games that have a name, for the command line and the docs."""

from collections.abc import Callable
from dataclasses import dataclass

from hopplus.games.board import Board
from hopplus.games.game import Game
from hopplus.games.matrix import CHICKEN, PRISONERS_DILEMMA, STAG_HUNT, MatrixGame
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt


@dataclass(frozen=True)
class Preset:
    """A game with its usual settings, and a line-up worth watching."""

    make: Callable[[], Game]
    lineup: str
    about: str


HUNTERS = "nearest_stag,nearest_stag,nearest_hare,random"
PRESETS: dict[str, Preset] = {
    "stag-hunt-4x4": Preset(lambda: StagHunt(grid=Board(4, 4)), HUNTERS, "the small standard: a stag and four hares"),
    "stag-hunt-8x8": Preset(
        lambda: StagHunt(grid=Board(8, 8)), HUNTERS, "the same on a board where plain PPO gets stuck"
    ),
    "stag-hunt-8x8-obstacles": Preset(
        lambda: StagHunt(grid=Board(8, 8, obstacle_pieces=5)), HUNTERS, "the same with five random pieces of wall"
    ),
    "snowdrift-8x8": Preset(
        lambda: Snowdrift(grid=Board(8, 8)), "nearest_drift,nearest_drift,idler,random", "who clears the snow for all?"
    ),
    "matrix-stag-hunt": Preset(lambda: MatrixGame(payoff=STAG_HUNT), "random,random", "ten rounds of the stag hunt"),
    "matrix-prisoners-dilemma": Preset(
        lambda: MatrixGame(payoff=PRISONERS_DILEMMA), "random,random", "ten rounds of the prisoner's dilemma"
    ),
    "matrix-chicken": Preset(lambda: MatrixGame(payoff=CHICKEN), "random,random", "ten rounds of chicken"),
}


def make(name: str) -> Game:
    """The game of that name."""
    if name not in PRESETS:
        raise ValueError(f"there is no game called {name!r}; the games are {', '.join(PRESETS)}")
    return PRESETS[name].make()
