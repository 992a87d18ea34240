"""Beliefs that are updated step by step equal those that are computed from the whole record afterwards."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents import opponents
from hopplus.agents.config import OpponentsConfig
from hopplus.agents.goals import BeliefState, GoalFilter, LatentEvidence, goal_model, only_wanted_events
from hopplus.games.game import ego_order
from hopplus.games.lineups import read_policies
from hopplus.games.stag_hunt import HUNT_HARE, HUNT_STAG
from hopplus.learning import offline, pretraining
from hopplus.learning.goal_losses import posterior_outputs
from hopplus.learning.opponent_data import all_inputs
from hopplus.models import goals, others
from hopplus.models.config import OthersConfig
from learning.played import CONFIGS, GAME, OPPONENTS, SMALL, two_updates
from models.boards import drawn_like
from situations import hunt

STAY = 4
HOP = OpponentsConfig(goals.GoalsConfig(kind="hindsight", **SMALL), OthersConfig(models="shared", hidden=8, keys=4))


def models_like(config, scale=0.5):
    shapes = jax.eval_shape(
        lambda: opponents.init(config, GAME.spec, goal_model(config, GAME).size, key=jax.random.key(0))
    )
    return drawn_like(shapes, scale=scale)


@pytest.fixture(scope="module")
def recomputed():
    """The posterior's goals of both rollouts from what was recorded; also without the evidence that was carried."""

    @jax.jit
    def recompute(models_of_seats, data):
        def one_seat(models, data):
            mean = jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, OPPONENTS["omg"].goals))))
            inputs = all_inputs(GAME, data)
            forgetful = replace(data, before=jnp.zeros_like(data.before))
            return tuple(mean(posterior_outputs(models, inputs, each)) for each in (data, forgetful))

        return jax.vmap(one_seat)(models_of_seats, data)

    return [jax.device_get(recompute(one.before.learners.opponents.params, one.opponent_data)) for one in two_updates()]


def own_seat_in_game(played):
    """[seats, envs, time]"""
    count = played.opponent_data.valid.shape[1]
    return np.moveaxis(np.asarray(played.steps.in_game)[:count], 2, 0)


@pytest.mark.parametrize("rollout", [0, 1], ids=["from the first states", "continued, after learning"])
def test_goals_inferred_in_play_are_those_of_the_whole_record(recomputed, rollout):
    played = two_updates()[rollout]
    mine = own_seat_in_game(played)
    inferred, expected = np.asarray(played.opponent_data.goals)[mine], recomputed[rollout][0][mine]
    np.testing.assert_allclose(inferred, expected, rtol=1e-4, atol=1e-5)
    assert np.asarray(played.steps.reset_before)[:, 1:].any(), "no episode began in between"
    assert np.ptp(inferred, axis=0).max() > 0.01


def test_evidence_is_carried_from_one_rollout_to_the_next(recomputed):
    """Without it, goals before the first new episode would differ, and later ones would not."""
    first, second = two_updates()
    np.testing.assert_array_equal(first.opponent_data.before, 0.0)
    assert np.abs(second.opponent_data.before).max() > 0
    carried, forgotten = recomputed[1]
    mine = own_seat_in_game(second)
    fresh = np.cumsum(np.asarray(second.opponent_data.reset_before), axis=-1) > 0
    np.testing.assert_array_equal(carried[fresh], forgotten[fresh])
    assert np.abs(carried - forgotten)[mine & ~fresh].max() > 1e-3


@pytest.fixture(scope="module")
def scripted():
    """Six episodes of scripts, each seat's beliefs in them, and the result of the filter over the record."""
    scripts = read_policies("nearest_hare,nearest_stag,random", GAME)
    models, goal = models_like(HOP), goal_model(HOP, GAME)
    kinds = jnp.array([[0, 1, 2, 0], [2, 2, 0, 1], [1, 1, 0, 2], [0, 0, 0, 2], [2, 2, 2, 2], [1, 2, 0, 1]], jnp.int32)

    @jax.jit
    def play(kinds, keys):
        episodes = jax.vmap(lambda kinds, key: offline.play_cast(GAME, scripts, kinds, key=key))(kinds, keys)
        observations, legal = offline.views(GAME, episodes)

        def beliefs_of(observations):
            def one_step(state, observation):
                state = goal.update(models, observation, state)
                return state, (state.memory.belief, state.memory.revealed)

            return jax.lax.scan(one_step, goal.start(), observations)[1]

        over_seats = jax.vmap(jax.vmap(beliefs_of, in_axes=1, out_axes=1))
        inputs = jax.vmap(jax.vmap(jax.vmap(partial(others.opponent_input, GAME.spec))))(observations, legal)
        by_goal = jax.vmap(jax.vmap(lambda inputs: opponents.predict_by_goal(models, inputs, 3)))(inputs)
        filtered = jax.vmap(pretraining.filter_beliefs)(by_goal, legal, episodes.actions, episodes.in_game)
        return episodes, *over_seats(observations), filtered

    return jax.device_get(play(kinds, jax.random.split(jax.random.key(0), 6)))


