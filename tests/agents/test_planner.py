"""A planner as a player: the goals of its trees, its predictions, and that it is a pure function."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import PlanningConfig
from hopplus.agents.goals import goal_model
from hopplus.agents.opponents import OpponentModels
from hopplus.games.stag_hunt import HUNT_HARE, HUNT_STAG
from hopplus.models import cells_world
from hopplus.models.config import WorldConfig
from hopplus.models.learned_game import LearnedGame, from_view
from hopplus.planning.config import SearchConfig
from hopplus.planning.model import Plan
from situations import hunt
from untrained import GAME, OPPONENTS, planner, player

STAG, HARE, OTHER = 0, 1, 2
GOALS = goal_model(OPPONENTS, GAME)
NO_MODELS = OpponentModels(None, None, None)


def seen_by_first(state):
    return jax.tree.map(lambda leaf: leaf[0], GAME.observe(state)), GAME.legal(state)[0]


def learned_game():
    params = cells_world.init(WorldConfig(members=1, hidden=4, pooled=2), GAME.spec, key=jax.random.key(2))
    view, _ = seen_by_first(GAME.reset(key=jax.random.key(3)))
    return LearnedGame(params, GAME, jax.tree.map(lambda leaf: leaf[None], from_view(GAME.spec, view)))


def test_trees_have_goals_as_likely_as_they_are_believed():
    belief = jnp.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]])
    drawn = GOALS.draw(NO_MODELS, replace(GOALS.start(), goals=belief), 4000, key=jax.random.key(0))
    np.testing.assert_allclose(drawn.mean(axis=0), belief, atol=0.03)
    assert set(np.unique(drawn)) == {0.0, 1.0}


@pytest.mark.parametrize("kind", ["one_step", "search"])
def test_it_hunts_the_hare_on_its_own_cell(kind):
    """All others are far from the stag: no opponent model can make another action better."""
    state = hunt(GAME, players=[(0, 0), (2, 2), (2, 2)], stags=[(1, 1)], hares=[(0, 0)])
    view, legal = seen_by_first(state)
    decide = eqx.filter_jit(planner(kind, policy_weight=0.0))
    probabilities, _ = decide(view, legal, GOALS.start())
    assert probabilities[HUNT_HARE] == 1
    again, _ = decide(view, legal, GOALS.start())
    np.testing.assert_array_equal(probabilities, again)


def test_an_unreadable_co_player_is_expected_to_do_anything():
    state = hunt(GAME, players=[(1, 1), (1, 1), (1, 1)], stags=[(1, 1)], hares=[(0, 0)])
    of_others = jax.tree.map(lambda leaf: leaf[1:], GAME.observe(state))
    plan = planner("one_step")
    predicted, _ = plan.predict_others(of_others, GAME.legal(state)[1:], jax.nn.one_hot(jnp.array([OTHER, HARE]), 3))
    np.testing.assert_allclose(predicted[0], GAME.legal(state)[1] / GAME.legal(state)[1].sum(), rtol=1e-6)
    assert predicted[1, HUNT_STAG] != predicted[0, HUNT_STAG]


def test_it_plans_in_a_learned_world_by_the_same_code():
    state = hunt(GAME, players=[(0, 0), (2, 2), (2, 2)], stags=[(1, 1)], hares=[(0, 2)])
    view, legal = seen_by_first(state)
    probabilities, _ = eqx.filter_jit(planner("search", game=learned_game(), greedy=False))(view, legal, GOALS.start())
    assert probabilities.sum() == pytest.approx(1, abs=1e-5) and not np.any(np.asarray(probabilities)[~legal])


def test_its_own_policy_decides_where_values_are_equal():
    state = hunt(GAME, players=[(0, 0), (2, 2), (2, 2)], stags=[(1, 1)], hares=[(0, 2)])
    view, legal = seen_by_first(state)
    itself, _ = eqx.filter_jit(player())(view, legal, GOALS.start())
    opinionated, _ = eqx.filter_jit(planner("one_step", policy_weight=1e6))(view, legal, GOALS.start())
    np.testing.assert_array_equal(itself, opinionated)


def test_with_a_prior_weight_search_starts_from_the_policy():
    """With equal values, a prior weight of 1 keeps the policy, and a weight of 0 makes it uniform."""
    liking = jnp.log(jnp.array([0.7, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]) / 1.4)
    nothing = jnp.zeros(7)
    plan = Plan(nothing, nothing, nothing[None], jnp.ones(7, bool))
    np.testing.assert_allclose(planner("search", prior_weight=1.0).explore(plan, liking), jnp.exp(liking), rtol=1e-5)
    np.testing.assert_allclose(planner("search").explore(plan, liking), np.full(7, 1 / 7), rtol=1e-5)
    better = replace(plan, values=nothing.at[1].set(1.0))
    moved = planner("search", prior_weight=1.0, beta=2.0).explore(better, liking)
    assert moved[1] / moved[0] == pytest.approx(np.exp(2) * 0.2 / 0.7, rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"search": SearchConfig(trees=0)}, "--planning.trees is 0; give 1 or more"),
        ({"search": SearchConfig(simulations=0)}, "--planning.simulations is 0; give 1 or more"),
        ({"search": SearchConfig(exploration=0.0)}, "--planning.exploration is 0.0; give a number above 0"),
        ({"beta": -1.0}, "--planning.beta is -1.0; give 0 or more"),
        ({"prior_weight": -1.0}, "--planning.prior-weight is -1.0; give 0 or more"),
    ],
)
def test_what_makes_no_sense_is_said(settings, reason):
    with pytest.raises(ValueError, match=reason):
        PlanningConfig(kind="search", **settings).check()
