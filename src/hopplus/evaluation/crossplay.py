"""Cross-play: each player in the first seat, with another player in all other seats.

A trained player has one policy set per seed. Two seeds have never met, so a run paired with its own other seeds shows
how it plays with unknown co-players of the same training. A cell holds the mean return of the first seat.
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
    """A player of cross-play: a trained run or a script."""

    name: str
    policies: tuple[Policy, ...]
    """One for each seat; their arrays have a leading axis of seeds."""
    seeds: int
    """1 for a script, which has no arrays."""


def seed_pairs(one: Guest, other: Guest) -> list[tuple[int, int]]:
    """The pairs of seeds that play together: all pairs; for a guest with itself, different seeds if there are any."""
    pairs = [(first, second) for first in range(one.seeds) for second in range(other.seeds)]
    different = [(first, second) for first, second in pairs if first != second]
    return different if one.name == other.name and different else pairs


def returns_among(
    game: Game, one: Guest, other: Guest, episodes: int, *, key: Key[Array, ""]
) -> Float64[np.ndarray, " seeds"]:
    """The mean return of each seed of `one` in the first seat, over `episodes` with each seed of `other`."""
    pairs = seed_pairs(one, other)
    first, second = (jnp.array(column) for column in zip(*pairs, strict=True))

    def seat(policy, seeds):
        return jax.tree.map(lambda leaf: leaf[seeds], policy)

    seats = Lineup((seat(one.policies[0], first), *(seat(policy, second) for policy in other.policies[1:])))
    returns = play_rows(game, seats, episodes, 1, num_rows=len(pairs), key=key).mean(axis=(1, 2), dtype=np.float64)
    return np.array([returns[np.asarray(first) == seed].mean() for seed in range(one.seeds)])


def cross_play(
    game: Game,
    guests: Sequence[Guest],
    episodes: int,
    *,
    key: Key[Array, ""],
    on_cell: Callable[[], None] | None = None,
) -> list[list[Float64[np.ndarray, " seeds"]]]:
    """The returns of the first seat by seed. Rows: the guest in the first seat; columns: the guest in the others."""
    keys = jax.random.split(key, (len(guests), len(guests)))
    cells = []
    for row, one in enumerate(guests):
        cells.append([])
        for column, other in enumerate(guests):
            cells[-1].append(returns_among(game, one, other, episodes, key=keys[row, column]))
            if on_cell:
                on_cell()
    return cells
