"""Play a PettingZoo environment at random until a budget is spent."""

import copy
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus_doctor.answer import OnProgress

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

OnReset = Callable[[Mapping[Any, Any]], None]
"""Called with the first observation of each agent."""
MOST_EPISODES = 200_000
"""Enough episodes to rule out an advantage that matters in the games of hopplus."""
MOST_STEPS = 1_000
"""An episode of a PettingZoo environment is cut after this many steps, because some never end."""
MOST_RESETS = 20_000


@dataclass(frozen=True)
class Budget:
    """How long to play: until a time, or a number of episodes. Only a number is the same on every machine."""

    deadline: float = math.inf
    """A value of `time.monotonic`."""
    episodes: int = MOST_EPISODES

    def is_spent(self, episodes: int) -> bool:
        return episodes >= self.episodes or time.monotonic() >= self.deadline


@dataclass(frozen=True)
class EnvPlayed:
    """Returns and steps of each agent, in the order of `possible_agents`, for many episodes of an environment."""

    returns: np.ndarray
    steps: np.ndarray
    """The number of steps in which the agent acted."""


def play_env(
    env: "ParallelEnv",
    *,
    budget: Budget,
    seed: int,
    on_progress: OnProgress,
    on_reset: OnReset,
) -> EnvPlayed:
    """Play whole episodes of random legal actions until the budget is spent. `on_reset` gets the first observations."""
    random = np.random.default_rng(seed)
    spaces = {agent: copy.deepcopy(env.action_space(agent)) for agent in env.possible_agents}
    for space in spaces.values():
        space.seed(int(random.integers(2**31)))
    seats = {agent: index for index, agent in enumerate(env.possible_agents)}
    returns, steps = [], []
    while not budget.is_spent(len(returns)):
        observations, infos = env.reset(seed=int(random.integers(2**31)))
        on_reset(observations)
        got, acted = np.zeros(len(seats)), np.zeros(len(seats))
        while env.agents and acted.max() < MOST_STEPS and time.monotonic() < budget.deadline:
            actions = {
                agent: sample_action(spaces[agent], observations[agent], infos.get(agent)) for agent in env.agents
            }
            observations, rewards, _, _, infos = env.step(actions)
            acted[[seats[agent] for agent in actions]] += 1
            for agent, reward in rewards.items():
                got[seats[agent]] += reward
        if not env.agents or acted.max() >= MOST_STEPS:
            returns.append(got)
            steps.append(acted)
            on_progress(f"random play: {len(returns):,} episodes")
    shape = (-1, len(seats))
    return EnvPlayed(np.reshape(np.array(returns), shape), np.reshape(np.array(steps), shape))


def reset_env(
    env: "ParallelEnv",
    *,
    budget: Budget,
    seed: int,
    on_progress: OnProgress,
    on_reset: OnReset,
) -> None:
    """Reset the environment again and again, without playing, until the budget is spent."""
    random = np.random.default_rng((seed, 1))
    for count in range(1, MOST_RESETS + 1):
        if budget.is_spent(count - 1):
            return
        observations, _ = env.reset(seed=int(random.integers(2**31)))
        on_reset(observations)
        on_progress(f"resets: {count:,}")


def sample_action(space: Any, observation: Any, info: Mapping[str, Any] | None) -> Any:
    """Sample an action, a legal one if the observation or the info has an `action_mask`."""
    mask = observation.get("action_mask") if isinstance(observation, Mapping) else None
    if mask is None and info is not None:
        mask = info.get("action_mask")
    if mask is None:
        return space.sample()
    return space.sample(mask=mask if isinstance(mask, tuple) else np.asarray(mask, np.int8))
