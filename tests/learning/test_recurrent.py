"""A policy with memory: replayed exactly, started anew in every episode, and needed where a view does not show all."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Int32

from hopplus.agents.config import PlanningConfig
from hopplus.evaluation.crossplay import cross_play
from hopplus.games import Field, Game, GameSpec
from hopplus.games.bridges.pettingzoo import ego_view, parallel_env
from hopplus.games.coplayers import Lineup
from hopplus.learning import learner
from hopplus.learning.config import LearnerConfig, PPOConfig
from hopplus.learning.recurrent import replay
from hopplus.learning.state import Task
from hopplus.models.config import ActorCriticConfig
from hopplus.runs import RunConfig, evaluate, load, train
from hopplus.runs.lineups import read_guests

DELAY = 3
GOLDEN = Path(__file__).parents[1] / "golden" / "format_1" / "ppo_gru"
"""A tiny run with memory, on a stag hunt."""


class State(eqx.Module):
    cues: Int32[Array, " agents"]
    time: Int32[Array, ""]


class Recall(Game[State]):
    """Each seat sees its own cue in the first step alone, and is paid for naming it in the last."""

    @property
    def spec(self) -> GameSpec:
        fields = (Field("cue", "categories", (), below=2), Field("is_last", "vector", ()))
        return GameSpec("recall", 1, 2, ("left", "right"), fields, DELAY, reward_support=(0.0, 1.0))

    def reset(self, *, key):
        return State(jax.random.randint(key, (2,), 0, 2, jnp.int32), jnp.int32(0))

    def step(self, state, actions, *, key):
        is_last = state.time == DELAY - 1
        rewards = jnp.where(is_last & (actions == state.cues), 1.0, 0.0)
        return State(state.cues, state.time + 1), rewards

    def observe(self, state):
        is_last = jnp.full(2, state.time == DELAY - 1, jnp.float32)
        return {"cue": jnp.where(state.time == 0, state.cues, -1), "is_last": is_last}

    def terminated(self, state):
        return jnp.full(2, state.time >= DELAY)

    def permute(self, state, order):
        return State(state.cues[order], state.time)


NETWORK = ActorCriticConfig(hidden=(16,), memory="gru", memory_size=8)
CONFIG = LearnerConfig(
    envs=64, rollout_steps=7, network=NETWORK, ppo=PPOConfig(minibatch_size=112, learning_rate=5e-3, discount=1.0)
)


def trained(config, updates):
    task = Task(Recall(), Lineup(()), updates)

    @jax.jit
    def run(key):
        state = learner.init(config, task, key=key)
        step = partial(learner.train_step, config, task)
        return jax.lax.scan(lambda state, _: step(state), state, None, updates)

    state, metrics = run(jax.random.key(0))
    return task, state, np.asarray(metrics["charts/episodic_return"]).reshape(updates, -1).mean(axis=1)


@pytest.fixture(scope="module")
def recalled():
    return trained(CONFIG, 61)


def test_what_was_seen_before_is_recalled_with_memory_and_not_without(recalled):
    *_, returns = recalled
    assert returns[-5:].mean() > 0.95
    *_, without = trained(replace(CONFIG, network=replace(NETWORK, memory="none")), 61)
    assert without[-5:].mean() < 0.6


def test_sequences_are_replayed_as_they_were_played(recalled):
    task, state, _ = recalled
    experience = jax.jit(partial(learner.play, CONFIG, task))(state)
    batch = experience.batch

    def one_seat(params, rows):
        log_probabilities, values, _ = jax.vmap(lambda row: replay(params, row))(rows)
        return jnp.take_along_axis(log_probabilities, rows.actions[..., None], axis=-1)[..., 0], values

    taken, values = jax.jit(jax.vmap(one_seat))(state.learners.policy.params, batch)
    np.testing.assert_allclose(taken, batch.log_probabilities, atol=1e-5)
    np.testing.assert_allclose(values, batch.values, atol=1e-5)
    # the rollout's length is no multiple of the episode's: some sequences begin in the middle of one
    assert np.asarray(~experience.steps.reset_before[:, 0]).any()
    assert np.abs(np.asarray(batch.recurrent.hidden[:, :, 0])).max() > 0


def test_an_episode_starts_without_memory_of_the_one_before(recalled):
    task, state, _ = recalled
    steps = jax.jit(partial(learner.play, CONFIG, task))(state).steps
    assert not np.asarray(steps.hidden)[np.asarray(steps.reset_before)].any()


def test_seats_learn_alike(recalled):
    """With learners, data and keys moved on by one seat, each learner learns the same to the bit."""
    task, state, _ = recalled
    play, learn = (jax.jit(partial(fn, CONFIG, task)) for fn in (learner.play, learner.learn_all))
    experience = play(state)

    def turned(tree):
        return jax.tree.map(lambda leaf: jnp.roll(leaf, -1, axis=0), tree)

    moved = replace(
        state, learners=turned(state.learners), keys=replace(state.keys, learners=turned(state.keys.learners))
    )
    here, _ = learn(state, experience)
    there, _ = learn(moved, replace(experience, batch=turned(experience.batch)))
    for one, other in zip(jax.tree.leaves(turned(here)), jax.tree.leaves(there), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_with_memory_is_resumed_to_the_bit_and_evaluated(tmp_path):
    learner_settings = {"envs": 8, "rollout_steps": 7, "network": NETWORK}
    config = RunConfig.for_agent(
        "ppo", game=Recall(), seeds=2, steps=4 * 56, checkpoint_every=1, learner=learner_settings
    )
    whole = train(config, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    shutil.rmtree(tmp_path / "stopped" / "checkpoints" / "4")
    resumed = train(config, tmp_path / "stopped")
    for one, other in zip(jax.tree.leaves(whole.params), jax.tree.leaves(resumed.params), strict=True):
        np.testing.assert_array_equal(one, other)
    again = load(tmp_path / "whole", game=Recall())
    np.testing.assert_array_equal(evaluate(again, 20).returns, evaluate(whole, 20).returns)
    player = whole.policy()
    first = player.init()
    observation = {"cue": jnp.int32(1), "is_last": jnp.float32(0)}
    _, after = player(observation, jnp.ones(2, bool), first)
    assert np.abs(np.asarray(after.hidden)).max() > 0 and not np.asarray(player.next_episode(after).hidden).any()


def test_memory_is_kept_through_an_episode_in_pettingzoo():
    """The same probabilities as in the game itself; without its memory the policy would act otherwise."""
    run = load(GOLDEN)
    env = parallel_env(run.game)
    views, _ = env.reset(seed=0)
    policy = run.policy(seed=1)
    act = jax.jit(lambda observation, legal, state: policy(observation, legal, state))
    agent, carried, episode = env.possible_agents[0], policy.init(), []
    stay = run.game.spec.stay
    while agent in env.agents:
        seen = ego_view(views[agent], run.game.spec)
        probabilities, carried = act(*seen, carried)
        episode.append((*seen, probabilities, act(*seen, policy.init())[0]))
        views, *_ = env.step(dict.fromkeys(env.agents, stay))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *episode)

    def one_step(state, now):
        probabilities, state = policy(*now, state)
        return state, probabilities

    in_one_program = jax.lax.scan(one_step, policy.init(), stacked[:2])[1]
    np.testing.assert_allclose(stacked[2], in_one_program, atol=1e-6)
    np.testing.assert_array_equal(stacked[2][0], stacked[3][0])
    assert np.abs(stacked[2] - stacked[3])[1:].max() > 1e-4


def test_memory_in_cross_play():
    game, guests = read_guests([str(GOLDEN), "random"], PlanningConfig())
    cells = cross_play(game, guests, 4, key=jax.random.key(0))
    assert np.isfinite(np.concatenate([cell for row in cells for cell in row])).all()


def test_memory_is_for_agents_without_models_of_others():
    with pytest.raises(ValueError, match="is for an agent without opponent models"):
        RunConfig.for_agent("direct_om", learner={"network": NETWORK})
