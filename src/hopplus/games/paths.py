"""Shortest paths on a board: the distance of each cell, and the first moves of shortest paths to it.

The first moves of a cell are a bit set: bit m is on if some shortest path to it starts with move m.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, UInt8

FAR = 1_000_000
"""The distance of an unreachable cell."""


def paths_around_walls(
    free: Bool[Array, "height width"], start: Bool[Array, "height width"]
) -> tuple[Int32[Array, "height width"], UInt8[Array, "height width"]]:
    """Distances and first moves from the one start cell, by breadth-first search.

    A new cell inherits the first moves of its neighbours in the ring before.
    """

    def widen(carry):
        distance, moves, ring, length = carry
        unseen = free & (distance == FAR)
        ring = jnp.where(unseen, _or(_arrivals(ring)), jnp.uint8(0))
        return jnp.where(ring > 0, length, distance), moves | ring, ring, length + 1

    moved = [arrived << move for move, arrived in enumerate(_arrivals(start.astype(jnp.uint8)))]
    ring = jnp.where(free & ~start, _or(moved), jnp.uint8(0))
    distance = jnp.where(start, 0, jnp.where(ring > 0, 1, FAR)).astype(jnp.int32)
    first = (distance, ring, ring, jnp.int32(2))
    distance, moves, _, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[2] > 0), widen, first)
    return distance, moves


def straight_paths(
    start: Bool[Array, "height width"],
) -> tuple[Int32[Array, "height width"], UInt8[Array, "height width"]]:
    """Distances and first moves without walls: the Manhattan distance, and every move towards the cell."""
    height, width = start.shape
    cell = jnp.argmax(start.reshape(-1)).astype(jnp.int32)
    down = jnp.arange(height, dtype=jnp.int32)[:, None] - cell // width
    right = jnp.arange(width, dtype=jnp.int32)[None, :] - cell % width
    moves = [(towards > 0).astype(jnp.uint8) << move for move, towards in enumerate((-down, down, -right, right))]
    return jnp.abs(down) + jnp.abs(right), _or(moves)


def _arrivals(cells: UInt8[Array, "height width"]) -> list[UInt8[Array, "height width"]]:
    """For each move, the value of the cell that the move comes from."""
    padded = jnp.pad(cells, 1)
    return [padded[2:, 1:-1], padded[:-2, 1:-1], padded[1:-1, 2:], padded[1:-1, :-2]]


def _or(boards: list[UInt8[Array, "..."]]) -> UInt8[Array, "height width"]:
    first, second, third, fourth = boards
    return first | second | third | fourth
