"""The base of the small programs that rebuild real faults: a board for three players, and two trainers in NumPy.

A fault is a subclass that overrides one method; the class that it overrides is the fixed version. Every array has the
axes envs, seats while playing, and time, envs, seats in the recording.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hopplus_doctor import Recorder

SIDE, SEATS, ENVS, STEPS, HORIZON = 5, 3, 6, 40, 12
MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])
ACTIONS, NUMBERS, HIDDEN = len(MOVES), 2 * SEATS + 3, 12
DISCOUNT, LAMBDA, RATE, CLIP = 0.95, 0.9, 0.05, 0.2
NAMES = ("red", "blue", "green")


@dataclass(frozen=True)
class Bug:
    """A fault that was in public code."""

    name: str
    reference: str
    part: str
    """The part that is to be named first."""
    broken: Any
    fixed: Any
    """A class of trainers that write a recording, or a function that makes a PettingZoo environment."""


class Board:
    """A square for three players. The food pays 1 to one of those who reach it, who then leaves; it grows elsewhere."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)

    def reset(self) -> None:
        cells = self.random.choice(SIDE * SIDE, SEATS + 1, replace=False)
        self.places = np.stack(np.divmod(cells[:SEATS], SIDE), -1)
        self.food = np.array(divmod(int(cells[SEATS]), SIDE))
        self.there, self.time = np.ones(SEATS, bool), 0
        self.plane = self.drawn(self.places, self.there)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rewards, own ends, and cuts by the time limit."""
        before = self.places.copy()
        self.places = self.moved(actions)
        self.plane = self.redrawn(before)
        self.time += 1
        rewards, terminated = np.zeros(SEATS), np.zeros(SEATS, bool)
        at_food = np.flatnonzero(self.there & (self.places == self.food).all(-1))
        if len(at_food):
            winner = self.winner(at_food)
            rewards[winner], terminated[winner] = 1.0, True
            self.there = self.there & ~terminated
            self.plane = self.drawn(self.places, self.there)
            self.food = self.random.integers(SIDE, size=2)
        return rewards, terminated, self.there & (self.time >= HORIZON)

    def winner(self, at_food: np.ndarray) -> int:
        return int(self.random.choice(at_food))

    def moved(self, actions: np.ndarray) -> np.ndarray:
        """The next places: one player on a cell, nobody passes through another, and who stays is safe."""
        wanted = np.clip(self.places + MOVES[actions], 0, SIDE - 1)
        wanted = np.where(self.there[:, None], wanted, self.places)
        after = self.places.copy()
        for seat in self.random.permutation(SEATS):
            free = not any((wanted[seat] == after[other]).all() for other in self.others(seat))
            after[seat] = wanted[seat] if free else after[seat]
        return after

    def others(self, seat: int) -> list[int]:
        return [other for other in range(SEATS) if other != seat and self.there[other]]

    def drawn(self, places: np.ndarray, there: np.ndarray) -> np.ndarray:
        plane = np.zeros((SIDE, SIDE), int)
        np.add.at(plane, tuple(places[there].T), 1)
        return plane

    def redrawn(self, _before: np.ndarray) -> np.ndarray:
        """The plane of players after all have moved."""
        return self.drawn(self.places, self.there)

    def view(self, seat: int) -> np.ndarray:
        """What a seat sees: its place, the others and the food from there, and the time."""
        own = self.places[seat]
        ahead = [(self.places[(seat + step) % SEATS] - own) * self.there[(seat + step) % SEATS] for step in (1, 2)]
        return np.concatenate([own, *ahead, self.food - own, [SIDE * self.time / HORIZON]]) / SIDE

    def legal(self, seat: int) -> np.ndarray:
        after = self.places[seat] + MOVES
        masks = ((after >= 0) & (after < SIDE)).all(-1)
        return masks if self.there[seat] else np.arange(ACTIONS) == 0


class Trainer:
    """What both trainers share: playing several boards, and recording."""

    board = Board
    settings: ClassVar[dict[str, Any]] = {}
    modules: tuple[str, ...] = ()

    def __init__(self, seed: int):
        self.seed, self.random = seed, [np.random.default_rng((seed, seat)) for seat in range(SEATS)]
        self.boards = self.make_boards()
        for board in self.boards:
            board.reset()
        self.begins = np.ones(ENVS, bool)
        self.parameters = [self.init(np.random.default_rng((seed, seat, 1))) for seat in range(SEATS)]

    def make_boards(self) -> list[Board]:
        return [self.board(1000 * self.seed + env) for env in range(ENVS)]

    def restart(self, board: Board) -> None:
        board.reset()

    def init(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def choose(self, seat: int, row: dict[str, np.ndarray]) -> np.ndarray:
        """Add to a row what the seat thinks, and return its actions."""
        raise NotImplementedError

    def learn(self, data: dict[str, np.ndarray]) -> None:
        raise NotImplementedError

    def observe(self) -> np.ndarray:
        return np.array([[self.view(board, seat) for seat in range(SEATS)] for board in self.boards])

    def view(self, board: Board, seat: int) -> np.ndarray:
        return board.view(seat)

    def of_boards(self, name: str) -> np.ndarray:
        return np.array([np.copy(getattr(board, name)) for board in self.boards])

    def play(self) -> dict[str, np.ndarray]:
        """One rollout."""
        rows = []
        for _ in range(STEPS):
            row = self.observed()
            actions = np.stack([self.choose(seat, row) for seat in range(SEATS)], 1)
            stepped = [board.step(each) for board, each in zip(self.boards, actions, strict=True)]
            paid, ends, cuts = (np.array(part) for part in zip(*stepped, strict=True))
            row |= {"actions": actions, "env_rewards": paid, "rewards": paid, "terminated": ends, "truncated": cuts}
            row |= self.after()
            rows.append(row)
            self.begins = np.array([not board.there.any() or board.time >= HORIZON for board in self.boards])
            for board, is_over in zip(self.boards, self.begins, strict=True):
                if is_over:
                    self.restart(board)
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def observed(self) -> dict[str, np.ndarray]:
        """What is known before a step."""
        there, begins = self.of_boards("there"), np.repeat(self.begins[:, None], SEATS, 1)
        row = {"observations": self.observe(), "in_game": there, "resets": begins}
        row["legal"] = np.array([[board.legal(seat) for seat in range(SEATS)] for board in self.boards])
        row["places"] = self.of_boards("places") @ np.array([SIDE, 1])
        planes = self.of_boards("plane").sum((1, 2))
        return row | {"learned": self.counted(there), "players_seen": np.repeat(planes[:, None], SEATS, 1)}

    def counted(self, there: np.ndarray) -> np.ndarray:
        """The samples that the loss counts."""
        return there

    def after(self) -> dict[str, np.ndarray]:
        """What is known after a step, before a new episode begins."""
        return {}

    def train(self, folder: Path, updates: int = 8) -> Path:
        """Train and record."""
        about = {"discount": DISCOUNT, "shared_rewards": False, "shared_parameters": False, "symmetric": True}
        about |= {"shared_observations": False, "one_per_cell": True, "swaps": False, "num_actions": ACTIONS}
        recorder = Recorder(folder, NAMES, axes="time envs seats", modules=self.modules, **about | self.settings)
        for update in range(updates):
            data = self.play()
            parts = {name: [[p[name]] for p in self.parameters] for name in self.modules}
            recorder.checksums(update, "before", parts)
            self.learn(data)
            parts = {name: [[p[name]] for p in self.parameters] for name in self.modules}
            recorder.checksums(update, "after", parts)
            recorder.record(update, "real", **{name: array for name, array in data.items() if not name.startswith("_")})
            self.record_more(recorder, update, data)
        return recorder.save()

    def record_more(self, recorder: Recorder, update: int, data: dict[str, np.ndarray]) -> None:
        """Record what else there is."""


def retraced(observations: np.ndarray, cleared: np.ndarray) -> np.ndarray:
    """What a learner reads that goes through a stored sequence again, and clears its memory by these flags."""
    memory, rows = np.zeros_like(observations[0]), []
    for seen, clear in zip(observations, cleared, strict=True):
        memory = np.where(clear[..., None], 0.0, 0.5 * memory) + seen
        rows.append(np.concatenate([seen, memory], -1))
    return np.stack(rows)


class PPO(Trainer):
    """A policy of three layers and a linear critic for each seat. Both read a trace of earlier observations too."""

    settings: ClassVar[dict[str, Any]] = {"gae_lambda": LAMBDA, "clip": CLIP, "normalise_advantages": "seat"}
    modules = ("embedding", "hidden", "head", "critic")

    def __init__(self, seed: int):
        super().__init__(seed)
        self.memory = np.zeros((ENVS, SEATS, NUMBERS))

    def init(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        shapes = {"embedding": (2 * NUMBERS, HIDDEN), "hidden": (HIDDEN, HIDDEN), "head": (HIDDEN, ACTIONS)}
        drawn = {name: random.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
        return drawn | {"critic": np.zeros(2 * NUMBERS)}

    def observed(self) -> dict[str, np.ndarray]:
        row = super().observed()
        row["memory_resets"] = self.clearing(row["resets"])
        self.memory = np.where(row["memory_resets"][..., None], 0.0, 0.5 * self.memory) + row["observations"]
        row["_inputs"] = np.concatenate([row["observations"], self.memory], -1)
        shape = self.memory.shape[:2]
        row |= {"probabilities": np.zeros((*shape, ACTIONS)), "log_probabilities": np.zeros(shape)}
        return row | {"values": self.values(row["_inputs"])}

    def clearing(self, resets: np.ndarray) -> np.ndarray:
        """Before which steps the memory is cleared."""
        return resets

    def values(self, inputs: np.ndarray) -> np.ndarray:
        return np.stack([inputs[..., seat, :] @ p["critic"] for seat, p in enumerate(self.parameters)], -1)

    def layers(self, p: dict[str, np.ndarray], inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The two hidden layers, and what the head reads."""
        first = np.tanh(inputs @ p["embedding"])
        second = np.tanh(first @ p["hidden"])
        return first, second, second

    def policy(self, p: dict[str, np.ndarray], inputs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        logits = np.where(masks, self.layers(p, inputs)[2] @ p["head"], -1e9)
        chances = np.exp(logits - logits.max(-1, keepdims=True))
        return chances / chances.sum(-1, keepdims=True)

    def choose(self, seat: int, row: dict[str, np.ndarray]) -> np.ndarray:
        chances = self.policy(self.parameters[seat], row["_inputs"][:, seat], row["legal"][:, seat])
        actions = (self.random[seat].random(ENVS)[:, None] > chances.cumsum(-1)).sum(-1).clip(max=ACTIONS - 1)
        row["probabilities"][:, seat] = chances
        row["log_probabilities"][:, seat] = np.log(np.take_along_axis(chances, actions[:, None], -1)[:, 0])
        return actions

    def after(self) -> dict[str, np.ndarray]:
        seen = self.observe()
        return {"final_values": self.values(np.concatenate([seen, 0.5 * self.memory + seen], -1))}

    def learn(self, data: dict[str, np.ndarray]) -> None:
        seen = self.observe()
        memory = np.where(self.begins[:, None, None], 0.0, 0.5 * self.memory) + seen
        data["last_values"] = self.values(np.concatenate([seen, memory], -1))
        data["advantages"] = self.advantages(data)
        data["targets"] = data["values"] + data["advantages"]
        self.minibatch = {name: [] for name in ("log_probabilities", "new_log_probabilities")}
        for name in ("advantages", "normalised_advantages"):
            self.minibatch[name] = []
        inputs = self.loss_inputs(data)
        for seat, p in enumerate(self.parameters):
            self.descend(p, seat, inputs, data)

    def advantages(self, data: dict[str, np.ndarray]) -> np.ndarray:
        """Generalised advantage estimation."""
        ends, cuts = data["terminated"], data["terminated"] | data["truncated"]
        stops = self.sum_stops(ends, cuts)
        advantage, after, found = 0.0, data["last_values"], np.zeros_like(data["values"])
        for t in reversed(range(STEPS)):
            bootstrap = np.where(ends[t], 0.0, np.where(cuts[t], data["final_values"][t], after))
            surprise = data["rewards"][t] + DISCOUNT * bootstrap - data["values"][t]
            advantage = surprise + DISCOUNT * LAMBDA * np.where(stops[t], 0.0, advantage)
            found[t], after = advantage, data["values"][t]
        return found

    def sum_stops(self, ends: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        """The steps after which the sum of an advantage does not go on."""
        return cuts

    def loss_inputs(self, data: dict[str, np.ndarray]) -> np.ndarray:
        """What the loss reads: the observations, and the traces as they were in play."""
        return data["_inputs"]

    def descend(self, p: dict[str, np.ndarray], seat: int, inputs: np.ndarray, data: dict[str, np.ndarray]) -> None:
        """One step of PPO and of the critic."""
        keep = data["learned"][:, :, seat]
        seen, masks, actions, old, raw = (
            array[:, :, seat][keep]
            for array in (inputs, data["legal"], data["actions"], data["log_probabilities"], data["advantages"])
        )
        gain = self.normalised(data["advantages"][:, :, seat], keep)
        chances = self.policy(p, seen, masks)
        new = np.log(np.take_along_axis(chances, actions[:, None], -1)[:, 0])
        for name, values in zip(self.minibatch, (old, new, raw, gain), strict=True):
            self.minibatch[name].append(values[:64])
        slope = (np.eye(ACTIONS)[actions] - chances) * (np.exp(new - old) * gain)[:, None] / len(gain)
        first, second, read = self.layers(p, seen)
        steps = {"head": read.T @ slope}
        back = slope @ p["head"].T * (1 - read**2)
        if read is second:
            steps["hidden"] = first.T @ back
            back = back @ p["hidden"].T * (1 - first**2)
        steps["embedding"] = seen.T @ back
        error = data["targets"][:, :, seat][keep] - seen @ p["critic"]
        steps["critic"] = 0.1 * seen.T @ error / len(error)
        for name, step in steps.items():
            p[name] = p[name] + RATE * step

    def normalised(self, advantages: np.ndarray, keep: np.ndarray) -> np.ndarray:
        """The advantages of a seat's samples [time, envs], as the loss uses those that it keeps [samples]."""
        kept = advantages[keep]
        return (kept - kept.mean()) / (kept.std() + 1e-8)

    def record_more(self, recorder: Recorder, update: int, data: dict[str, np.ndarray]) -> None:
        short = min(map(len, self.minibatch["advantages"]))
        rows = {name: np.stack([values[:short] for values in rows]) for name, rows in self.minibatch.items()}
        recorder.record(update, "minibatch", **{name: np.resize(array, (SEATS, 64)) for name, array in rows.items()})


class QLearner(Trainer):
    """Linear double Q-learning with a target network for each seat."""

    modules = ("values",)

    def init(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        values = 0.3 * random.normal(size=(NUMBERS, ACTIONS))
        return {"values": values, "target": values.copy()}

    def observed(self) -> dict[str, np.ndarray]:
        row = super().observed()
        seen = row["observations"]
        row["action_values"] = np.stack([seen[:, s] @ p["target"] for s, p in enumerate(self.parameters)], 1)
        row["_now"] = np.stack([seen[:, s] @ p["values"] for s, p in enumerate(self.parameters)], 1)
        row["best_actions"] = np.where(row["legal"], row["_now"], -np.inf).argmax(-1)
        return row

    def choose(self, seat: int, row: dict[str, np.ndarray]) -> np.ndarray:
        random, masks = self.random[seat], row["legal"][:, seat]
        any_action = np.where(masks, random.random(masks.shape), -1.0).argmax(-1)
        return np.where(random.random(ENVS) < 0.3, any_action, row["best_actions"][:, seat])

    def next_values(self, data: dict[str, np.ndarray]) -> np.ndarray:
        """The value of each step's state, as the target of the step before uses it [time, envs, seats]."""
        return np.take_along_axis(data["action_values"], data["best_actions"][..., None], -1)[..., 0]

    def targets(self, data: dict[str, np.ndarray]) -> np.ndarray:
        after = np.concatenate([self.next_values(data)[1:], np.zeros((1, ENVS, SEATS))])
        return data["rewards"] + DISCOUNT * np.where(data["terminated"], 0.0, after)

    def learn(self, data: dict[str, np.ndarray]) -> None:
        data["targets"] = self.targets(data)
        known = data["learned"] & ~data["truncated"]
        known[-1] = False
        for seat, p in enumerate(self.parameters):
            keep = known[:, :, seat]
            seen, actions, goal = (data[n][:, :, seat][keep] for n in ("observations", "actions", "targets"))
            error = goal - np.take_along_axis(seen @ p["values"], actions[:, None], -1)[:, 0]
            p["target"] = p["values"]
            p["values"] = p["values"] + RATE * seen.T @ (np.eye(ACTIONS)[actions] * error[:, None]) / len(error)
