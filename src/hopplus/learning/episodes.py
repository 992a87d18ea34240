"""Episodes that end while tables play on: their returns, lengths and deeds, summed as they finish."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from hopplus.games.game import Game
from hopplus.learning.rollout import Trajectory


class Running(eqx.Module):
    """What has happened so far in the episode that is on each table."""

    returns: Float32[Array, "*envs agents"]
    lengths: Float32[Array, "*envs agents"]
    """Steps that the seat was in the game."""
    deeds: Float32[Array, "*envs deeds agents"]


def start(game: Game, num_envs: int) -> Running:
    agents, deeds = game.spec.num_agents, len(game.spec.deeds)
    zeros = lambda *shape: jnp.zeros((num_envs, *shape), jnp.float32)  # noqa: E731
    return Running(zeros(agents), zeros(agents), zeros(deeds, agents))


def follow(running: Running, steps: Trajectory) -> tuple[Running, Running, Float32[Array, ""]]:
    """Play the record on: what runs now, the mean over the episodes that ended, and how many those were."""
    over = jnp.all(steps.terminated_after, axis=-1)

    def one_step(carry, step):
        running, ended = carry
        happened, over = step
        running = jax.tree.map(jnp.add, running, happened)
        counted = jax.tree.map(lambda now: jnp.where(_like(over, now), now, 0.0), running)
        ended = jax.tree.map(jnp.add, ended, counted)
        running = jax.tree.map(jnp.subtract, running, counted)
        return (running, ended), None

    happened = Running(steps.rewards, steps.in_game.astype(jnp.float32), steps.did.astype(jnp.float32))
    by_time = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (happened, over))
    nothing = jax.tree.map(jnp.zeros_like, running)
    (running, ended), _ = jax.lax.scan(one_step, (running, nothing), by_time)
    count = jnp.sum(over).astype(jnp.float32)
    return running, jax.tree.map(lambda totals: jnp.sum(totals, axis=0) / count, ended), count


def ranked(running: Running, steps: Trajectory, percentile: float) -> Trajectory:
    """The same steps, paid by rank (Laterre et al., 2018): an episode of a seat is worth 1 or -1 when the seat ends it.

    1 is for returns at or above that percentile of those of all seats that end in the record.
    """
    over = jnp.all(steps.terminated_after, axis=-1)

    def one_step(total, step):
        reward, over = step
        total = total + reward
        return jnp.where(over[:, None], 0.0, total), total

    by_time = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (steps.rewards, over))
    returns = jnp.moveaxis(jax.lax.scan(one_step, running.returns, by_time)[1], 0, 1)
    ends = steps.in_game & steps.terminated_after
    threshold = jnp.nanquantile(jnp.where(ends, returns, jnp.nan), percentile)
    rewards = jnp.where(ends, jnp.where(returns >= threshold, 1.0, -1.0), 0.0)
    return replace(steps, rewards=rewards.astype(steps.rewards.dtype))


def _like(flags, leaf):
    return flags.reshape(flags.shape + (1,) * (leaf.ndim - 1))
