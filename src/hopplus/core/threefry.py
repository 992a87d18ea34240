"""JAX's random bits with a program that compiles faster on CPUs; the bits are the same.

JAX hashes with Threefry-2x32 for every split, fold and draw. Under several `vmap`s the arrays of a hash have several
short axes, and LLVM unrolls the loops over each of them: a second or more for each hash in a program. Here the arrays
are made flat first. `benchmarks/compilation.py` compares the two.
"""

import jax
import jax.numpy as jnp
from jax.extend.random import threefry2x32_p
from jax.interpreters import mlir
from jaxtyping import Array, UInt32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY, NUM_GROUPS = 0x1BD11BDA, 5
"""Constants of the hash: Salmon and others, Parallel random numbers: as easy as 1, 2, 3 (2011)."""

Words = UInt32[Array, "..."]


def hash_flat(key_1: Words, key_2: Words, word_1: Words, word_2: Words) -> tuple[Words, Words]:
    """Threefry-2x32 with 20 rounds, of arrays of any shape, in one loop over all elements."""
    shape = jnp.broadcast_shapes(key_1.shape, key_2.shape, word_1.shape, word_2.shape)
    flat = [jnp.broadcast_to(words, shape).reshape(-1) for words in (key_1, key_2, word_1, word_2)]
    key_1, key_2, word_1, word_2 = flat
    rotations = jnp.array([ROTATIONS[group % 2] for group in range(NUM_GROUPS)], jnp.uint32)

    def four_rounds(group: Array, carry: tuple[Words, ...]) -> tuple[Words, ...]:
        one, other, *keys = carry
        for index in range(4):
            left = rotations[group, index]
            one = one + other
            other = ((other << left) | (other >> (32 - left))) ^ one
        _, second, third = keys
        return one + second, other + third + (group + 1).astype(jnp.uint32), second, third, keys[0]

    carry = (word_1 + key_1, word_2 + key_2, key_1, key_2, key_1 ^ key_2 ^ jnp.uint32(PARITY))
    one, other, *_ = jax.lax.fori_loop(0, NUM_GROUPS, four_rounds, carry)
    return one.reshape(shape), other.reshape(shape)


mlir.register_lowering(threefry2x32_p, mlir.lower_fun(hash_flat, multiple_results=True), platform="cpu")
