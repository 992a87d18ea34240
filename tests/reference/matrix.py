"""Repeated matrix games: everybody plays one action against every other seat, and gets the mean over those pairs."""

from dataclasses import dataclass

import numpy as np

from reference import NO_ACTION, seats_from


@dataclass(frozen=True)
class Rules:
    payoff: tuple[tuple[float, ...], ...]
    horizon: int


@dataclass(frozen=True)
class State:
    last_actions: list[int]
    time: int

    @property
    def seats(self) -> range:
        return range(len(self.last_actions))


def check_reset(_rules: Rules, state: State) -> None:
    """Raises unless this is a first state that the rules allow."""
    assert state.last_actions == [NO_ACTION for _ in state.seats]
    assert state.time == 0


def terminated(rules: Rules, state: State) -> list[bool]:
    return [state.time >= rules.horizon for _ in state.seats]


def legal(rules: Rules, state: State) -> list[list[bool]]:
    """Every action, always: there is no action to stand in for a forbidden one."""
    return [[True for _ in rules.payoff] for _ in state.seats]


def step(rules: Rules, state: State, actions: list[int]) -> tuple[State, list[np.float32]]:
    """Rewards are np.float32: the payoffs are whole numbers, so their sum is exact, and the mean is one division."""
    rewards = []
    for seat in state.seats:
        payoffs = [np.float32(rules.payoff[actions[seat]][actions[other]]) for other in state.seats if other != seat]
        rewards.append(sum(payoffs, start=np.float32(0.0)) / np.float32(len(payoffs)))
    return State(last_actions=list(actions), time=state.time + 1), rewards


def board(_rules: Rules, _state: State) -> np.ndarray:
    """A board without planes: there is nothing to see but the last joint action."""
    return np.zeros((0, 0, 0), np.uint8)


def observe(rules: Rules, state: State, viewer: int) -> tuple[np.ndarray, np.float32, list[int]]:
    """What one seat sees: planes, time, last actions."""
    time = np.float32(state.time) / np.float32(rules.horizon)
    order = seats_from(viewer, len(state.last_actions))
    return board(rules, state), time, [state.last_actions[seat] for seat in order]
