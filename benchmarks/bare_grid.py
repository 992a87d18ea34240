"""What the hand-written games on a grid share: draws, moves and views. The batch is the last axis, but for views."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bare_stag_hunt import draw_actions, random_words, uniform_below

__all__ = ["distinct", "draw_actions", "free_moves", "moved_by", "random_words", "uniform_below", "view_bits", "views"]


def distinct(words: Array, population: Array) -> Array:
    """int32 [number, batch]: ordered distinct numbers below the population, by a Fisher-Yates shuffle."""
    picks = [index + uniform_below(word, population - index) for index, word in enumerate(words)]
    cards = list(picks)
    for place in reversed(range(len(cards) - 1)):
        for later in range(place + 1, len(cards)):
            cards[later] = jnp.where(cards[later] == picks[place], place, cards[later])
    return jnp.stack(cards)


def free_moves(position: Array, side: int) -> list[Array]:
    """bool [players, batch] for each of the four moves on a board without walls."""
    row, column = jax.lax.div(position, jnp.int32(side)), jax.lax.rem(position, jnp.int32(side))
    return [row > 0, row < side - 1, column > 0, column < side - 1]


def moved_by(actions: Array, side: int) -> Array:
    rows = jnp.where(actions == 0, -side, jnp.where(actions == 1, side, 0))
    return rows + jnp.where(actions == 2, -1, jnp.where(actions == 3, 1, 0))


def view_bits(players: int, blocks: int, shared: int) -> np.ndarray:
    """uint16 [viewer, plane]: the bit that each viewer sees in each plane: blocks in its own order, then the shared."""
    order = (np.arange(players)[:, None] + np.arange(players)) % players
    own = [order + players * block for block in range(blocks)]
    rest = np.tile(players * blocks + np.arange(shared), (players, 1))
    return (1 << np.concatenate([*own, rest], axis=1)).astype(np.uint16)


def views(packed: Array, bits: np.ndarray, side: int) -> Array:
    """uint8 [batch, viewers, side, side, planes] from the packed board, uint16 [batch, cells]."""
    seen = packed[:, None, :, None] & bits[:, None, :]
    return (seen != 0).astype(jnp.uint8).reshape(-1, len(bits), side, side, bits.shape[1])


def packed_marks(cells: Array, bits: np.ndarray | Array, num_cells: int) -> Array:
    """uint16 [batch, cells]: the bits of all things on their cells; a cell of -1 is nowhere."""
    on = cells.T[:, None, :] == np.arange(num_cells)[:, None]
    bits = bits if isinstance(bits, np.ndarray) else bits.T[:, None, :]
    return jnp.sum(jnp.where(on, bits, np.uint16(0)), axis=-1, dtype=jnp.uint16)
