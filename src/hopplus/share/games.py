"""What a page needs to know of a game: its spec, and the settings of its rules.

A game can be played in a page if `DESCRIBE` has its class and `web/src/games.ts` its rules, by the same name.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from hopplus.games.coins import Coins
from hopplus.games.fields import Field
from hopplus.games.foraging import Foraging
from hopplus.games.game import Game, GameSpec
from hopplus.games.matrix import MatrixGame
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt

NUM_LAYOUTS = 64
"""Layouts of walls that a page draws from, for boards on which each episode has its own."""


def stag_hunt(game: StagHunt) -> dict[str, Any]:
    """The settings of the rules of a stag hunt."""
    if game.prey_moves > 0:
        raise ValueError("a page has no moving prey yet; share a run on a game with prey_moves 0")
    names = ("num_stags", "num_hares", "stag_reward", "hare_reward", "steps_after_first_catch")
    return {name: getattr(game, name) for name in names} | {"walls": _layouts(game)}


def foraging(game: Foraging) -> dict[str, Any]:
    """The settings of the rules of foraging."""
    names = ("num_foods", "player_levels", "food_levels")
    return {name: getattr(game, name) for name in names} | {"walls": _layouts(game)}


def coins(game: Coins) -> dict[str, Any]:
    """The settings of the rules of the coin game."""
    return {"coin_reward": game.coin_reward, "cost": game.cost, "walls": _layouts(game)}


def _layouts(game: StagHunt | Foraging | Coins) -> list[list[int]]:
    """Lists of cells with walls; one empty list for a board without."""
    if not game.grid.has_walls:
        return [[]]
    keys = jax.random.split(jax.random.key(0), NUM_LAYOUTS)
    walls = np.asarray(jax.jit(jax.vmap(lambda key: game.reset(key=key).walls))(keys))
    return [np.flatnonzero(one).tolist() for one in walls.reshape(NUM_LAYOUTS, -1)]


def matrix(game: MatrixGame) -> dict[str, Any]:
    """The settings of the rules of a matrix game."""
    return {"payoff": [list(row) for row in game.payoff]}


DESCRIBE: dict[type[Game], tuple[str, Callable[[Any], dict[str, Any]]]] = {
    StagHunt: ("stag_hunt", stag_hunt),
    MatrixGame: ("matrix", matrix),
    Foraging: ("foraging", foraging),
    Coins: ("coins", coins),
}
"""By class: the name of the rules in the page, and the function that describes their settings."""
SCRIPTS: dict[str, tuple[str, ...]] = {
    "stag_hunt": ("nearest_stag", "nearest_hare", "patient_stag(3)", "random"),
    "matrix": ("random",),
    "foraging": ("nearest_food", "strongest_food", "easy_food", "random"),
    "coins": ("own_coins", "any_coins", "random"),
}
"""The scripts that a page offers, by the name of the rules."""


def page_game(game: Game, name: str) -> dict[str, Any]:
    """The game as a page reads it; raises ValueError if the page does not have its rules."""
    if type(game) not in DESCRIBE:
        known = ", ".join(sorted(kind for kind, _ in DESCRIBE.values()))
        later = "; snowdrift comes later" if isinstance(game, Snowdrift) else ""
        raise ValueError(f"a page has no rules for {name}; it has those of {known}{later}")
    kind, describe = DESCRIBE[type(game)]
    return {"kind": kind, "name": name, "spec": page_spec(game.spec), "settings": describe(game)}


def page_spec(spec: GameSpec) -> dict[str, Any]:
    """The spec as a page reads it."""
    return {
        "name": spec.name,
        "version": spec.version,
        "num_agents": spec.num_agents,
        "action_names": list(spec.action_names),
        "horizon": spec.horizon,
        "stay": spec.stay,
        "straight_paths": spec.straight_paths,
        "height": spec.height,
        "width": spec.width,
        "planes": [{"name": plane.name, "kind": plane.kind, "per_player": plane.per_player} for plane in spec.planes],
        "fields": [_field(field) for field in spec.observation],
        "event_actions": spec.event_actions.tolist(),
    }


def _field(field: Field) -> dict[str, Any]:
    names = ("name", "kind", "shape", "below", "layout")
    return {name: list(field.shape) if name == "shape" else getattr(field, name) for name in names}
