"""The JaxMARL bridge: JaxMARL's own wrappers run on it, and what comes through it is exactly the game."""

import importlib
import re
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxmarl.wrappers.baselines import CTRolloutManager, LogWrapper

from every_preset import EVERY_PRESET
from hopplus.games.bridges.jaxmarl import JaxMARLGame
from hopplus.games.game import NO_ACTION
from hopplus.games.presets import make

NUM_ENVS, NUM_HAND_PLAYED, NUM_STEPS = 16, 3, 100

one_of_each = pytest.mark.parametrize("name", ["stag-hunt-4x4", "snowdrift-8x8", "matrix-stag-hunt"])


def random_legal(env, state, key):
    legal = env.get_avail_actions(state)
    keys = jax.random.split(key, len(env.agents))
    return {
        agent: jax.random.categorical(keys[seat], jnp.where(legal[agent], 0.0, -jnp.inf))
        for seat, agent in enumerate(env.agents)
    }


@cache
def roll_out_logged(name):
    """Steps of LogWrapper with random legal actions, compiled, in many environments: arrays [steps, envs, ...]."""
    env = JaxMARLGame(make(name))
    wrapper = LogWrapper(env)

    def one_step(observations, state, key):
        act_key, step_key = jax.random.split(key)
        actions = random_legal(env, state.env_state, act_key)
        after, state, rewards, dones, info = wrapper.step(step_key, state, actions)
        return (after, state), (observations, actions, rewards, dones, info)

    @jax.jit
    def roll_out(reset_keys, step_keys):
        envs = jax.vmap(wrapper.reset)(reset_keys)
        return jax.lax.scan(lambda carry, keys: jax.vmap(one_step)(*carry, keys), envs, step_keys)[1]

    return jax.tree.map(np.asarray, roll_out(*rollout_keys()))


def rollout_keys():
    """For the reset of each environment, and for each of its steps."""
    return (
        jax.random.split(jax.random.key(1), NUM_ENVS),
        jax.random.split(jax.random.key(2), (NUM_STEPS, NUM_ENVS)),
    )


def vector(seen, seat, num_actions):
    """What the seat should observe, built in another way."""
    one_hot = np.zeros((len(seen["last_actions"][seat]), num_actions), np.float32)
    for player, action in enumerate(seen["last_actions"][seat]):
        if action != NO_ACTION:
            one_hot[player, action] = 1
    board = [seen["planes"][seat].ravel()] if "planes" in seen else []
    return np.concatenate([*board, seen["time"][seat, None], one_hot.ravel()], dtype=np.float32)


def step_functions(game):
    """The JAX game alone, with the keys that JaxMARL's `step` hands out."""

    def begin(key):
        state = game.reset(key=key)
        return state, game.observe(state)

    def env_step(state, actions, key):
        step_key, reset_key = jax.random.split(jax.random.split(key)[1])
        state, rewards = game.step(state, actions, key=step_key)
        terminated = game.terminated(state)
        fresh = game.reset(key=reset_key)
        state = jax.tree.map(lambda one, other: jnp.where(jnp.all(terminated), one, other), fresh, state)
        return state, game.observe(state), rewards, terminated

    return jax.jit(begin), jax.jit(env_step)


@one_of_each
def test_log_wrapper_runs_and_logs_what_a_hand_loop_sums(name):
    game = make(name)
    env = JaxMARLGame(game)
    begin, env_step = step_functions(game)
    reset_keys, step_keys = rollout_keys()

    for index in range(NUM_HAND_PLAYED):
        logged = jax.tree.map(lambda leaf, index=index: leaf[:, index], roll_out_logged(name))
        observations, actions, rewards, dones, info = logged
        state, seen = begin(reset_keys[index])
        returns, length, episodes = np.zeros(game.spec.num_agents, np.float32), 0, 0
        for time in range(NUM_STEPS):
            seen = jax.tree.map(np.asarray, seen)
            for seat, agent in enumerate(env.agents):
                assert np.array_equal(observations[agent][time], vector(seen, seat, game.spec.num_actions))
            joint_action = np.array([actions[agent][time] for agent in env.agents], np.int32)
            state, seen, paid, terminated = env_step(state, joint_action, step_keys[time, index])
            paid, terminated = np.asarray(paid), np.asarray(terminated)
            assert [rewards[agent][time] for agent in env.agents] == paid.tolist()
            assert [dones[agent][time] for agent in env.agents] == terminated.tolist()
            assert dones["__all__"][time] == terminated.all()
            returns, length = returns + paid, length + 1
            assert info["returned_episode"][time].tolist() == [terminated.all()] * game.spec.num_agents
            if terminated.all():
                assert info["returned_episode_returns"][time].tolist() == returns.tolist()
                assert info["returned_episode_lengths"][time].tolist() == [length] * game.spec.num_agents
                returns, length, episodes = np.zeros_like(returns), 0, episodes + 1
        assert episodes >= NUM_STEPS // game.spec.horizon