def test_the_filter_in_play_is_the_filter_over_the_record(scripted):
    episodes, believed, _, filtered = scripted
    order = ego_order(4)
    for seat in range(4):
        together = episodes.in_game[:, :, seat, None] & episodes.in_game[:, :, order[seat, 1:]]
        of_others = filtered[:, :, order[seat, 1:]]
        np.testing.assert_allclose(believed[:, :, seat][together], of_others[together], rtol=1e-4, atol=1e-5)
    assert np.ptp(filtered, axis=(0, 1)).max() > 0.1


def test_a_goal_is_revealed_by_a_catch_that_was_seen(scripted):
    """A seat that is still there in the next step sees who left, and with which hunt."""
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
    goal, models = goal_model(OPPONENTS["omg"], GAME), models_like(OPPONENTS["omg"])
    state = hunt(GAME, [(0, 0), None, (1, 1), (2, 2)], [(3, 3)], [(0, 3)], time=2)
    state = replace(state, last_actions=jnp.array([STAY, -1, STAY, HUNT_HARE], jnp.int32))
    view = jax.tree.map(lambda leaf: leaf[0], jax.jit(GAME.observe)(state))
    kept = drawn_like(LatentEvidence(jnp.zeros((3, SMALL["evidence"])), jnp.zeros((3, SMALL["hidden"]))))
    update = jax.jit(lambda view, state: goal.update(models, view, state))
    after = update(view, BeliefState(jnp.zeros((3, SMALL["size"])), kept)).memory
    np.testing.assert_array_equal(after.total[0], kept.total[0])
    assert np.all(np.asarray(after.total[1:]) != np.asarray(kept.total[1:]))
    blank = jax.tree.map(jnp.zeros_like, view)
    blank = {**blank, "last_actions": jnp.full(4, -1, jnp.int32)}
    blank_after = update(blank, BeliefState(jnp.zeros((3, SMALL["size"])), kept)).memory
    np.testing.assert_array_equal(blank_after.total, kept.total)


def test_the_next_episode_starts_from_what_was_revealed_or_last_believed():
    """Counts begin at 1: .995 + 1 for the goal that was seen, .995 + belief where none was."""
    goal = goal_model(HOP, GAME)
    fresh = goal.start()
    belief = jnp.array([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    revealed = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    kept = replace(fresh.memory, belief=belief, revealed=revealed)
    after = goal.next_episode(BeliefState(belief, kept))
    counts = 0.995 + np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    assert isinstance(after.memory, GoalFilter)
    np.testing.assert_allclose(after.memory.counts, counts, rtol=1e-6)
    np.testing.assert_allclose(after.goals, counts / counts.sum(axis=-1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(after.memory.belief, after.goals)
    np.testing.assert_array_equal(after.memory.revealed, 0.0)


def test_after_an_update_only_the_current_episode_counts():
    """Two seats, each with three co-players."""
    goal = goal_model(HOP, GAME)
    fresh = goal.start()
    two = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), fresh)
    known = replace(two, goals=two.goals + 0.1, memory=replace(two.memory, counts=two.memory.counts + 7.0))
    after = goal.reset_counts(known)
    assert isinstance(after.memory, GoalFilter)
    np.testing.assert_array_equal(after.memory.counts, 1.0)
    np.testing.assert_array_equal(after.goals, known.goals)


def test_latent_evidence_is_reset_in_the_next_episode():
    goal = goal_model(OPPONENTS["omg"], GAME)
    kept = drawn_like(LatentEvidence(jnp.zeros((3, SMALL["evidence"])), jnp.zeros((3, SMALL["hidden"]))))
    after = goal.next_episode(BeliefState(jnp.ones((3, SMALL["size"])), kept))
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(after))


def test_goals_need_a_model_of_the_others():
    config = replace(CONFIGS["omg"].opponents, others=OthersConfig())
    with pytest.raises(ValueError, match=r"give --others\.models each or shared"):
        config.check()


def test_a_co_player_with_a_given_goal_causes_no_other_event():
    """One wants stags, one hares, one nothing in particular."""
    stag, hare = GAME.spec.event_actions
    probabilities = np.asarray(only_wanted_events(GAME.spec, jnp.full((3, 7), 1 / 7), jnp.eye(3)))
    expected = np.full((3, 7), 1 / 6)
    expected[0, hare] = expected[1, stag] = 0
    expected[2] = 1 / 7
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)
