"""The world of cells where players act at a distance, carry traits and counters, own things and come back."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.evaluation.world import by_world, impossible, judge_line_ups, record_episodes, sums_of, transitions_of
from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.foraging import Foraging
from hopplus.games.harvest import Harvest
from hopplus.games.lineups import read_policies
from hopplus.games.presets import PRESETS, make
from hopplus.learning.offline import Cast
from hopplus.learning.worlds import fit
from hopplus.models import cells_world, world
from hopplus.models.config import WorldConfig
from hopplus.models.learned_game import LearnedGame, from_view

GAMES = {
    "foraging": Foraging(grid=Board(3, 4), num_players=2, num_foods=2, horizon=9),
    "coins": Coins(grid=Board(3, 3), num_players=3, horizon=9),
    "harvest": Harvest(grid=Board(3, 4), num_players=3, horizon=9, away_steps=2),
}
SMALL = WorldConfig(members=1, hidden=16, pooled=4)


def wild(spec, seed=0):
    """A world that is sure of anything, as an untrained one never is."""
    leaves, tree = jax.tree.flatten(cells_world.init(SMALL, spec, key=jax.random.key(seed)))
    rng = np.random.default_rng(seed)
    return tree.unflatten([jnp.asarray(rng.normal(0, 0.3, leaf.shape), jnp.float32) for leaf in leaves])


@cache
def played(name):
    """Episodes of random play, as a world sees them."""
    game = GAMES[name]
    players = Cast(read_policies("random", game), jnp.zeros(game.spec.num_agents, jnp.int32))
    return record_episodes(game, lambda _: players, 64, key=jax.random.key(1))


def rows(name):
    return jax.tree.map(jnp.asarray, transitions_of(played(name)))


@cache
def drawn(name, seed=0):
    """A transition of a wild world from each real situation."""
    spec, now = GAMES[name].spec, rows(name).now
    params = wild(spec, seed)
    draw = jax.jit(jax.vmap(lambda now, key: world.draw(spec, now, world.apply(params, spec, now), key=key)))
    return now, draw(now, jax.random.split(jax.random.key(2), len(now.time)))


def planes_of(spec, board, start):
    places = [index for index, plane in enumerate(spec.planes) if plane.name.startswith(start)]
    return np.asarray(board)[..., places]


@pytest.mark.parametrize("name", GAMES)
def test_nothing_impossible_can_be_drawn(name):
    spec = GAMES[name].spec
    now, after = drawn(name)
    found = jax.jit(jax.vmap(partial(impossible, replace(spec, reward_support=()))))(now, after)
    assert int(found.sum()) == 0
    assert np.any(np.asarray(after.board) != np.asarray(rows(name).after.board)), "this world is not wild"
    np.testing.assert_array_equal(planes_of(spec, after.board, "obst"), planes_of(spec, now.board, "obst"))


def test_every_coin_is_in_one_cell():
    now, after = drawn("coins")
    coins = planes_of(GAMES["coins"].spec, after.board, "coins_")
    np.testing.assert_array_equal(coins.sum(axis=(1, 2)), 1)
    assert np.any(coins != planes_of(GAMES["coins"].spec, now.board, "coins_"))


def test_levels_go_with_the_players():
    spec = GAMES["foraging"].spec
    now, after = drawn("foraging")
    before, walkers = (planes_of(spec, board, "player_") for board in (now.board, after.board))
    levels, then = (planes_of(spec, board, "level_") for board in (now.board, after.board))
    there = walkers.sum(axis=(1, 2)) == 1
    apart = there.all(axis=1) & (walkers.sum(axis=-1).max(axis=(1, 2)) == 1)
    had = np.einsum("nhwi,nhwl->nil", before, levels)
    np.testing.assert_array_equal(np.einsum("nhwi,nhwl->nil", walkers, then)[apart], had[apart])
    assert apart.sum() > 20 and np.any(walkers != before)


def test_who_is_away_may_come_back_and_counters_are_numbers():
    spec = GAMES["harvest"].spec
    now, after = drawn("harvest")
    was, is_there = (planes_of(spec, board, "player_").sum(axis=(1, 2)) > 0 for board in (now.board, after.board))
    assert np.any(~was & is_there) and np.any(~was & ~is_there) and not after.ended[:, 0].all()
    counters = planes_of(spec, after.board, "away_").reshape(len(was), -1, spec.num_agents)
    assert np.all(np.diff(counters.astype(int), axis=1) <= 0), "cells are on in reading order"
    assert len(np.unique(counters.sum(axis=1))) > 5


@pytest.mark.parametrize("name", GAMES)
def test_players_may_be_turned_with_all_that_is_theirs(name):
    spec, now = GAMES[name].spec, rows(name).now
    order = jnp.roll(jnp.arange(spec.num_agents, dtype=jnp.int32), -1)
    one = jax.tree.map(lambda leaf: leaf[5], now)
    turned = replace(one, board=one.board[..., spec.plane_order(order)], actions=one.actions[order])
    predict = jax.jit(partial(world.apply, wild(spec), spec))
    expected, found = predict(one), predict(turned)
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4)
    close(found.walkers, expected.walkers[order])
    close(found.rewards, expected.rewards[order])
    if name == "coins":
        close(found.things, expected.things[order])
    if name == "harvest":
        close(found.counters, expected.counters[order])
    assert np.any(np.abs(np.asarray(found.rewards - expected.rewards)) > 1e-2)


@pytest.mark.parametrize("name", GAMES)
def test_what_is_expected_is_the_mean_of_what_is_drawn(name):
    spec = GAMES[name].spec
    one = jax.tree.map(lambda leaf: leaf[7], rows(name).now)
    predicted = world.apply(wild(spec), spec, one)
    keys = jax.random.split(jax.random.key(4), 4000)
    boards = jax.jit(jax.vmap(lambda key: world.draw(spec, one, predicted, key=key).board))(keys)
    shares, expected = np.asarray(boards).mean(axis=0), np.asarray(predicted.expected_board(spec, one))
    traits = [plane.kind == "category" for plane in spec.planes]  # two players on a cell are counted once
    np.testing.assert_allclose(shares[..., ~np.array(traits)], expected[..., ~np.array(traits)], atol=0.05)


@pytest.mark.parametrize("name", [pytest.param("foraging", marks=pytest.mark.heavy), "coins", "harvest"])
def test_it_is_a_game(name):
    """What it shows and allows is what the game says, and it can be played."""
    game = GAMES[name]
    states = jax.vmap(lambda key: game.reset(key=key))(jax.random.split(jax.random.key(4), 16))
    views = jax.tree.map(lambda leaf: leaf[:, 0], jax.vmap(game.observe)(states))
    here = LearnedGame(wild(game.spec), game, jax.vmap(partial(from_view, game.spec))(views))
    real = jax.vmap(game.observe)(states), jax.vmap(game.legal)(states)
    rebuilt = jax.vmap(here.observe)(here.starts), jax.vmap(here.legal)(here.starts)
    for one, other in zip(jax.tree.leaves(real), jax.tree.leaves(rebuilt), strict=True):
        np.testing.assert_array_equal(one, other)
    state = here.reset(key=jax.random.key(0))
    for step in range(3):
        state, rewards = here.step(state, jnp.zeros(game.spec.num_agents, jnp.int32), key=jax.random.key(step))
        assert np.all(np.isfinite(rewards))


@pytest.mark.parametrize(("name", "exact"), [("foraging", 0.97), pytest.param("coins", None, marks=pytest.mark.heavy)])
def test_the_rules_are_learned(name, exact):
    """Coins come back anywhere: only rewards can be known."""
    spec, data = GAMES[name].spec, transitions_of(played(name))
    params = cells_world.init(replace(SMALL, hidden=32), spec, key=jax.random.key(0))
    loss = lambda params, transition: world.loss(params, spec, transition)  # noqa: E731
    params = fit(loss, params, data, epochs=60, minibatch_size=64, learning_rate=1e-2, key=jax.random.key(0))
    judged = judge_line_ups(spec, partial(sums_of, spec, by_world(spec, params)), {"random play": played(name)})["all"]
    assert judged["reward_mse"] < 0.02
    if exact is not None:
        assert judged["exact_next_state"] > exact


@pytest.mark.parametrize("name", PRESETS)
def test_games_in_which_players_act_on_their_own_cell_have_the_smaller_network(name):
    spec = make(name).spec
    if world.has_shared_board(spec):
        assert cells_world.acts_at_a_distance(spec) == (spec.name not in ("stag_hunt", "snowdrift"))
