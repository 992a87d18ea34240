"""What a seat makes of its co-players step by step is what can be computed from the whole record afterwards."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.coplayers import read_policies
from hopplus.games.game import ego_order
from hopplus.games.stag_hunt import HUNT_HARE, HUNT_STAG
from hopplus.learning import minds, modelling, offline, pretraining
from hopplus.learning.minds import Evidence, Filter, Impression, MindConfig
from hopplus.learning.study import look_at_all
from hopplus.models import goals, others
from hopplus.models.others import OthersConfig
from learning.played import CONFIGS, GAME, MINDS, SMALL, two_updates
from models.boards import drawn_like
from situations import hunt

STAY = 4
HOP = MindConfig(goals.GoalsConfig(kind="hindsight", **SMALL), OthersConfig(models="shared", hidden=8, keys=4))


def mind_like(config, scale=0.5):
    shapes = jax.eval_shape(lambda: minds.init(config, GAME.spec, key=jax.random.key(0)))
    return drawn_like(shapes, scale=scale)


@pytest.fixture(scope="module")
def recomputed():
    """The posterior's goals of both rollouts from what was recorded; also without the evidence that was carried."""

    @jax.jit
    def recompute(minds_of_seats, seen):
        def one_seat(mind, seen):
            mean = jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, MINDS["omg"].goals))))
            look = look_at_all(GAME, seen)
            forgetful = replace(seen, before=jnp.zeros_like(seen.before))
            return tuple(mean(modelling.posterior_outputs(mind, look, each)) for each in (seen, forgetful))

        return jax.vmap(one_seat)(minds_of_seats, seen)

    return [jax.device_get(recompute(one.before.minds, one.study)) for one in two_updates()]


def own_seat_in_game(played):
    """[seats, tables, time]"""
    count = played.study.valid.shape[1]
    return np.moveaxis(np.asarray(played.steps.in_game)[:count], 2, 0)


@pytest.mark.parametrize("rollout", [0, 1], ids=["from fresh tables", "going on at the same tables, after learning"])
def test_goals_at_the_table_are_those_of_the_whole_record(recomputed, rollout):
    played = two_updates()[rollout]
    mine = own_seat_in_game(played)
    told, found = np.asarray(played.study.goals)[mine], recomputed[rollout][0][mine]
    np.testing.assert_allclose(told, found, rtol=1e-4, atol=1e-5)
    assert np.asarray(played.steps.reset_before)[:, 1:].any(), "no episode began in between"
    assert np.ptp(told, axis=0).max() > 0.01


def test_evidence_is_carried_from_one_rollout_to_the_next(recomputed):
    """Without it, steps before the first new episode would be told otherwise, and later ones would not."""
    first, second = two_updates()
    np.testing.assert_array_equal(first.study.before, 0.0)
    assert np.abs(second.study.before).max() > 0
    carried, forgotten = recomputed[1]
    mine = own_seat_in_game(second)
    fresh = np.cumsum(np.asarray(second.study.reset_before), axis=-1) > 0
    np.testing.assert_array_equal(carried[fresh], forgotten[fresh])
    assert np.abs(carried - forgotten)[mine & ~fresh].max() > 1e-3


@pytest.fixture(scope="module")
def scripted():
    """Six episodes of scripts, what each seat perceived in them, and what the filter over the record says."""
    scripts = read_policies("nearest_hare,nearest_stag,random", GAME.spec)
    mind = mind_like(HOP)
    kinds = jnp.array([[0, 1, 2, 0], [2, 2, 0, 1], [1, 1, 0, 2], [0, 0, 0, 2], [2, 2, 2, 2], [1, 2, 0, 1]], jnp.int32)

    @jax.jit
    def play(kinds, keys):
        episodes = jax.vmap(lambda kinds, key: offline.play_cast(GAME, scripts, kinds, key=key))(kinds, keys)
        observations, legal = offline.views(GAME, episodes)

        def perceived(observations):
            def one_step(impression, observation):
                impression = minds.perceive(HOP, GAME, mind, observation, impression)
                return impression, (impression.kept.belief, impression.kept.revealed)

            return jax.lax.scan(one_step, minds.start(HOP, GAME.spec), observations)[1]

        over_seats = jax.vmap(jax.vmap(perceived, in_axes=1, out_axes=1))
        look = jax.vmap(jax.vmap(jax.vmap(partial(others.look, GAME.spec))))(observations, legal)
        by_goal = jax.vmap(jax.vmap(lambda seen: minds.predict_by_goal(mind, seen, 3)))(look)
        filtered = jax.vmap(pretraining.filter_beliefs)(by_goal, legal, episodes.actions, episodes.in_game)
        return episodes, *over_seats(observations), filtered

    return jax.device_get(play(kinds, jax.random.split(jax.random.key(0), 6)))


