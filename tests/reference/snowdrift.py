"""The Markov snowdrift game, one table at a time, written to be read against the rules sentence by sentence."""

from dataclasses import dataclass, replace

import numpy as np

from reference import DIRECTIONS, NO_ACTION, STAY, check_spawns, check_walls, draw_board, neighbour, seats_from

REMOVE = 5
NUM_ACTIONS = 6


@dataclass(frozen=True)
class Rules:
    horizon: int
    benefit: float
    cost: float
    obstacle_pieces: int
    arena_sides: tuple[int, int] | None


@dataclass(frozen=True)
class State:
    position: list[int]
    last_actions: list[int]
    drift_position: list[int]
    drift_remains: list[bool]
    walls: list[list[bool]]
    time: int

    @property
    def seats(self) -> range:
        return range(len(self.position))

    @property
    def drifts(self) -> range:
        return range(len(self.drift_position))


def check_reset(rules: Rules, state: State) -> None:
    """Raises unless this is a first state that the rules allow."""
    assert all(state.drift_remains)
    assert state.last_actions == [NO_ACTION for _ in state.seats]
    assert state.time == 0
    check_spawns(state.walls, state.position + state.drift_position)
    check_walls(state.walls, rules.obstacle_pieces, rules.arena_sides)


def terminated(rules: Rules, state: State) -> list[bool]:
    over = state.time >= rules.horizon or not any(state.drift_remains)
    return [over for _ in state.seats]


def legal(rules: Rules, state: State) -> list[list[bool]]:
    done = terminated(rules, state)
    return [
        [is_legal(state, seat, action) if not done[seat] else action == STAY for action in range(NUM_ACTIONS)]
        for seat in state.seats
    ]


def is_legal(state: State, seat: int, action: int) -> bool:
    """While the episode lasts; any number may be asked about, also one that is no action."""
    if action in DIRECTIONS:
        return neighbour(state.walls, state.position[seat], action) is not None
    if action == REMOVE:
        return any(
            state.drift_remains[drift] and state.drift_position[drift] == state.position[seat] for drift in state.drifts
        )
    return action == STAY


def step(rules: Rules, state: State, actions: list[int]) -> tuple[State, list[np.float32]]:
    """One step of an episode that is not over.

    Rewards are np.float32: whole benefits are exact in it, and a share of the cost is one correctly rounded division,
    here as in the JAX game, so that the two must be equal to the last bit.
    """
    played = [action if is_legal(state, seat, action) else STAY for seat, action in enumerate(actions)]
    drift_remains = list(state.drift_remains)
    benefits = np.float32(0.0)
    costs = [np.float32(0.0) for _ in state.seats]
    for drift in state.drifts:
        removers = [
            seat
            for seat in state.seats
            if played[seat] == REMOVE and state.position[seat] == state.drift_position[drift]
        ]
        if state.drift_remains[drift] and removers:
            drift_remains[drift] = False
            benefits += np.float32(rules.benefit)
            for seat in removers:
                costs[seat] = np.float32(rules.cost) / np.float32(len(removers))

    position = list(state.position)
    for seat in state.seats:
        if played[seat] in DIRECTIONS:
            position[seat] = neighbour(state.walls, state.position[seat], played[seat])
    after = replace(state, position=position, last_actions=played, drift_remains=drift_remains, time=state.time + 1)
    return after, [benefits - cost for cost in costs]


def board(_rules: Rules, state: State, order: list[int] | None = None) -> np.ndarray:
    """The planes, with the players in this order (by default as they sit)."""
    players = [state.position[seat] for seat in (state.seats if order is None else order)]
    return draw_board(
        state.walls, players, [[state.drift_position[drift] for drift in state.drifts if state.drift_remains[drift]]]
    )


def observe(rules: Rules, state: State, viewer: int) -> tuple[np.ndarray, np.float32, list[int]]:
    """What one seat sees: planes, time, last actions."""
    order = seats_from(viewer, len(state.position))
    time = np.float32(state.time) / np.float32(rules.horizon)
    return board(rules, state, order), time, [state.last_actions[seat] for seat in order]
