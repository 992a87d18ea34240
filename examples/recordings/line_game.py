"""A small game for three seats, in NumPy alone: many games are played at once.

The seats stand on a line of five cells. On the first cell anyone can take a berry, which pays 1. On the last cell a
melon pays 3 to each of those who take it in the same step, if they are two or more. Who took something leaves. A game
is cut off after twelve steps, and a new one begins when all have left.
"""

import numpy as np

CELLS, SEATS, HORIZON = 5, 3, 12
LEFT, STAY, RIGHT, TAKE = range(4)
ACTIONS = 4
NUMBERS = SEATS * CELLS + 1
"""Numbers in an observation: the cells of the seat itself and of the others, and the time."""


def observe(places, there, time):
    """Each seat's view [envs, seats, numbers]: itself first, then the seats after it; who has left is on no cell."""
    cells = np.eye(CELLS, dtype=np.float32)[places] * there[..., None]
    views = [np.roll(cells, -seat, axis=1).reshape(len(places), -1) for seat in range(SEATS)]
    clock = np.repeat((time / HORIZON)[:, None, None], SEATS, axis=1)
    return np.concatenate([np.stack(views, axis=1), clock], axis=-1).astype(np.float32)


def legal(places, there):
    """The legal actions [envs, seats, actions]. A seat that has left only stays."""
    ends = (places == 0) | (places == CELLS - 1)
    masks = np.stack([places > 0, np.ones_like(there), places < CELLS - 1, ends], axis=-1) & there[..., None]
    masks[..., STAY] = True
    return masks


def rules(places, there, actions):
    """One step: the next cells, who is still there, and rewards."""
    takes = (actions == TAKE) & there
    berry = takes & (places == 0)
    melon = takes & (places == CELLS - 1)
    melon &= melon.sum(axis=1, keepdims=True) >= 2
    moves = np.where(there, (actions == RIGHT).astype(int) - (actions == LEFT), 0)
    after = np.clip(places + moves, 0, CELLS - 1)
    return after, there & ~(berry | melon), berry + 3.0 * melon


class LineGame:
    """Many games at once. `step` begins a new game where the old one is over."""

    def __init__(self, envs: int, seed: int):
        self.random = np.random.default_rng(seed)
        self.places = self.random.integers(1, CELLS - 1, (envs, SEATS))
        self.there = np.ones((envs, SEATS), bool)
        self.time = np.zeros(envs, int)

    def view(self):
        """Observations, legal actions, and who is in the game."""
        return observe(self.places, self.there, self.time), legal(self.places, self.there), self.there.copy()

    def step(self, actions):
        """Rewards, own ends, cuts by the time limit, the last observations, and where a new game begins next."""
        before = self.there
        self.places, self.there, rewards = rules(self.places, self.there, actions)
        self.time = self.time + 1
        terminated = before & ~self.there
        truncated = self.there & (self.time >= HORIZON)[:, None]
        last = observe(self.places, self.there, self.time)
        over = ~self.there.any(axis=1) | (self.time >= HORIZON)
        self.places[over] = self.random.integers(1, CELLS - 1, (int(over.sum()), SEATS))
        self.there[over] = True
        self.time[over] = 0
        return rewards, terminated, truncated, last, over
