"""Faults that were searched for and rebuilt after the doctor's questions had changed once more.

The part that is to be named first was written down before the doctor saw any of them.
"""

from typing import Any

import numpy as np

from bugs.base import HORIZON, MOVES, PPO, SIDE, Bug, QLearner
from hopplus_doctor import Recorder

AHEAD = 5
"""Steps that the model of the world looks ahead."""


class FlagsAfterTheStep(PPO):
    """The loop over time looks up the flag of the next step, as for flags that tell how a step begins. The buffer
    holds the flag that came after the step. Only the last flag is handed over apart, and is right.
    """

    def advantages(self, data):
        late = {name: np.concatenate([data[name][1:], data[name][-1:]]) for name in ("terminated", "truncated")}
        return super().advantages(data | late)


class RewardOfTheNextToAct(PPO):
    """Seats act in turn. A wrapper returns after each step what belongs to the seat that is asked next, so a seat
    learns from the next one's rewards. (Ends stay: in the game where the fault was, they come for all at once.)
    """

    def play(self):
        data = super().play()
        return data | {"rewards": np.roll(data["env_rewards"], -1, axis=-1)}


class OneNetworkChoosesForAll(QLearner):
    """In the targets of all seats the first seat's network says which action is the best in the next state."""

    def next_values(self, data):
        scores = data["observations"] @ self.parameters[0]["values"]
        best = np.where(data["legal"], scores, -np.inf).argmax(-1)
        return np.take_along_axis(data["action_values"], best[..., None], -1)[..., 0]


class EmbeddingBeforeTheTape(PPO):
    """Observations pass the embedding before gradients are recorded, so none of them reaches it."""

    def descend(self, p, seat, inputs, data):
        before = p["embedding"]
        super().descend(p, seat, inputs, data)
        p["embedding"] = before


class NormalisedOverOneAxis(PPO):
    """Mean and deviation of advantages are taken over envs, for each time step alone."""

    def normalised(self, advantages, keep):
        kept = np.ma.array(advantages, mask=~keep)
        scaled = (kept - kept.mean(1, keepdims=True)) / (kept.std(1, keepdims=True) + 1e-8)
        return scaled[keep].data


class WithWorld(PPO):
    """PPO beside a model of the world, which knows the moves of all, takes the food to stay, and knows no collisions.
    That an episode ends is a rule of the programmer's: the food is where the seat is.
    """

    def after(self) -> dict[str, np.ndarray]:
        return super().after() | {"_seen_after": self.observe()}

    def record_more(self, recorder: Recorder, update: int, data: dict[str, np.ndarray]) -> None:
        super().record_more(recorder, update, data)
        seen, rows = data["observations"][0], []
        for step in range(AHEAD):
            seen = self.predicted(seen, data["actions"][step])
            rows.append(seen)
        begun = np.cumsum(data["resets"][:AHEAD], 0) - data["resets"][0]
        ahead: dict[str, Any] = {"observations": data["_seen_after"][:AHEAD], "ends": data["terminated"][:AHEAD]}
        ahead |= {"predicted_observations": np.stack(rows), "predicted_ends": self.ends(np.stack(rows)[..., 6:8])}
        recorder.record(update, "world", **ahead, valid=data["in_game"][:AHEAD] & (begun == 0))

    def predicted(self, seen: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """What is seen one step later [envs, seats, numbers]."""
        after = seen.copy()
        after[..., :2] = np.clip(seen[..., :2] + MOVES[actions] / SIDE, 0, (SIDE - 1) / SIDE)
        moved = after[..., :2] - seen[..., :2]
        for step in (1, 2):  # who has left is seen at a distance of 0
            to = slice(2 * step, 2 * step + 2)
            there = seen[..., to].any(-1, keepdims=True)
            after[..., to] += np.where(there, np.roll(moved, -step, axis=1) - moved, 0.0)
        after[..., 6:8] -= moved
        after[..., 8] += 1 / HORIZON
        return after

    def ends(self, to_food: np.ndarray) -> np.ndarray:
        """Whether the seat reaches the food: by less than half a cell in both directions."""
        return np.asarray((np.abs(to_food) < 0.5 / SIDE).all(-1))


class AbsoluteOfTheComparison(WithWorld):
    """The absolute value is taken of the comparison and not of the number, so one of the two sides is not checked."""

    def ends(self, to_food):
        return np.asarray(np.abs(to_food < 0.5 / SIDE).all(-1))


BUGS = (
    Bug(
        "flags after the step, read as before it",
        "DLR-RM/stable-baselines3 issue 105",
        "ends: masks",
        FlagsAfterTheStep,
        PPO,
    ),
    Bug(
        "the reward of who acts next",
        "Farama-Foundation/PettingZoo pull request 1203",
        "rewards",
        RewardOfTheNextToAct,
        PPO,
    ),
    Bug(
        "one network chooses for all",
        "assume-framework/assume pull request 538",
        "targets: best action",
        OneNetworkChoosesForAll,
        QLearner,
    ),
    Bug(
        "an embedding that no gradient reaches",
        "instadeepai/Mava pull request 454",
        "embedding",
        EmbeddingBeforeTheTape,
        PPO,
    ),
    Bug(
        "advantages normalised over one axis",
        "tensorflow/agents issue 651",
        "policy: normalisation",
        NormalisedOverOneAxis,
        PPO,
    ),
    Bug(
        "an end that is checked on one side",
        "facebookresearch/mbrl-lib pull request 116",
        "world: ends",
        AbsoluteOfTheComparison,
        WithWorld,
    ),
)
