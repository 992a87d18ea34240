"""Labels and subgoals against what can be worked by hand, or by trying everything."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.learning import ppo
from hopplus.learning.ppo import PPOConfig
from hopplus.learning.study import give_selected, last_step_together, next_deeds, prepare
from hopplus.models import actor_critic
from learning.played import CONFIGS, GAME, MINDS, of_learner, two_updates

SEAT, TABLES = 2, 4
GOALS = MINDS["omg"].goals


def test_the_next_deed_by_hand():
    """Two episodes and the beginning of a third. One agent does deed 1, then deed 0; the other deed 0 at the end."""
    did = np.zeros((1, 8, 2, 2), bool)
    did[0, 1, 1, 0] = did[0, 2, 0, 0] = did[0, 5, 0, 1] = True
    over = np.array([[False, False, False, True, False, True, False, False]])
    labels = next_deeds(jnp.asarray(did), jnp.asarray(over))
    np.testing.assert_array_equal(labels[0, :, 0], [1, 1, 0, 2, 2, 2, -1, -1])
    np.testing.assert_array_equal(labels[0, :, 1], [2, 2, 2, 2, 0, 0, -1, -1])


def test_a_deed_is_known_though_the_episode_is_not_over():
    did = np.zeros((1, 3, 2, 1), bool)
    did[0, 1, 1, 0] = True
    np.testing.assert_array_equal(next_deeds(jnp.asarray(did), jnp.zeros((1, 3), bool))[0, :, 0], [1, 1, -1])


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
    """One learner's part of a rollout: parameters, mind, what it saw, its batch [1, samples]."""
    one = two_updates()[1]
    seen = jax.tree.map(lambda leaf: leaf[SEAT, :TABLES], one.study)
    batch = jax.tree.map(lambda leaf: leaf[SEAT].reshape(1, -1, *leaf.shape[3:]), one.batch)
    return of_learner(one.before.params, SEAT), of_learner(one.before.minds, SEAT), seen, batch


@pytest.fixture(scope="module")
def prepared(played):
    """By the optimistic and by the conservative selector."""
    params, mind, seen, _ = played

    def both(params, mind, seen):
        configs = [replace(CONFIGS["omg"].modelling, selector=each) for each in ("optimistic", "conservative")]
        return [prepare(config, MINDS["omg"], GAME, params, mind, seen) for config in configs]

    return jax.jit(both)(params, mind, seen)


def test_the_selector_picks_what_is_best_or_worst_for_the_seats_own_value(played, prepared):
    """Every option of every step is put to the critic itself."""
    params, _, seen, _ = played
    lookahead, (rows, steps, num_others) = CONFIGS["omg"].modelling.lookahead, seen.valid.shape
    now, ahead = np.arange(steps)[None, :, None, None], np.asarray(prepared[0].ahead)[..., None]
    options = np.minimum(now + 1 + np.arange(lookahead), ahead)
    row, other = np.arange(rows)[:, None, None, None], np.arange(num_others)[None, None, :, None]
    offered = np.asarray(prepared[0].encoded)[row, options, other][..., : GOALS.size]
    told = np.broadcast_to(np.asarray(seen.goals)[:, :, None, None], (*options.shape, num_others, GOALS.size)).copy()
    for index in range(num_others):
        told[:, :, index, :, index] = offered[:, :, index]
    legal = jnp.ones(GAME.spec.num_actions, bool)
    value = lambda observation, goal: actor_critic.apply(params, observation, legal, goal)[1]  # noqa: E731
    of_options = jax.vmap(jax.vmap(value, in_axes=(None, 0)), in_axes=(None, 0))
    values = np.asarray(jax.jit(jax.vmap(jax.vmap(of_options)))(seen.observation, jnp.asarray(told)))
    for found, wanted in zip(prepared, (values.max(axis=-1), values.min(axis=-1)), strict=True):
        chosen = np.asarray(found.selected)[..., None] == options
        assert chosen.any(axis=-1).all()
        reached = np.max(np.where(chosen, values, -np.inf), axis=-1)
        np.testing.assert_allclose(reached, wanted, rtol=1e-4, atol=1e-5)
    valid = np.asarray(seen.valid)
    assert np.any(np.asarray(prepared[0].selected != prepared[1].selected)[valid])
    assert np.ptp(values, axis=-1)[valid].max() > 1e-3


def test_a_selected_state_is_ahead_in_the_same_episode(played, prepared):
    seen, selected = played[2], np.asarray(prepared[0].selected)
    episode = np.cumsum(np.asarray(seen.reset_before), axis=1)
    for row, step, other in np.argwhere(np.asarray(seen.valid)):
        later = selected[row, step, other]
        assert step <= later <= step + CONFIGS["omg"].modelling.lookahead
        assert episode[row, later] == episode[row, step] and seen.valid[row, later, other]


@pytest.fixture(scope="module")
def given(played, prepared):
    """The batch with no, with some and with all samples told the selected goals."""
    params, _, seen, batch = played
    give = jax.jit(lambda share, key: give_selected(GOALS, params, batch, seen, prepared[0], share, key=key))
    return {share: give(jnp.float32(share), jax.random.key(0)) for share in (0.0, 0.5, 1.0)}


def test_a_share_of_none_changes_nothing(played, given):
    before, after = played[3], given[0.0]
    same = replace(after, advantages=before.advantages)
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(after.advantages, before.advantages, atol=1e-6)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_first_ratio_is_one_and_targets_stay(played, given, share):
    """What the policy thinks under the goals that it is given is what is written down as its old opinion."""
    params, _, _, before = played
    after = given[share]
    over_samples = jax.jit(jax.vmap(partial(actor_critic.apply, params)))
    told, values = over_samples(*(jax.tree.map(lambda leaf: leaf[0], (after.observation, after.legal, after.goals))))
    taken = np.take_along_axis(np.asarray(told), np.asarray(after.actions[0])[:, None], axis=-1)[:, 0]
    active = np.asarray(after.active[0])
    np.testing.assert_allclose(after.log_probabilities[0][active], taken[active], atol=1e-5)
    np.testing.assert_allclose(after.values[0][active], np.asarray(values)[active], atol=1e-5)
    np.testing.assert_allclose(after.targets, before.targets, atol=1e-5)
    np.testing.assert_array_equal(after.actions, before.actions)
    loss = jax.jit(lambda params, batch: ppo.loss(PPOConfig(), 10.0, params, batch, jnp.float32(0))[1])
    metrics = loss(params, jax.tree.map(lambda leaf: leaf[0], after))
    assert abs(metrics["approx_kl"]) < 1e-6 and metrics["clip_fraction"] == 0


def test_only_steps_together_at_the_studied_tables_are_told(played, prepared, given):
    _, _, seen, before = played
    count = seen.valid.shape[0] * seen.valid.shape[1]
    changed = np.any(np.asarray(given[1.0].goals != before.goals)[0], axis=-1)
    valid = np.asarray(seen.valid).reshape(count, -1)
    assert not changed[count:].any() and not changed[:count][~valid].any()
    selected = np.take_along_axis(np.asarray(prepared[0].encoded), np.asarray(prepared[0].selected)[..., None], axis=1)
    wanted = selected[..., : GOALS.size].reshape(count, -1, GOALS.size)
    np.testing.assert_allclose(given[1.0].goals[0, :count][valid], wanted[valid], atol=1e-6)
    told = np.any(np.asarray(given[0.5].goals != before.goals)[0], axis=(-1, -2))
    assert 0.2 < told[:count][valid.any(axis=-1)].mean() < 0.8
