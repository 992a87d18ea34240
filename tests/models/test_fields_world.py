"""The world of fields: any observation, "unchanged" as the prior, and the same verbs as every world."""

from dataclasses import replace
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.evaluation.world import by_world, judge_line_ups, record_episodes, sums_of, transitions_of
from hopplus.games import contract
from hopplus.games.coplayers import Lineup, Random
from hopplus.games.fields import TIME, Field
from hopplus.games.game import Game, GameSpec, ego_order
from hopplus.learning.worlds import fit, reward_misses, score, seen_by_seats, view_error
from hopplus.models import fields_world, world
from hopplus.models.config import WorldConfig
from hopplus.models.fields_world import Change
from hopplus.models.learned_game import LearnedGame, from_view
from hopplus.models.world_kinds import init_world
from hopplus.models.world_rewards import BINS, symlog, two_hot
from models.boards import drawn_like
from models.test_world import GAME as HUNT
from models.test_world import SPEC as HUNT_SPEC
from models.test_world import rows

CONFIG = WorldConfig(members=1, kind="fields", hidden=16)


class PickState(eqx.Module):
    places: jax.Array
    time: jax.Array


class Pick(Game[PickState]):
    """Each of three seats walks on a ring of five, and sees its own place: as a category, as numbers, and as an image.

    Each is paid the distance that it walked in the step, times the number of its co-players at 0.
    """

    @property
    def spec(self):
        own = (
            Field("place", "categories", (1,), below=5),
            Field("walked", "vector", (2,)),
            Field("image", "planes", (1, 1, 2)),
        )
        return GameSpec("pick", 1, 3, ("stay", "on", "jump"), own, horizon=6)

    def reset(self, *, key):
        return PickState(jax.random.randint(key, (3,), 0, 5), jnp.int32(0))

    def step(self, state, actions, *, key):
        at_start = state.places == 0
        paid = actions * (jnp.sum(at_start) - at_start)
        return PickState((state.places + actions) % 5, state.time + 1), jnp.where(state.time < 6, paid, 0).astype(
            jnp.float32
        )

    def observe(self, state):
        place = state.places
        walked = jnp.stack([place / 2, -place], axis=-1).astype(jnp.float32)
        image = jnp.stack([place == 0, place], axis=-1).astype(jnp.uint8)[:, None, None]
        return {"place": place[:, None].astype(jnp.int32), "walked": walked, "image": image}

    def terminated(self, state):
        return jnp.broadcast_to(state.time >= 6, (3,))


PICK = Pick()


@cache
def picked():
    """Episodes of random play, as seats in turns see them."""
    players = Lineup((Random(),) * 3)
    return record_episodes(PICK, lambda _: players, 96, key=jax.random.key(0))


def picks():
    return jax.tree.map(jnp.asarray, transitions_of(picked()))


def row(transitions, index):
    return jax.tree.map(lambda leaf: leaf[index], transitions)


def wild(spec, seed=0):
    """A world that is sure of anything."""
    shapes = jax.eval_shape(lambda: fields_world.init(CONFIG, spec, key=jax.random.key(0)))
    return drawn_like(shapes, seed=seed, scale=0.5)


def test_bins_are_even_on_a_symlog_scale():
    steps = np.diff(np.asarray(symlog(jnp.asarray(BINS, jnp.float32))))
    np.testing.assert_allclose(steps, np.log(2) / 4, rtol=1e-3)
    assert {-7.0, -3.0, -1.0, 0.0, 1.0, 3.0, 7.0} <= set(BINS.tolist()) and BINS[-1] == 4095


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        (0.0, {0.0: 1.0}),
        (1.0, {1.0: 1.0}),
        (2.0, {2**1.5 - 1: 1 - (3 - 2**1.5) / (2**1.75 - 2**1.5), 2**1.75 - 1: (3 - 2**1.5) / (2**1.75 - 2**1.5)}),
        (-0.5, {1 - 2**0.5: 1 - (1.5 - 2**0.5) / (2**0.75 - 2**0.5), 1 - 2**0.75: (1.5 - 2**0.5) / (2**0.75 - 2**0.5)}),
        (9e9, {4095.0: 1.0}),
    ],
)
def test_two_hot_is_worked_by_hand(reward, expected):
    found = np.asarray(two_hot(jnp.float32(reward)))
    assert {BINS[place]: found[place] for place in np.flatnonzero(found)} == pytest.approx(expected, rel=1e-4)
    if abs(reward) < 4095:
        assert found @ BINS == pytest.approx(reward, abs=1e-5)


