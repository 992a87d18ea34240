"""Search and one-step lookahead with the true model, against exact answers on repeated matrix games."""

from fractions import Fraction
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from hopplus.games.board import Board
from hopplus.games.matrix import CHICKEN, PRISONERS_DILEMMA, STAG_HUNT, MatrixGame, MatrixState
from hopplus.games.stag_hunt import HUNT_STAG, StagHunt
from hopplus.planning.config import SearchConfig
from hopplus.planning.model import Model, best, key_of, make_node, rollout_value, soft
from hopplus.planning.one_step import one_step
from hopplus.planning.search import grow, search
from reference import NO_ACTION
from reference import search as plain
from reference.matrix import Rules
from reference.matrix_solver import best_response, situations

HORIZON = 4
PAYOFFS = {"stag hunt": STAG_HUNT, "prisoner's dilemma": PRISONERS_DILEMMA, "chicken": CHICKEN}
AFTER = {
    "copies": {NO_ACTION: (1, 0), 0: (1, 0), 1: (0, 1)},
    "opposes": {NO_ACTION: (0, 1), 0: (0, 1), 1: (1, 0)},
    "draws at random": {NO_ACTION: (Fraction(1, 4), Fraction(3, 4)), 0: (Fraction(1, 4), Fraction(3, 4)),
                   1: (Fraction(1, 4), Fraction(3, 4))},
    "copies more or less": {NO_ACTION: (Fraction(1, 2), Fraction(1, 2)), 0: (Fraction(7, 8), Fraction(1, 8)),
                            1: (Fraction(1, 8), Fraction(7, 8))},
}  # fmt: skip
"""What the co-player does, by what the planner did last."""
DETERMINISTIC = ("copies", "opposes")
AT_RANDOM = tuple(co_player for co_player in AFTER if co_player not in DETERMINISTIC)
CLEAR, CLEAR_AT_RANDOM = 0.2, 1.0
"""Values that are nearer to each other than this may be mistaken for each other."""


def uniform(_view, legal, _others_state):
    return jnp.log(legal / jnp.sum(legal)), jnp.float32(0)


def reply(views, _legal, others_state):
    """The state of the co-player is its action probabilities for each last action of the planner."""
    return others_state[views["last_actions"][:, 1]], others_state


def replies_of(co_player):
    return jnp.asarray(np.array([AFTER[co_player][last] for last in (0, 1, NO_ACTION)], np.float64), jnp.float32)


def in_every_tree(co_player, trees):
    return jnp.broadcast_to(replies_of(co_player), (trees, 3, 2))


def model_of(payoff, *, evaluate=uniform):
    return Model(MatrixGame(payoff=payoff, horizon=HORIZON), evaluate, reply, discount=1.0)


def states_of(chosen):
    times, lasts = zip(*chosen, strict=True)
    return jax.vmap(MatrixState)(jnp.asarray(lasts, jnp.int32), jnp.asarray(times, jnp.int32))


def plan_with(config, model, state, others_state, *, key):
    """The search as one program: one operation after another takes longer."""
    return jax.jit(lambda state, others_state, key: search(config, model, state, others_state, key=key))(
        state, others_state, key
    )


class AnyPayoff(MatrixGame):
    """A game whose payoffs are numbers of the program, so that one program plans in all of two actions."""

    table: Array = eqx.field(default=0, converter=jnp.float32)

    def _against(self, of_others):
        return of_others.astype(jnp.float32) @ self.table.T


@cache
def plan_everywhere(trees):
    config = SearchConfig(trees, simulations=150, depth=HORIZON)

    @eqx.debug.assert_max_traces(max_traces=1)
    def plan(game, states, others_state, keys):
        model = Model(game, uniform, reply, discount=1.0)
        return jax.vmap(lambda state, key: search(config, model, state, others_state, key=key))(states, keys)

    return jax.jit(plan)


