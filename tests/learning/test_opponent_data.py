"""Labels and subgoals against what can be worked by hand, or by trying everything."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.learning import ppo
from hopplus.learning.config import PPOConfig
from hopplus.learning.opponent_data import goal_targets, last_step_together, next_events, with_selected_goals
from hopplus.models import actor_critic
from learning.played import CONFIGS, GAME, OPPONENTS, of_learner, two_updates

SEAT, ENVS = 2, 4
GOALS = OPPONENTS["omg"].goals


def test_the_next_event_by_hand():
    """Two episodes and the start of a third. One agent has event 1, then event 0; the other event 0 at the end."""
    events = np.zeros((1, 8, 2, 2), bool)
    events[0, 1, 1, 0] = events[0, 2, 0, 0] = events[0, 5, 0, 1] = True
    over = np.array([[False, False, False, True, False, True, False, False]])
    labels = next_events(jnp.asarray(events), jnp.asarray(over))
    np.testing.assert_array_equal(labels[0, :, 0], [1, 1, 0, 2, 2, 2, -1, -1])
    np.testing.assert_array_equal(labels[0, :, 1], [2, 2, 2, 2, 0, 0, -1, -1])


def test_an_event_is_known_though_the_episode_is_not_over():
    events = np.zeros((1, 3, 2, 1), bool)
    events[0, 1, 1, 0] = True
    np.testing.assert_array_equal(next_events(jnp.asarray(events), jnp.zeros((1, 3), bool))[0, :, 0], [1, 1, -1])


def test_the_last_step_together_by_hand():
    """Episodes begin at steps 0, 4 and 6; the first co-player leaves after step 1, and the record ends in between."""
    valid = np.array([[1, 1, 0, 0, 1, 1, 0, 1, 1], [1, 1, 1, 1, 1, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1, 1]], bool).T
    new = np.array([[1, 0, 0, 0, 1, 0, 1, 0, 0]], bool)
    ahead = np.asarray(last_step_together(jnp.asarray(valid)[None], jnp.asarray(new)))[0].T
    np.testing.assert_array_equal(ahead[0], [1, 1, 2, 3, 5, 5, 6, 8, 8])
    np.testing.assert_array_equal(ahead[1], [3, 3, 3, 3, 4, 5, 8, 8, 8])
    np.testing.assert_array_equal(ahead[2], [0, 1, 2, 3, 5, 5, 8, 8, 8])


@pytest.fixture(scope="module")
def played():
    """One learner's part of a rollout: parameters, opponent models, opponent data, its batch [1, samples]."""
    one = two_updates()[1]
    data = jax.tree.map(lambda leaf: leaf[SEAT, :ENVS], one.opponent_data)
    batch = jax.tree.map(lambda leaf: leaf[SEAT].reshape(1, -1, *leaf.shape[3:]), one.batch)
    learner = of_learner(one.before.learners, SEAT)
    return learner.policy.params, learner.opponents.params, data, batch


@pytest.fixture(scope="module")
def targets(played):
    """By the optimistic and by the conservative selector."""
    params, models, data, _ = played
    config = CONFIGS["omg"]

    def both(params, models, data):
        settings = [replace(config.modelling, selector=each) for each in ("optimistic", "conservative")]
        return [goal_targets(replace(config, modelling=each), GAME, params, models, data) for each in settings]

    return jax.jit(both)(params, models, data)


def test_the_selector_picks_what_is_best_or_worst_for_the_seats_own_value(played, targets):
    """Every option of every step is put to the critic itself."""
    params, _, data, _ = played
    lookahead, (rows, steps, num_others) = CONFIGS["omg"].modelling.lookahead, data.valid.shape
    now, ahead = np.arange(steps)[None, :, None, None], np.asarray(targets[0].ahead)[..., None]
    options = np.minimum(now + 1 + np.arange(lookahead), ahead)
    row, other = np.arange(rows)[:, None, None, None], np.arange(num_others)[None, None, :, None]
    offered = np.asarray(targets[0].encoded)[row, options, other][..., : GOALS.size]
    given = np.broadcast_to(np.asarray(data.goals)[:, :, None, None], (*options.shape, num_others, GOALS.size)).copy()
    for index in range(num_others):
        given[:, :, index, :, index] = offered[:, :, index]
    legal = jnp.ones(GAME.spec.num_actions, bool)
    value = lambda observation, goal: actor_critic.apply(params, observation, legal, goal)[1]  # noqa: E731
    of_options = jax.vmap(jax.vmap(value, in_axes=(None, 0)), in_axes=(None, 0))
    values = np.asarray(jax.jit(jax.vmap(jax.vmap(of_options)))(data.observation, jnp.asarray(given)))
    for each, wanted in zip(targets, (values.max(axis=-1), values.min(axis=-1)), strict=True):
        chosen = np.asarray(each.selected)[..., None] == options
        assert chosen.any(axis=-1).all()
        reached = np.max(np.where(chosen, values, -np.inf), axis=-1)
        np.testing.assert_allclose(reached, wanted, rtol=1e-4, atol=1e-5)
    valid = np.asarray(data.valid)
    assert np.any(np.asarray(targets[0].selected != targets[1].selected)[valid])
    assert np.ptp(values, axis=-1)[valid].max() > 1e-3