def test_drawn_rewards_of_bins_have_the_predicted_mean():
    """Half of 1 and half of 2: the expectation is 1.5, and drawn ones agree with it in the mean."""
    logits = jnp.log(jnp.maximum((two_hot(jnp.ones(3)) + two_hot(jnp.full(3, 2.0))) / 2, 1e-9))
    draw = partial(fields_world._draw_rewards, PICK.spec, logits)
    np.testing.assert_allclose(draw(None), 1.5, atol=1e-4)
    drawn = jax.vmap(draw)(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(drawn.mean(axis=0), 1.5, atol=0.04)
    assert set(np.unique(drawn)) <= set(BINS.astype(np.float32).tolist())


@pytest.mark.parametrize("spec", [HUNT_SPEC, PICK.spec], ids=["board", "own views"])
def test_before_training_nothing_changes(spec):
    """Whatever the situation: the likeliest outcome is the present, and each entry stays with a chance of .95."""
    transition = rows() if spec is HUNT_SPEC else picks()
    params = jax.tree.map(jnp.zeros_like, wild(spec))
    now = row(transition.now, slice(0, 20))
    after = jax.vmap(lambda one: world.draw(spec, one, world.apply(params, spec, one), key=None))(now)
    assert eqx.tree_equal((after.board, after.view), (now.board, now.view))
    predicted = world.apply(params, spec, row(now, 3))
    kept = 1 / (1 + np.exp(-3))
    if spec is HUNT_SPEC:
        board = np.asarray(now.board[3])
        np.testing.assert_allclose(
            predicted.expected_board(spec, row(now, 3)), np.where(board, kept, 1 - kept), rtol=1e-5
        )
    else:
        chances = predicted.expected_view(spec, row(now, 3))["place"][0]
        place = int(now.view["place"][3, 0])
        assert chances[place] == pytest.approx(np.exp(3) / (np.exp(3) + 5), rel=1e-5)
        np.testing.assert_allclose(jax.nn.sigmoid(predicted.fields["walked"].changes), 1 - kept, rtol=1e-4)


def test_the_loss_of_a_changed_number_is_worked_by_hand():
    """One entry stays, one changes by 3 where 2 is predicted with a spread of 2."""
    told = Change(jnp.array([-3.0, 1.0]), jnp.array([9.0, 2.0]), jnp.log(jnp.array([1.0, 2.0])))
    found = told.loss(jnp.array([5.0, 5.0]), jnp.array([5.0, 8.0]))
    stays, changes = np.log1p(np.exp(-3.0)), np.log1p(np.exp(-1.0))
    assert float(found) == pytest.approx(stays + changes + 2 * (0.5 * (1 / 2) ** 2 + np.log(2)), rel=1e-5)


def test_drawn_integers_stay_integers_within_their_bounds():
    told = Change(jnp.array([9.0, 9.0, -9.0]), jnp.array([0.9, -4.0, 3.0]), jnp.full(3, -5.0))
    for key in (None, jax.random.key(0)):
        after = told.draw(jnp.array([1, 2, 7], jnp.uint8), key)
        assert after.dtype == jnp.uint8 and after.tolist() == [2, 0, 7]


@pytest.mark.parametrize(("spec", "count"), [(HUNT_SPEC, 8), (PICK.spec, 9)], ids=["board", "own views"])
def test_every_seat_is_treated_alike(spec, count):
    """The order of the seats is turned before training: what the worlds read is turned with them, bit for bit."""
    transition = _of_all_seats(spec, count)
    params, num_agents = wild(spec), spec.num_agents
    orders = jnp.asarray(ego_order(num_agents), jnp.int32)
    turned = jax.vmap(partial(_turned, spec))(transition)
    errors = jax.jit(partial(score, spec, jax.tree.map(lambda leaf: leaf[None], params)))
    for seat in range(num_agents):
        one = seen_by_seats(spec, params, transition, orders[seat][None])
        other = seen_by_seats(spec, params, turned, orders[seat - 1][None])
        assert eqx.tree_equal(one, other), seat
        assert eqx.tree_equal(errors(one), errors(other))
    first, second = (seen_by_seats(spec, params, transition, orders[seat][None]) for seat in (0, 1))
    assert not eqx.tree_equal(first.now, second.now)


def _of_all_seats(spec, count):
    if spec is HUNT_SPEC:
        return row(rows(), slice(0, count))
    states = jax.vmap(lambda key: PICK.reset(key=key))(jax.random.split(jax.random.key(5), count))
    actions = jax.random.randint(jax.random.key(6), (count, 3), 0, 3, jnp.int32)
    after, rewards = jax.vmap(lambda state, chosen: PICK.step(state, chosen, key=jax.random.key(0)))(states, actions)
    board, ended = jnp.zeros((count, 0, 0, 0), jnp.uint8), jnp.zeros((count, 3), bool)
    before, then = jax.vmap(PICK.observe)(states), jax.vmap(PICK.observe)(after)
    now = world.Situation(board, states.time, actions, ended, before)
    return world.Transition(now, world.Outcome(board, rewards, ended, then))


def _turned(spec, transition):
    """New seat i is old seat i + 1."""
    order = jnp.roll(jnp.arange(spec.num_agents), -1)
    now, after = transition.now, transition.after
    planes = jnp.concatenate([order, jnp.arange(spec.num_walkers, len(spec.planes))]) if spec.planes else slice(None)
    view = lambda views: jax.tree.map(lambda leaf: leaf[order], views)  # noqa: E731
    return world.Transition(
        world.Situation(now.board[..., planes], now.time, now.actions[order], now.ended[order], view(now.view)),
        world.Outcome(after.board[..., planes], after.rewards[order], after.ended[order], view(after.view)),
    )


def learned(game, params):
    states = jax.vmap(lambda key: game.reset(key=key))(jax.random.split(jax.random.key(3), 16))
    views = jax.tree.map(lambda leaf: leaf[:, 0], jax.vmap(game.observe)(states))
    return LearnedGame(params, game, jax.vmap(partial(from_view, game.spec))(views))


IN_THE_LAST_BIT = {"same bits", "batch"}
"""Promises that floats of a network do not keep."""


@pytest.mark.parametrize(
    ("game", "leave_out"),
    [
        pytest.param(HUNT, {"planes"}, marks=pytest.mark.heavy),
        pytest.param(PICK, {"rotated views"} | IN_THE_LAST_BIT),
    ],
    ids=["board", "own views"],
)
def test_a_world_of_fields_is_a_game(game, leave_out, monkeypatch):
    """What of the contract applies to a world that is wildly wrong. It may let a player jump, and one seat's own view
    has no other order of seats; `test_world` says what else does not apply."""
    monkeypatch.setattr(contract, "NUM_ENVS", 16)
    names = {promise[0] for promise in (*contract.PROMISES_OF_A_RESET, *contract.PROMISES_OF_PLAY)}
    assert leave_out <= names
    contract.check(learned(game, wild(game.spec)), only=sorted(names - leave_out - {"spawns", "seats"}))


def test_a_co_player_gets_the_viewers_own_view_where_the_game_tells_no_more():
    here = learned(PICK, wild(PICK.spec))
    state = here.reset(key=jax.random.key(0))
    views = here.observe(state)
    for name, view in state.view.items():
        np.testing.assert_array_equal(views[name], np.stack([view] * 3))
    after, _ = here.step(state, jnp.ones(3, jnp.int32), key=jax.random.key(1))
    assert int(after.time) == 1 and not PICK.spec.has_field(TIME.name)


def test_a_game_without_a_board_is_learned():
    """Its views and the end at the horizon; its rewards depend on places that one view does not show."""
    params = init_world(replace(CONFIG, hidden=48), PICK.spec, key=jax.random.key(0))

    def figures(one):
        predict = by_world(PICK.spec, one)
        return judge_line_ups(PICK.spec, partial(sums_of, PICK.spec, predict), {"all": picked()})

    loss = lambda params, transition: world.loss(params, PICK.spec, transition)  # noqa: E731
    after = fit(
        loss,
        params,
        picks(),
        epochs=60,
        minibatch_size=32,
        learning_rate=3e-3,
        weight_decay=1e-2,
        key=jax.random.key(1),
    )
    before, then = (figures(one)["all"] for one in (params, after))
    assert then["view_mse"] < before["view_mse"] / 10 and then["end_error"] == 0
    assert then["by_steps"][4]["view_mse"] < before["by_steps"][4]["view_mse"] / 3
    predicted = jax.vmap(lambda now: world.draw(PICK.spec, now, world.apply(after, PICK.spec, now), key=None))(
        picks().now
    )
    np.testing.assert_array_equal(predicted.view["place"], picks().after.view["place"])


def test_trust_falls_with_the_error_of_views_and_rewards():
    """A true world has no error; planted: one that forgets what changes, and one whose rewards are wrong."""
    transition, spec = picks(), PICK.spec
    true, now = transition.after.view, transition.now.view
    assert float(view_error(spec, now, true, true)) == 0
    assert float(view_error(spec, now, now, true)) == 1
    halfway = dict(true, walked=(now["walked"] + true["walked"]) / 2)
    image = true["image"].reshape(len(true["image"]), -1)
    changing = 2 + int(np.sum(np.any(image != now["image"].reshape(image.shape), axis=0)))
    assert float(view_error(spec, now, halfway, true)) == pytest.approx(2 / changing * 0.25, rel=1e-4)
    rewards, playing = transition.after.rewards, ~transition.now.ended
    assert float(reward_misses(spec, rewards, rewards, playing)) == 0
    assert float(reward_misses(spec, jnp.full_like(rewards, rewards.mean()), rewards, playing)) == pytest.approx(
        1, rel=1e-3
    )
    assert float(reward_misses(spec, 5 * rewards, rewards, playing)) > 10


def test_settings_reach_the_world():
    params = init_world(replace(CONFIG, hidden=24), HUNT_SPEC, key=jax.random.key(0))
    assert params.first.weight.shape[1] == 24 and not params.is_symmetric
