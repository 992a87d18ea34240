"""Opponent models and imagination where views sum the others: one model is of any player."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup
from hopplus.games.game import board_of_view
from hopplus.games.harvest import Harvest
from hopplus.learning import learner, opponents
from hopplus.learning.config import (
    ImaginationConfig,
    LearnerConfig,
    ModellingConfig,
    PPOConfig,
    ReplayConfig,
    WorldTrainingConfig,
)
from hopplus.learning.imagination import ImaginedPlayers, egos_first, imagine, num_egos
from hopplus.learning.initial import init
from hopplus.learning.state import Task
from hopplus.models.config import ActorCriticConfig, OthersConfig, WorldConfig
from hopplus.models.learned_game import from_view, views_of_seats

GAME = Harvest(grid=Board(4, 4), num_players=6, horizon=9, away_steps=2, others="summed")
CONFIG = LearnerConfig(
    envs=8,
    rollout_steps=12,
    sharing="shared",
    network=ActorCriticConfig(hidden=(16,)),
    opponents=OpponentsConfig(others=OthersConfig(models="shared", hidden=16)),
    modelling=ModellingConfig(envs=8, minibatches=4, minibatch_size=96, learning_rate=1e-2),
    ppo=PPOConfig(minibatch_size=32, epochs=1),
    world=WorldConfig(2, hidden=8, pooled=4),
    replay=ReplayConfig(size=128, envs=4),
    world_training=WorldTrainingConfig(minibatches=1, minibatch_size=16),
    imagination=ImaginationConfig(real_ratio=0.5, length=4, counterfactual=0.0, trust=False),
)
TASK = Task(GAME, Lineup(()), 100)
NUM_EGOS = 2


@cache
def experience():
    """A state, and what its seats saw and did in the update that follows."""
    state = jax.jit(partial(init, CONFIG, TASK))(key=jax.random.key(0))
    return state, jax.jit(partial(learner.play, CONFIG, TASK))(state)


@cache
def imagined(seat=3):
    state, played = experience()
    params, models, world = jax.tree.map(
        lambda leaf: leaf[0],
        (state.learners.policy.params, state.learners.opponents.params, state.learners.world.params),
    )
    players = ImaginedPlayers(params, models, GAME, CONFIG.opponents)
    begin = jax.tree.map(lambda leaf: leaf[seat], played.branches)
    member = jax.tree.map(lambda leaf: leaf[0], world)
    found = jax.jit(partial(imagine, CONFIG.imagination))(players, member, begin, key=jax.random.key(1))
    return begin, players, *found


def test_every_player_is_learned_once():
    data, steps = experience()[1].opponent_data, experience()[1].steps
    assert data.actions.shape == (6, 8, 12, 1)
    np.testing.assert_array_equal(data.actions[..., 0], np.moveaxis(steps.actions, 2, 0))
    np.testing.assert_array_equal(data.observation["planes"], np.moveaxis(steps.observation["planes"], 2, 0))
    np.testing.assert_array_equal(data.valid[..., 0], np.moveaxis(steps.in_game, 2, 0))
    examples = jax.jit(jax.vmap(partial(opponents.pick_examples, CONFIG, GAME)))(
        data, key=jax.random.split(jax.random.key(0), 6)
    )
    assert examples.actions.shape == (6, 1, CONFIG.modelling.num_examples)
    legal = np.take_along_axis(np.asarray(examples.inputs.legal), np.asarray(examples.actions)[..., None], axis=-1)
    assert legal[np.asarray(examples.weights) > 0].all(), "an action goes with the view of the player that took it"


def test_the_scores_are_of_any_player():
    state, played = experience()
    models = jax.tree.map(lambda leaf: leaf[0], state.learners.opponents.params)
    scores = opponents.score(CONFIG.opponents, GAME, models, played.opponent_data)
    assert all(jnp.ndim(value) == 0 for value in scores.values())
    assert 0 < scores["moa/top1"] < 1


def test_the_egos_are_spread_over_the_view_and_the_viewer_is_one():
    assert num_egos(GAME.spec) == NUM_EGOS and list(egos_first(GAME.spec)) == [0, 4, 1, 2, 3, 5]
    many = Harvest(grid=Board(16, 16), num_players=64, others="summed").spec
    assert num_egos(many) == 16 and list(egos_first(many)[:3]) == [0, 4, 8]
    assert sorted(egos_first(many)) == list(range(64))
    assert num_egos(replace(GAME, others="planes").spec) == 1


def test_a_state_of_the_world_shows_the_view_that_it_is_from():
    view = jax.tree.map(lambda leaf: leaf[0], imagined()[0].views)
    state = from_view(GAME.spec, view)
    np.testing.assert_array_equal(state.board, board_of_view(GAME.spec, view["planes"]))
    again = views_of_seats(GAME.spec, state.board, jnp.ones(6, bool), state.time, state.last_actions, {})
    np.testing.assert_array_equal(again["planes"][0], view["planes"])


def test_an_imagined_rollout_starts_at_the_view_and_has_several_egos():
    begin, players, steps, last_values = imagined()
    assert steps.legal.shape[2] == last_values.shape[1] == NUM_EGOS
    goes_on = np.asarray(~jax.vmap(partial(from_view, GAME.spec))(begin.views).ended.all(axis=-1))
    first = np.asarray(steps.observation["planes"][:, 0, 0])
    assert (first[goes_on] == np.asarray(begin.views["planes"])[goes_on]).all()
    policy = jax.vmap(jax.vmap(jax.vmap(lambda seen, legal: players.params(seen, legal, jnp.zeros((1, 0)))[0])))
    logs = np.take_along_axis(
        np.asarray(policy(steps.observation, steps.legal)), np.asarray(steps.actions[..., :NUM_EGOS, None]), axis=-1
    )[..., 0]
    np.testing.assert_allclose(logs, steps.log_probabilities, atol=1e-5)


def test_as_many_samples_are_imagined_as_the_real_ratio_says():
    played = experience()[1]
    seats, num_envs = played.branches.views["time"].shape[:2]
    real = played.batch.actions.size
    assert seats * num_envs * CONFIG.imagination.length * NUM_EGOS == pytest.approx(real, rel=0.1)


def test_an_update_learns_all_parts():
    state, _ = experience()
    step = jax.jit(partial(learner.train_step, CONFIG, TASK))
    first = None
    for _ in range(12):
        state, metrics = step(state)
        first = metrics if first is None else first
    assert metrics["moa/ce_loss"].shape == (1,) and metrics["moa/ce_loss"] < first["moa/ce_loss"]
    assert metrics["wm/loss"] < first["wm/loss"]
    assert metrics["count/samples/imagined"].sum() > 0 and metrics["policy/finite"].all()
