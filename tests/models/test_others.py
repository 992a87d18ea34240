"""The opponent model: a distribution over legal actions, predicted from destinations."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hopplus.games.board import Board
from hopplus.games.lineups import read_policies
from hopplus.games.matrix import MatrixGame
from hopplus.games.stag_hunt import StagHunt
from hopplus.models import others
from hopplus.models.config import OthersConfig
from models.boards import boards, drawn_like, played

NUM_GOALS = 2
CONFIG = OthersConfig(models="shared", hidden=8, keys=4)
PLAIN = OthersConfig(models="shared", hidden=8, keys=4, destinations=False)
OPEN = StagHunt(grid=Board(4, 4), horizon=6)
WALLED = StagHunt(grid=Board(4, 4, obstacle_pieces=1), num_players=2, num_hares=2, horizon=6)
IN_ARENAS = StagHunt(grid=Board(4, 4, arena_sides=(3, 4)), num_players=2, num_hares=2, horizon=6)
MATRIX = MatrixGame(num_players=2, horizon=3)
NOTHING = np.zeros((4, 4), bool)
COLUMN = np.array([[False, False, True, False]] * 4)
"""A wall that hides the last column from the first two."""
OUTSIDE = np.array([[False] * 3 + [True]] * 3 + [[True] * 4])
"""The walls around an arena of side 3."""


def shapes(config, game):
    return jax.eval_shape(lambda: others.init(config, game.spec, NUM_GOALS, key=jax.random.key(0)))


def predictions(config, game, observation):
    """What a model with large random parameters says, and what the player may do; and where it is going."""
    params = drawn_like(shapes(config, game), scale=0.7)
    goals = np.random.default_rng(1).standard_normal((len(observation["time"]), NUM_GOALS)).astype(np.float32)

    def one(view, goal):
        seen = others.opponent_input(game.spec, view, game.legal_in_view(view))
        weights = others.destination_weights(params, seen, goal) if params.cell is not None else None
        return jnp.exp(others.apply(params, seen, goal)), seen.legal, weights

    return jax.device_get(jax.jit(jax.vmap(one))(observation, goals))


def assert_legal_distributions(probabilities, legal):
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, atol=1e-5)
    assert probabilities[~legal].max(initial=0.0) < 1e-6
    assert np.ptp(probabilities, axis=0).max() > 0.1


@pytest.mark.parametrize(("game", "walls"), [(OPEN, NOTHING), (WALLED, COLUMN)], ids=["open", "walls"])
def test_predictions_are_distributions_over_legal_actions_and_cells_in_reach(game, walls):
    observation = boards(game.spec, walls)
    probabilities, legal, weights = predictions(CONFIG, game, observation)
    assert_legal_distributions(probabilities, legal)
    np.testing.assert_allclose(weights.sum(axis=(1, 2)), 1.0, rtol=1e-5)
    _, column = np.divmod(np.argmax(observation["planes"][..., 0].reshape(len(legal), -1), axis=-1), 4)
    beyond = walls | (walls.any() & ((np.arange(4) < 2) != (column < 2)[:, None, None]))
    np.testing.assert_array_equal(weights[beyond & np.ones((len(legal), 4, 4), bool)], 0.0)
    assert np.all(weights[~beyond & np.ones((len(legal), 4, 4), bool)] > 0)


def test_predictions_in_an_arena_are_legal_too():
    """The usual training on 4x4 and 8x8 boards is in arenas."""
    probabilities, legal, weights = predictions(CONFIG, IN_ARENAS, boards(IN_ARENAS.spec, OUTSIDE))
    assert np.where(OUTSIDE, weights, 0.0).max() < 1e-6
    assert_legal_distributions(probabilities, legal)


@pytest.mark.parametrize(("game", "config"), [(OPEN, PLAIN), (MATRIX, CONFIG)], ids=["no destinations", "no board"])
def test_a_plain_network_has_no_parameters_for_cells_and_works(game, config):
    params = shapes(config, game)
    assert params.cell is None and params.key is None and params.query is None
    observation = boards(game.spec, NOTHING) if game is OPEN else played(MATRIX)[0]
    probabilities, legal, _ = predictions(config, game, observation)
    assert_legal_distributions(probabilities, legal)


def test_a_marginal_model_says_the_same_of_everybody_who_may_do_the_same():
    config = OthersConfig(models="shared", hidden=8, keys=4, marginal=True)
    probabilities, legal, _ = predictions(config, OPEN, boards(OPEN.spec, NOTHING))
    assert_legal_distributions(probabilities, legal)
    _, kind = np.unique(legal, axis=0, return_inverse=True)
    for each in range(kind.max() + 1):
        np.testing.assert_array_equal(np.ptp(probabilities[kind == each], axis=0), 0.0)


def hunter_by_hand(spec):
    """Goal 0 wants the stag, goal 1 the nearest hare: each unit of the cells' layer reads one plane."""
    params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes(CONFIG, OPEN))
    prey = [spec.plane_index(plane) for plane in ("stags", "hares")]
    hunts = [spec.num_actions + spec.action_names.index(f"hunt {name}") for name in ("stag", "hare")]
    changed = lambda tree: (  # noqa: E731
        tree.cell.weight,
        tree.key.weight,
        tree.query.weight,
        tree.query.bias,
        tree.heads.bias,
    )
    return eqx.tree_at(
        changed,
        params,
        (
            params.cell.weight.at[prey, [0, 1]].set(1.0),
            params.key.weight.at[[0, 1], [0, 1]].set(1.0),
            params.query.weight.at[[0, 1], [0, 1]].set(200.0),
            params.query.bias.at[-1].set(20.0),
            params.heads.bias.at[np.array(hunts)].set(30.0).at[-1].set(30.0),
        ),
    )


