"""How much imagined data counts: the measured error of the models turned into weights.

    weight of a step = trust(rewards) trust(ends) (trust(board) prod_j trust(j))^(depth + 1)

Every factor is measured on real play that the models had not learned from.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from hopplus.core.numerics import Metrics
from hopplus.learning.config import ImaginationConfig
from hopplus.learning.ppo import Batch, Source

LEAST_WEIGHT = 0.3
"""Steps with less weight are dropped: this is how low trust shortens imagined rollouts."""
TOLERATED = 0.05
"""An error up to this is measurement noise."""


def trust_of(config: ImaginationConfig, errors: Metrics, has_seen_all: Bool[Array, ""] | bool = True) -> Metrics:
    """The trust in each model, from 0 to 1, by its error on real play.

    `has_seen_all`: whether every event of the game was seen; predicted rewards are not trusted before.
    """

    def good(error: Array) -> Array:
        return jnp.clip((1 - error) / (1 - TOLERATED), 0.0, 1.0)

    trust = {
        "trust/board": jnp.clip(1 - errors["wm/board_error"], 0.0, 1.0),
        "trust/reward": good(errors["wm/reward_error"]) * has_seen_all,
        "trust/end": good(errors["wm/end_error"]),
        "trust/others": good(errors["moa/misfit"]),
    }
    return trust if config.trust else jax.tree.map(jnp.ones_like, trust)


def weights_by_depth(trust: Metrics, depth: Int32[Array, "envs time"]) -> Float32[Array, "envs time"]:
    """The weight of an imagined step by the number of imagined steps since a real state."""
    for_ever = trust["trust/reward"] * trust["trust/end"]
    each_step = trust["trust/board"] * jnp.prod(trust["trust/others"])
    weights = for_ever * each_step ** (depth + 1)
    return jnp.where(weights < LEAST_WEIGHT, 0.0, weights)


def depth_of(reset_before: Bool[Array, "envs time"]) -> Int32[Array, "envs time"]:
    """Imagined steps since the last real state, 0 for the first; a new imagined episode starts at a real state."""
    times = jnp.arange(reset_before.shape[1], dtype=jnp.int32)
    return times - jax.lax.cummax(jnp.where(reset_before, times, 0), axis=1)


def mixed(config: ImaginationConfig, real: Batch, imagined: Batch, weights: Float32[Array, "seats samples"]) -> Batch:
    """Real and imagined samples as one batch, [seats, samples]; imagined samples of weight 0 are padding."""
    ones = jnp.ones(real.active.shape, jnp.float32)
    of_critic = {"all": jnp.ones_like(weights), "real": jnp.zeros_like(weights), "weighted": weights}[config.critic]
    real = replace(real, source=Source(jnp.zeros_like(real.active), ones, ones))
    source = Source(jnp.ones_like(imagined.active), weights, of_critic)
    imagined = replace(imagined, active=imagined.active & (weights > 0), source=source)
    return jax.tree.map(lambda one, other: jnp.concatenate([one, other], axis=1), real, imagined)
