"""How well a line-up plays: returns of many episodes for each seed, with intervals over seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Key

from hopplus.evaluation.statistics import Interval, seed_interval
from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game
from hopplus.games.rollout import Episode, paid_deeds, play_episode

NUM_TABLES = 1000


@dataclass(frozen=True)
class Played:
    """What many episodes brought."""

    returns: np.ndarray
    """float [seeds, episodes, agents]"""
    deeds: np.ndarray
    """float [seeds, episodes, deeds, agents]: how often each seat did what the game counts, and was paid"""

    @property
    def by_seed(self) -> np.ndarray:
        """[seeds]: the mean over episodes and seats."""
        return self.returns.mean(axis=(1, 2), dtype=np.float64)

    @property
    def seat_means(self) -> np.ndarray:
        """[seeds, agents]"""
        return self.returns.mean(axis=1, dtype=np.float64)

    @property
    def mean(self) -> Interval:
        return seed_interval(self.by_seed)

    def per_seat(self) -> list[Interval]:
        return [seed_interval(means) for means in self.seat_means.T]


def play(
    game: Game,
    lineup: Lineup,
    episodes: int,
    *,
    num_seeds: int,
    key: Key[Array, ""],
    on_batch: Callable[[int], None] | None = None,
) -> Played:
    """Play so many episodes with each seed's policies; every array of the line-up has a leading axis of seeds."""
    num_tables = min(NUM_TABLES, episodes)

    @jax.jit
    def batch(arrays: Lineup, key: Key[Array, ""]):
        keys = jax.random.split(key, (num_seeds, num_tables))
        return jax.lax.map(lambda one: _play_one_seed(game, eqx.combine(one[0], static), one[1]), (arrays, keys))

    arrays, static = eqx.partition(lineup, eqx.is_array)
    returns, deeds = [], []
    for index in range(-(-episodes // num_tables)):
        got, did = jax.device_get(batch(arrays, jax.random.fold_in(key, index)))
        returns.append(got)
        deeds.append(did)
        if on_batch:
            on_batch(num_tables)
    return Played(*(np.concatenate(parts, axis=1)[:, :episodes] for parts in (returns, deeds)))


def _play_one_seed(game: Game, lineup: Lineup, keys: Key[Array, " tables"]):
    def one(key: Key[Array, ""]) -> tuple[Float32[Array, " agents"], Float32[Array, "deeds agents"]]:
        episode = play_episode(game, lineup, key=key)
        return episode.returns, count_deeds(game, episode)

    return jax.vmap(one)(keys)


def count_deeds(game: Game, episode: Episode) -> Float32[Array, "deeds agents"]:
    """How often each seat did what the game counts."""
    legal = jax.vmap(game.legal)(jax.tree.map(lambda leaf: leaf[:-1], episode.states))
    did = jax.vmap(partial(paid_deeds, game.spec))(legal, episode.actions, episode.rewards)
    return jnp.sum(did, axis=0, dtype=jnp.float32)