def test_the_filter_at_the_table_is_the_filter_over_the_record(scripted):
    episodes, believed, _, filtered = scripted
    order = ego_order(4)
    for seat in range(4):
        together = episodes.in_game[:, :, seat, None] & episodes.in_game[:, :, order[seat, 1:]]
        of_others = filtered[:, :, order[seat, 1:]]
        np.testing.assert_allclose(believed[:, :, seat][together], of_others[together], rtol=1e-4, atol=1e-5)
    assert np.ptp(filtered, axis=(0, 1)).max() > 0.1


def test_a_goal_is_revealed_by_a_catch_that_was_seen(scripted):
    """Whoever is still there in the next step sees who left, and with which hunt."""
    episodes, _, revealed, _ = scripted
    order, seen = ego_order(4), 0
    caught = (episodes.rewards > 0) & episodes.in_game
    for seat in range(4):
        for index, other in enumerate(order[seat, 1:]):
            expected = np.zeros(revealed[:, :, seat, index].shape)
            for episode, step in np.argwhere(caught[:, :-1, other] & episodes.in_game[:, 1:, seat]):
                goal = {HUNT_STAG: 0, HUNT_HARE: 1}[int(episodes.actions[episode, step, other])]
                expected[episode, step + 1 :, goal] = 1.0
                seen += 1
            np.testing.assert_array_equal(revealed[:, :, seat, index], expected)
    assert seen > 3


def test_players_that_have_left_change_nothing(scripted):
    """Neither what a co-player that has left leaves behind, nor anything once the seat itself is gone."""
    episodes, believed, revealed, _ = scripted
    order = ego_order(4)
    for seat in range(4):
        acted = episodes.in_game[:, :-1, order[seat, 1:]] & episodes.in_game[:, 1:, seat, None]
        for numbers in (believed, revealed):
            np.testing.assert_array_equal(numbers[:, 1:, seat][~acted], numbers[:, :-1, seat][~acted])
    assert not episodes.in_game.all()


def test_no_action_adds_no_evidence():
    """At the first step after a co-player left its last action counts; from then on there is none."""
    config, mind = MINDS["omg"], mind_like(MINDS["omg"])
    state = hunt(GAME, [(0, 0), None, (1, 1), (2, 2)], [(3, 3)], [(0, 3)], time=2)
    state = replace(state, last_actions=jnp.array([STAY, -1, STAY, HUNT_HARE], jnp.int32))
    view = jax.tree.map(lambda leaf: leaf[0], jax.jit(GAME.observe)(state))
    kept = drawn_like(Evidence(jnp.zeros((3, SMALL["evidence"])), jnp.zeros((3, SMALL["hidden"]))))
    perceive = jax.jit(lambda view, impression: minds.perceive(config, GAME, mind, view, impression))
    after = perceive(view, Impression(jnp.zeros((3, SMALL["size"])), kept)).kept
    np.testing.assert_array_equal(after.total[0], kept.total[0])
    assert np.all(np.asarray(after.total[1:]) != np.asarray(kept.total[1:]))
    blank = jax.tree.map(jnp.zeros_like, view)
    blank = replace(blank, last_actions=jnp.full(4, -1, jnp.int32))
    np.testing.assert_array_equal(
        perceive(blank, Impression(jnp.zeros((3, SMALL["size"])), kept)).kept.total, kept.total
    )


def test_the_next_episode_begins_with_what_was_revealed_or_last_believed():
    """Counts begin at 1: .995 + 1 for the goal that was seen, .995 + belief where none was."""
    fresh = minds.start(HOP, GAME.spec)
    belief = jnp.array([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    revealed = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    kept = replace(fresh.kept, belief=belief, revealed=revealed)
    after = minds.again(HOP, GAME.spec, Impression(belief, kept))
    counts = 0.995 + np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    assert isinstance(after.kept, Filter)
    np.testing.assert_allclose(after.kept.counts, counts, rtol=1e-6)
    np.testing.assert_allclose(after.goals, counts / counts.sum(axis=-1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(after.kept.belief, after.goals)
    np.testing.assert_array_equal(after.kept.revealed, 0.0)


def test_after_an_update_only_the_running_episode_counts():
    """Two seats, each with three co-players."""
    fresh = minds.start(HOP, GAME.spec)
    two = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), fresh)
    known = replace(two, goals=two.goals + 0.1, kept=replace(two.kept, counts=two.kept.counts + 7.0))
    anew = minds.met_anew(known)
    assert isinstance(anew.kept, Filter)
    np.testing.assert_array_equal(anew.kept.counts, 1.0)
    np.testing.assert_array_equal(anew.goals, known.goals)


def test_latent_evidence_begins_anew():
    config = MINDS["omg"]
    kept = drawn_like(Evidence(jnp.zeros((3, SMALL["evidence"])), jnp.zeros((3, SMALL["hidden"]))))
    after = minds.again(config, GAME.spec, Impression(jnp.ones((3, SMALL["size"])), kept))
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(after))


def test_goals_need_a_model_of_the_others():
    config = replace(CONFIGS["omg"].mind, others=OthersConfig())
    with pytest.raises(ValueError, match=r"give --others\.models each or shared"):
        config.check()
