"""Slow references of the rules, written from the specification alone, in plain Python.

They share no code with `hopplus`: what they know of a game comes from reading its rules, so that an agreement of the
two means something. This file holds what the games on a grid have in common. A cell is a number, row * width + column.
"""

from collections.abc import Collection, Iterator

import numpy as np

UP, DOWN, LEFT, RIGHT, STAY = range(5)
DIRECTIONS = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}
NO_ACTION = -1


def neighbour(walls: list[list[bool]], cell: int, action: int) -> int | None:
    """The free cell that a move leads to, or None at an edge or a wall."""
    height, width = len(walls), len(walls[0])
    row, column = divmod(cell, width)
    row_change, column_change = DIRECTIONS[action]
    row, column = row + row_change, column + column_change
    if not (0 <= row < height and 0 <= column < width) or walls[row][column]:
        return None
    return row * width + column


def path_lengths(walls: list[list[bool]], start: int) -> dict[int, int]:
    """Steps on the shortest path from `start` to every free cell that can be reached, by breadth-first search."""
    lengths = {start: 0}
    frontier = [start]
    while frontier:
        reached = []
        for cell in frontier:
            for action in DIRECTIONS:
                beyond = neighbour(walls, cell, action)
                if beyond is not None and beyond not in lengths:
                    lengths[beyond] = lengths[cell] + 1
                    reached.append(beyond)
        frontier = reached
    return lengths


def seats_from(viewer: int, num_players: int) -> list[int]:
    """The viewer, the seats after it, then those before it: the order in which it sees the table."""
    return [*range(viewer, num_players), *range(viewer)]


def draw_board(walls: list[list[bool]], players: list[int | None], things: list[list[int]]) -> np.ndarray:
    """Planes of 0 and 1: one for each player (None: not on the board), the obstacles, one for each list of things."""
    height, width = len(walls), len(walls[0])
    planes = np.zeros((height, width, len(players) + 1 + len(things)), np.uint8)
    for plane, cell in enumerate(players):
        if cell is not None:
            planes[cell // width, cell % width, plane] = 1
    for row in range(height):
        for column in range(width):
            planes[row, column, len(players)] = walls[row][column]
    for plane, cells in enumerate(things, start=len(players) + 1):
        for cell in cells:
            planes[cell // width, cell % width, plane] = 1
    return planes


def free_cells(walls: list[list[bool]]) -> list[int]:
    width = len(walls[0])
    return [row * width + column for row, line in enumerate(walls) for column, wall in enumerate(line) if not wall]


def check_spawns(walls: list[list[bool]], cells: list[int]) -> None:
    """Everybody starts on a free cell of its own, and every free cell can be reached from every other."""
    free = free_cells(walls)
    assert len(set(cells)) == len(cells), f"two spawns share a cell: {cells}"
    assert set(cells) <= set(free), f"a spawn outside the free cells: {sorted(set(cells) - set(free))}"
    assert len(path_lengths(walls, free[0])) == len(free), "the free cells are not connected"


def check_walls(walls: list[list[bool]], obstacle_pieces: int, arena_sides: tuple[int, int] | None) -> None:
    """The walls are what is outside one square arena, if there are arenas, and pieces of 3 or 4 cells."""
    height, width = len(walls), len(walls[0])
    wall_cells = set(range(height * width)) - set(free_cells(walls))
    if arena_sides is None:
        assert splits_into_pieces(wall_cells, obstacle_pieces, width), f"not {obstacle_pieces} pieces: {wall_cells}"
        return
    for inside in squares(height, width, arena_sides):
        outside = set(range(height * width)) - inside
        if not outside <= wall_cells:
            continue
        # Of the pieces on the board some may lie outside the arena, wholly or in part.
        at_edge = {cell for cell in inside if touches(outside, cell, width)}
        within = wall_cells & inside
        if any(splits_into_pieces(within, pieces, width, at_edge) for pieces in range(obstacle_pieces + 1)):
            return
    raise AssertionError(f"no arena with a side in {arena_sides} explains the walls {wall_cells}")


def squares(height: int, width: int, sides: tuple[int, int]) -> Iterator[set[int]]:
    """The cells of every square with such a side on the board."""
    low, high = sides
    for side in range(low, high + 1):
        for top in range(height - side + 1):
            for left in range(width - side + 1):
                yield {row * width + column for row in range(top, top + side) for column in range(left, left + side)}


def splits_into_pieces(cells: set[int], pieces: int, width: int, at_edge: Collection[int] = ()) -> bool:
    """Whether the cells are exactly so many connected shapes of 3 or 4 cells, or fewer cells for one cut by an edge."""
    if not cells or not 0 < len(cells) <= 4 * pieces:
        return not cells and pieces == 0
    return any(
        splits_into_pieces(cells - shape, pieces - 1, width, at_edge)
        for size in (1, 2, 3, 4)
        for shape in shapes_with(min(cells), size, cells, width)
        if size >= 3 or shape & set(at_edge)
    )


def shapes_with(cell: int, size: int, cells: set[int], width: int) -> set[frozenset[int]]:
    """Every connected shape of that size that contains the cell and lies within the cells."""
    shapes = {frozenset({cell})}
    for _ in range(size - 1):
        shapes = {shape | {beyond} for shape in shapes for beyond in cells - shape if touches(shape, beyond, width)}
    return shapes


def touches(shape: Collection[int], cell: int, width: int) -> bool:
    row, column = divmod(cell, width)
    return any(abs(row - other // width) + abs(column - other % width) == 1 for other in shape)


def planes_of(walls: list[list[bool]], marked: list[list[int]]) -> np.ndarray:
    """A plane of 0 and 1 for each list of cells."""
    height, width = len(walls), len(walls[0])
    planes = np.zeros((height, width, len(marked)), np.uint8)
    for plane, cells in enumerate(marked):
        for cell in cells:
            planes[cell // width, cell % width, plane] = 1
    return planes


def wall_cells(walls: list[list[bool]]) -> list[int]:
    return sorted(set(range(len(walls) * len(walls[0]))) - set(free_cells(walls)))
