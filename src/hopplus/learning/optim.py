"""Parameters with their optimiser, and how they move."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32, PyTree


class Trained(eqx.Module):
    """Parameters and the state of their optimiser."""

    params: Any
    opt_state: PyTree[Array]


def init_trained(transform: optax.GradientTransformation, params: Any) -> Trained:
    """Parameters with a fresh optimiser."""
    return Trained(params, transform.init(params))


def apply_gradient(
    transform: optax.GradientTransformation, trained: Trained, gradient: Any, rate: float | Float32[Array, ""]
) -> Trained:
    """One step of an optimiser that has no learning rate of its own."""
    steps, opt_state = transform.update(gradient, trained.opt_state)
    params = jax.tree.map(lambda param, step: param - rate * step, trained.params, steps)
    return Trained(params, opt_state)


def falling(rate: float, final_share: float, remaining: Float32[Array, ""]) -> Float32[Array, ""]:
    """A rate that falls linearly to a share of itself; `remaining` is the share of the schedule that is left."""
    return rate * (final_share + (1 - final_share) * remaining)


def clipped(gradient: Any, largest: float) -> Any:
    """The gradient, scaled down if its norm is larger; `largest` 0: as it is."""
    if not largest or not jax.tree.leaves(gradient):
        return gradient
    scale = jnp.minimum(1.0, largest / jnp.maximum(optax.tree.norm(gradient), 1e-12))
    return jax.tree.map(lambda leaf: scale * leaf, gradient)
