"""The policy that points at cells: it walks on shortest paths, and never does what is illegal."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.core.numerics import MASKED
from hopplus.games.board import Board
from hopplus.games.presets import make
from hopplus.games.stag_hunt import HUNT_HARE, StagHunt
from hopplus.models import actor_critic
from hopplus.models.config import ActorCriticConfig
from situations import hunt

GAME = StagHunt(grid=Board(5, 5), num_players=3)
CONFIG = ActorCriticConfig(hidden=(16,), destinations=4)
NO_GOALS = jnp.zeros((2, 0))


def policy(seed=0):
    return actor_critic.init(CONFIG, GAME.spec, key=jax.random.key(seed))


def wants_hares(params):
    """The same network with a pointer that looks for hares and nothing else."""
    plane = GAME.spec.plane_index("hares")
    weight = jnp.zeros_like(params.pointer.cell.weight).at[plane, 0].set(1.0)
    heads = params.pointer.heads
    bias = jnp.zeros_like(heads.bias).at[0].set(50.0).at[-1].set(20.0).at[4 + 1 + HUNT_HARE].set(20.0)
    changed = (weight, jnp.zeros_like(params.pointer.cell.bias), jnp.zeros_like(heads.weight), bias)
    where = lambda p: (p.pointer.cell.weight, p.pointer.cell.bias, p.pointer.heads.weight, p.pointer.heads.bias)  # noqa: E731
    return eqx.tree_at(where, params, changed)


def first_view(state):
    return jax.tree.map(lambda leaf: leaf[0], GAME.observe(state)), GAME.legal(state)[0]


def probabilities(params, state):
    view, legal = first_view(state)
    return np.exp(params(view, legal, NO_GOALS)[0])


def test_it_walks_to_the_nearest_of_what_it_looks_for():
    up, down, left, right = range(4)
    state = hunt(GAME, players=[(2, 2), (0, 0), (4, 4)], stags=[(0, 4)], hares=[(2, 0), (4, 4)])
    assert probabilities(wants_hares(policy()), state)[left] > 0.6
    beside = hunt(GAME, players=[(2, 2), (0, 0), (4, 4)], stags=[(0, 4)], hares=[(4, 4)])
    chances = probabilities(wants_hares(policy()), beside)
    np.testing.assert_allclose(chances[[down, right]], 0.5, atol=0.01)
    assert chances[[up, left]].max() < 0.01
    there = hunt(GAME, players=[(2, 2), (0, 0), (4, 4)], stags=[(0, 4)], hares=[(2, 2)])
    assert probabilities(wants_hares(policy()), there)[HUNT_HARE] > 0.95


def test_it_gives_a_distribution_over_legal_actions():
    for seed in range(20):
        state = GAME.reset(key=jax.random.key(seed))
        view, legal = first_view(state)
        log_probabilities, _ = policy(seed)(view, legal, NO_GOALS)
        np.testing.assert_allclose(np.exp(log_probabilities).sum(), 1, rtol=1e-4)
        assert np.all(log_probabilities[~legal] == MASKED) and np.all(log_probabilities[legal] > -20)


def test_it_starts_without_a_strong_preference():
    chances = np.stack([probabilities(policy(seed), GAME.reset(key=jax.random.key(seed))) for seed in range(20)])
    assert chances[:, :4].mean(axis=0).min() > 0.05 and chances.max() < 0.9


def test_boards_without_moves_get_a_plain_network():
    matrix = make("matrix-stag-hunt")
    assert actor_critic.init(CONFIG, matrix.spec, key=jax.random.key(0)).pointer is None
    plain = actor_critic.init(replace(CONFIG, destinations=0), GAME.spec, key=jax.random.key(0))
    with_pointer = policy()
    assert plain.pointer is None
    for one, other in zip(jax.tree.leaves(plain.trunk), jax.tree.leaves(with_pointer.trunk), strict=True):
        np.testing.assert_array_equal(one, other)
