"""Properties over random situations, reachable or not: seats are interchangeable, and nothing appears from nowhere."""

from dataclasses import replace
from functools import lru_cache
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.foraging import Foraging
from hopplus.games.harvest import Harvest
from hopplus.games.matrix import PRISONERS_DILEMMA, MatrixGame, MatrixState
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt

NUM_SITUATIONS, NUM_EXAMPLES = 256, 4  # of each game, 1,024 situations in each of the 24 orders
GAMES = {
    "stag hunt": StagHunt(grid=Board(4, 4)),
    "stag hunt with all options": StagHunt(
        grid=Board(6, 6, obstacle_pieces=2, arena_sides=(4, 6)), num_stags=2, prey_moves=0.5, steps_after_first_catch=2
    ),
    "snowdrift": Snowdrift(grid=Board(5, 5)),
    "coins": Coins(grid=Board(4, 4), num_players=4),
    "foraging": Foraging(grid=Board(4, 4), num_foods=3),
    "harvest with beams": Harvest(grid=Board(4, 4), away_steps=3),
    "matrix": MatrixGame(payoff=PRISONERS_DILEMMA, num_players=4),
}
ORDERS = jnp.asarray(list(permutations(range(4))), jnp.int32)
TURNS = jnp.asarray([np.roll(np.arange(4), -shift) for shift in range(4)], jnp.int32)
seeds = st.integers(0, 2**31 - 1)
several = settings(max_examples=NUM_EXAMPLES, deadline=None, derandomize=True)


def crowded(game, key):
    """A state in which players often stand on prey, and often together."""
    reset_key, where_key, which_key, seat_key, thing_key, time_key, last_key = jax.random.split(key, 7)
    state = game.reset(key=reset_key)
    num_actions = game.spec.num_actions
    last = jax.random.randint(last_key, (4,), -1, num_actions, jnp.int32)
    time = jax.random.randint(time_key, (), 0, game.spec.horizon + 1, jnp.int32)
    if isinstance(state, MatrixState):
        return replace(state, last_actions=last, time=time)
    if isinstance(game, Foraging | Harvest):  # random cells of small boards: players are beside food, and in line
        away = jax.random.bernoulli(where_key, 0.3, (4,)) * jax.random.randint(which_key, (4,), 1, 4, jnp.int32)
        more = (
            {"away": away}
            if isinstance(game, Harvest)
            else {"food_remains": jax.random.bernoulli(thing_key, 0.8, (3,))}
        )
        return replace(state, last_actions=last, time=time, **more)
    if isinstance(game, Coins):  # next to coins, so that a step leads many to one
        beside = state.coin_position[jax.random.randint(which_key, (4,), 0, 2)] + 1
        position = jnp.where(jax.random.bernoulli(where_key, 0.7, (4,)), beside % 16, state.position)
        clear = ~jnp.any(position[:, None] == state.coin_position, axis=-1)
        return replace(state, position=jnp.where(clear, position, state.position), last_actions=last, time=time)
    things = state.prey_position if isinstance(game, StagHunt) else state.drift_position
    on_thing = jax.random.bernoulli(where_key, 0.7, (4,))
    position = jnp.where(on_thing, things[jax.random.randint(which_key, (4,), 0, 2)], state.position)
    state = replace(state, position=position, last_actions=last, time=time)
    remains = jax.random.bernoulli(thing_key, 0.8, things.shape)
    if isinstance(game, StagHunt):
        return replace(state, present=jax.random.bernoulli(seat_key, 0.8, (4,)), prey_alive=remains)
    return replace(state, drift_remains=remains)


def actions_of(game, key):
    """Any action, legal or not; those beyond the moves more often."""
    eager_key, any_key, act_key = jax.random.split(key, 3)
    num_actions = game.spec.num_actions
    at_random = jax.random.randint(any_key, (4,), 0, num_actions, jnp.int32)
    acting = jax.random.randint(act_key, (4,), min(5, num_actions - 1), num_actions, jnp.int32)
    return jnp.where(jax.random.bernoulli(eager_key, 0.6, (4,)), acting, at_random)


