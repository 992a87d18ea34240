"""The board of grid games: walls, arenas, spawns, moves and distances.

A position is a flat cell index, row * width + column, so that a state is a few integers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, UInt8, UInt32

from hopplus.core.numerics import running_count
from hopplus.games.walls import draw_layouts

MOVE_NAMES = ("up", "down", "left", "right")
STAY = 4
ROW_STEPS = np.array([-1, 1, 0, 0], np.int32)
COLUMN_STEPS = np.array([0, 0, -1, 1], np.int32)


class Board(eqx.Module):
    """The size of a board and its kind of walls."""

    height: int = eqx.field(static=True, default=8)
    width: int = eqx.field(static=True, default=8)
    obstacle_pieces: int = eqx.field(static=True, default=0)
    """The number of random wall pieces of 3 or 4 cells; the free cells stay connected. See `walls`."""
    arena_sides: tuple[int, int] | None = eqx.field(static=True, default=None)
    """Play each episode in a random square of the board with a side uniform in this range; the rest is wall."""

    def check_room(self, num_entities: int) -> None:
        """Raise if the board may have too few free cells for all players and prey."""
        if self.height < 1 or self.width < 1:
            raise ValueError(f"a board of {self.height}x{self.width} has no cells; give at least one row and column")
        if self.obstacle_pieces < 0:
            raise ValueError(f"obstacle_pieces is {self.obstacle_pieces}; give 0 or more")
        largest_side = min(self.height, self.width)
        if self.arena_sides is None:
            room = self.height * self.width - 4 * self.obstacle_pieces
        elif 1 <= self.arena_sides[0] <= self.arena_sides[1] <= largest_side:
            room = self.arena_sides[0] ** 2
        else:
            raise ValueError(
                f"arena_sides {self.arena_sides} does not fit a {self.height}x{self.width} board; "
                f"give 1 <= low <= high <= {largest_side}"
            )
        if num_entities > room:
            raise ValueError(
                f"{num_entities} players and prey need a cell each, but there may be only {max(room, 0)}; "
                "take a larger board or arena, fewer obstacle pieces, or fewer players and prey"
            )

    @property
    def has_walls(self) -> bool:
        return self.obstacle_pieces > 0 or self.arena_sides is not None

    def draw(
        self, num_entities: int, *, key: Key[Array, ""]
    ) -> tuple[Bool[Array, "height width"], Int32[Array, " {num_entities}"]]:
        """The walls of one episode, and distinct free cells; every ordered choice of cells is equally likely."""
        if not self.has_walls:
            cells = draw_distinct(num_entities, jnp.int32(self.height * self.width), key=key)
            return jnp.zeros((self.height, self.width), bool), cells
        wall_key, cell_key = jax.random.split(key)
        walls = self._draw_walls(num_entities, key=wall_key)
        free_up_to_here = running_count(~walls.reshape(-1))
        ranks = draw_distinct(num_entities, free_up_to_here[-1], key=cell_key)
        return walls, jnp.sum(free_up_to_here <= ranks[:, None], axis=-1, dtype=jnp.int32)

    def _draw_walls(self, min_free: int, *, key: Key[Array, ""]) -> Bool[Array, "height width"]:
        """The walls of one episode; at least `min_free` cells stay free."""
        if self.obstacle_pieces > 0:
            layouts = draw_layouts(self.height, self.width, self.obstacle_pieces, self.arena_sides, min_free)
            return jnp.asarray(layouts)[uniform_below(jax.random.bits(key, (), jnp.uint32), jnp.int32(len(layouts)))]
        return self._outside_of_arena(key=key)

    def moves(
        self, walls: Bool[Array, "height width"], positions: Int32[Array, " entities"]
    ) -> tuple[Int32[Array, "entities 4"], Bool[Array, "entities 4"]]:
        """The target of each of the four moves, and whether it is a free cell of the board."""
        rows = jax.lax.div(positions, jnp.int32(self.width))[:, None] + ROW_STEPS
        columns = jax.lax.rem(positions, jnp.int32(self.width))[:, None] + COLUMN_STEPS
        free = (rows >= 0) & (rows < self.height) & (columns >= 0) & (columns < self.width)
        targets = jnp.where(free, rows * self.width + columns, 0)
        if self.has_walls:
            free &= ~walls.reshape(-1)[targets]
        return targets, free

    def free_moves(self, walls: Bool[Array, "height width"], place: Bool[Array, "height width"]) -> Bool[Array, " 4"]:
        """Whether each of the four moves from the one cell in `place` is free; no move is free if `place` is empty."""
        free = jnp.pad(~walls, 1)
        around = [free[:-2, 1:-1], free[2:, 1:-1], free[1:-1, :-2], free[1:-1, 2:]]
        return jnp.stack([jnp.any(cells & place) for cells in around])

    def moved(
        self, positions: Int32[Array, " entities"], actions: Int32[Array, " entities"]
    ) -> Int32[Array, " entities"]:
        """The position of each entity after its action; only the four moves, which must be legal, change it."""
        after = positions
        for move, step in enumerate(ROW_STEPS * self.width + COLUMN_STEPS):
            after = jnp.where(actions == move, positions + step, after)
        return after

    def plane(
        self, positions: Int32[Array, " entities"], shown: Bool[Array, " entities"]
    ) -> Bool[Array, "height width"]:
        """One plane with every shown entity on it."""
        return jnp.any(self.planes(positions, shown), axis=-1)

    def planes(
        self, positions: Int32[Array, " entities"], shown: Bool[Array, " entities"]
    ) -> Bool[Array, "height width entities"]:
        """A plane of its own for each entity; empty where it is not shown."""
        cells = jnp.arange(self.height * self.width, dtype=jnp.int32).reshape(self.height, self.width, 1)
        return (cells == positions) & shown

    def marked(
        self, positions: Int32[Array, " entities"], marks: UInt8[Array, " entities"]
    ) -> UInt8[Array, "height width"]:
        """The bits of all marks on each cell. With a bit for each plane it is quicker than a plane for each entity."""
        cells = jnp.arange(self.height * self.width, dtype=jnp.int32).reshape(self.height, self.width, 1)
        return jax.lax.reduce(jnp.where(cells == positions, marks, jnp.uint8(0)), np.uint8(0), jax.lax.bitwise_or, (2,))

    def places(
        self, plane: Bool[Array, "height width"], count: int
    ) -> tuple[Int32[Array, " {count}"], Bool[Array, " {count}"]]:
        """The inverse of `plane`: the positions of up to `count` entities in cell order, and which of them exist."""
        rank = running_count(plane.reshape(-1))
        numbers = jnp.arange(1, count + 1, dtype=jnp.int32)
        shown = numbers <= rank[-1]
        cells = jnp.sum(rank < numbers[:, None], axis=-1, dtype=jnp.int32)
        return jnp.where(shown, cells, 0), shown

    def place_of_each(
        self, planes: Bool[Array, "height width entities"]
    ) -> tuple[Int32[Array, " entities"], Bool[Array, " entities"]]:
        """The inverse of `planes`: the position of each entity, and whether it is shown."""
        shown = jnp.any(planes, axis=(0, 1))
        return jnp.argmax(planes.reshape(-1, planes.shape[-1]), axis=0).astype(jnp.int32), shown

    def _outside_of_arena(self, *, key: Key[Array, ""]) -> Bool[Array, "height width"]:
        assert self.arena_sides is not None
        low, high = self.arena_sides
        words = jax.random.bits(key, (3,), jnp.uint32)
        side = low + uniform_below(words[0], jnp.int32(high - low + 1))
        top = uniform_below(words[1], self.height - side + 1)
        left = uniform_below(words[2], self.width - side + 1)
        rows, columns = jnp.arange(self.height)[:, None], jnp.arange(self.width)[None, :]
        return (rows < top) | (rows >= top + side) | (columns < left) | (columns >= left + side)


def uniform_below(words: UInt32[Array, "*shape"], bound: Int32[Array, "*#shape"]) -> Int32[Array, "*shape"]:
    """floor(word * bound / 2**32), in 32-bit arithmetic: uniform below a bound of at most 2**16."""
    bound = bound.astype(jnp.uint32)
    low = ((words & 0xFFFF) * bound) >> 16
    return (((words >> 16) * bound + low) >> 16).astype(jnp.int32)


def random_words(count: int, *, key: Key[Array, ""]) -> UInt32[Array, " {count}"]:
    """Uniform words; a split key gives two uniform words per hash, and `jax.random.bits` only one."""
    return jax.random.key_data(jax.random.split(key, -(-count // 2))).reshape(-1)[:count]


def draw_distinct(count: int, population: Int32[Array, ""], *, key: Key[Array, ""]) -> Int32[Array, " {count}"]:
    """Ordered distinct numbers below `population`: a Fisher-Yates shuffle without storing the permutation.

    Step i swaps card i with card picks[i] >= i. Traced backwards from its final place, a card moves only if an earlier
    step picked its place.
    """
    return distinct(random_words(count, key=key), population)


def distinct(words: UInt32[Array, " count"], population: Int32[Array, ""]) -> Int32[Array, " count"]:
    """The numbers of `draw_distinct` from uniform words."""
    count = len(words)
    steps = jnp.arange(count, dtype=jnp.int32)
    picks = steps + uniform_below(words, population - steps)
    cards = picks
    for step in reversed(range(count - 1)):
        cards = jnp.where((steps > step) & (cards == picks[step]), step, cards)
    return cards
