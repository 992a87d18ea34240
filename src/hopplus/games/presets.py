"""The named games of the command line and the docs."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hopplus.games.board import Board
from hopplus.games.game import Game
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
    "matrix-stag-hunt": Preset(lambda: MatrixGame(payoff=STAG_HUNT), "random,random", "ten rounds of the stag hunt"),
    "matrix-prisoners-dilemma": Preset(
        lambda: MatrixGame(payoff=PRISONERS_DILEMMA), "random,random", "ten rounds of the prisoner's dilemma"
    ),
    "matrix-chicken": Preset(lambda: MatrixGame(payoff=CHICKEN), "random,random", "ten rounds of chicken"),
}


def make(name: str) -> Game:
    """The game of that name, or a user's game as `module:factory`, which may be in the working folder."""
    if ":" in name:
        return _make_theirs(name)
    if name not in PRESETS:
        raise ValueError(f"there is no game called {name!r}; give one of {', '.join(PRESETS)}")
    return PRESETS[name].make()


def load_factory(text: str, what: str) -> Callable[[], Any]:
    """The callable that `module:factory` names, which may be in the working folder; it is not called."""
    module_name, _, factory_name = text.partition(":")
    if not module_name or not factory_name:
        raise ValueError(f"cannot load the {what} {text!r}; give MODULE:FACTORY, as in my_module:make")
    sys.path.insert(0, "")
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"cannot load the {what} {text!r}: {error}; give MODULE:FACTORY that can be imported from here"
        ) from None
    finally:
        sys.path.remove("")
    if not callable(factory):
        raise ValueError(f"{text!r} is a {type(factory).__name__}; give a function that makes the {what}")
    return factory


def _make_theirs(name: str) -> Game:
    game = load_factory(name, "game")()
    if not isinstance(game, Game):
        raise ValueError(f"{name!r} gives a {type(game).__name__}; give a factory that returns a hopplus.games.Game")
    return game
