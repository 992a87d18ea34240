"""Random streams by name: a run holds one key and a counter, and every consumer folds in its own name.

Resuming is then exact, and a new consumer shifts no other stream.
"""

from zlib import crc32

import jax
from jaxtyping import Array, Int32, Key


def stream(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """The key of the consumer of that name."""
    return jax.random.fold_in(key, crc32(name.encode()))


def at(key: Key[Array, ""], name: str, update: Int32[Array, ""]) -> Key[Array, ""]:
    """The key of that consumer in one update."""
    return jax.random.fold_in(stream(key, name), update)