def test_a_selected_state_is_ahead_in_the_same_episode(played, targets):
    data, selected = played[2], np.asarray(targets[0].selected)
    episode = np.cumsum(np.asarray(data.reset_before), axis=1)
    for row, step, other in np.argwhere(np.asarray(data.valid)):
        later = selected[row, step, other]
        assert step <= later <= step + CONFIGS["omg"].modelling.lookahead
        assert episode[row, later] == episode[row, step] and data.valid[row, later, other]


def test_without_lookahead_the_goal_is_the_current_state(played):
    params, models, data, _ = played
    config = replace(CONFIGS["omg"], modelling=replace(CONFIGS["omg"].modelling, lookahead=0))
    selected = jax.jit(partial(goal_targets, config, GAME))(params, models, data).selected
    np.testing.assert_array_equal(selected, np.broadcast_to(np.arange(selected.shape[1])[:, None], selected.shape))


@pytest.fixture(scope="module")
def given(played, targets):
    """The batch with the selected goals in none, some and all of its samples."""
    params, _, data, batch = played
    data, of_best = jax.tree.map(lambda leaf: leaf[None], (data, targets[0]))
    selected = jax.jit(partial(with_selected_goals, GOALS, params, batch, data=data, targets=of_best))
    return {share: selected(share=jnp.float32(share), keys=jax.random.key(0)[None]) for share in (0.0, 0.5, 1.0)}


def test_a_share_of_none_changes_nothing(played, given):
    before, after = played[3], given[0.0]
    same_advantages = replace(after, advantages=before.advantages)
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(same_advantages), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(after.advantages, before.advantages, atol=1e-6)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_first_ratio_is_one_and_targets_stay(played, given, share):
    """The batch holds the policy's log-probabilities and values under the goals that it is given."""
    params, _, _, before = played
    after = given[share]
    over_samples = jax.jit(jax.vmap(partial(actor_critic.apply, params)))
    log_probabilities, values = over_samples(
        *(jax.tree.map(lambda leaf: leaf[0], (after.observation, after.legal, after.goals)))
    )
    taken = np.take_along_axis(np.asarray(log_probabilities), np.asarray(after.actions[0])[:, None], axis=-1)[:, 0]
    active = np.asarray(after.active[0])
    np.testing.assert_allclose(after.log_probabilities[0][active], taken[active], atol=1e-5)
    np.testing.assert_allclose(after.values[0][active], np.asarray(values)[active], atol=1e-5)
    np.testing.assert_allclose(after.targets, before.targets, atol=1e-5)
    np.testing.assert_array_equal(after.actions, before.actions)
    loss = jax.jit(lambda params, batch: ppo.loss(PPOConfig(), 10.0, params, batch, jnp.float32(0))[1])
    metrics = loss(params, jax.tree.map(lambda leaf: leaf[0], after))
    assert abs(metrics["approx_kl"]) < 1e-6 and metrics["clip_fraction"] == 0


def test_only_steps_together_in_the_chosen_environments_get_selected_goals(played, targets, given):
    _, _, data, before = played
    count = data.valid.shape[0] * data.valid.shape[1]
    changed = np.any(np.asarray(given[1.0].goals != before.goals)[0], axis=-1)
    valid = np.asarray(data.valid).reshape(count, -1)
    assert not changed[count:].any() and not changed[:count][~valid].any()
    selected = np.take_along_axis(np.asarray(targets[0].encoded), np.asarray(targets[0].selected)[..., None], axis=1)
    wanted = selected[..., : GOALS.size].reshape(count, -1, GOALS.size)
    np.testing.assert_allclose(given[1.0].goals[0, :count][valid], wanted[valid], atol=1e-6)
    replaced = np.any(np.asarray(given[0.5].goals != before.goals)[0], axis=(-1, -2))
    assert 0.2 < replaced[:count][valid.any(axis=-1)].mean() < 0.8
