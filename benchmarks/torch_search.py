"""MCTS as a plain Python tree with PyTorch networks: what `hopplus` search is compared with.

One table, one tree, a node at a time, as the notes' code had it: a policy and critic for the planner, one network that
foretells the three co-players, and the stag hunt stepped in plain Python. The co-players' network is a plain one over
the view; the product's asks for paths as well. Needs torch.
"""

import math
import os
import random
from dataclasses import dataclass, field, replace

import numpy as np

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # see torch_ppo

import torch  # pyright: ignore[reportMissingImports]

from torch_ppo import ACTIONS, HARE_REWARD, HORIZON, HUNT_HARE, HUNT_STAG, PLANES, PLAYERS, PREY, STAG_REWARD, STAY

GOALS, EXPLORATION, DISCOUNT = 3, 1.25, 0.99


@dataclass(frozen=True)
class State:
    cells: tuple[int, ...]
    present: tuple[bool, ...]
    prey: tuple[int, ...]
    """Their cells; -1 for one that was caught. The first is the stag."""
    last: tuple[int, ...]
    time: int


@dataclass
class Node:
    state: State
    prior: list[float]
    value: float
    predicted: list[list[float]]
    visits: int = 1
    children: dict[int, "Edge"] = field(default_factory=dict)


@dataclass
class Edge:
    reward: float
    discount: float
    node: Node
    visits: int = 0


class Search:
    """A planner in the first seat of a board with so many cells to a side."""

    def __init__(self, side: int, *, hidden: int = 128, others_hidden: int = 64, seed: int = 0) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.side, self.random = side, random.Random(seed)
        inputs = side * side * PLANES + 1 + PLAYERS * ACTIONS
        self.own = _mlp(inputs + 3 * GOALS, hidden, ACTIONS + 1)
        self.others = _mlp(inputs + GOALS, others_hidden, ACTIONS)

    def first(self) -> State:
        cells = self.random.sample(range(self.side**2), PLAYERS + PREY)
        return State(tuple(cells[:PLAYERS]), (True,) * PLAYERS, tuple(cells[PLAYERS:]), (-1,) * PLAYERS, 0)

    def legal(self, state: State, seat: int) -> list[bool]:
        row, column = divmod(state.cells[seat], self.side)
        there = state.present[seat]
        on_stag = state.prey[0] == state.cells[seat]
        on_hare = state.cells[seat] in state.prey[1:]
        free = [row > 0, row < self.side - 1, column > 0, column < self.side - 1]
        return [there and one for one in free] + [True, there and on_stag, there and on_hare]

    def step(self, state: State, actions: list[int]) -> tuple[State, float]:
        """The next state, and the first seat's reward."""
        hunters: dict[int, list[int]] = {}
        for seat, action in enumerate(actions):
            if state.present[seat] and action in (HUNT_STAG, HUNT_HARE):
                wanted = range(1) if action == HUNT_STAG else range(1, PREY)
                at = [prey for prey in wanted if state.prey[prey] == state.cells[seat]]
                if at:
                    hunters.setdefault(at[0], []).append(seat)
        present, prey, reward = list(state.present), list(state.prey), 0.0
        for target, seats in hunters.items():
            if target > 0 or len(seats) > 1:
                prey[target] = -1
                for seat in seats:
                    present[seat] = False
                if 0 in seats:
                    reward = (STAG_REWARD if target == 0 else HARE_REWARD) / len(seats)
        moves = [-self.side, self.side, -1, 1, 0, 0, 0]
        cells = tuple(cell + moves[action] for cell, action in zip(state.cells, actions, strict=True))
        return State(cells, tuple(present), tuple(prey), tuple(actions), state.time + 1), reward

    def view(self, state: State, seat: int) -> np.ndarray:
        planes = np.zeros((self.side**2, PLANES), np.float32)
        acted = np.zeros((PLAYERS, ACTIONS), np.float32)
        for offset in range(PLAYERS):
            other = (seat + offset) % PLAYERS
            if state.present[other]:
                planes[state.cells[other], offset] = 1
            if state.last[other] >= 0:
                acted[offset, state.last[other]] = 1
        for index, cell in enumerate(state.prey):
            if cell >= 0:
                planes[cell, PLAYERS + (1 if index == 0 else 2)] = 1
        return np.concatenate([planes.ravel(), acted.ravel(), [np.float32(state.time / HORIZON)]])

    def look(self, state: State, goals: np.ndarray) -> Node:
        with torch.inference_mode():
            seen = np.concatenate([self.view(state, 0), goals.ravel()])
            outputs = self.own(torch.from_numpy(seen))
            prior = _masked(outputs[:-1].tolist(), self.legal(state, 0))
            views = np.stack([np.concatenate([self.view(state, seat), goals[seat - 1]]) for seat in range(1, PLAYERS)])
            logits = self.others(torch.from_numpy(views)).tolist()
        predicted = [_masked(logits[seat - 1], self.legal(state, seat)) for seat in range(1, PLAYERS)]
        return Node(state, prior, float(outputs[-1]), predicted)

    def follow(self, node: Node, action: int, goals: np.ndarray) -> Edge:
        drawn = [self.random.choices(range(ACTIONS), one)[0] for one in node.predicted]
        state, reward = self.step(node.state, [action, *drawn])
        over = not state.present[0] or state.time >= HORIZON
        after = self.look(state, goals)
        return Edge(reward, 0.0 if over else DISCOUNT, replace(after, value=0.0) if over else after)

    def search(self, state: State, simulations: int, depth: int) -> list[int]:
        """How often each own action was tried."""
        goals = np.eye(GOALS, dtype=np.float32)[[self.random.randrange(GOALS) for _ in range(PLAYERS - 1)]]
        root = self.look(state, goals)
        for _ in range(simulations):
            node, path = root, []
            while True:
                action = _select(node)
                path.append((node, action))
                if action not in node.children or len(path) == depth:
                    break
                node = node.children[action].node
            node, action = path[-1]
            if action not in node.children:
                node.children[action] = self.follow(node, action, goals)
            found = node.children[action].node.value
            for node, action in reversed(path):
                edge = node.children[action]
                edge.visits += 1
                found = edge.reward + edge.discount * found
                node.value = (node.value * node.visits + found) / (node.visits + 1)
                node.visits += 1
        return [root.children[action].visits if action in root.children else 0 for action in range(ACTIONS)]


def _select(node: Node) -> int:
    worths = {action: edge.reward + edge.discount * edge.node.value for action, edge in node.children.items()}
    low, high = min([node.value, *worths.values()]), max([node.value, *worths.values()])
    scale = max(high - low, 1e-8)
    best, chosen = -math.inf, STAY
    for action, chance in enumerate(node.prior):
        if chance == 0:
            continue
        visits = node.children[action].visits if action in node.children else 0
        scaled = (worths[action] - low) / scale if action in worths else 0.0
        score = scaled + EXPLORATION * math.sqrt(node.visits) * chance / (1 + visits)
        if score > best:
            best, chosen = score, action
    return chosen


def _masked(logits: list[float], legal: list[bool]) -> list[float]:
    top = max(logit for logit, allowed in zip(logits, legal, strict=True) if allowed)
    weights = [math.exp(logit - top) if allowed else 0.0 for logit, allowed in zip(logits, legal, strict=True)]
    total = sum(weights)
    return [weight / total for weight in weights]


def _mlp(inputs: int, hidden: int, outputs: int) -> torch.nn.Sequential:
    layers = (torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, hidden), torch.nn.Tanh())
    return torch.nn.Sequential(*layers, torch.nn.Linear(hidden, outputs))
