"""Numbers that several folders use: metrics, masks, weighted means."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PyTree

Metrics = dict[str, Array]
"""Numbers by tag."""
MASKED = -1e9
"""The logit of what cannot be."""
LEAST = 1e-8
"""No probability is taken for less."""


MOST_SUMMED = 1024
"""Longer lines are summed by XLA's own loop: the matrix would be too large."""


def running_count(numbers: Bool[Array, " cells"] | Int32[Array, " cells"]) -> Int32[Array, " cells"]:
    """How many there are up to each cell, that cell included; all numbers are from 0 to 255.

    A product with a triangle of ones, which is exact. On a CPU `jnp.cumsum` is several loops, and XLA repeats them for
    every entry of what reads its result.
    """
    if len(numbers) > MOST_SUMMED:
        return jnp.cumsum(numbers, dtype=jnp.int32)
    triangle = np.triu(np.ones((len(numbers), len(numbers)), np.float32))
    return (numbers.astype(jnp.float32) @ triangle).astype(jnp.int32)


def weighted_mean(numbers: Float32[Array, "*batch"], weights: Array) -> Float32[Array, ""]:
    """The mean of the numbers with a weight above 0, and 0 where there is none; weights may be flags."""
    counted = jnp.where(weights > 0, numbers * weights, 0.0)
    return jnp.sum(counted) / jnp.maximum(jnp.sum(weights), 1e-6 if jnp.issubdtype(weights.dtype, jnp.floating) else 1)


def normalised(numbers: Float32[Array, "*batch"], weights: Array) -> Float32[Array, "*batch"]:
    """The numbers with mean 0 and standard deviation 1 over those with a weight above 0."""
    centred = numbers - weighted_mean(numbers, weights)
    return centred / jnp.sqrt(weighted_mean(jnp.square(centred), weights) + 1e-8)


def spread(name: str, numbers: Float32[Array, "seats envs time"], mask: Bool[Array, "seats envs time"]) -> Metrics:
    """Mean, standard deviation, minimum and maximum of each seat's numbers."""
    least = jnp.min(jnp.where(mask, numbers, jnp.inf), axis=(1, 2))
    greatest = jnp.max(jnp.where(mask, numbers, -jnp.inf), axis=(1, 2))
    mean, deviation = jax.vmap(weighted_mean)(numbers, mask), jnp.sqrt(variance(numbers, mask))
    return {f"{name}_mean": mean, f"{name}_std": deviation, f"{name}_min": least, f"{name}_max": greatest}


def variance(
    numbers: Float32[Array, "seats envs time"], mask: Bool[Array, "seats envs time"]
) -> Float32[Array, " seats"]:
    centred = numbers - jax.vmap(weighted_mean)(numbers, mask)[:, None, None]
    return jax.vmap(weighted_mean)(jnp.square(centred), mask)


def flag_cross_entropy(logits: Float32[Array, "*shape"], flags: Float32[Array, "*shape"]) -> Float32[Array, "*shape"]:
    """Of each flag, whose logit is given."""
    return jax.nn.softplus(logits) - flags * logits


def choice_cross_entropy(
    logits: Float32[Array, "*rows options"], chosen: Int32[Array, "*rows"]
) -> Float32[Array, "*rows"]:
    """Of each choice among options."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), chosen[..., None], axis=-1)[..., 0]


def evenly_spread(share: float, count: int) -> Bool[np.ndarray, " {count}"]:
    """Flags of which this share is set, at even distances."""
    return np.diff(np.floor(np.arange(count + 1) * share)) > 0


def map_rows(fn: Callable[[Any], Any], rows: PyTree[Array]) -> Any:
    """`fn` of each row of a tree, one after the other; without a loop where there is one row."""
    if count_rows(rows) > 1:
        return jax.lax.map(fn, rows)
    return jax.tree.map(lambda leaf: leaf[None], fn(jax.tree.map(lambda leaf: leaf[0], rows)))


def count_rows(tree: PyTree[Array]) -> int:
    """The length of the leading axis of a tree of arrays."""
    return jax.tree.leaves(tree)[0].shape[0]
