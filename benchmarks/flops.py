"""How much arithmetic a PPO update is, and how much of it this machine could do: the bound that dense layers set."""

import time

import jax
import jax.numpy as jnp

from settings import Settings

SEATS, ACTIONS = 4, 7


def matmul_peak(size: int = 2048, *, seconds: float = 1.0) -> float:
    """FLOP/s of a large float32 matrix product in JAX, the fastest of many, as a peak should be."""
    left, right = jax.random.normal(jax.random.key(0), (2, size, size))
    product = jax.jit(jnp.matmul)
    product(left, right).block_until_ready()
    fastest, until = float("inf"), time.perf_counter() + seconds
    while (started := time.perf_counter()) < until:
        product(left, right).block_until_ready()
        fastest = min(fastest, time.perf_counter() - started)
    return 2 * size**3 / fastest


def update_flops(inputs: int, settings: Settings) -> float:
    """Of the dense layers of one rollout and the update that follows, 2mnk for each matrix product.

    The rollout passes forwards once more than it has steps, for the values at its end. A pass backwards has a product
    for the gradient of every weight matrix, and one for the gradient of every layer's input except the first's.
    """
    first = inputs * settings.hidden_size
    others = settings.hidden_size**2 + settings.hidden_size * (ACTIONS + 1)
    forwards, backwards = 2 * (first + others), 2 * (first + 2 * others)
    acted = SEATS * settings.num_envs * (settings.num_steps + 1)
    learned = SEATS * settings.env_steps_per_update * settings.num_epochs
    return float(acted * forwards + learned * (forwards + backwards))
