"""Harvest, one environment at a time, written to be read against the rules sentence by sentence."""

from dataclasses import dataclass, replace

import numpy as np

from reference import (
    DIRECTIONS,
    NO_ACTION,
    STAY,
    check_spawns,
    check_walls,
    free_cells,
    neighbour,
    planes_of,
    seats_from,
    wall_cells,
)

ZAPS = {5: 0, 6: 1, 7: 2, 8: 3}
"""Each beam, and the move in whose direction it goes."""


@dataclass(frozen=True)
class Rules:
    horizon: int
    growth: tuple[float, ...]
    away_steps: int
    beam_length: int
    obstacle_pieces: int
    arena_sides: tuple[int, int] | None
    others: str

    @property
    def num_actions(self) -> int:
        return 9 if self.away_steps else 5


@dataclass(frozen=True)
class Draws:
    growth: list[list[int]]
    """For each cell, a uniform number below 2**16."""
    back: int
    """A uniform number below 2**32."""


@dataclass(frozen=True)
class State:
    position: list[int]
    away: list[int]
    last_actions: list[int]
    apples: list[list[bool]]
    walls: list[list[bool]]
    time: int

    @property
    def seats(self) -> range:
        return range(len(self.position))

    @property
    def present(self) -> list[int]:
        return [seat for seat in self.seats if self.away[seat] == 0]

    def has_apple(self, cell: int) -> bool:
        row, column = divmod(cell, len(self.walls[0]))
        return self.apples[row][column]


def check_reset(rules: Rules, state: State) -> None:
    """Raises unless this is a first state that the rules allow."""
    assert not any(state.away)
    assert state.last_actions == [NO_ACTION for _ in state.seats]
    assert state.time == 0
    check_spawns(state.walls, state.position)
    check_walls(state.walls, rules.obstacle_pieces, rules.arena_sides)
    assert not any(state.has_apple(cell) for cell in [*state.position, *wall_cells(state.walls)])


def terminated(rules: Rules, state: State) -> list[bool]:
    return [state.time >= rules.horizon for _ in state.seats]


def legal(rules: Rules, state: State) -> list[list[bool]]:
    done = terminated(rules, state)
    return [
        [
            is_legal(rules, state, seat, action) if not done[seat] else action == STAY
            for action in range(rules.num_actions)
        ]
        for seat in state.seats
    ]


def is_legal(rules: Rules, state: State, seat: int, action: int) -> bool:
    if state.away[seat]:
        return action == STAY
    if action in DIRECTIONS:
        return neighbour(state.walls, state.position[seat], action) is not None
    return action == STAY or (action in ZAPS and rules.away_steps > 0)


def step(rules: Rules, state: State, actions: list[int], draws: Draws) -> tuple[State, list[np.float32]]:
    """One step of an episode that is not over."""
    played = [action if is_legal(rules, state, seat, action) else STAY for seat, action in enumerate(actions)]
    position = [
        neighbour(state.walls, cell, action) if action in DIRECTIONS else cell
        for cell, action in zip(state.position, played, strict=True)
    ]
    rewards = [np.float32(0.0) for _ in state.seats]
    eaten = set()
    for seat in state.present:
        cell = position[seat]
        if state.has_apple(cell):
            eaten.add(cell)
            rewards[seat] = np.float32(1.0) / np.float32(sum(position[other] == cell for other in state.present))
    hit = {seat for shooter in state.present for seat in hits(rules, state, position, played, shooter)}

    away = list(state.away)
    free = free_cells(state.walls)
    for seat in state.seats:
        if away[seat] == 1:
            position[seat] = free[draws.back * len(free) // 2**32]
        away[seat] = rules.away_steps if seat in hit else max(away[seat] - 1, 0)
    occupied = {position[seat] for seat in state.seats if away[seat] == 0}
    after = replace(
        state,
        position=position,
        away=away,
        last_actions=played,
        apples=grown(rules, state, eaten, occupied, draws),
        time=state.time + 1,
    )
    return after, rewards


def hits(rules: Rules, state: State, position: list[int], played: list[int], shooter: int) -> set[int]:
    """The players that the beam of one player hits; the others are where they moved to."""
    struck: set[int] = set()
    if played[shooter] not in ZAPS:
        return struck
    cell: int | None = position[shooter]
    for _ in range(rules.beam_length):
        cell = neighbour(state.walls, cell, ZAPS[played[shooter]])
        if cell is None:
            break
        struck |= {seat for seat in state.present if position[seat] == cell}
    return struck


def grown(rules: Rules, state: State, eaten: set[int], occupied: set[int], draws: Draws) -> list[list[bool]]:
    """The apples after those that were eaten are gone and others have grown."""
    height, width = len(state.walls), len(state.walls[0])
    left = [
        [state.apples[row][column] and row * width + column not in eaten for column in range(width)]
        for row in range(height)
    ]
    apples = [list(line) for line in left]
    for row in range(height):
        for column in range(width):
            around = sum(
                left[near_row][near_column]
                for near_row in range(max(row - 1, 0), min(row + 2, height))
                for near_column in range(max(column - 1, 0), min(column + 2, width))
                if (near_row, near_column) != (row, column)
            )
            chance = rules.growth[min(around, len(rules.growth) - 1)]
            grows = draws.growth[row][column] < round(chance * 2**16)
            if grows and not state.walls[row][column] and row * width + column not in occupied:
                apples[row][column] = True
    return apples


def board(rules: Rules, state: State, order: list[int] | None = None) -> np.ndarray:
    """The planes: players in this order, how long each is away if there are beams, obstacles, apples."""
    order = list(state.seats) if order is None else order
    players = [[] if state.away[seat] else [state.position[seat]] for seat in order]
    counters = [list(range(state.away[seat])) for seat in order if rules.away_steps]
    width = len(state.walls[0])
    apples = [cell for cell in range(len(state.walls) * width) if state.has_apple(cell)]
    return planes_of(state.walls, [*players, *counters, wall_cells(state.walls), apples])


def observe(rules: Rules, state: State, viewer: int) -> tuple[np.ndarray, np.float32, list[int]]:
    """What one seat sees: planes, time, last actions."""
    order = seats_from(viewer, len(state.position))
    time = np.float32(state.time) / np.float32(rules.horizon)
    if rules.others == "summed":
        return summed(rules, state, viewer), time, []
    return board(rules, state, order), time, [state.last_actions[seat] for seat in order]


def summed(rules: Rules, state: State, viewer: int) -> np.ndarray:
    """The planes with the others summed: the viewer, how many others are on each cell, then both for being away."""
    shown = board(rules, state)
    seats, planes = len(state.position), []
    for first in range(0, seats * (2 if rules.away_steps else 1), seats):
        planes.append(shown[..., first + viewer])
        planes.append(sum(shown[..., first + seat] for seat in state.seats if seat != viewer))
    walls, apples = shown[..., -2], shown[..., -1]
    return np.stack([*planes, walls, apples], axis=-1)