@pytest.fixture(scope="module")
def hunters():
    """First states, seat by seat, and what each of the two scripts does there."""
    scripts = read_policies("nearest_stag,nearest_hare", OPEN)

    def one(view):
        legal = OPEN.legal_in_view(view)
        return others.opponent_input(OPEN.spec, view, legal), jnp.stack(
            [script(view, legal, ())[0] for script in scripts]
        )

    return jax.jit(jax.vmap(one))(boards(OPEN.spec, NOTHING, 96))


def test_parameters_set_by_hand_are_the_two_hunters(hunters):
    seen, wanted = hunters
    params = hunter_by_hand(OPEN.spec)
    of_goals = jax.vmap(partial(others.apply, params), in_axes=(None, 0))
    predicted = jax.jit(jax.vmap(lambda one: of_goals(one, jnp.eye(NUM_GOALS))))(seen)
    np.testing.assert_allclose(np.exp(predicted), wanted, atol=1e-3)


def test_a_hunter_is_learned_from_what_it_did(hunters):
    """Of a stag hunter nothing is left to learn but the choice between two equally short ways: its own entropy."""
    seen, wanted = hunters
    wanted = np.asarray(wanted)[:, 0]
    entropy = -np.mean(np.sum(wanted * np.log(np.maximum(wanted, 1e-9)), axis=-1))
    generator = np.random.default_rng(8)
    actions = jnp.array([generator.choice(len(each), p=each / each.sum()) for each in wanted], jnp.int32)
    goals, weights = jnp.tile(jnp.array([1.0, 0.0]), (len(actions), 1)), jnp.ones(len(actions))
    adam = optax.adam(2e-2)

    def one_step(carry, _):
        params, state = carry
        gradient, metrics = jax.grad(others.loss, has_aux=True)(params, seen, goals, actions, weights)
        steps, state = adam.update(gradient, state)
        return (jax.tree.map(jnp.add, params, steps), state), metrics

    params = drawn_like(shapes(CONFIG, OPEN), scale=0.2)
    _, metrics = jax.jit(lambda carry: jax.lax.scan(one_step, carry, None, length=250))((params, adam.init(params)))
    assert metrics["ce_loss"][0] > 1.0
    assert metrics["ce_loss"][-1] < entropy + 0.1


def test_samples_of_no_weight_are_no_data(hunters):
    seen = jax.tree.map(lambda leaf: leaf[:4], hunters[0])
    params = drawn_like(shapes(CONFIG, OPEN))
    loss = jax.jit(lambda actions, weights: others.loss(params, seen, jnp.ones((4, NUM_GOALS)), actions, weights))
    half = jnp.array([1.0, 0.0, 1.0, 0.0])
    one, other = (loss(jnp.array(actions, jnp.int32), half)[0] for actions in ([4, 4, 4, 4], [4, 0, 4, 1]))
    np.testing.assert_array_equal(one, other)
    none, metrics = loss(jnp.full(4, 4, jnp.int32), jnp.zeros(4))
    assert one > 0 and none == 0 and metrics["top1"] == 0