def test_done_seats_stay_done_without_reward_until_all_are():
    observations, _, rewards, dones, _ = roll_out_logged("stag-hunt-4x4")
    left_early = 0
    for agent in observations:
        was_done = dones[agent][:-1] & ~dones["__all__"][:-1]
        left_early += was_done.sum()
        assert dones[agent][1:][was_done].all()
        assert not rewards[agent][1:][was_done].any()
        assert not observations[agent][1:][was_done].any()
        assert (dones[agent] | ~dones["__all__"]).all()
    assert left_early > 100


@pytest.mark.parametrize("name", EVERY_PRESET)
def test_spaces_fit_what_the_game_gives(name):
    game = make(name)
    env = JaxMARLGame(game)
    spec = game.spec
    assert env.agents == [f"player_{seat + 1}" for seat in range(spec.num_agents)]
    assert env.num_agents == spec.num_agents and env.name == spec.name
    assert list(env.agent_classes.values()) == [env.agents]
    assert list(env.observation_spaces) == list(env.action_spaces) == env.agents
    observations, state = env.reset(jax.random.key(0))
    legal = env.get_avail_actions(state)
    assert list(observations) == list(legal) == env.agents
    for seat, agent in enumerate(env.agents):
        space = env.observation_space(agent)
        assert observations[agent].shape == space.shape and observations[agent].dtype == space.dtype == jnp.float32
        assert space.contains(observations[agent])
        assert env.action_space(agent).n == spec.num_actions
        assert np.array_equal(legal[agent], game.legal(state)[seat]) and legal[agent].dtype == bool


def test_keys_of_either_kind_mean_the_same():
    hunt, matrix = JaxMARLGame(make("stag-hunt-4x4")), JaxMARLGame(make("matrix-chicken"))
    results = []
    for make_key in (jax.random.key, jax.random.PRNGKey):
        _, state = matrix.reset(make_key(3))
        stepped = matrix.step(make_key(4), state, dict.fromkeys(matrix.agents, jnp.int32(0)))
        results.append((hunt.reset(make_key(3)), stepped))
    jax.tree.map(np.testing.assert_array_equal, *results)
    (views, _), (other_views, _) = results[0][0], hunt.reset(jax.random.PRNGKey(5))
    assert not np.array_equal(views["player_1"], other_views["player_1"])


def test_actions_may_have_an_axis_of_one_and_any_number_type():
    env = JaxMARLGame(make("matrix-chicken"))
    _, state = env.reset(jax.random.key(0))
    _, _, rewards, _, infos = env.step(
        jax.random.key(1), state, {"player_1": jnp.ones((1,), jnp.int8), "player_2": jnp.float32(0)}
    )
    assert rewards == {"player_1": 5.0, "player_2": 1.0} and infos == {}


def test_an_episode_can_be_begun_from_a_given_state():
    env = JaxMARLGame(make("matrix-chicken"))
    _, first = env.reset(jax.random.key(0))
    state, actions = first, dict.fromkeys(env.agents, jnp.int32(1))
    for time in range(10):
        observations, state, _, dones, _ = env.step(jax.random.key(time), state, actions, first)
        assert bool(dones["__all__"]) == (time == 9)
        assert int(state.time) == (time + 1) % 10
    jax.tree.map(np.testing.assert_array_equal, observations, env.get_obs(first))


def test_the_rollout_manager_of_jaxmarls_q_learners_runs():
    env = JaxMARLGame(make("matrix-stag-hunt"))
    manager = CTRolloutManager(env, batch_size=3)
    observations, state = manager.batch_reset(jax.random.key(0))
    actions = {agent: manager.batch_sample(jax.random.key(1), agent) for agent in env.agents}
    observations, _, rewards, dones, _ = manager.batch_step(jax.random.key(2), state, actions)
    assert observations["__all__"].shape == (3, 2 * env.observation_space("player_1").shape[0])
    assert np.array_equal(rewards["__all__"], rewards["player_1"] + rewards["player_2"])
    assert not dones["__all__"].any()


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "hopplus.games.bridges.jaxmarl")
    monkeypatch.setitem(sys.modules, "jaxmarl", None)
    monkeypatch.setitem(sys.modules, "jaxmarl.environments.multi_agent_env", None)
    with pytest.raises(ImportError, match=re.escape('pip install "hopplus[jaxmarl]"')):
        importlib.import_module("hopplus.games.bridges.jaxmarl")
