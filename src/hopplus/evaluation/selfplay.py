"""Returns of a line-up over many episodes of each seed, with intervals over seeds."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Key

from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game
from hopplus.games.rollout import Episode, play_episode
from hopplus_doctor.statistics import Interval, seed_interval

NUM_ENVS = 1000
BEFORE, AFTER = slice(None, -1), slice(1, None)


@dataclass(frozen=True)
class Played:
    """The returns and the rewarded events of many episodes."""

    returns: np.ndarray
    """float [seeds, episodes, agents]"""
    events: np.ndarray
    """float [seeds, episodes, events, agents]: how often each seat was rewarded for an event of the game"""
    names: tuple[str, ...] = ()
    """The player of each seat, by name."""

    @property
    def by_seed(self) -> np.ndarray:
        """[seeds]: the mean return over episodes and seats."""
        return self.returns.mean(axis=(1, 2), dtype=np.float64)

    @property
    def seat_means(self) -> np.ndarray:
        """[seeds, agents]: the mean return over episodes."""
        return self.returns.mean(axis=1, dtype=np.float64)

    @property
    def mean(self) -> Interval:
        """The mean return of a seat, with its interval over seeds."""
        return seed_interval(self.by_seed)

    def per_seat(self) -> list[Interval]:
        """The mean return of each seat, with its interval over seeds."""
        return [seed_interval(means) for means in self.seat_means.T]


def play(
    game: Game,
    lineup: Lineup,
    episodes: int,
    *,
    num_seeds: int,
    key: Key[Array, ""],
    names: tuple[str, ...] = (),
    on_batch: Callable[[int], None] | None = None,
) -> Played:
    """Play that many episodes with each seed's policies; every array of the line-up has a leading axis of seeds.

    `on_batch` is called with the number of episodes of each batch.
    """
    num_envs = min(NUM_ENVS, episodes)

    @jax.jit
    def batch(arrays: Lineup, key: Key[Array, ""]):
        keys = jax.random.split(key, (num_seeds, num_envs))
        return jax.lax.map(lambda one: _play_one_seed(game, eqx.combine(one[0], static), one[1]), (arrays, keys))

    arrays, static = eqx.partition(lineup, eqx.is_array)
    returns, events = [], []
    for index in range(-(-episodes // num_envs)):
        batch_returns, batch_events = jax.device_get(batch(arrays, jax.random.fold_in(key, index)))
        returns.append(batch_returns)
        events.append(batch_events)
        if on_batch:
            on_batch(num_envs)
    return Played(*(np.concatenate(parts, axis=1)[:, :episodes] for parts in (returns, events)), names=names)


def _play_one_seed(game: Game, lineup: Lineup, keys: Key[Array, " envs"]):
    def one(key: Key[Array, ""]) -> tuple[Float32[Array, " agents"], Float32[Array, "events agents"]]:
        episode = play_episode(game, lineup, key=key)
        return episode.returns, count_events(game, episode)

    return jax.vmap(one)(keys)


def count_events(game: Game, episode: Episode) -> Float32[Array, "events agents"]:
    """How often each seat was rewarded for each event of the game."""
    before, after = (jax.tree.map(lambda leaf, part=part: leaf[part], episode.states) for part in (BEFORE, AFTER))
    events = jax.vmap(game.events)(before, episode.actions, after, episode.rewards)
    return jnp.sum(events, axis=0, dtype=jnp.float32)
