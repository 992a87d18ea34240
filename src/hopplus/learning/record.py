"""What one update reports: names follow CleanRL and the notes, arrays have one number per seat, learner or seed.

Real data has its own names, so that imagined data can never hide behind it.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from hopplus.games.game import GameSpec
from hopplus.learning.episodes import Running
from hopplus.learning.ppo import Batch, Metrics, weighted_mean
from hopplus.learning.rollout import Trajectory


def record(
    spec: GameSpec, steps: Trajectory, batch: Batch, ended: Running, num_ended: Float32[Array, ""], learned: Metrics
) -> Metrics:
    """Everything that is known after one update of one seed. Means over no episodes are not numbers."""
    deeds = {f"charts/{name}": ended.deeds[index] for index, (name, _) in enumerate(spec.deeds)}
    residual = variance(batch.targets - batch.values, batch.active)
    explained = 1 - residual / jnp.maximum(variance(batch.targets, batch.active), 1e-8)
    samples = jnp.sum(batch.active, axis=(1, 2)).astype(jnp.float32)
    rewards = jnp.moveaxis(steps.rewards[:, :, : batch.active.shape[0]], 2, 0)
    return {
        "charts/episodic_return": ended.returns,
        "charts/episodes": num_ended,
        **deeds,
        **learned,
        "policy/explained_variance": explained,
        **spread("real/reward", rewards, batch.active),
        **spread("real/return", batch.targets, batch.active),
        **spread("real/old_value", batch.values, batch.active),
        "count/samples/policy": samples,
        "buffer/size/policy": samples,
        "buffer/episode_length": ended.lengths,
    }


def spread(name: str, numbers: Float32[Array, "seats envs time"], mask: Bool[Array, "seats envs time"]) -> Metrics:
    """Mean, deviation, least and greatest of each seat's numbers."""
    least = jnp.min(jnp.where(mask, numbers, jnp.inf), axis=(1, 2))
    greatest = jnp.max(jnp.where(mask, numbers, -jnp.inf), axis=(1, 2))
    mean, deviation = jax.vmap(weighted_mean)(numbers, mask), jnp.sqrt(variance(numbers, mask))
    return {f"{name}_mean": mean, f"{name}_std": deviation, f"{name}_min": least, f"{name}_max": greatest}


def variance(
    numbers: Float32[Array, "seats envs time"], mask: Bool[Array, "seats envs time"]
) -> Float32[Array, " seats"]:
    centred = numbers - jax.vmap(weighted_mean)(numbers, mask)[:, None, None]
    return jax.vmap(weighted_mean)(jnp.square(centred), mask)
