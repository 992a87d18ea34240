"""The regressed world, a baseline: it may say impossible things, and must know every seat's order."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.evaluation.world import by_world, impossible, judge_line_ups, sums_of
from hopplus.games.game import ego_order
from hopplus.learning.worlds import fit, seen_by_seats
from hopplus.models import regression_world, world
from hopplus.models.config import WorldConfig
from hopplus.models.regression_world import Regressed
from hopplus.models.world_kinds import init_world
from models.test_world import SPEC, played, rows, situation

CONFIG = WorldConfig(members=1, kind="regression", hidden=32, walker_weight=2.0)
ORDERS = jnp.asarray(ego_order(4), jnp.int32)


def told(now, **changed):
    """The current board as the prediction, with changes."""
    zeros = jnp.zeros(SPEC.num_agents)
    return replace(Regressed(now.board.astype(jnp.float32), zeros, zeros - 9.0, 2.0), **changed)


def test_a_player_told_with_less_than_a_half_vanishes_and_leaves_the_game():
    now = situation([(0, 0), (1, 1), (2, 2), (2, 3)], [4, 4, 4, 4], stags=[(0, 0)])
    planes = now.board.astype(jnp.float32).at[0, 0, 0].set(0.4)
    after = told(now, planes=planes).draw(SPEC, now, key=None)
    assert after.ended.tolist() == [True, False, False, False] and not after.board[..., 0].any()
    np.testing.assert_array_equal(told(now).draw(SPEC, now, key=None).board, now.board)


def test_it_can_say_what_is_impossible():
    """Two cells at once, a jump, and a reward that the game never pays."""
    now = situation([(0, 0), (1, 1), (2, 2), (2, 3)], [4, 4, 4, 4], stags=[(0, 0)])
    planes = now.board.astype(jnp.float32).at[0, 2, 0].set(0.6)
    after = told(now, planes=planes, rewards=jnp.array([0.042, 0.7, 0.0, 0.0])).draw(SPEC, now, key=None)
    assert impossible(SPEC, now, after).tolist() == [1, 1, 0, 1]
    assert after.rewards[0] == pytest.approx(0.042)


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_players_planes_count_double(weight):
    now = situation([(0, 0), (1, 1), (2, 2), (2, 3)], [4, 4, 4, 4], stags=[(0, 0)])
    true = world.Transition(now, world.Outcome(now.board, jnp.zeros(4), now.ended))
    board = now.board.astype(jnp.float32)
    stags = SPEC.plane_index("stags")
    for plane, factor in ((0, weight), (stags, 1.0)):
        wrong = replace(told(now, planes=board.at[0, 0, plane].add(-1.0)), walker_weight=weight)
        cells = SPEC.height * SPEC.width
        assert float(wrong.losses(SPEC, true)["planes"]) == pytest.approx(factor / cells, rel=1e-5)


def test_it_learns_real_transitions_and_is_scored_like_any_world():
    params = init_world(CONFIG, SPEC, key=jax.random.key(0))
    loss = lambda params, transition: world.loss(params, SPEC, transition)  # noqa: E731
    after = fit(loss, params, rows(), epochs=40, minibatch_size=64, key=jax.random.key(1))
    score = lambda one: judge_line_ups(SPEC, partial(sums_of, SPEC, by_world(SPEC, one)), {"all": played()})  # noqa: E731
    figures = [score(one)["all"] for one in (params, after)]
    assert figures[1]["observation_mse"] < 0.75 * figures[0]["observation_mse"]
    assert figures[0]["vanished"] > 0.9 * figures[0]["players"], "untrained, it puts nobody anywhere"
    exact = [one["exact"] for one in figures[1]["by_steps"]]
    assert len(exact) == 10 and all(one >= other for one, other in pairwise(exact))
    assert exact[0] == pytest.approx(figures[1]["exact_next_state"], abs=1e-6)


def test_a_world_that_does_not_treat_players_alike_sees_the_order_of_every_seat():
    transition = jax.tree.map(lambda leaf: leaf[:8], rows())
    seats = [0, 1, 2, 3] * 2
    plain = init_world(CONFIG, SPEC, key=jax.random.key(0))
    seen = seen_by_seats(SPEC, plain, transition, ORDERS)
    for row, seat in enumerate(seats):
        one = jax.tree.map(lambda leaf, row=row: leaf[row], transition)
        found = jax.tree.map(lambda leaf, row=row: leaf[row], seen)
        assert eqx.tree_equal(world.seen_by(SPEC, one, ORDERS[seat]), found)
    cells = init_world(WorldConfig(members=1, hidden=4, pooled=2), SPEC, key=jax.random.key(0))
    alike = seen_by_seats(SPEC, cells, transition, ORDERS)
    assert eqx.tree_equal(alike, world.seen_by(SPEC, transition, ORDERS[0]))
    alone = seen_by_seats(SPEC, plain, transition, ORDERS[2:3])
    assert eqx.tree_equal(alone, world.seen_by(SPEC, transition, ORDERS[2]))


def test_settings_reach_the_world():
    params = regression_world.init(replace(CONFIG, walker_weight=3.0), SPEC, key=jax.random.key(0))
    now = jax.tree.map(lambda leaf: leaf[0], rows()).now
    assert params(SPEC, now).walker_weight == 3.0 and params.first.weight.shape[1] == CONFIG.hidden
