"""JAX's hash, made flat: the published values, and JAX's own bits under any number of axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry2x32_p

from hopplus.core.threefry import hash_flat

ONES = 0xFFFFFFFF
PUBLISHED = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
"""Key, words, hash: the test vectors of Random123."""


@pytest.mark.parametrize(("key", "words", "expected"), PUBLISHED)
def test_the_hash_has_the_published_values(key, words, expected):
    of_function = hash_flat(*(jnp.uint32(word) for word in (*key, *words)))
    of_jax = threefry2x32_p.bind(*(jnp.array([word], jnp.uint32) for word in (*key, *words)))
    assert tuple(int(word) for word in of_function) == expected
    assert tuple(int(word[0]) for word in of_jax) == expected


def test_programs_use_it_and_mapped_keys_give_the_bits_of_single_ones():
    keys = jax.random.split(jax.random.key(3), (2, 3, 4))
    draw = lambda key: jax.random.bits(jax.random.fold_in(key, 7), (5,))  # noqa: E731
    mapped = jax.jit(jax.vmap(jax.vmap(jax.vmap(draw))))
    several = mapped(keys)
    for index in np.ndindex(keys.shape):
        np.testing.assert_array_equal(several[index], draw(keys[index]))
    hashes = [line for line in mapped.lower(keys).as_text().splitlines() if "stablehlo.while" in line]
    assert hashes and all("tensor<2x3x4" not in line for line in hashes), "its arrays are not flat"
