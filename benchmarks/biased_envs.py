"""Small PettingZoo environments, fair and with a seat bias planted in them: what `doctor game --env` must tell apart.

    python benchmarks/biased_envs.py            a minute for each environment
    python benchmarks/biased_envs.py --quick    five seconds for each

Three bring their own twin, so that what is found is the bias and nothing else. Environments of others take part where
they are installed: `pip install mpe2 pygame`.
"""

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

Views = dict[str, Any]
Step = tuple[Views, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict]]


class SmallEnv(ParallelEnv[str, Any, int]):
    """What the environments here have in common: who plays, for how long, and the random numbers."""

    num_players, num_actions, horizon = 3, 2, 5
    num_seen = 1

    def __init__(self):
        self.possible_agents = [f"player_{seat}" for seat in range(self.num_players)]
        self.agents: list[str] = []
        self.random = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(-np.inf, np.inf, (self.num_seen,), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(self.num_actions)

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[Views, dict[str, dict]]:
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.agents, self.time = list(self.possible_agents), 0
        self.begin()
        return self.views(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Step:
        acted = list(self.agents)
        rewards = dict.fromkeys(acted, 0.0) | self.play(actions)
        self.time += 1
        left = {agent: self.has_left(agent) or self.time >= self.horizon for agent in acted}
        views = self.views()
        self.agents = [agent for agent in acted if not left[agent]]
        return views, rewards, left, dict.fromkeys(acted, False), {agent: {} for agent in acted}

    def begin(self) -> None:
        """Set up the episode."""

    def play(self, actions: dict[str, int]) -> dict[str, float]:
        """Who gets what."""
        raise NotImplementedError

    def has_left(self, agent: str) -> bool:
        return False

    def views(self) -> Views:
        return {agent: np.zeros(self.num_seen, np.float32) for agent in self.agents}


class Matching(SmallEnv):
    """Two sides of a coin: paid is who chose as others did. The payoff is the same for all."""

    def play(self, actions: dict[str, int]) -> dict[str, float]:
        chosen = list(actions.values())
        return {agent: float(chosen.count(action) - 1) for agent, action in actions.items()}


class FirstIsPaidMore(Matching):
    """A tenth more for the first player."""

    def play(self, actions: dict[str, int]) -> dict[str, float]:
        rewards = super().play(actions)
        return rewards | {"player_0": 1.1 * rewards["player_0"]}


class Coins(SmallEnv):
    """Four coins, four hands: a coin that several reach for goes to one of them. Taken coins are masked."""

    num_players, num_actions, horizon = 4, 4, 4

    def begin(self) -> None:
        self.there = np.ones(self.num_actions, bool)

    def play(self, actions: dict[str, int]) -> dict[str, float]:
        rewards = {}
        for coin in set(actions.values()):
            hands = [agent for agent, action in actions.items() if action == coin]
            if self.there[coin]:
                rewards[self.winner(hands)] = 1.0
            self.there[coin] = False
        return rewards

    def winner(self, hands: list[str]) -> str:
        return hands[self.random.integers(len(hands))]

    def views(self) -> Views:
        mask = self.there if self.there.any() else np.ones(self.num_actions, bool)
        return {agent: {"observation": self.there.copy(), "action_mask": mask.astype(np.int8)} for agent in self.agents}

    def observation_space(self, agent: str) -> spaces.Space:
        each = spaces.MultiBinary(self.num_actions)
        return spaces.Dict({"observation": each, "action_mask": each})


class TieToTheFirst(Coins):
    """The hand of the lowest number wins: what `max` and `argmax` do when nobody thought of ties."""

    def winner(self, hands: list[str]) -> str:
        return hands[0]


class Foraging(SmallEnv):
    """A line of nine cells with food in one of them: a player that gets there is paid for speed, and leaves."""

    num_players, num_actions, horizon, num_seen = 3, 3, 20, 2
    cells = 9

    def begin(self) -> None:
        self.food = int(self.random.integers(self.cells))
        self.places = dict(zip(self.agents, self.spawns(), strict=True))

    def spawns(self) -> list[int]:
        return self.random.integers(self.cells, size=self.num_players).tolist()

    def play(self, actions: dict[str, int]) -> dict[str, float]:
        for agent, action in actions.items():
            self.places[agent] = min(max(self.places[agent] + action - 1, 0), self.cells - 1)
        return {agent: 1.0 - self.time / self.horizon for agent in actions if self.has_left(agent)}

    def has_left(self, agent: str) -> bool:
        return self.places[agent] == self.food

    def views(self) -> Views:
        return {agent: np.array([self.places[agent], self.food], np.float32) for agent in self.agents}


class FirstSpawnsNearer(Foraging):
    """Of the cells that were drawn, the first player takes the nearest to the food."""

    def spawns(self) -> list[int]:
        drawn = super().spawns()
        nearest = min(range(len(drawn)), key=lambda index: abs(drawn[index] - self.food))
        drawn[0], drawn[nearest] = drawn[nearest], drawn[0]
        return drawn


BIASED: tuple[type[SmallEnv], ...] = (FirstIsPaidMore, TieToTheFirst, FirstSpawnsNearer)
FAIR: tuple[type[SmallEnv], ...] = (Matching, Coins, Foraging)


def stag_hunt() -> ParallelEnv:
    """A game of ours through the bridge."""
    from hopplus.games.bridges.pettingzoo import parallel_env
    from hopplus.games.presets import make

    return parallel_env(make("stag-hunt-4x4"))


def others() -> dict[str, Callable[[], ParallelEnv]]:
    """Fair environments by other people, where they are installed."""
    if find_spec("mpe2") is None:
        return {}
    from mpe2 import simple_spread_v3, simple_tag_v3  # pyright: ignore[reportMissingImports]

    return {"mpe2 simple_spread_v3": simple_spread_v3.parallel_env, "mpe2 simple_tag_v3": simple_tag_v3.parallel_env}


def judge(seconds: float) -> list[dict[str, Any]]:
    """What the doctor says of each environment."""
    from hopplus_doctor.environment import examine_env

    biased = {env.__name__: env for env in BIASED}
    fair = {env.__name__: env for env in FAIR} | {"hopplus stag-hunt-4x4": stag_hunt} | others()
    judged = []
    for planted, envs in ((True, biased), (False, fair)):
        for name, make_env in envs.items():
            answer = examine_env(make_env, name, seconds=seconds)
            to_blame = dict.fromkeys(
                finding.check for finding in answer.findings if finding.verdict in ("suspicious", "broken")
            )
            judged.append({"env": name, "planted": planted, "verdict": answer.verdict, "found_by": list(to_blame)})
    return judged


def counts(judged: list[dict[str, Any]]) -> dict[str, int]:
    """Cleared is only what was called fine: not enough evidence is no alarm, but no clearance either."""
    biased, fair = ([row["verdict"] for row in judged if row["planted"] is planted] for planted in (True, False))
    alarms = ("suspicious", "broken")
    return {
        "biased": len(biased),
        "found": sum(verdict in alarms for verdict in biased),
        "fair": len(fair),
        "cleared": fair.count("fine"),
        "undecided": fair.count("not enough evidence"),
        "false_alarms": sum(verdict in alarms for verdict in fair),
    }


def main() -> None:
    from measure import print_json, print_table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="five seconds for each")
    seconds = 5.0 if parser.parse_args().quick else 60.0
    judged = judge(seconds)
    rows = [
        (row["env"], "yes" if row["planted"] else "no", row["verdict"], ", ".join(row["found_by"]) or "-")
        for row in judged
    ]
    print_table(f"{seconds:g} seconds each", ("environment", "bias planted", "verdict", "found by"), rows)
    print_json({"seconds": seconds, **counts(judged), "judged": judged}, ["pettingzoo", "mpe2"])


if __name__ == "__main__":
    main()
