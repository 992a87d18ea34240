import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from hopplus.games.board import Board
from hopplus.games.lineups import lineup
from hopplus.games.rollout import init_env, play_episode, random_uniforms, rollout, sample_actions
from hopplus.games.stag_hunt import StagHunt

GAME = StagHunt(grid=Board(4, 4), horizon=9)
HUNTERS = lineup("nearest_stag,nearest_hare,patient_stag(1),random", GAME)


@pytest.fixture(scope="module")
def played():
    """Sixteen environments, sixty steps each: [envs, steps, ...]."""

    def one(env_key, play_key):
        return rollout(GAME, HUNTERS, init_env(GAME, HUNTERS, key=env_key), 60, key=play_key)

    keys = jax.random.split(jax.random.key(0), (2, 16))
    env, steps = jax.jit(jax.vmap(one))(keys[0], keys[1])
    return jax.device_get(env), jax.device_get(steps)


def test_an_episode_begins_exactly_after_one_has_ended(played):
    _, steps = played
    ended = steps.terminated_after.all(axis=-1)
    assert steps.reset_before[:, 0].all()
    np.testing.assert_array_equal(steps.reset_before[:, 1:], ended[:, :-1])
    assert 60 < ended.sum() < 16 * 60, "episodes of several steps, several in each environment"


def test_a_fresh_episode_is_fresh(played):
    _, steps = played
    first = steps.reset_before
    assert (steps.state.time[first] == 0).all() and (steps.state.time[~first] > 0).all()
    assert steps.state.present[first].all() and steps.state.prey_alive[first].all()
    assert (steps.state.last_actions[first] == -1).all()


def test_fresh_episodes_differ(played):
    _, steps = played
    spawns = {tuple(position) for position in steps.state.position[steps.reset_before]}
    assert len(spawns) > 0.9 * steps.reset_before.sum()


def test_a_script_forgets_when_its_episode_ends(played):
    """patient_stag(1) hunts a stag for one step in every episode, not once for ever."""
    _, steps = played
    hunts = steps.probabilities[..., 2, 5] == 1
    episode = np.cumsum(steps.reset_before, axis=1)
    per_episode = [hunts[env][episode[env] == number].sum() for env in range(16) for number in range(1, 8)]
    assert max(per_episode) == 1 and sum(per_episode) > 20


def test_actions_are_legal_and_rewards_are_those_of_the_step(played):
    _, steps = played
    chosen = np.take_along_axis(steps.legal, steps.actions[..., None], axis=-1)
    assert chosen.all()
    after = steps.state.present[:, 1:][~steps.reset_before[:, 1:]]
    before = steps.state.present[:, :-1][~steps.reset_before[:, 1:]]
    np.testing.assert_array_equal(steps.rewards[:, :-1][~steps.reset_before[:, 1:]] > 0, before & ~after)


def test_an_episode_is_what_stepping_by_hand_gives():
    episode = jax.jit(lambda key: play_episode(GAME, HUNTERS, key=key))(jax.random.key(3))
    step = jax.jit(lambda state, actions: GAME.step(state, actions, key=jax.random.key(0)))
    state = jax.tree.map(lambda leaf: leaf[0], episode.states)
    returns = np.zeros(4, np.float32)
    for index in range(int(episode.num_steps)):
        assert not GAME.terminated(state).all()
        state, rewards = step(state, episode.actions[index])
        returns += np.asarray(rewards)
        np.testing.assert_array_equal(state.position, episode.states.position[index + 1])
    assert GAME.terminated(state).all()
    np.testing.assert_allclose(episode.returns, returns)


def test_rollout_compiles_once():
    run = jax.jit(
        eqx.debug.assert_max_traces(
            lambda env, key: rollout(GAME, HUNTERS, env, 5, key=key, record=lambda step: step.rewards), max_traces=1
        )
    )
    env = jax.jit(lambda key: init_env(GAME, HUNTERS, key=key))(jax.random.key(0))
    for seed in range(3):
        env, rewards = run(env, jax.random.key(seed))
    assert rewards.shape == (5, 4)


def test_the_same_key_plays_the_same_game():
    run = jax.jit(lambda env, key: rollout(GAME, HUNTERS, env, 12, key=key))
    env = jax.jit(lambda key: init_env(GAME, HUNTERS, key=key))(jax.random.key(1))
    one, same, other = (run(env, jax.random.key(seed)) for seed in (5, 5, 6))
    assert eqx.tree_equal(one, same) and not eqx.tree_equal(one, other)


def test_drawn_actions_follow_their_probabilities():
    probabilities = jnp.array([[0.0, 0.5, 0.25, 0.0, 0.25, 0.0], [1 / 3, 0, 0, 1 / 3, 0, 1 / 3], [0, 0, 0, 1.0, 0, 0]])
    uniforms = random_uniforms(30_000, 3, key=jax.random.key(0))
    drawn = np.asarray(jax.jit(jax.vmap(lambda drawn: sample_actions(probabilities, uniforms=drawn)))(uniforms))
    for seat in range(3):
        counts = np.bincount(drawn[:, seat], minlength=6)
        possible = np.asarray(probabilities[seat]) > 0
        assert counts[~possible].sum() == 0
        expected = np.asarray(probabilities[seat], np.float64)[possible]
        if possible.sum() > 1:
            assert chisquare(counts[possible], expected / expected.sum() * 30_000).pvalue > 1e-4
    both = np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]
    assert abs(both) < 0.03, "each seat draws with a number of its own"


def test_the_highest_level_never_draws_an_impossible_action():
    random = np.random.RandomState(0)
    probabilities = random.dirichlet(np.ones(7), 20_000) * (random.rand(20_000, 7) < 0.6)
    probabilities = probabilities[probabilities.sum(axis=1) > 0]
    probabilities = jnp.asarray(probabilities / probabilities.sum(axis=1, keepdims=True), jnp.float32)
    for level in (0.0, 0.5, 1 - 2.0**-23):
        drawn = sample_actions(probabilities, uniforms=jnp.full(len(probabilities), level, jnp.float32))
        assert (np.take_along_axis(np.asarray(probabilities), np.asarray(drawn)[:, None], axis=1) > 0).all()
    assert float(random_uniforms(1000, 4, key=jax.random.key(0)).max()) < 1.0
