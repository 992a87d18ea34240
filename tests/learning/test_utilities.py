"""Hidden utilities: who is paid for what, who acts at random, and what nobody else learns of it."""

from collections import Counter
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import PlanningConfig
from hopplus.agents.goals import goal_model
from hopplus.core.numerics import LEAST
from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup
from hopplus.games.lineups import read_policies
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning import episodes, learner, replay, utilities
from hopplus.learning.config import ReplayConfig, UtilitiesConfig
from hopplus.learning.rollout import collect
from hopplus.learning.state import Task
from hopplus.models import actor_critic
from learning.played import CONFIGS

GAME = StagHunt(grid=Board(3, 3), horizon=12)
NUM_EVENTS = len(GAME.spec.events)
RANDOM = NUM_EVENTS + 1
CONFIG = replace(CONFIGS["hop"], envs=128, rollout_steps=48, utilities=UtilitiesConfig(share=0.5))
TASK = Task(GAME, Lineup(()), 4)


@cache
def played():
    """The steps of one rollout, what policies learn from, and the environments after it."""

    @jax.jit
    def play(key):
        state = learner.init(CONFIG, TASK, key=key)
        seats = learner.seats_of(CONFIG, TASK, state.learners)
        envs = learner.with_next_kinds(CONFIG, TASK, state)
        envs, steps, last = collect(
            GAME,
            seats,
            envs,
            CONFIG.rollout_steps,
            seat_keys=state.keys.seats,
            env_key=jax.random.key(1),
            with_transitions=True,
        )
        steps_learned = learner.with_learned_rewards(CONFIG, TASK, state.episodes, steps)
        return envs, steps, learner.policy_batch(CONFIG, TASK, steps_learned, last)

    return jax.device_get(play(jax.random.key(0)))


def test_a_share_of_the_environments_is_mixed_and_evenly_spread():
    mixed = utilities.is_mixed(UtilitiesConfig(share=0.25), 16)
    assert mixed.sum() == 4 and all(mixed[first : first + 4].sum() == 1 for first in range(0, 16, 4))
    assert not utilities.is_mixed(UtilitiesConfig(share=0.0), 16).any()


def test_every_multiset_of_kinds_is_equally_likely():
    """As in Polya's urn: three of a kind is as likely as one of each."""
    config = UtilitiesConfig(share=0.999, own=0.0)
    keys = jax.random.split(jax.random.key(0), 3)
    kinds = np.asarray(utilities.draw_kinds(config, GAME.spec, 8000, seat_keys=keys, env_key=jax.random.key(1)))
    kinds = kinds[utilities.is_mixed(config, 8000)]
    counts = Counter(tuple(sorted(row)) for row in kinds.tolist())
    assert set(kinds.ravel().tolist()) == set(range(1, RANDOM + 1)) and len(counts) == 10
    share = np.array(list(counts.values())) / len(kinds)
    np.testing.assert_allclose(share, 0.1, atol=5 * np.sqrt(0.09 / len(kinds)))


def test_a_seat_keeps_the_games_reward_as_often_as_asked():
    config = UtilitiesConfig(share=0.999, own=0.75)
    keys = jax.random.split(jax.random.key(0), 4)
    kinds = np.asarray(utilities.draw_kinds(config, GAME.spec, 4000, seat_keys=keys, env_key=jax.random.key(1)))
    assert abs(np.mean(kinds == 0) - 0.75) < 0.02


def test_kinds_change_between_episodes_only():
    _, steps, _ = played()
    changed = np.any(steps.kinds[:, 1:] != steps.kinds[:, :-1], axis=-1)
    assert changed.any() and not changed[~steps.reset_before[:, 1:]].any()
    mixed = utilities.is_mixed(CONFIG.utilities, CONFIG.envs)
    assert not steps.kinds[~mixed].any() and set(np.unique(steps.kinds[mixed])) == set(range(RANDOM + 1))


def test_other_co_players_are_met_for_the_first_time():
    """After a change of kinds beliefs start anew; otherwise they go on from the counts."""
    _, steps, _ = played()
    first = np.asarray(jax.tree.leaves(goal_model(CONFIG.opponents, GAME).start().goals)[0])
    begins = steps.reset_before[:, 1:]
    changed = begins & np.any(steps.kinds[:, 1:] != steps.kinds[:, :-1], axis=-1)
    np.testing.assert_allclose(steps.goals[:, 1:][changed], np.broadcast_to(first, steps.goals[:, 1:][changed].shape))
    same = steps.goals[:, 1:][begins & ~changed]
    assert len(same) and np.abs(same - first).max() > 0.05


@pytest.mark.parametrize("count", [1, 2, 3])
def test_seats_that_do_not_learn_have_no_hidden_utility(count):
    """With co-players that are given: of the others, nobody is paid for an event."""
    policies = read_policies(",".join(["nearest_stag", "nearest_hare", "random"][:count]), GAME)
    task, config = Task(GAME, Lineup(policies), 4), replace(CONFIG, envs=4, rollout_steps=2)

    def play(key):
        state = learner.init(config, task, key=key)
        steps = learner.play(config, task, state).steps
        return steps.kinds, steps.all_kinds, utilities.reached(GAME.spec, steps)

    kinds, all_kinds, reached = jax.eval_shape(play, jax.random.key(0))
    assert kinds.shape == (4, 2, GAME.num_players - count) and all_kinds.shape == (4, 2, GAME.num_players)
    assert {*reached} == {f"utilities/{event.name}" for event in GAME.spec.events}


def test_planning_seats_have_none():
    planning = replace(CONFIG, planning=PlanningConfig(kind="one_step"))
    with pytest.raises(ValueError, match=r"have no hidden utilities; leave out --utilities\.share"):
        planning.check()
    CONFIG.check()


