"""Obstacle layouts: random pieces of three or four cells that never cut the board in two.

The connectivity test is a loop that a compiled program would repeat for every environment at every step, because any
environment may need a reset. So the layouts are drawn once, here, and an episode picks one of them.
"""

from functools import lru_cache

import numpy as np

NUM_LAYOUTS = 4096
PLACEMENT_TRIES = 100
LAYOUT_TRIES = 20
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))


@lru_cache(maxsize=16)
def draw_layouts(
    height: int, width: int, num_pieces: int, arena_sides: tuple[int, int] | None, min_free: int
) -> np.ndarray:
    """[layouts, height, width]: the walls outside the arena and of the pieces, equal on every machine.

    A piece is placed anywhere on the board, so an arena cuts some pieces and a small arena has few. A piece is drawn
    again if it would leave the board, overlap another piece, cut the free cells in two or leave fewer than `min_free`.
    If a piece has no place, the whole layout is drawn again; only arenas may have fewer pieces.
    """
    random = np.random.RandomState(0)  # its stream is frozen, unlike that of NumPy's newer generators
    layouts = np.zeros((0, height, width), bool)
    for _ in range(LAYOUT_TRIES):
        walls, complete = _draw_some(height, width, num_pieces, arena_sides, min_free, random)
        layouts = np.concatenate([layouts, walls[complete | (arena_sides is not None)]])[:NUM_LAYOUTS]
        if len(layouts) == NUM_LAYOUTS:
            return layouts
    raise ValueError(
        f"{num_pieces} obstacle pieces hardly ever fit a {height}x{width} board that needs {min_free} free cells; "
        "take fewer pieces or a larger board"
    )


def _draw_some(
    height: int,
    width: int,
    num_pieces: int,
    arena_sides: tuple[int, int] | None,
    min_free: int,
    random: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Layouts, and whether each has all its pieces."""
    walls = _outside_of_arenas(height, width, arena_sides, random)
    pieces = np.zeros_like(walls)
    complete = np.ones(NUM_LAYOUTS, bool)
    for _ in range(num_pieces):
        waiting = np.arange(NUM_LAYOUTS)
        for _ in range(PLACEMENT_TRIES):
            piece, inside = _random_pieces(height, width, len(waiting), random)
            free = ~(walls[waiting] | piece)
            fits = inside & ~(piece & pieces[waiting]).any((1, 2)) & (free.sum((1, 2)) >= min_free)
            fits[fits] = are_connected(free[fits])
            placed = waiting[fits]
            walls[placed] |= piece[fits]
            pieces[placed] |= piece[fits]
            waiting = waiting[~fits]
        complete[waiting] = False
    return walls, complete


def are_connected(free: np.ndarray) -> np.ndarray:
    """For each board of [boards, height, width], whether every free cell can be reached from every other."""
    boards, height, width = free.shape
    first = free.reshape(boards, height * width).argmax(axis=1)
    reached = np.zeros_like(free)
    reached[np.arange(boards), first // width, first % width] = True
    while True:
        padded = np.pad(reached, ((0, 0), (1, 1), (1, 1)))
        wider = reached | padded[:, :-2, 1:-1] | padded[:, 2:, 1:-1] | padded[:, 1:-1, :-2] | padded[:, 1:-1, 2:]
        wider &= free
        if (wider == reached).all():
            return np.all(reached | ~free, axis=(1, 2))
        reached = wider


def fixed_polyominoes(size: int) -> list[tuple[tuple[int, int], ...]]:
    """Every shape of `size` connected cells with its corner at (0, 0); rotations and mirror images are distinct."""
    shapes = {((0, 0),)}
    for _ in range(size - 1):
        shapes = {
            _at_corner({*shape, (row + down, column + right)})
            for shape in shapes
            for row, column in shape
            for down, right in STEPS
            if (row + down, column + right) not in shape
        }
    return sorted(shapes)


def _at_corner(cells: set[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    top, left = min(row for row, _ in cells), min(column for _, column in cells)
    return tuple(sorted((row - top, column - left) for row, column in cells))


PIECES = np.array([(shape[0], *shape) for shape in fixed_polyominoes(3)] + fixed_polyominoes(4))
"""[pieces, 4, 2]: the cells of each piece; a piece of three cells has its first cell twice."""


def _random_pieces(height: int, width: int, count: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Boards with one piece each at a random place, and whether the piece is inside the board."""
    cells = PIECES[random.randint(len(PIECES), size=count)]
    rows = cells[..., 0] + random.randint(height, size=(count, 1))
    columns = cells[..., 1] + random.randint(width, size=(count, 1))
    boards = np.zeros((count, height + 4, width + 4), bool)
    boards[np.arange(count)[:, None], rows, columns] = True
    return boards[:, :height, :width], np.all((rows < height) & (columns < width), axis=1)


def _outside_of_arenas(
    height: int, width: int, sides: tuple[int, int] | None, random: np.random.RandomState
) -> np.ndarray:
    if sides is None:
        return np.zeros((NUM_LAYOUTS, height, width), bool)
    side = random.randint(sides[0], sides[1] + 1, size=(NUM_LAYOUTS, 1, 1))
    top, left = random.randint(height - side + 1), random.randint(width - side + 1)
    rows, columns = np.arange(height)[:, None], np.arange(width)
    return (rows < top) | (rows >= top + side) | (columns < left) | (columns >= left + side)
