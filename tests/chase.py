"""A small environment of PettingZoo, and odd ones."""

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

HUNTERS = ["hunter_0", "hunter_1"]


class Chase(ParallelEnv):
    """Hunters have three actions and see three numbers, the prey has two and sees two; the prey leaves when it is
    caught. Where `masked`, the infos forbid a hunter what it did before."""

    metadata = {"name": "chase"}  # noqa: RUF012

    def __init__(self, max_cycles=5, masked=False, leaves=True):
        self.max_cycles, self.masked, self.leaves = max_cycles, masked, leaves
        self.possible_agents = [*HUNTERS, "prey_0"]

    def observation_space(self, agent):
        return spaces.Box(-10, 10, (3 if agent in HUNTERS else 2,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(3 if agent in HUNTERS else 2)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.agents, self.time, self.place = list(self.possible_agents), 0, self.random.normal(size=3)
        self.last = dict.fromkeys(HUNTERS, 2)
        return self._seen(), self._infos()

    def step(self, actions):
        assert set(actions) == set(self.agents)
        for agent, action in actions.items():
            assert Chase.action_space(self, agent).contains(action)
            assert not self.masked or agent not in HUNTERS or self.time == 0 or action != self.last[agent]
            self.place[self.possible_agents.index(agent)] += action - 1 + self.random.normal() / 10
        self.last |= actions
        self.time += 1
        acted = list(self.agents)
        caught = self.leaves and self.time > 1 and abs(self.place[:2] - self.place[2]).min() < 0.5
        truncated = self.time == self.max_cycles
        terminations = {agent: bool(caught and agent == "prey_0") for agent in acted}
        rewards = {agent: float(self.place[index]) for index, agent in enumerate(acted)}
        self.agents = [agent for agent in acted if not truncated and not terminations[agent]]
        return self._seen(), rewards, terminations, dict.fromkeys(acted, truncated), self._infos()

    def _seen(self):
        sizes = {agent: 3 if agent in HUNTERS else 2 for agent in self.agents}
        return {agent: (self.place[:size] - self.time).astype(np.float32) for agent, size in sizes.items()}

    def _infos(self):
        def mask(agent):
            return np.arange(3) != (self.last[agent] if self.time else 3)

        return {a: {"action_mask": mask(a)} if self.masked and a in HUNTERS else {} for a in self.agents}


class Odd(Chase):
    """Chase with other spaces."""

    def __init__(self, acts=None, sees=None, observe=None, **settings):
        super().__init__(leaves=False, **settings)
        self.acts, self.sees, self.observe = acts, sees, observe

    def action_space(self, agent):
        return spaces.Discrete(3) if self.acts is None else self.acts

    def observation_space(self, agent):
        return super().observation_space(agent) if self.sees is None else self.sees

    def _seen(self):
        seen = super()._seen()
        return {agent: self.observe(view) for agent, view in seen.items()} if self.observe else seen

    def step(self, actions):
        assert all(self.action_space(agent).contains(action) for agent, action in actions.items())
        return super().step({agent: int(np.sum(action)) % 2 for agent, action in actions.items()})
