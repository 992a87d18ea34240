"""Faults that were rebuilt while the doctor's questions were still being written."""

import numpy as np

from biased_envs import SmallEnv
from bugs.base import MOVES, PPO, SEATS, SIDE, Board, Bug, QLearner, Trainer, retraced


class CoinGame(SmallEnv):
    """Two players and a coin of one's colour on nine cells. A coin pays its taker 1, and costs the other 2 if it is
    the other's colour. If both reach it at once, both are paid.
    """

    num_players, num_actions, horizon, num_seen = 2, 4, 20, 7

    def begin(self) -> None:
        self.places = self.random.integers(3, size=(2, 2))
        self.coin, self.colour = self.random.integers(3, size=2), int(self.random.integers(2))

    def play(self, actions: dict[str, int]) -> dict[str, float]:
        self.places = (self.places + MOVES[1:][list(actions.values())]) % 3
        paid = np.zeros(2)
        for seat in self.takers([s for s in range(2) if (self.places[s] == self.coin).all()]):
            paid[seat] += 1
            paid[1 - seat] -= 2.0 * (self.colour != seat)
        if paid.any():
            self.coin, self.colour = self.random.integers(3, size=2), int(self.random.integers(2))
        return dict(zip(self.agents, paid, strict=True))

    def takers(self, reached: list[int]) -> list[int]:
        return reached

    def views(self) -> dict[str, np.ndarray]:
        own = [self.colour == seat for seat in range(2)]
        both = [np.concatenate([self.places[s], self.places[1 - s], self.coin, own[s : s + 1]]) for s in range(2)]
        return dict(zip(self.agents, (view.astype(np.float32) for view in both), strict=True))


class RedTakesTies(CoinGame):
    """Red is asked first, and blue only if red is not there."""

    def takers(self, reached: list[int]) -> list[int]:
        return reached[:1]


class HiddenLayerBypassed(PPO):
    """The head reads the embedding; the layer between is made and saved, and never learns."""

    def layers(self, p, inputs):
        first, second, _ = super().layers(p, inputs)
        return first, second, first


class MemoryClearedEarly(PPO):
    """The memory is cleared by the end of the step itself, before its last observation is read."""

    def play(self):
        data = super().play()
        over = np.concatenate([data["resets"][1:], np.repeat(self.begins[None, :, None], SEATS, 2)])
        return data | {"memory_resets": over, "_inputs": retraced(data["observations"], over)}


class SameEpisodeAgain(PPO):
    """Every reset seeds the environment anew, with the seed of its beginning."""

    def restart(self, board: Board) -> None:
        env = self.boards.index(board)
        board.random = np.random.default_rng(1000 * self.seed + env)
        board.reset()


class FirstPlayersView(PPO):
    """The function that is asked for the observation of a seat returns that of the first."""

    def view(self, board: Board, seat: int) -> np.ndarray:
        return board.view(0)


class BoardNotCopied(PPO):
    """The environment hands out one array that it goes on to change, and the buffer keeps references to it."""

    def observe(self) -> np.ndarray:
        if not hasattr(self, "kept"):
            self.kept = super().observe()
        self.kept[:] = super().observe()
        return self.kept


class VanishingPlayer(Board):
    """Cells are cleared and marked one player at a time: who leaves a cell may erase who has just come to it."""

    def redrawn(self, before: np.ndarray) -> np.ndarray:
        plane = self.plane.copy()
        for seat in np.flatnonzero(self.there):
            plane[tuple(self.places[seat])] = 1
            if (before[seat] != self.places[seat]).any():
                plane[tuple(before[seat])] = 0
        return plane


class StayersForgotten(Board):
    """Conflicts are settled between moves only, so that a player may come onto the cell of one who stays."""

    def moved(self, actions: np.ndarray) -> np.ndarray:
        wanted = np.clip(self.places + MOVES[actions], 0, SIDE - 1)
        after = np.where(self.there[:, None], wanted, self.places)
        going = [seat for seat in range(SEATS) if (after[seat] != self.places[seat]).any()]
        for seat in going:
            if any((after[seat] == after[other]).all() for other in going if other != seat):
                after[seat] = self.places[seat]
        return after


