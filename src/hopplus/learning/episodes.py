"""Episodes that end while tables play on: their returns, lengths and deeds, summed as they finish."""

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
        ended = jax.tree.map(lambda total, now: total + jnp.sum(now, axis=0), ended, counted)
        running = jax.tree.map(jnp.subtract, running, counted)
        return (running, ended), None

    happened = Running(steps.rewards, steps.in_game.astype(jnp.float32), steps.did.astype(jnp.float32))
    by_time = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (happened, over))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), running)
    (running, ended), _ = jax.lax.scan(one_step, (running, nothing), by_time)
    count = jnp.sum(over).astype(jnp.float32)
    return running, jax.tree.map(lambda total: total / count, ended), count


def _like(flags, leaf):
    return flags.reshape(flags.shape + (1,) * (leaf.ndim - 1))
