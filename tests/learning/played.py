"""Play that tests of models learn from: a small stag hunt, tiny networks, each program compiled once for all files."""

from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.agents.config import OpponentsConfig
from hopplus.core.numerics import Metrics
from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning import learner, opponents
from hopplus.learning.config import LearnerConfig, ModellingConfig, PPOConfig
from hopplus.learning.learner import train_step
from hopplus.learning.opponent_data import OpponentData
from hopplus.learning.ppo import Batch
from hopplus.learning.rollout import Trajectory
from hopplus.learning.state import LearnerState, Task
from hopplus.models.config import ActorCriticConfig, GoalsConfig, OthersConfig

GAME = StagHunt(grid=Board(4, 4), horizon=6)
TASK = Task(GAME, Lineup(()), 4)
SMALL = {"hidden": 8, "size": 3, "evidence": 4}
OPPONENTS = {
    "omg": OpponentsConfig(GoalsConfig(kind="continuous", **SMALL), OthersConfig(models="each", hidden=8, keys=4)),
    "hop": OpponentsConfig(GoalsConfig(kind="hindsight", **SMALL), OthersConfig(models="each", hidden=8, keys=4)),
}
CONFIGS = {
    name: LearnerConfig(
        envs=6,
        rollout_steps=8,
        network=ActorCriticConfig(hidden=(8,)),
        opponents=models,
        modelling=ModellingConfig(
            envs=5,
            minibatches=2,
            minibatch_size=16,
            goal_envs=4,
            goal_minibatch_size=8,
            lookahead=3,
            learning_rate=1e-2,
        ),
        ppo=PPOConfig(minibatch_size=16, epochs=1),
    )
    for name, models in OPPONENTS.items()
}


def small_hunt() -> StagHunt:
    """For settings that name a game: `learning.played:small_hunt`."""
    return GAME


def smallest_hunt() -> StagHunt:
    """For whole runs of large agents, which compile and run longest."""
    return StagHunt(grid=Board(3, 3), num_players=3, num_stags=1, num_hares=1, horizon=8)


class Played(eqx.Module):
    """One training step: the states before and after it, and the training data that it made of its rollout."""

    before: LearnerState
    after: LearnerState
    metrics: Metrics
    steps: Trajectory
    opponent_data: OpponentData
    """[seats, envs, time]"""
    batch: Batch
    """[seats, envs, time]"""


def keeping_one(left_out: Any) -> Any:
    """An update that is broken on purpose: the models of the learner with this key do not learn."""
    update = opponents.update

    def broken(config, trained, batch, *, train_prior, remaining, keys):
        keeps = jnp.all(jax.random.key_data(keys) == left_out)
        after, metrics = update(config, trained, batch, train_prior=train_prior, remaining=remaining, keys=keys)
        params = jax.tree.map(lambda old, new: jnp.where(keeps, old, new), trained.params, after.params)
        return replace(after, params=params), metrics

    return patch.object(opponents, "update", broken)


@cache
def program() -> Any:
    """A training step that also returns its data. The models of the learner with the key `left_out` do not learn."""
    results = {}

    def kept(key, function):
        def keeping(*arguments, **keys):
            results[key] = function(*arguments, **keys)
            return results[key]

        return patch.object(learner, key, keeping)

    def step(state, left_out):
        watched = [kept(name, getattr(learner, name)) for name in ("collect", "opponent_data", "make_batch")]
        with watched[0], watched[1], watched[2], keeping_one(left_out):
            after, metrics = train_step(CONFIGS["omg"], TASK, state)
        return Played(state, after, metrics, results["collect"][1], results["opponent_data"], results["make_batch"])

    return jax.jit(step)


NOBODY = np.zeros(2, np.uint32)


@cache
def first_state() -> LearnerState:
    return jax.jit(lambda key: learner.init(CONFIGS["omg"], TASK, key=key))(jax.random.key(0))


@cache
def two_updates() -> tuple[Played, Played]:
    """Of an agent with latent goals. The second continues in the same environments, with models that have learned."""
    first = program()(first_state(), NOBODY)
    return first, program()(first.after, NOBODY)


def of_learner(tree: Any, seat: int) -> Any:
    """The part of one seat."""
    return jax.tree.map(lambda leaf: leaf[seat], tree)