class PassThrough(Board):
    """Only final places are compared: two neighbours may exchange their cells."""

    def moved(self, actions: np.ndarray) -> np.ndarray:
        wanted = np.clip(self.places + MOVES[actions], 0, SIDE - 1)
        after = np.where(self.there[:, None], wanted, self.places)
        while True:
            met = [
                s
                for s in range(SEATS)
                if self.there[s] and any((after[s] == after[o]).all() for o in self.others(s))
                if (after[s] != self.places[s]).any()
            ]
            if not met:
                return after
            after[met] = self.places[met]


def trained_on(board: type[Board], base: type[Trainer] = PPO) -> type[Trainer]:
    """A trainer on another board."""
    return type(board.__name__, (base,), {"board": board})


class IllegalInTarget(QLearner):
    """Acting obeys the mask; the best value of the next state is taken over all actions."""

    def next_values(self, data):
        return data["action_values"].max(-1)

    def observed(self):
        row = super().observed()
        row["best_actions"] = np.where(row["legal"], row["action_values"], -np.inf).argmax(-1)
        return row


class BestActionOfBefore(QLearner):
    """The target network values the next state's action that is best in this state."""

    def next_values(self, data):
        best = np.concatenate([data["best_actions"][:1], data["best_actions"][:-1]])
        return np.take_along_axis(data["action_values"], best[..., None], -1)[..., 0]


class ValuesOfTwoScales(PPO):
    """The critic learns normalised returns. Advantages subtract its output as it is from returns as they are."""

    mean, scale = 0.3, 0.4

    def advantages(self, data):
        returns = super().advantages(data) + data["values"]
        self.returns = returns
        return returns - (data["values"] - self.mean) / self.scale

    def learn(self, data):
        super().learn(data)
        data["targets"] = self.returns


class SumAcrossTimeLimits(PPO):
    """The value is bootstrapped where the time is up, and the sum of the advantage goes on into the next episode."""

    def sum_stops(self, ends, cuts):
        return ends


BUGS = (
    Bug("the tie that red always won", "alshedivat/lola pull request 5", "game: returns", RedTakesTies, CoinGame),
    Bug("a hidden layer that nobody reads", "bold-lab-ai/JaxMARL issue 168", "hidden", HiddenLayerBypassed, PPO),
    Bug("memory cleared one step early", "bold-lab-ai/JaxMARL issue 119", "memory: resets", MemoryClearedEarly, PPO),
    Bug(
        "the second episode repeats the first",
        "google-deepmind/meltingpot issue 5",
        "random streams: envs",
        SameEpisodeAgain,
        PPO,
    ),
    Bug(
        "everyone sees what the first one sees",
        "Farama-Foundation/PettingZoo pull request 262",
        "observations",
        FirstPlayersView,
        PPO,
    ),
    Bug(
        "an observation that changes afterwards",
        "MultiAgentLearning/playground pull request 234",
        "observations",
        BoardNotCopied,
        PPO,
    ),
    Bug(
        "a player that vanishes",
        "Cognitive-AI-Systems/pogema pull request 51",
        "observations",
        trained_on(VanishingPlayer),
        PPO,
    ),
    Bug(
        "conflicts that forget who stays",
        "eugenevinitsky/sequential_social_dilemma_games pull request 116",
        "game: moves",
        trained_on(StayersForgotten),
        PPO,
    ),
    Bug(
        "two players that pass through each other",
        "MultiAgentLearning/playground issue 76",
        "game: moves",
        trained_on(PassThrough),
        PPO,
    ),
    Bug("illegal actions in the target", "thu-ml/tianshou issue 309", "legal masks", IllegalInTarget, QLearner),
    Bug(
        "double Q-learning one step off",
        "ray-project/ray pull request 5731",
        "targets: best action",
        BestActionOfBefore,
        QLearner,
    ),
    Bug(
        "values of two scales subtracted",
        "marlbenchmark/on-policy issue 12",
        "critic: scale of values",
        ValuesOfTwoScales,
        PPO,
    ),
    Bug(
        "advantages that run through a time limit",
        "Toni-SM/skrl issue 224",
        "ends: advantages across episodes",
        SumAcrossTimeLimits,
        PPO,
    ),
)
