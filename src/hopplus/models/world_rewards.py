"""Rewards as a distribution: over the game's reward support, or over bins where it declares none.

The bins are even on a symlog scale. A reward between two bins is both of them, with the probabilities whose expectation
it is (two-hot).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32

from hopplus.core.numerics import choice_cross_entropy
from hopplus.games.game import GameSpec

BINS = np.sign(np.arange(-48, 49)) * (2.0 ** (np.abs(np.arange(-48, 49)) / 4) - 1)
"""Rewards without a finite support: four bins for every doubling of 1 + |reward|, up to 4,095. 0, 1, 3, 7 are bins."""


def symlog(numbers: Float32[Array, "*shape"]) -> Float32[Array, "*shape"]:
    """sign(x) log(1 + |x|)"""
    return jnp.sign(numbers) * jnp.log1p(jnp.abs(numbers))


def two_hot(numbers: Float32[Array, "*shape"]) -> Float32[Array, "*shape bins"]:
    """Probabilities of the two bins around each number, whose expectation is the number."""
    bins = jnp.asarray(BINS, jnp.float32)
    numbers = jnp.clip(numbers, bins[0], bins[-1])
    lower = jnp.clip(jnp.searchsorted(bins, numbers, side="right") - 1, 0, len(BINS) - 2)
    share = (numbers - bins[lower]) / (bins[lower + 1] - bins[lower])
    places = np.arange(len(BINS))
    at_lower, at_upper = (places == place[..., None] for place in (lower, lower + 1))
    return jnp.where(at_lower, 1 - share[..., None], 0.0) + jnp.where(at_upper, share[..., None], 0.0)


def num_rewards(spec: GameSpec) -> int:
    """How many places the distribution of a reward has."""
    return len(spec.reward_support) or len(BINS)


def surprise(
    spec: GameSpec, logits: Float32[Array, "agents places"], rewards: Float32[Array, " agents"]
) -> Float32[Array, " agents"]:
    """The cross-entropy of each seat's reward."""
    if not spec.reward_support:
        return -jnp.sum(two_hot(rewards) * jax.nn.log_softmax(logits), axis=-1)
    support = jnp.asarray(spec.reward_support, jnp.float32)
    paid = jnp.argmin(jnp.abs(rewards[:, None] - support), axis=-1)
    return choice_cross_entropy(logits, paid)


def reward_at(spec: GameSpec, places: Int32[Array, " agents"]) -> Float32[Array, " agents"]:
    """The rewards that were drawn."""
    return jnp.asarray(spec.reward_support or BINS, jnp.float32)[places]


def likeliest(spec: GameSpec, logits: Float32[Array, "agents places"]) -> Float32[Array, " agents"]:
    """The likeliest reward of the support; of bins, what they lead to expect."""
    if spec.reward_support:
        return reward_at(spec, jnp.argmax(logits, axis=-1))
    return jax.nn.softmax(logits) @ jnp.asarray(BINS, jnp.float32)
