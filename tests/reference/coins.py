"""The coin game, one environment at a time, written to be read against the rules sentence by sentence."""

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

NUM_ACTIONS = 5


@dataclass(frozen=True)
class Rules:
    horizon: int
    coin_reward: float
    cost: float
    obstacle_pieces: int
    arena_sides: tuple[int, int] | None


@dataclass(frozen=True)
class Draws:
    words: list[int]
    """A uniform number below 2**32 for each coin that may come back in the step."""


@dataclass(frozen=True)
class State:
    position: list[int]
    coin_position: list[int]
    last_actions: list[int]
    walls: list[list[bool]]
    time: int

    @property
    def seats(self) -> range:
        return range(len(self.position))


def check_reset(rules: Rules, state: State) -> None:
    """Raises unless this is a first state that the rules allow."""
    assert state.last_actions == [NO_ACTION for _ in state.seats]
    assert state.time == 0
    check_spawns(state.walls, state.position + state.coin_position)
    check_walls(state.walls, rules.obstacle_pieces, rules.arena_sides)


def terminated(rules: Rules, state: State) -> list[bool]:
    return [state.time >= rules.horizon for _ in state.seats]


def legal(rules: Rules, state: State) -> list[list[bool]]:
    done = terminated(rules, state)
    return [
        [is_legal(state, seat, action) if not done[seat] else action == STAY for action in range(NUM_ACTIONS)]
        for seat in state.seats
    ]


def is_legal(state: State, seat: int, action: int) -> bool:
    if action in DIRECTIONS:
        return neighbour(state.walls, state.position[seat], action) is not None
    return action == STAY


def step(rules: Rules, state: State, actions: list[int], draws: Draws) -> tuple[State, list[np.float32]]:
    """One step of an episode that is not over; rewards in np.float32, so that the two must be equal to the last bit."""
    played = [action if is_legal(state, seat, action) else STAY for seat, action in enumerate(actions)]
    position = [
        neighbour(state.walls, cell, action) if action in DIRECTIONS else cell
        for cell, action in zip(state.position, played, strict=True)
    ]
    gains = [np.float32(0.0) for _ in state.seats]
    losses = [np.float32(0.0) for _ in state.seats]
    taken = []
    for owner in state.seats:
        takers = [seat for seat in state.seats if position[seat] == state.coin_position[owner]]
        if not takers:
            continue
        taken.append(owner)
        for seat in takers:
            gains[seat] = np.float32(rules.coin_reward) / np.float32(len(takers))
        others = [seat for seat in takers if seat != owner]
        losses[owner] = np.float32(rules.cost) * np.float32(len(others)) / np.float32(len(takers))
    after = replace(
        state,
        position=position,
        coin_position=returned(state, position, taken, draws),
        last_actions=played,
        time=state.time + 1,
    )
    return after, [gain - loss for gain, loss in zip(gains, losses, strict=True)]


def returned(state: State, position: list[int], taken: list[int], draws: Draws) -> list[int]:
    """The coins' cells, after those that were taken came back, in the order of their old cells.

    The free cells are a deck of cards: the first coin swaps the first card with one drawn from all and takes it, the
    second swaps the second with one drawn from the rest, and so on.
    """
    occupied = {*position, *state.coin_position}
    deck = [cell for cell in free_cells(state.walls) if cell not in occupied]
    coins = list(state.coin_position)
    for card, owner in enumerate(sorted(taken, key=lambda owner: state.coin_position[owner])):
        drawn = card + draws.words[card] * (len(deck) - card) // 2**32
        deck[card], deck[drawn] = deck[drawn], deck[card]
        coins[owner] = deck[card]
    return coins


def board(_rules: Rules, state: State, order: list[int] | None = None) -> np.ndarray:
    """The planes of the players in this order, of their coins in the same order, and of the obstacles."""
    order = list(state.seats) if order is None else order
    players = [[state.position[seat]] for seat in order]
    coins = [[state.coin_position[seat]] for seat in order]
    return planes_of(state.walls, [*players, *coins, wall_cells(state.walls)])


def observe(rules: Rules, state: State, viewer: int) -> tuple[np.ndarray, np.float32, list[int]]:
    """What one seat sees: planes, time, last actions."""
    order = seats_from(viewer, len(state.position))
    time = np.float32(state.time) / np.float32(rules.horizon)
    return board(rules, state, order), time, [state.last_actions[seat] for seat in order]
