"""Cross-play: each player in the first seat, with another player in all the others.

A trained player is several: one for each seed. Two seeds have never met, so that a run among its other seeds tells how
it plays with strangers who learned as it did. What stands in a cell is the mean return of the first seat.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Key

from hopplus.evaluation.series import play_rows
from hopplus.games.coplayers import Lineup, Policy
from hopplus.games.game import Game


@dataclass(frozen=True)
class Guest:
    """Somebody who plays with everybody."""

    name: str
    policies: tuple[Policy, ...]
    """For each seat; their arrays have a leading axis of seeds."""
    seeds: int
    """1 for a script, which has no arrays."""


def seed_pairs(one: Guest, other: Guest) -> list[tuple[int, int]]:
    """Who meets whom: all pairs of seeds; of the same guest, those that differ, if there are any."""
    pairs = [(first, second) for first in range(one.seeds) for second in range(other.seeds)]
    strangers = [(first, second) for first, second in pairs if first != second]
    return strangers if one.name == other.name and strangers else pairs


def returns_among(
    game: Game, one: Guest, other: Guest, episodes: int, *, key: Key[Array, ""]
) -> Float64[np.ndarray, " seeds"]:
    """What each seed of one guest gets in the first seat among the other's, over so many episodes with each seed."""
    pairs = seed_pairs(one, other)
    first, second = (jnp.array(column) for column in zip(*pairs, strict=True))
    seat = lambda policy, seeds: jax.tree.map(lambda leaf: leaf[seeds], policy)  # noqa: E731
    table = Lineup((seat(one.policies[0], first), *(seat(policy, second) for policy in other.policies[1:])))
    found = play_rows(game, table, episodes, 1, num_rows=len(pairs), key=key).mean(axis=(1, 2), dtype=np.float64)
    return np.array([found[np.asarray(first) == seed].mean() for seed in range(one.seeds)])


def cross_play(
    game: Game,
    guests: Sequence[Guest],
    episodes: int,
    *,
    key: Key[Array, ""],
    on_cell: Callable[[], None] | None = None,
) -> list[list[Float64[np.ndarray, " seeds"]]]:
    """Rows: who sits in the first seat; columns: who sits in the others."""
    keys = jax.random.split(key, (len(guests), len(guests)))
    found = []
    for row, one in enumerate(guests):
        found.append([])
        for column, other in enumerate(guests):
            found[-1].append(returns_among(game, one, other, episodes, key=keys[row, column]))
            if on_cell:
                on_cell()
    return found
