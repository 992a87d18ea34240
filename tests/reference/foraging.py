"""Level-based foraging, one environment at a time, written to be read against the rules sentence by sentence."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from reference import (
    DIRECTIONS,
    NO_ACTION,
    STAY,
    check_spawns,
    check_walls,
    neighbour,
    planes_of,
    seats_from,
    wall_cells,
)

LOAD = 5
NUM_ACTIONS = 6


@dataclass(frozen=True)
class Rules:
    horizon: int
    player_levels: int
    food_levels: int
    obstacle_pieces: int
    arena_sides: tuple[int, int] | None


@dataclass(frozen=True)
class State:
    position: list[int]
    level: list[int]
    last_actions: list[int]
    food_position: list[int]
    food_level: list[int]
    food_remains: list[bool]
    walls: list[list[bool]]
    time: int

    @property
    def seats(self) -> range:
        return range(len(self.position))

    @property
    def foods(self) -> list[int]:
        """Those that remain."""
        return [food for food, remains in enumerate(self.food_remains) if remains]


def check_reset(rules: Rules, state: State) -> None:
    """Raises unless this is a first state that the rules allow."""
    assert all(state.food_remains)
    assert set(state.level) <= set(range(1, rules.player_levels + 1))
    assert set(state.food_level) <= set(range(1, rules.food_levels + 1))
    assert state.last_actions == [NO_ACTION for _ in state.seats]
    assert state.time == 0
    check_spawns(state.walls, state.position + state.food_position)
    check_walls(state.walls, rules.obstacle_pieces, rules.arena_sides)


def terminated(rules: Rules, state: State) -> list[bool]:
    over = state.time >= rules.horizon or not state.foods
    return [over for _ in state.seats]


def legal(rules: Rules, state: State) -> list[list[bool]]:
    done = terminated(rules, state)
    return [
        [is_legal(state, seat, action) if not done[seat] else action == STAY for action in range(NUM_ACTIONS)]
        for seat in state.seats
    ]


def is_legal(state: State, seat: int, action: int) -> bool:
    if action in DIRECTIONS:
        cell = neighbour(state.walls, state.position[seat], action)
        occupied = [*state.position, *(state.food_position[food] for food in state.foods)]
        return cell is not None and cell not in occupied
    if action == LOAD:
        return any(is_beside(state, seat, food) for food in state.foods)
    return action == STAY


def is_beside(state: State, seat: int, food: int) -> bool:
    open_board = [[False for _ in line] for line in state.walls]
    return state.food_position[food] in [neighbour(open_board, state.position[seat], action) for action in DIRECTIONS]


def step(_rules: Rules, state: State, actions: list[int]) -> tuple[State, list[np.float32]]:
    """One step of an episode that is not over. Shares are exact fractions, rounded once."""
    played = [action if is_legal(state, seat, action) else STAY for seat, action in enumerate(actions)]
    earned = [Fraction(0) for _ in state.seats]
    food_remains = list(state.food_remains)
    for food in state.foods:
        loaders = [seat for seat in state.seats if played[seat] == LOAD and is_beside(state, seat, food)]
        strength = sum(state.level[seat] for seat in loaders)
        if strength >= state.food_level[food]:
            food_remains[food] = False
            for seat in loaders:
                earned[seat] += Fraction(state.food_level[food] * state.level[seat], strength)

    wanted = [
        neighbour(state.walls, state.position[seat], played[seat]) if played[seat] in DIRECTIONS else None
        for seat in state.seats
    ]
    position = [
        state.position[seat] if wanted[seat] is None or wanted.count(wanted[seat]) > 1 else wanted[seat]
        for seat in state.seats
    ]
    after = replace(state, position=position, last_actions=played, food_remains=food_remains, time=state.time + 1)
    return after, [np.float32(float(share)) for share in earned]


def board(rules: Rules, state: State, order: list[int] | None = None) -> np.ndarray:
    """The planes: players in this order, obstacles, foods of each level, players of each level."""
    players = [[state.position[seat]] for seat in (state.seats if order is None else order)]
    foods = [
        [state.food_position[food] for food in state.foods if state.food_level[food] == level]
        for level in range(1, rules.food_levels + 1)
    ]
    levels = [
        [state.position[seat] for seat in state.seats if state.level[seat] == level]
        for level in range(1, rules.player_levels + 1)
    ]
    return planes_of(state.walls, [*players, wall_cells(state.walls), *foods, *levels])


def observe(rules: Rules, state: State, viewer: int) -> tuple[np.ndarray, np.float32, list[int]]:
    """What one seat sees: planes, time, last actions."""
    order = seats_from(viewer, len(state.position))
    time = np.float32(state.time) / np.float32(rules.horizon)
    return board(rules, state, order), time, [state.last_actions[seat] for seat in order]
