"""Faults that were rebuilt after the last change of the doctor's questions and thresholds.

The part that is to be named first was written down before the doctor saw any of them.
"""

import copy

import numpy as np

from biased_envs import SmallEnv
from bugs.base import DISCOUNT, ENVS, LAMBDA, PPO, SEATS, STEPS, Board, Bug, QLearner, retraced


class LossClearsMemoryByNextFlag(PPO):
    """Play clears the memory before the first step of an episode. The loss does so by the flag after each step."""

    def loss_inputs(self, data):
        after = np.concatenate([data["resets"][1:], np.repeat(self.begins[None, :, None], SEATS, 2)])
        return retraced(data["observations"], after)


class FlagsOfAnotherEnv(PPO):
    """Rows are stacked seat by seat, and the flags that clear their memory env by env."""

    def clearing(self, resets: np.ndarray) -> np.ndarray:
        return resets.reshape(-1).reshape(SEATS, ENVS).T


class TimeLimitIsAnEnd(PPO):
    """One flag says that an episode is over, so nothing is bootstrapped where only the time was up."""

    def advantages(self, data):
        return super().advantages(data | {"terminated": data["terminated"] | data["truncated"]})


class EpisodesInOneSum(PPO):
    """Rewards of all episodes are one sequence, without ends."""

    def advantages(self, data):
        nothing = np.zeros_like(data["terminated"])
        return super().advantages(data | {"terminated": nothing, "truncated": nothing})


class DeadAreLearned(PPO):
    """The loss counts every step of the rollout, also those of players that have left."""

    def counted(self, there: np.ndarray) -> np.ndarray:
        return np.ones_like(there)


