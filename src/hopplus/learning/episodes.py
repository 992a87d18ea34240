"""Returns, lengths and events of episodes, summed as the episodes end."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from hopplus.games.game import Game
from hopplus.learning.rollout import Trajectory


class EpisodeStats(eqx.Module):
    """Sums over the current episode of each environment."""

    returns: Float32[Array, "*envs agents"]
    lengths: Float32[Array, "*envs agents"]
    """Steps that the seat was in the game."""
    events: Float32[Array, "*envs events agents"]


def start(game: Game, num_envs: int) -> EpisodeStats:
    """The statistics before the first step."""
    agents, events = game.spec.num_agents, len(game.spec.events)
    shapes = ((num_envs, agents), (num_envs, agents), (num_envs, events, agents))
    return EpisodeStats(*(jnp.zeros(shape, jnp.float32) for shape in shapes))


def add_steps(episodes: EpisodeStats, steps: Trajectory) -> tuple[EpisodeStats, EpisodeStats, Float32[Array, ""]]:
    """The statistics after the steps, the mean over the episodes that ended, and how many ended.

    Episodes in which a seat was after something else than the game's reward do not count.
    """
    over = jnp.all(steps.terminated_after, axis=-1)
    is_counted = jnp.ones_like(over) if steps.kinds is None else jnp.all(steps.kinds == 0, axis=-1)

    def one_step(carry, step):
        episodes, ended = carry
        new, over, is_counted = step
        episodes = jax.tree.map(jnp.add, episodes, new)
        counted = jax.tree.map(lambda now: jnp.where(_like(over, now), now, 0.0), episodes)
        added = jax.tree.map(lambda now: jnp.where(_like(is_counted, now), now, 0.0), counted)
        ended = jax.tree.map(jnp.add, ended, added)
        episodes = jax.tree.map(jnp.subtract, episodes, counted)
        return (episodes, ended), None

    new = EpisodeStats(steps.rewards, steps.in_game.astype(jnp.float32), steps.events.astype(jnp.float32))
    by_time = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (new, over, is_counted))
    zeros = jax.tree.map(jnp.zeros_like, episodes)
    (episodes, ended), _ = jax.lax.scan(one_step, (episodes, zeros), by_time)
    count = jnp.sum(over & is_counted).astype(jnp.float32)
    return episodes, jax.tree.map(lambda totals: jnp.sum(totals, axis=0) / count, ended), count


def ranked(episodes: EpisodeStats, steps: Trajectory, percentile: float) -> Trajectory:
    """The steps with rewards by rank (Laterre et al., 2018): an episode pays a seat 1 or -1 when the seat ends it.

    1 is for returns at or above that percentile of the returns of all seats that end in the rollout.
    """
    over = jnp.all(steps.terminated_after, axis=-1)

    def one_step(total, step):
        reward, over = step
        total = total + reward
        return jnp.where(over[:, None], 0.0, total), total

    by_time = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (steps.rewards, over))
    returns = jnp.moveaxis(jax.lax.scan(one_step, episodes.returns, by_time)[1], 0, 1)
    ends = steps.in_game & steps.terminated_after
    threshold = jnp.nanquantile(jnp.where(ends, returns, jnp.nan), percentile)
    rewards = jnp.where(ends, jnp.where(returns >= threshold, 1.0, -1.0), 0.0)
    return replace(steps, rewards=rewards.astype(steps.rewards.dtype))


def _like(flags, leaf):
    return flags.reshape(flags.shape + (1,) * (leaf.ndim - 1))
