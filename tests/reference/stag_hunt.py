"""The Markov stag hunt, one table at a time, written to be read against the rules sentence by sentence."""

from dataclasses import dataclass, replace

import numpy as np

from reference import DIRECTIONS, NO_ACTION, STAY, check_spawns, check_walls, draw_board, neighbour, seats_from

HUNT_STAG, HUNT_HARE = 5, 6
NUM_ACTIONS = 7


@dataclass(frozen=True)
class Rules:
    num_stags: int
    horizon: int
    stag_reward: float
    hare_reward: float
    steps_after_first_catch: int | None
    obstacle_pieces: int
    arena_sides: tuple[int, int] | None

    def is_stag(self, prey: int) -> bool:
        return prey < self.num_stags


@dataclass(frozen=True)
class State:
    position: list[int]
    present: list[bool]
    last_actions: list[int]
    prey_position: list[int]
    prey_alive: list[bool]
    walls: list[list[bool]]
    time: int
    ends_at: int

    @property
    def seats(self) -> range:
        return range(len(self.position))

    @property
    def prey(self) -> range:
        return range(len(self.prey_position))


@dataclass(frozen=True)
class PreyDraws:
    """The chance in one step: who moves first, who wants to move, and a number below 2**32 that picks where to."""

    order: list[int]
    moves: list[bool]
    direction: list[int]


Draws = PreyDraws


def check_reset(rules: Rules, state: State) -> None:
    """Raises unless this is a first state that the rules allow."""
    assert all(state.present) and all(state.prey_alive)
    assert state.last_actions == [NO_ACTION for _ in state.seats]
    assert state.time == 0 and state.ends_at == rules.horizon
    check_spawns(state.walls, state.position + state.prey_position)
    check_walls(state.walls, rules.obstacle_pieces, rules.arena_sides)


def terminated(_rules: Rules, state: State) -> list[bool]:
    return [not state.present[seat] or state.time >= state.ends_at for seat in state.seats]


def legal(rules: Rules, state: State) -> list[list[bool]]:
    done = terminated(rules, state)
    return [
        [is_legal(rules, state, seat, action) if not done[seat] else action == STAY for action in range(NUM_ACTIONS)]
        for seat in state.seats
    ]


def is_legal(rules: Rules, state: State, seat: int, action: int) -> bool:
    """For a seat that is still in the game; any number may be asked about, also one that is no action."""
    if action in DIRECTIONS:
        return neighbour(state.walls, state.position[seat], action) is not None
    if action in (HUNT_STAG, HUNT_HARE):
        return any(
            state.prey_alive[prey]
            and state.prey_position[prey] == state.position[seat]
            and rules.is_stag(prey) == (action == HUNT_STAG)
            for prey in state.prey
        )
    return action == STAY


def step(
    rules: Rules, state: State, actions: list[int], draws: PreyDraws | None = None
) -> tuple[State, list[np.float32]]:
    """One step of an episode that is not over; without draws the prey stand still.

    Rewards are np.float32: a share is one correctly rounded division of two float32 numbers, here as in the JAX game,
    so that the two must be equal to the last bit.
    """
    played = [
        action if state.present[seat] and is_legal(rules, state, seat, action) else STAY
        for seat, action in enumerate(actions)
    ]
    rewards = [np.float32(0.0) for _ in state.seats]
    present, prey_alive = list(state.present), list(state.prey_alive)
    for prey, hunters in catches(rules, state, played).items():
        prey_alive[prey] = False
        worth = rules.stag_reward if rules.is_stag(prey) else rules.hare_reward
        for seat in hunters:
            present[seat] = False
            rewards[seat] = np.float32(worth) / np.float32(len(hunters))

    position = list(state.position)
    for seat in state.seats:
        if state.present[seat] and played[seat] in DIRECTIONS:
            position[seat] = neighbour(state.walls, state.position[seat], played[seat])

    time, ends_at = state.time + 1, state.ends_at
    is_first_catch = all(state.prey_alive) and not all(prey_alive)
    if is_first_catch and rules.steps_after_first_catch is not None:
        ends_at = min(ends_at, time + rules.steps_after_first_catch)

    after = replace(
        state,
        position=position,
        present=present,
        last_actions=[played[seat] if state.present[seat] else NO_ACTION for seat in state.seats],
        prey_alive=prey_alive,
        time=time,
        ends_at=ends_at,
    )
    if draws is not None:
        after = replace(after, prey_position=moved_prey(after, draws))
    return after, rewards


def catches(rules: Rules, state: State, played: list[int]) -> dict[int, list[int]]:
    """The prey that is caught, each with the seats that caught it."""
    caught = {}
    for prey in state.prey:
        hunt, needed = (HUNT_STAG, 2) if rules.is_stag(prey) else (HUNT_HARE, 1)
        hunters = [
            seat
            for seat in state.seats
            if state.present[seat] and state.position[seat] == state.prey_position[prey] and played[seat] == hunt
        ]
        if state.prey_alive[prey] and len(hunters) >= needed:
            caught[prey] = hunters
    return caught


def moved_prey(state: State, draws: PreyDraws) -> list[int]:
    """Where the prey are after each, in turn, may have taken a step onto a cell with no obstacle and no other prey."""
    cells = list(state.prey_position)
    for prey in draws.order:
        if not state.prey_alive[prey] or not draws.moves[prey]:
            continue
        taken = {cells[other] for other in state.prey if other != prey and state.prey_alive[other]}
        around = [neighbour(state.walls, cells[prey], action) for action in DIRECTIONS]
        open_cells = [cell for cell in around if cell is not None and cell not in taken]
        if open_cells:
            cells[prey] = open_cells[draws.direction[prey] * len(open_cells) // 2**32]
    return cells


def board(rules: Rules, state: State, order: list[int] | None = None) -> np.ndarray:
    """The planes, with the players in this order (by default as they sit)."""
    players = [
        state.position[seat] if state.present[seat] else None for seat in (state.seats if order is None else order)
    ]
    alive = [prey for prey in state.prey if state.prey_alive[prey]]
    stags = [state.prey_position[prey] for prey in alive if rules.is_stag(prey)]
    hares = [state.prey_position[prey] for prey in alive if not rules.is_stag(prey)]
    return draw_board(state.walls, players, [stags, hares])


def observe(rules: Rules, state: State, viewer: int) -> tuple[np.ndarray, np.float32, list[int]]:
    """What one seat sees: planes, time, last actions. One that has left sees nothing."""
    order = seats_from(viewer, len(state.position))
    planes = board(rules, state, order)
    if not state.present[viewer]:
        return np.zeros_like(planes), np.float32(0.0), [NO_ACTION for _ in order]
    time = np.float32(state.time) / np.float32(rules.horizon)
    return planes, time, [state.last_actions[seat] for seat in order]