def moment(game, seed, index):
    state_key, action_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), index))
    return crowded(game, state_key), actions_of(game, action_key)


def same(one, other):
    return jnp.stack([jnp.all(left == right) for left, right in zip(*map(jax.tree.leaves, (one, other)), strict=True)])


def over_all(compare, orders):
    """compare(seed, index, order) over all situations and orders, as one compiled program."""
    indices = jnp.arange(NUM_SITUATIONS, dtype=jnp.int32)
    return jax.jit(lambda seed: jax.vmap(jax.vmap(compare, (None, 0, None)), (None, None, 0))(seed, indices, orders))


@lru_cache
def playing_and_relabelling(game):
    def compare(seed, index, order):
        state, actions = moment(game, seed, index)
        after, rewards = game.step(state, actions, key=jax.random.key(index))
        relabelled = game.permute(state, order)
        other, other_rewards = game.step(relabelled, actions[order], key=jax.random.key(index))
        one_way = game.permute(after, order), rewards[order], game.legal(state)[order], game.terminated(state)[order]
        other_way = other, other_rewards, game.legal(relabelled), game.terminated(relabelled)
        return same(one_way, other_way)

    return over_all(compare, ORDERS)


@lru_cache
def looking_and_turning(game):
    def compare(seed, index, turn):
        state, _ = moment(game, seed, index)
        seen = game.observe(state)
        return same(jax.tree.map(lambda leaf: leaf[turn], seen), game.observe(game.permute(state, turn)))

    return over_all(compare, TURNS)


@pytest.mark.parametrize("name", GAMES)
@several
@given(seed=seeds)
def test_step_legal_and_rewards_commute_with_every_order_of_the_seats(name, seed):
    equal = np.asarray(playing_and_relabelling(GAMES[name])(jnp.int32(seed)))
    assert equal.shape[:2] == (24, NUM_SITUATIONS)
    assert equal.all(), f"orders and parts that differ: {np.argwhere(~equal.all(axis=1)).tolist()}"


@pytest.mark.parametrize("name", GAMES)
@several
@given(seed=seeds)
def test_ego_views_commute_with_turning_the_table(name, seed):
    assert np.asarray(looking_and_turning(GAMES[name])(jnp.int32(seed))).all()


@lru_cache
def stepping(game):
    def step(seed, index):
        state, actions = moment(game, seed, index)
        return state, game.step(state, actions, key=jax.random.key(index))

    indices = jnp.arange(NUM_SITUATIONS, dtype=jnp.int32)
    return jax.jit(lambda seed: jax.vmap(step, (None, 0))(seed, indices))


@pytest.mark.parametrize("name", ["stag hunt", "stag hunt with all options"])
@several
@given(seed=seeds)
def test_players_and_prey_are_conserved(name, seed):
    game = GAMES[name]
    before, (after, rewards) = jax.device_get(stepping(game)(jnp.int32(seed)))
    caught = before.prey_alive & ~after.prey_alive
    left = before.present & ~after.present
    worth = np.array([game.stag_reward] * game.num_stags + [game.hare_reward] * game.num_hares)
    assert caught.any() and left.any(), "nothing happened, so nothing was tested"
    assert not (after.present & ~before.present).any() and not (after.prey_alive & ~before.prey_alive).any()
    np.testing.assert_allclose(rewards.sum(axis=1), caught @ worth, rtol=1e-6)
    np.testing.assert_array_equal(rewards > 0, left)
    assert (caught.any(axis=1) == left.any(axis=1)).all(), "prey is caught exactly where somebody leaves"
    assert rewards.max() <= max(game.spec.reward_support)


@several
@given(seed=seeds)
def test_drifts_are_conserved(seed):
    game = GAMES["snowdrift"]
    before, (after, rewards) = jax.device_get(stepping(game)(jnp.int32(seed)))
    removed = (before.drift_remains & ~after.drift_remains).sum(axis=1)
    assert removed.any() and not (after.drift_remains & ~before.drift_remains).any()
    np.testing.assert_allclose(rewards.sum(axis=1), removed * (4 * game.benefit - game.cost), rtol=1e-5)
