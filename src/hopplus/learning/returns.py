"""Advantages by GAE (Schulman et al., 2016).

    A_t = d_t + discount * lambda * A_{t+1},    d_t = r_t + discount * V_{t+1} - V_t

Both sums stop where the seat terminated after the step. lambda = 1 is the plain Monte-Carlo return.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32


def advantages(
    rewards: Float32[Array, " time"],
    values: Float32[Array, " time"],
    last_value: Float32[Array, ""],
    terminated_after: Bool[Array, " time"],
    *,
    discount: float,
    gae_lambda: float,
) -> Float32[Array, " time"]:
    """The advantages; `values + advantages` are the critic's targets."""
    goes_on = 1.0 - terminated_after
    next_values = jnp.concatenate([values[1:], last_value[None]])
    surprises = rewards + discount * goes_on * next_values - values

    def backwards(later, step):
        surprise, goes_on = step
        advantage = surprise + discount * gae_lambda * goes_on * later
        return advantage, advantage

    _, result = jax.lax.scan(backwards, jnp.zeros_like(last_value), (surprises, goes_on), reverse=True)
    return result