class LivingOfTheStepBefore(PPO):
    """The list of the living is made before the step, so who dies is in it for one step more."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.listed = np.ones((ENVS, SEATS), bool)

    def observed(self):
        row = super().observed()
        late = np.where(self.begins[:, None], True, self.listed)
        self.listed = row["in_game"]
        return row | {"in_game": late, "learned": late}


class EveryRunnerHasOneSeed(PPO):
    """Two runners have three environments each, and both seed theirs with 0, 1, 2."""

    def make_boards(self) -> list[Board]:
        return [self.board(1000 * self.seed + env % (ENVS // 2)) for env in range(ENVS)]


class CopiesOfOneEnv(PPO):
    """The vector of environments is made of copies of one, with its state of chance."""

    def make_boards(self) -> list[Board]:
        one = self.board(1000 * self.seed)
        return [copy.deepcopy(one) for _ in range(ENVS)]


class PaddingBootstrapped(QLearner):
    """Sequences are padded with very low values, which are masked after an end, but not where a sequence is cut."""

    def targets(self, data):
        after = np.concatenate([self.next_values(data)[1:], np.zeros((1, ENVS, SEATS))])
        after = np.where(data["truncated"], -1e7, after)
        return data["rewards"] + DISCOUNT * np.where(data["terminated"], 0.0, after)

    def after(self):
        """The right value where an episode is cut off, for the record."""
        seen = self.observe()
        pairs = [(seen[:, s] @ p["target"], seen[:, s] @ p["values"]) for s, p in enumerate(self.parameters)]
        masks = np.array([[board.legal(seat) for seat in range(SEATS)] for board in self.boards])
        best = [np.where(masks[:, s], now, -np.inf).argmax(-1)[:, None] for s, (_, now) in enumerate(pairs)]
        values = [np.take_along_axis(old, at, -1)[:, 0] for (old, _), at in zip(pairs, best, strict=True)]
        return {"final_values": np.stack(values, 1)}


class WithCutValues(PaddingBootstrapped):
    """The same with the right value."""

    def targets(self, data):
        after = np.concatenate([self.next_values(data)[1:], np.zeros((1, ENVS, SEATS))])
        after = np.where(data["truncated"], data["final_values"], after)
        return data["rewards"] + DISCOUNT * np.where(data["terminated"], 0.0, after)


class NoMaskInTheLoss(PPO):
    """Play obeys the mask of legal actions. The loss asks the policy without it."""

    in_loss = False

    def policy(self, p, inputs, masks):
        return super().policy(p, inputs, np.ones_like(masks) if self.in_loss else masks)

    def descend(self, p, seat, inputs, data):
        self.in_loss = True
        super().descend(p, seat, inputs, data)
        self.in_loss = False


class NextObservationOfTheNextSeat(PPO):
    """Seats act in turn, and the next observation in the buffer is the one that the next seat saw."""

    def advantages(self, data):
        ends, cuts = data["terminated"], data["terminated"] | data["truncated"]
        final, last = (np.roll(data[name], -1, axis=-1) for name in ("final_values", "last_values"))
        advantage, after, found = 0.0, last, np.zeros_like(data["values"])
        for t in reversed(range(STEPS)):
            bootstrap = np.where(ends[t], 0.0, np.where(cuts[t], final[t], after))
            surprise = data["rewards"][t] + DISCOUNT * bootstrap - data["values"][t]
            advantage = surprise + DISCOUNT * LAMBDA * np.where(cuts[t], 0.0, advantage)
            found[t], after = advantage, np.roll(data["values"][t], -1, axis=-1)
        return found


class Ponds(SmallEnv):
    """Four swimmers in a ring of ponds. Food drifts; who is where it is eats it, all of them if they are several."""

    num_players, num_actions, horizon, num_seen = 4, 3, 15, 2
    ponds = 8

    def begin(self) -> None:
        self.places = self.random.integers(self.ponds, size=self.num_players)
        self.food = int(self.random.integers(self.ponds))

    def play(self, actions: dict[str, int]) -> dict[str, float]:
        self.places = (self.places + np.array(list(actions.values())) - 1) % self.ponds
        self.food = (self.food + int(self.random.integers(-1, 2))) % self.ponds
        return self.paid(self.places == self.food)

    def paid(self, ate: np.ndarray) -> dict[str, float]:
        return dict(zip(self.agents, ate.astype(float), strict=True))

    def views(self) -> dict[str, np.ndarray]:
        return {agent: np.array([self.places[at], self.food], np.float32) for at, agent in enumerate(self.agents)}


class OnlyTheLastIsPaid(Ponds):
    """Rewards are set in a loop that begins with zeros for all, so only those of the last swimmer stay."""

    def paid(self, ate: np.ndarray) -> dict[str, float]:
        rewards: dict[str, float] = {}
        for at, agent in enumerate(self.agents):
            rewards = dict.fromkeys(self.agents, 0.0)
            rewards[agent] = float(ate[at])
        return rewards


RATIO, RESETS, LEFT = "policy: log-probabilities", "memory: resets", "buffer: samples after leaving"
ENVS_ALIKE, LIMITS = "random streams: envs", "ends: time limits"
BUGS = (
    Bug("two flags under one name", "bold-lab-ai/JaxMARL pull request 191", RATIO, LossClearsMemoryByNextFlag, PPO),
    Bug("data of one env, flags of another", "bold-lab-ai/JaxMARL issue 169", RESETS, FlagsOfAnotherEnv, PPO),
    Bug(
        "a time limit that counts as the end", "Farama-Foundation/PettingZoo issue 1126", LIMITS, TimeLimitIsAnEnd, PPO
    ),
    Bug("all episodes in one sum", "PaddlePaddle/PARL pull request 47", "ends: bootstrapping", EpisodesInOneSum, PPO),
    Bug("values of the dead are learned", "instadeepai/Mava issue 628", LEFT, DeadAreLearned, PPO),
    Bug("the dead are known one step late", "oxwhirl/smac pull request 81", LEFT, LivingOfTheStepBefore, PPO),
    Bug("every runner plays the same", "ray-project/ray issue 46986", ENVS_ALIKE, EveryRunnerHasOneSeed, PPO),
    Bug("copies that share their chance", "Farama-Foundation/SuperSuit issue 89", ENVS_ALIKE, CopiesOfOneEnv, PPO),
    Bug("padding that is bootstrapped", "ray-project/ray issue 4693", LIMITS, PaddingBootstrapped, WithCutValues),
    Bug("no mask in the loss", "AgileRL/AgileRL pull request 487", RATIO, NoMaskInTheLoss, PPO),
    Bug(
        "the next observation of the next agent",
        "thu-ml/tianshou pull request 812",
        "targets",
        NextObservationOfTheNextSeat,
        PPO,
    ),
    Bug(
        "only one swimmer is paid",
        "Farama-Foundation/PettingZoo pull request 133",
        "game: returns",
        OnlyTheLastIsPaid,
        Ponds,
    ),
)
