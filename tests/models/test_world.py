"""The learned world: what it can say, what it can never say, and that the traps of the notes stay shut."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.evaluation.world import by_world, impossible, judge_line_ups, record_episodes, sums_of, transitions_of
from hopplus.games import contract
from hopplus.games.board import Board
from hopplus.games.lineups import read_policies
from hopplus.games.stag_hunt import HUNT_STAG, StagHunt
from hopplus.learning.offline import Cast
from hopplus.learning.worlds import fit
from hopplus.models import cells_world, world
from hopplus.models.config import WorldConfig
from hopplus.models.learned_game import LearnedGame, from_view
from hopplus.models.world import Situation
from situations import hunt

GAME = StagHunt(grid=Board(3, 4), num_hares=2, horizon=9)
SPEC = GAME.spec
SMALL = WorldConfig(members=1, hidden=16, pooled=4)


def wild(scale=3.0, seed=0):
    """A world that is sure of anything, as an untrained one never is."""
    params = cells_world.init(SMALL, SPEC, key=jax.random.key(seed))
    leaves, tree = jax.tree.flatten(params)
    rng = np.random.default_rng(seed)
    return tree.unflatten([jnp.asarray(rng.normal(0, scale / 4, leaf.shape), jnp.float32) for leaf in leaves])


@cache
def played():
    """Episodes of random hunters, as a world sees them."""
    scripts = (*read_policies("nearest_stag,nearest_hare,random", GAME),)

    def players(key):
        return Cast(scripts, jax.random.randint(key, (SPEC.num_agents,), 0, 3, jnp.int32))

    return record_episodes(GAME, players, 64, key=jax.random.key(1))


def rows():
    return jax.tree.map(jnp.asarray, transitions_of(played()))


@pytest.fixture(scope="module")
def predict():
    return jax.jit(partial(world.apply, wild(), SPEC))


def situation(players, actions, **prey):
    state = hunt(GAME, players, **prey)
    return Situation(GAME.board(state), jnp.int32(0), jnp.asarray(actions, jnp.int32), GAME.terminated(state))


def test_what_became_of_a_walker_is_what_moves_it():
    transition = rows()
    walkers = slice(None, SPEC.num_walkers)
    before, after = transition.now.board[..., walkers], transition.after.board[..., walkers]
    options = jax.vmap(world.option_taken)(before, after)
    np.testing.assert_array_equal(jax.vmap(world.move_walkers)(before, options), after)
    assert set(np.unique(options)) == set(range(world.GONE + 1))


def test_nothing_impossible_can_be_drawn():
    """Jumps, doubles, revivals, rewards that the game does not pay: not even from a world that is wildly wrong."""
    transition = rows()

    def one(now, key):
        drawn = world.draw(SPEC, now, world.apply(wild(), SPEC, now), key=key)
        return impossible(SPEC, now, drawn), drawn

    found, drawn = jax.jit(jax.vmap(one))(transition.now, jax.random.split(jax.random.key(0), len(transition.now.time)))
    assert int(found.sum()) == 0
    assert np.any(drawn.board != transition.after.board), "this world is not wild"
    walls = drawn.board[..., SPEC.plane_index("obstacles")]
    np.testing.assert_array_equal(walls, transition.now.board[..., SPEC.plane_index("obstacles")])


@pytest.mark.parametrize("kind", range(4))
def test_each_impossible_thing_is_counted(kind):
    now = situation([(0, 0), (1, 1), None, (2, 3)], [4, 4, 4, 4], stags=[(0, 0)])
    nothing = world.Outcome(now.board, jnp.zeros(4), now.ended)
    board = np.array(now.board)
    if kind == 0:  # two cells away
        board[0, 0, 0], board[0, 2, 0] = 0, 1
    if kind == 1:  # here and beside
        board[0, 1, 0] = 1
    if kind == 2:  # back from nowhere
        board[2, 2, 2] = 1
    rewards = jnp.zeros(4).at[0].set(3.0 if kind == 3 else 0.0)
    found = impossible(SPEC, now, world.Outcome(jnp.asarray(board), rewards, nothing.ended))
    np.testing.assert_array_equal(found, np.arange(4) == kind)
    np.testing.assert_array_equal(impossible(SPEC, now, nothing), 0)


def test_seats_may_be_turned_with_their_actions(predict):
    """Trap 8: planes and actions are turned together; turned alone, the prediction is another."""
    transition = rows()
    order = np.array([2, 3, 0, 1])
    now = jax.tree.map(lambda leaf: leaf[5], transition.now)
    assert len(set(np.asarray(now.actions).tolist())) > 1
    planes = np.concatenate([order, np.arange(SPEC.num_walkers, len(SPEC.planes))])
    turned = replace(now, board=now.board[..., planes], actions=now.actions[order], ended=now.ended[order])
    expected, found = predict(now), predict(turned)
    np.testing.assert_array_equal(found.rewards, expected.rewards[order])
    np.testing.assert_array_equal(found.walkers, expected.walkers[order])
    np.testing.assert_array_equal(found.sets, expected.sets)
    assert np.any(predict(replace(turned, actions=now.actions)).rewards != expected.rewards[order])


def test_two_hunters_are_told_from_one(predict):
    """Trap 7: what is done on a cell is counted, not pooled."""
    stag = {"stags": [(1, 1)]}
    players = [(1, 1), (1, 1), (0, 3), (2, 3)]
    alone = predict(situation(players, [HUNT_STAG, 4, 4, 4], **stag))
    together = predict(situation(players, [HUNT_STAG, HUNT_STAG, 4, 4], **stag))
    apart = predict(situation([(1, 1), (0, 0), (0, 3), (2, 3)], [HUNT_STAG, HUNT_STAG, 4, 4], **stag))
    assert np.all(alone.rewards[0] != together.rewards[0])
    assert np.all(apart.rewards[0] != together.rewards[0])


def learned(params=None):
    """A learned game whose episodes begin as real ones."""
    states = jax.vmap(lambda key: GAME.reset(key=key))(jax.random.split(jax.random.key(3), 64))
    views = jax.tree.map(lambda leaf: leaf[:, 0], jax.vmap(GAME.observe)(states))
    return LearnedGame(params or wild(), GAME, jax.vmap(partial(from_view, SPEC))(views))


@pytest.mark.parametrize("num_envs", [32, pytest.param(contract.NUM_ENVS, marks=pytest.mark.heavy)])
def test_a_learned_world_is_a_game(num_envs, monkeypatch):
    """What of the contract applies: everything but the law of spawns, which is that of its starts, and seat by seat.
    A world that is run a million times takes minutes; the heavy one does."""
    monkeypatch.setattr(contract, "NUM_ENVS", num_envs)
    names = [promise[0] for promise in (*contract.PROMISES_OF_A_RESET, *contract.PROMISES_OF_PLAY)]
    leave_out = {"spawns", "seats"}
    assert leave_out <= set(names), names
    contract.check(learned(), only=[name for name in names if name not in leave_out])


def test_what_is_legal_and_seen_is_what_the_game_says():
    """Trap 6: no imagined step with an all-legal mask."""
    states = jax.vmap(lambda key: GAME.reset(key=key))(jax.random.split(jax.random.key(4), 32))
    here = learned()

    def both(state):
        views = GAME.observe(state)
        imagined = from_view(SPEC, jax.tree.map(lambda leaf: leaf[0], views))
        return (GAME.legal(state), views), (here.legal(imagined), here.observe(imagined))

    real, rebuilt = jax.jit(jax.vmap(both))(states)
    for one, other in zip(jax.tree.leaves(real), jax.tree.leaves(rebuilt), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.all(real[0])


def test_an_end_that_is_foretold_ends_the_game():
    """Trap 5: the world has a head for ends, and what has ended stays so."""
    params = cells_world.init(SMALL, SPEC, key=jax.random.key(0))
    sure = replace(params, heads=replace(params.heads, bias=params.heads.bias.at[-1].set(50.0)))
    for member, ends in ((sure, True), (replace(sure, heads=replace(sure.heads, bias=-sure.heads.bias)), False)):
        here = learned(member)
        state = here.reset(key=jax.random.key(0))
        state, _ = here.step(state, jnp.full(4, 4, jnp.int32), key=jax.random.key(1))
        assert np.all(here.terminated(state)) == ends
        assert np.all(here.legal(state).sum(axis=-1) == 1) == ends


def test_a_blank_view_is_a_game_that_is_over():
    blank = {
        "planes": jnp.zeros((3, 4, len(SPEC.planes)), jnp.uint8),
        "time": jnp.float32(0),
        "last_actions": jnp.full(4, -1, jnp.int32),
    }
    assert np.all(from_view(SPEC, blank).ended)


def judged(params):
    return judge_line_ups(SPEC, partial(sums_of, SPEC, by_world(SPEC, params)), {"random play": played()})["all"]


def test_the_rules_are_learned():
    """A few hundred steps are enough for hunts and walks, not for everything."""
    data = transitions_of(played())
    params = cells_world.init(replace(SMALL, hidden=32), SPEC, key=jax.random.key(0))
    before = judged(params)
    loss = lambda params, transition: world.loss(params, SPEC, transition)  # noqa: E731
    params = fit(loss, params, data, epochs=40, minibatch_size=64, learning_rate=1e-2, key=jax.random.key(0))
    after = judged(params)
    assert before["exact_next_state"] < 0.5
    assert after["exact_next_state"] > 0.97
    assert after["paid_recall"] > 0.9
    assert after["observation_mse"] < before["observation_mse"] / 10
    assert sum(after["impossible"].values()) == 0
    assert after["vanished"] < 0.02 * after["players"]
