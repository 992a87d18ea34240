"""Random play for as long as there is time: of many tables of a game at once, or of a PettingZoo environment."""

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Float64, Key

from hopplus.doctor.answer import Tell
from hopplus.evaluation.fairness import NUM_TABLES
from hopplus.games.coplayers import Lineup, Random
from hopplus.games.game import Game
from hopplus.games.rollout import Episode, play_episode

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

MOST_EPISODES = 200_000
"""Enough to rule out an advantage that matters in our games, and then the machine's speed changes nothing."""
MOST_STEPS = 1_000
"""An episode of somebody's environment is cut here: some never end."""
MOST_RESETS = 20_000


@dataclass(frozen=True)
class TablesPlayed:
    """What many episodes of a game of ours brought each seat."""

    returns: Float64[np.ndarray, "episodes seats"]
    tie_excess: Float64[np.ndarray, "episodes seats"]
    """The share that a seat had of the reward of a tie, less an equal share, summed over the ties that it was in."""
    ties: Float64[np.ndarray, "episodes seats"]
    """How many ties a seat was in."""


@dataclass(frozen=True)
class EnvPlayed:
    """What many episodes of an environment brought each agent, in the order of `possible_agents`."""

    returns: Float64[np.ndarray, "episodes agents"]
    steps: Float64[np.ndarray, "episodes agents"]
    """How many steps the agent acted in."""


def play_tables(game: Game, *, deadline: float, seed: int, tell: Tell) -> TablesPlayed:
    """One batch of episodes at least, then more until the deadline."""
    everybody = Lineup((Random(),) * game.spec.num_agents)

    def one_table(key: Key[Array, ""]) -> tuple[Float32[Array, " agents"], ...]:
        episode = play_episode(game, everybody, key=key)
        return episode.returns, *_ties(game, episode)

    batch = jax.jit(jax.vmap(one_table))
    batches, played = [], 0
    while not played or (played < MOST_EPISODES and time.monotonic() < deadline):
        key = jax.random.fold_in(jax.random.key(seed), len(batches))
        batches.append(jax.device_get(batch(jax.random.split(key, NUM_TABLES))))
        played += NUM_TABLES
        tell(f"random play: {played:,} episodes")
    return TablesPlayed(*(np.concatenate(parts).astype(np.float64) for parts in zip(*batches, strict=True)))


def _ties(game: Game, episode: Episode) -> tuple[Float32[Array, " agents"], Float32[Array, " agents"]]:
    """Steps in which several seats did the same deed, paid or not, and were together paid for it."""
    deeds = game.spec.deed_actions
    legal = jax.vmap(game.legal)(jax.tree.map(lambda leaf: leaf[:-1], episode.states))
    did: Bool[Array, "steps agents deeds"] = (episode.actions[..., None] == deeds) & legal[..., deeds]
    paid = jnp.where(did, episode.rewards[..., None], 0.0)
    doers, pot = jnp.sum(did, axis=1, keepdims=True), jnp.sum(paid, axis=1, keepdims=True)
    tied = did & (doers > 1) & (pot > 0)
    excess = jnp.where(tied, paid / jnp.where(pot > 0, pot, 1.0) - 1 / jnp.maximum(doers, 1), 0.0)
    return jnp.sum(excess, axis=(0, 2)), jnp.sum(tied, axis=(0, 2), dtype=jnp.float32)


def play_env(
    env: "ParallelEnv", *, deadline: float, seed: int, tell: Tell, on_reset: Callable[[Mapping[Any, Any]], None]
) -> EnvPlayed:
    """Whole episodes of legal random play until the deadline; `on_reset` is shown what each agent sees first."""
    random = np.random.default_rng(seed)
    spaces = {agent: copy.deepcopy(env.action_space(agent)) for agent in env.possible_agents}
    for space in spaces.values():
        space.seed(int(random.integers(2**31)))
    seats = {agent: index for index, agent in enumerate(env.possible_agents)}
    returns, steps = [], []
    while len(returns) < MOST_EPISODES and time.monotonic() < deadline:
        observations, infos = env.reset(seed=int(random.integers(2**31)))
        on_reset(observations)
        got, acted = np.zeros(len(seats)), np.zeros(len(seats))
        while env.agents and acted.max() < MOST_STEPS and time.monotonic() < deadline:
            actions = {agent: _sample(spaces[agent], observations[agent], infos.get(agent)) for agent in env.agents}
            observations, rewards, _, _, infos = env.step(actions)
            acted[[seats[agent] for agent in actions]] += 1
            for agent, reward in rewards.items():
                got[seats[agent]] += reward
        if not env.agents or acted.max() >= MOST_STEPS:
            returns.append(got)
            steps.append(acted)
            tell(f"random play: {len(returns):,} episodes")
    shape = (-1, len(seats))
    return EnvPlayed(np.reshape(np.array(returns), shape), np.reshape(np.array(steps), shape))


def reset_env(
    env: "ParallelEnv", *, deadline: float, seed: int, tell: Tell, on_reset: Callable[[Mapping[Any, Any]], None]
) -> None:
    """Only the beginnings of episodes, of which there can be many more."""
    random = np.random.default_rng((seed, 1))
    for count in range(1, MOST_RESETS + 1):
        if time.monotonic() >= deadline:
            return
        observations, _ = env.reset(seed=int(random.integers(2**31)))
        on_reset(observations)
        tell(f"beginnings: {count:,}")


def _sample(space: Any, observation: Any, info: Mapping[str, Any] | None) -> Any:
    """A legal action, where the observation or the info says what is legal."""
    mask = observation.get("action_mask") if isinstance(observation, Mapping) else None
    if mask is None and info is not None:
        mask = info.get("action_mask")
    if mask is None:
        return space.sample()
    return space.sample(mask=mask if isinstance(mask, tuple) else np.asarray(mask, np.int8))
