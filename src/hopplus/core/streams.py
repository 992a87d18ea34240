"""Random streams by name: a run holds one key and a counter, and every consumer folds in its own name.

Resuming is then exact, and a new consumer shifts no other stream.
"""

from collections.abc import Sequence
from zlib import crc32

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, Key, PyTree, UInt32

import hopplus.core.threefry  # noqa: F401  how JAX's hashes are compiled on CPUs


def stream(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """The key of the consumer with that name."""
    return jax.random.fold_in(key, crc32(name.encode()))


def at(key: Key[Array, ""], name: str, update: Int32[Array, ""]) -> Key[Array, ""]:
    """The key of the consumer with that name in one update."""
    return jax.random.fold_in(stream(key, name), update)


def at_each(
    names: Sequence[str], keys: Key[Array, "*batch"], update: Int32[Array, ""]
) -> dict[str, Key[Array, "*batch"]]:
    """The keys of several consumers in one update, as `at` gives them: one small program for all of them."""

    def one(key: Key[Array, ""], code: UInt32[Array, ""]) -> Key[Array, ""]:
        return jax.random.fold_in(jax.random.fold_in(key, code), update)

    of_batch = one
    for _ in keys.shape:
        of_batch = jax.vmap(of_batch, in_axes=(0, None))
    codes = jnp.array([crc32(name.encode()) for name in names], jnp.uint32)
    found = jax.vmap(of_batch, in_axes=(None, 0))(keys, codes)
    return {name: found[index] for index, name in enumerate(names)}


def without_keys(tree: PyTree[Array]) -> PyTree[Array]:
    """The tree with random keys as plain numbers."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if is_key(leaf) else leaf, tree)


def with_keys(like: PyTree[Array], tree: PyTree[Array]) -> PyTree[Array]:
    """The tree with plain numbers as random keys where `like` has keys."""
    return jax.tree.map(lambda one, leaf: jax.random.wrap_key_data(leaf) if is_key(one) else leaf, like, tree)


def is_key(leaf: Array | jax.ShapeDtypeStruct) -> bool:
    """Whether an array holds random keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
