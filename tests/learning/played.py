"""Play that tests of models learn from: a small stag hunt, tiny networks, each program compiled once for all files."""

from functools import cache
from typing import Any
from unittest.mock import patch

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning import learner, modelling
from hopplus.learning.learner import LearnerConfig, LearnerState, Task, train_step
from hopplus.learning.minds import MindConfig
from hopplus.learning.modelling_config import ModellingConfig
from hopplus.learning.ppo import Batch, Metrics, PPOConfig
from hopplus.learning.rollout import Trajectory
from hopplus.learning.study import Study
from hopplus.models.actor_critic import ActorCriticConfig
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import OthersConfig

GAME = StagHunt(grid=Board(4, 4), horizon=6)
TASK = Task(GAME, Lineup(()), 4)
SMALL = {"hidden": 8, "size": 3, "evidence": 4}
MINDS = {
    "omg": MindConfig(GoalsConfig(kind="continuous", **SMALL), OthersConfig(models="each", hidden=8, keys=4)),
    "hop": MindConfig(GoalsConfig(kind="hindsight", **SMALL), OthersConfig(models="each", hidden=8, keys=4)),
}
CONFIGS = {
    name: LearnerConfig(
        envs=6,
        rollout_steps=8,
        network=ActorCriticConfig(hidden=(8,)),
        mind=mind,
        modelling=ModellingConfig(
            tables=5,
            minibatches=2,
            minibatch_size=16,
            goal_tables=4,
            goal_minibatch_size=8,
            lookahead=3,
            learning_rate=1e-2,
        ),
        ppo=PPOConfig(minibatch_size=16, epochs=1),
    )
    for name, mind in MINDS.items()
}


def small_hunt() -> StagHunt:
    """For settings that name a game: `learning.played:small_hunt`."""
    return GAME


class Played(eqx.Module):
    """What one training step did: before, after, and what it made of its rollout on the way."""

    before: LearnerState
    after: LearnerState
    metrics: Metrics
    steps: Trajectory
    study: Study
    """[seats, tables, time]"""
    batch: Batch
    """The same."""


def keeping_one(left_out: Any) -> Any:
    """An update that is broken on purpose: the models of the learner with this key do not learn."""
    update = modelling.update

    def broken(config, mind_config, train_prior, remaining, one):
        mind, optimizer, metrics = update(config, mind_config, train_prior, remaining, one)
        keeps = jnp.all(jax.random.key_data(one[3]) == left_out)
        return jax.tree.map(lambda old, new: jnp.where(keeps, old, new), one[0], mind), optimizer, metrics

    return patch.object(modelling, "update", broken)


@cache
def program() -> Any:
    """A training step that also tells what it saw. The models of the learner with the key `left_out` do not learn."""
    found = {}

    def kept(key, function):
        def keeping(*arguments, **keys):
            found[key] = function(*arguments, **keys)
            return found[key]

        return patch.object(learner, key, keeping)

    def step(state, left_out):
        watched = [kept(name, getattr(learner, name)) for name in ("collect", "study", "look_back")]
        with watched[0], watched[1], watched[2], keeping_one(left_out):
            after, metrics = train_step(CONFIGS["omg"], TASK, state)
        return Played(state, after, metrics, found["collect"][1], found["study"], found["look_back"])

    return jax.jit(step)


NOBODY = np.zeros(2, np.uint32)


@cache
def first_state() -> LearnerState:
    return jax.jit(lambda key: learner.init(CONFIGS["omg"], TASK, key=key))(jax.random.key(0))


@cache
def two_updates() -> tuple[Played, Played]:
    """Of an agent with latent goals. The second goes on at the same tables, with models that have learned."""
    first = program()(first_state(), NOBODY)
    return first, program()(first.after, NOBODY)


def of_learner(tree: Any, seat: int) -> Any:
    """The part of one seat."""
    return jax.tree.map(lambda leaf: leaf[seat], tree)
