"""Beliefs about the goal of one co-player: a Bayes filter within an episode, discounted counts across episodes.

    within:   b(g) <- b(g) ((1 - smoothing) p(a | s, g) + smoothing u(a)),  u uniform over the legal actions
    across:   c_g  <- .995 c_g + w_g,   the next episode begins at c / sum c

The smoothing keeps every goal alive. w is the goal that the co-player revealed, or the last belief where it revealed
none (Huang et al., ICML 2024).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

SMOOTHING = 0.05
"""The share of uniform legal play in every likelihood."""
MEMORY = 0.995
"""The factor on the counts after each episode."""


def update(
    belief: Float32[Array, " goals"],
    predicted: Float32[Array, "goals actions"],
    legal: Bool[Array, " actions"],
    action: Int32[Array, ""],
    smoothing: float = SMOOTHING,
) -> Float32[Array, " goals"]:
    """The belief after the co-player's action; unchanged where it took none (NO_ACTION)."""
    likelihoods = (1 - smoothing) * predicted + smoothing * uniform(legal)
    taken = jnp.arange(predicted.shape[-1]) == action
    likelihood = jnp.sum(jnp.where(taken, likelihoods, 0.0), axis=-1)
    weight = belief * likelihood
    total = jnp.sum(weight)
    return jnp.where(total > 0, weight / jnp.where(total > 0, total, 1.0), belief)


def uniform(legal: Bool[Array, " actions"]) -> Float32[Array, " actions"]:
    """Uniform probabilities over the legal actions."""
    return legal / jnp.maximum(jnp.sum(legal, dtype=jnp.int32), 1)


def first_counts(num_goals: int) -> Float32[Array, " {num_goals}"]:
    """The counts before the first episode with a co-player."""
    return jnp.ones(num_goals, jnp.float32)


def count(counts: Float32[Array, " goals"], revealed: Float32[Array, " goals"]) -> Float32[Array, " goals"]:
    """The counts after an episode; `revealed` is one-hot, or the filter's last belief."""
    return MEMORY * counts + revealed


def starting_belief(counts: Float32[Array, " goals"]) -> Float32[Array, " goals"]:
    """The belief at the start of the next episode."""
    return counts / jnp.sum(counts)


def predictive(
    belief: Float32[Array, " goals"], predicted: Float32[Array, "goals actions"]
) -> Float32[Array, " actions"]:
    """The co-player's action probabilities, averaged over the belief."""
    return belief @ predicted