@pytest.mark.parametrize(
    ("game", "co_players", "trees"),
    [
        pytest.param("stag hunt", AT_RANDOM, 64, id="stag hunt, at random"),
        *(pytest.param(game, DETERMINISTIC, 4, id=f"{game}, deterministic") for game in PAYOFFS),
        *(pytest.param(game, AFTER, 64, id=game, marks=pytest.mark.heavy) for game in PAYOFFS),
    ],
)
def test_with_the_true_model_search_is_the_exact_best_response(game, co_players, trees):
    """Those that draw at random need many trees, which take long: one game, and all of them by hand."""
    payoff = PAYOFFS[game]
    rules = Rules(payoff=payoff, horizon=HORIZON)
    plan = partial(plan_everywhere(trees), AnyPayoff(horizon=HORIZON, table=payoff))
    every = list(situations(rules, 2))
    compared = 0
    for co_player in co_players:
        policies = [lambda *_: (1, 0), lambda _time, seen, co_player=co_player: AFTER[co_player][seen[1]]]
        exact = best_response(rules, policies, seat=0)
        clear = CLEAR if co_player in DETERMINISTIC else CLEAR_AT_RANDOM
        keys = jax.random.split(jax.random.key(0), len(every))
        plans = plan(states_of(every), in_every_tree(co_player, trees), keys)
        for situation, values in zip(every, np.asarray(plans.values), strict=True):
            true = [float(value) for value in exact.action_values[situation]]
            if abs(true[0] - true[1]) > clear:
                assert values.argmax() == np.argmax(true), (co_player, situation, values, true)
                compared += 1
    assert compared > len(every)


def test_what_is_drawn_once_for_an_edge_is_averaged_over_trees():
    """Trap: a tree that has drawn the co-player's action keeps it, whatever it plans."""
    model = model_of(STAG_HUNT)
    last_round = jax.tree.map(lambda leaf: leaf[0], states_of([(HORIZON - 1, (0, 0))]))
    config = SearchConfig(trees=400, simulations=8, depth=2)
    plan = plan_with(config, model, last_round, in_every_tree("draws at random", 400), key=jax.random.key(0))
    stag, hare = np.asarray(plan.by_tree).T
    assert set(stag) == {0.0, 4.0} and set(hare) == {3.0}
    assert plan.values[0] == pytest.approx(1.0, abs=0.3)
    assert plan.values[1] == pytest.approx(3.0)


@pytest.mark.parametrize("planner", ["search", "one step"])
def test_nothing_is_worth_anything_after_the_end(planner):
    """Trap: a critic that is asked about a game that is over."""
    boastful = lambda _view, legal, _others: (jnp.log(legal / jnp.sum(legal)), jnp.float32(1000))  # noqa: E731
    model = model_of(PRISONERS_DILEMMA, evaluate=boastful)
    last_round = jax.tree.map(lambda leaf: leaf[0], states_of([(HORIZON - 1, (1, 0))]))
    if planner == "search":
        config = SearchConfig(trees=2, simulations=16, depth=4)
        plan = plan_with(config, model, last_round, in_every_tree("copies", 2), key=jax.random.key(0))
    else:
        plan = one_step(model, last_round, in_every_tree("copies", 2), key=jax.random.key(0))
    np.testing.assert_allclose(plan.values, [PRISONERS_DILEMMA[0][1], PRISONERS_DILEMMA[1][1]])


def test_a_rollout_to_the_end_needs_no_critic():
    """A critic of 1000 counts only for states beyond the rollout; here they are after the end."""
    boastful = lambda *_: (jnp.where(jnp.arange(2) == 1, 0.0, -jnp.inf), jnp.float32(1000))  # noqa: E731
    model = model_of(PRISONERS_DILEMMA, evaluate=boastful)
    first = model.game.reset(key=jax.random.key(0))
    nodes, evaluation = make_node(model, first, replies_of("copies"))
    opened, replied, both = (jnp.float32(PRISONERS_DILEMMA[1][reply]) for reply in (0, 0, 1))
    worth = rollout_value(model, nodes, evaluation, HORIZON, key=jax.random.key(1))
    np.testing.assert_allclose(worth, opened + (HORIZON - 1) * both)
    short = rollout_value(model, nodes, evaluation, 1, key=jax.random.key(1))
    np.testing.assert_allclose(short, replied + 1000)
    config = SearchConfig(trees=1, simulations=8, depth=2, playout=HORIZON)
    values = plan_with(config, model, first, in_every_tree("copies", 1), key=jax.random.key(2)).values
    assert np.all(np.asarray(values) < 100)


