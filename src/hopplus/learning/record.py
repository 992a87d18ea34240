"""The metrics of one update. Tags follow CleanRL; arrays have one number per seat, learner or seed.

Real and imagined data have different tags, so that one cannot hide the other.
"""

import jax.numpy as jnp

from hopplus.core.numerics import Metrics, spread, variance
from hopplus.games.game import GameSpec
from hopplus.learning.state import Experience


def record(spec: GameSpec, experience: Experience, learned: Metrics) -> Metrics:
    """All metrics of one update of one seed. Means over no episodes are NaN."""
    steps, batch, ended = experience.steps, experience.batch, experience.ended
    events = {f"charts/{event.name}": ended.events[index] for index, event in enumerate(spec.events)}
    residual = variance(batch.targets - batch.values, batch.active)
    explained = 1 - residual / jnp.maximum(variance(batch.targets, batch.active), 1e-8)
    samples = jnp.sum(batch.active, axis=(1, 2)).astype(jnp.float32)
    rewards = jnp.moveaxis(steps.rewards[:, :, : batch.active.shape[0]], 2, 0)
    return {
        "charts/episodic_return": ended.returns,
        "charts/episodes": experience.num_ended,
        **events,
        **learned,
        "policy/explained_variance": explained,
        **spread("real/reward", rewards, batch.active),
        **spread("real/return", batch.targets, batch.active),
        **spread("real/old_value", batch.values, batch.active),
        "count/samples/policy": samples,
        "buffer/size/policy": samples,
        "buffer/episode_length": ended.lengths,
    }
