"""The named games of the command line and the docs."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from hopplus.core.extensions import make_own, thing_of
from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.foraging import Foraging
from hopplus.games.game import Game
from hopplus.games.harvest import Harvest
from hopplus.games.matrix import CHICKEN, PRISONERS_DILEMMA, STAG_HUNT, MatrixGame
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt


@dataclass(frozen=True)
class Preset:
    """A game with its default settings, and a line-up to watch."""

    make: Callable[[], Game]
    lineup: str
    about: str
    arena_sides: tuple[int, int] | None = None
    """The sides of the training arenas, for boards on which agents learn too slowly."""


HUNTERS = "nearest_stag,nearest_stag,nearest_hare,random"
PRESETS: dict[str, Preset] = {
    "stag-hunt-4x4": Preset(
        lambda: StagHunt(grid=Board(4, 4)), HUNTERS, "the small standard: a stag and four hares", (3, 4)
    ),
    "stag-hunt-8x8": Preset(
        lambda: StagHunt(grid=Board(8, 8)), HUNTERS, "a larger board, on which plain PPO gets stuck", (3, 8)
    ),
    "stag-hunt-8x8-obstacles": Preset(
        lambda: StagHunt(grid=Board(8, 8, obstacle_pieces=5)),
        HUNTERS,
        "the larger board with five random pieces of wall",
        (4, 8),
    ),
    "snowdrift-8x8": Preset(
        lambda: Snowdrift(grid=Board(8, 8)),
        "nearest_drift,nearest_drift,idler,random",
        "all gain from a removed drift, its removers pay",
    ),
    "coins-3x3": Preset(
        lambda: Coins(grid=Board(3, 3), num_players=2),
        "own_coins,any_coins",
        "two players; a coin is worth 1, and costs its owner 2 if the other takes it",
    ),
    "coins-5x5": Preset(
        lambda: Coins(grid=Board(5, 5), num_players=4),
        "own_coins,own_coins,any_coins,random",
        "four players and their coins",
    ),
    "foraging-8x8": Preset(
        lambda: Foraging(grid=Board(8, 8)),
        "nearest_food,strongest_food,easy_food,random",
        "players of different levels load food, some of it only together",
    ),
    "harvest-8x8": Preset(
        lambda: Harvest(grid=Board(8, 8)),
        "sustainable,sustainable,greedy,random",
        "apples regrow faster the more of them are left",
    ),
    "harvest-8x8-beam": Preset(
        lambda: Harvest(grid=Board(8, 8), away_steps=10),
        "sustainable,greedy,zapper,random",
        "the same with beams, which send players away for ten steps",
    ),
    "harvest-16x16-16": Preset(
        lambda: Harvest(grid=Board(16, 16), num_players=16, others="summed"),
        ",".join(["sustainable"] * 8 + ["greedy"] * 7 + ["random"]),
        "sixteen players; a view shows the others summed in one plane",
    ),
    "harvest-16x16-64": Preset(
        lambda: Harvest(grid=Board(16, 16), num_players=64, others="summed"),
        ",".join(["sustainable"] * 32 + ["greedy"] * 31 + ["random"]),
        "sixty-four players; a view shows the others summed in one plane",
    ),
    "matrix-stag-hunt": Preset(lambda: MatrixGame(payoff=STAG_HUNT), "random,random", "ten rounds of the stag hunt"),
    "matrix-prisoners-dilemma": Preset(
        lambda: MatrixGame(payoff=PRISONERS_DILEMMA), "random,random", "ten rounds of the prisoner's dilemma"
    ),
    "matrix-chicken": Preset(lambda: MatrixGame(payoff=CHICKEN), "random,random", "ten rounds of chicken"),
}
"""The named games: how each is made, its scripted players, what it is, and the sides of its arenas."""
LIBRARIES = {
    "jaxmarl": ("hopplus.games.bridges.from_jaxmarl", "make_jaxmarl"),
    "jumanji": ("hopplus.games.bridges.from_jumanji", "make_jumanji"),
    "pettingzoo": ("hopplus.games.bridges.from_pettingzoo", "make_pettingzoo"),
}
"""Whose environments can be games: the module and the function that makes one. Each needs the extra of its name."""


def make(name: str | Game) -> Game:
    """The game of that name; `jaxmarl:NAME`, `jumanji:NAME` or `pettingzoo:MODULE.FACTORY` for an environment of
    theirs, which may have settings (NAME?setting=value); or a user's game as MODULE:FACTORY, which may be in the
    working folder."""
    given = thing_of(name) or name
    if isinstance(given, Game):
        return given
    name = str(name)
    library, _, theirs = name.partition(":")
    if library in LIBRARIES and theirs:
        module_name, factory = LIBRARIES[library]
        return getattr(importlib.import_module(module_name), factory)(theirs)
    if ":" in name:
        return make_own(name, "game", Game)
    if name not in PRESETS:
        raise ValueError(f"there is no game called {name!r}; give one of {', '.join(PRESETS)}")
    return PRESETS[name].make()