def test_one_step_adds_what_the_critic_says():
    critic = lambda view, legal, _others: (jnp.log(legal / jnp.sum(legal)), 10.0 * view["last_actions"][0])  # noqa: E731
    model = model_of(STAG_HUNT, evaluate=critic)
    first = model.game.reset(key=jax.random.key(0))
    plan = one_step(model, first, in_every_tree("copies", 3), key=jax.random.key(1))
    np.testing.assert_allclose(plan.values, [4.0 + 0.0, 3.0 + 10.0])
    np.testing.assert_allclose(best(plan), [0, 1])
    np.testing.assert_allclose(soft(plan, 2.0), jax.nn.softmax(jnp.asarray([8.0, 26.0])), rtol=1e-6)


PRIOR = (0.3, 0.7)


def preferring(view, _legal, _others_state):
    """Prefers to defect; the value of a state is higher after an own cooperation, and the earlier it is."""
    return jnp.log(jnp.asarray(PRIOR)), 2.0 - view["last_actions"][0] - view["time"]


@pytest.mark.parametrize("simulations", [1, 2, 5, 40])
def test_the_tree_is_that_of_a_plain_python_search(simulations):
    """Golden trees: every visit and every value at the root, against one who copies."""
    model = model_of(PRISONERS_DILEMMA, evaluate=preferring)
    first = model.game.reset(key=jax.random.key(0))

    @jax.jit
    def grown(first, others_state, key):
        nodes, evaluation = jax.vmap(partial(make_node, model, first))(others_state)
        return grow(SearchConfig(1, simulations, depth=3), model, nodes, evaluation, key=key).summary()

    def expand(state, action):
        time, last = state
        reply = 0 if last is None else last
        over = time + 1 == HORIZON
        value = 0.0 if over else 2.0 - action - (time + 1) / HORIZON
        return PRISONERS_DILEMMA[action][reply], 0.0 if over else 1.0, (time + 1, action), PRIOR, value

    root = plain.Node((0, None), PRIOR, 2.0 + 1.0)
    plain.grow(root, expand, simulations, depth=3, exploration=SearchConfig().exploration)
    edges = [root.children.get(action) for action in range(2)]
    summary = grown(first, in_every_tree("copies", 1), jax.random.key(1))
    assert summary.visit_counts[0].tolist() == [edge.visits if edge else 0 for edge in edges]
    np.testing.assert_allclose(summary.qvalues[0], [edge.worth if edge else 0 for edge in edges], rtol=1e-5)
    np.testing.assert_allclose(summary.value[0], root.value, rtol=1e-5)


def test_illegal_actions_are_never_tried():
    game = StagHunt(grid=Board(4, 4), horizon=9)
    state = game.reset(key=jax.random.key(3))
    idle = lambda _views, legal, others_state: (legal / jnp.sum(legal, axis=-1, keepdims=True), others_state)  # noqa: E731
    model = Model(game, uniform, idle)
    config = SearchConfig(trees=4, simulations=32, depth=5)
    plan = plan_with(config, model, state, jnp.zeros((4, 1)), key=jax.random.key(0))
    legal = np.asarray(game.legal(state)[0])
    assert not legal[HUNT_STAG] and np.all(np.asarray(plan.visits)[~legal] == 0)
    assert np.all(np.asarray(plan.visits)[legal] > 0)
    assert plan.visits.sum() == 4 * 32
    assert best(plan)[~legal].sum() == 0 and soft(plan, 2.0)[~legal].sum() == 0


def test_every_situation_has_a_key_of_its_own():
    game = StagHunt(grid=Board(4, 4), horizon=9)
    views = jax.vmap(lambda key: jax.tree.map(lambda leaf: leaf[0], game.observe(game.reset(key=key))))(
        jax.random.split(jax.random.key(0), 500)
    )
    keys = jax.random.key_data(jax.vmap(partial(key_of, jax.random.key(1)))(views))
    assert len(np.unique(np.asarray(keys), axis=0)) == len(
        np.unique(np.asarray(views["planes"]).reshape(500, -1), axis=0)
    )