def test_a_seat_is_paid_for_its_own_event_only():
    _, steps, batch = played()
    paid = utilities.paid(GAME.spec, jax.tree.map(jnp.asarray, steps), 3.0)
    rewards = np.asarray(paid.rewards)
    np.testing.assert_array_equal(rewards[steps.kinds == 0], steps.rewards[steps.kinds == 0])
    for event in range(NUM_EVENTS):
        wants = steps.kinds == event + 1
        happened = steps.events[:, :, event]
        np.testing.assert_array_equal(rewards[wants], np.where(happened, 3.0, 0.0)[wants])
        assert happened[wants].any()
    ends = CONFIG.utilities.reward * learner.value_scale(TASK)
    catches = np.moveaxis((steps.kinds == 2) & steps.events[:, :, 1] & steps.terminated_after, 2, 0)
    np.testing.assert_allclose((batch.values + batch.advantages)[catches], ends, rtol=1e-5)


def test_a_seat_does_not_take_the_actions_of_events_that_it_is_not_after():
    """A stag hunter that takes a hare on the way has left, and never learns that stags pay it."""
    _, steps, batch = played()
    events = np.asarray(GAME.spec.event_actions)
    for event in range(NUM_EVENTS):
        wants = steps.kinds == event + 1
        assert not steps.events[:, :, 1 - event][wants].any() and (steps.actions[wants] == events[event]).any()
        assert not batch.legal[np.moveaxis(wants, 2, 0)][:, events[1 - event]].any()
    own = np.moveaxis(steps.kinds == 0, 2, 0)
    np.testing.assert_array_equal(batch.legal[own], np.moveaxis(steps.legal, 2, 0)[own])


def test_who_acts_at_random_does_so_and_is_no_data():
    _, steps, batch = played()
    chance = steps.kinds == RANDOM
    expected = np.log(np.maximum(1 / steps.legal.sum(-1), LEAST))
    np.testing.assert_allclose(steps.log_probabilities[chance], expected[chance], rtol=1e-4)
    assert not batch.active[np.moveaxis(chance, 2, 0)].any()
    rest = np.moveaxis(~chance & steps.in_game, 2, 0)
    np.testing.assert_array_equal(batch.active, rest)


def test_opponent_models_do_not_learn_from_random_play():
    _, steps, _ = played()
    config = replace(CONFIG, modelling=replace(CONFIG.modelling, envs=CONFIG.envs))
    state = learner.init(config, TASK, key=jax.random.key(0))
    seats = learner.seats_of(config, TASK, state.learners)
    data = learner.opponent_data(config, GAME, seats.opponents, state.envs, jax.tree.map(jnp.asarray, steps))
    order = learner.ego_order(4)
    chance = np.moveaxis((steps.kinds == RANDOM)[:, :, order[:, 1:]], 2, 0)
    assert chance.any() and not np.asarray(data.valid)[chance].any()
    settings = ReplayConfig(size=CONFIG.envs * CONFIG.rollout_steps, envs=CONFIG.envs)
    kept, _ = replay.add_steps(settings, replay.empty(settings, GAME.spec), jax.tree.map(jnp.asarray, steps))
    labels = np.asarray(kept.experience.labels[0])
    assert (labels[(steps.kinds == RANDOM).reshape(labels.shape)] == NUM_EVENTS).all()


def test_the_policy_reads_what_its_own_seat_is_paid_for():
    _, steps, batch = played()
    assert batch.goals.shape[-2:] == (4, NUM_EVENTS + 1)
    expected = np.eye(RANDOM + 1)[np.moveaxis(steps.kinds, 2, 0)][..., 1:]
    np.testing.assert_array_equal(batch.goals[..., -1, :], expected)


def test_a_network_that_is_not_told_plays_for_the_games_reward():
    params = actor_critic.init(CONFIG.network, GAME.spec, RANDOM, 4, key=jax.random.key(0))
    _, _, batch = played()
    view, legal, goals = jax.tree.map(
        lambda leaf: jnp.asarray(leaf[0, 0, 0]), (batch.observation, batch.legal, batch.goals)
    )
    goals = goals.at[-1].set(0.0)
    one, other = params(view, legal, goals), params(view, legal, goals[:-1])
    np.testing.assert_array_equal(one[0], other[0])
    assert not np.array_equal(one[0], params(view, legal, goals.at[-1, 0].set(1.0))[0])


def test_returns_are_of_episodes_in_which_all_play_for_the_games_reward():
    _, steps, _ = played()
    steps = jax.tree.map(jnp.asarray, steps)
    start = episodes.start(GAME, CONFIG.envs)
    _, ended, count = episodes.add_steps(start, steps)
    plain = ~utilities.is_mixed(CONFIG.utilities, CONFIG.envs)
    alone = jax.tree.map(lambda leaf: leaf[plain], replace(steps, kinds=None))
    _, expected, fewer = episodes.add_steps(jax.tree.map(lambda leaf: leaf[plain], start), alone)
    own = np.all(np.asarray(steps.kinds) == 0, axis=-1) & np.all(np.asarray(steps.terminated_after), axis=-1)
    assert fewer <= count == own.sum() < np.all(np.asarray(steps.terminated_after), axis=-1).sum()
    assert np.all(np.isfinite(ended.returns)) and np.all(np.isfinite(expected.returns))


def test_it_needs_events_as_goals():
    with pytest.raises(ValueError, match=r"--goals\.kind hindsight"):
        replace(CONFIGS["omg"], utilities=UtilitiesConfig(share=0.5)).check()
