"""The filter and the counts against numbers worked by hand."""

import jax.numpy as jnp
import numpy as np

from hopplus.games.game import NO_ACTION
from hopplus.planning import beliefs

LEGAL = jnp.array([True, True, True, False])
PREDICTED = jnp.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])


def test_one_observed_action_by_hand():
    """Likelihoods .95 * .5 + .05 / 3 and .05 / 3."""
    belief = beliefs.update(jnp.array([0.25, 0.75]), PREDICTED, LEGAL, jnp.int32(1))
    first, second = 0.25 * (0.475 + 0.05 / 3), 0.75 * 0.05 / 3
    np.testing.assert_allclose(belief, [first / (first + second), second / (first + second)], rtol=1e-6)


def test_no_goal_dies_for_ever():
    belief = jnp.array([0.5, 0.5])
    for _ in range(5):
        belief = beliefs.update(belief, PREDICTED, LEGAL, jnp.int32(0))
    assert belief[1] > 0
    for _ in range(12):
        belief = beliefs.update(belief, PREDICTED, LEGAL, jnp.int32(2))
    assert belief[1] > 0.9


def test_no_action_is_no_evidence():
    belief = jnp.array([0.25, 0.75])
    np.testing.assert_array_equal(beliefs.update(belief, PREDICTED, LEGAL, jnp.int32(NO_ACTION)), belief)


def test_counts_by_hand():
    counts = beliefs.first_counts(2)
    np.testing.assert_allclose(beliefs.starting_belief(counts), [0.5, 0.5])
    counts = beliefs.count(counts, jnp.array([1.0, 0.0]))
    np.testing.assert_allclose(counts, [1.995, 0.995], rtol=1e-6)
    np.testing.assert_allclose(beliefs.starting_belief(counts), [1.995 / 2.99, 0.995 / 2.99], rtol=1e-6)


def test_prediction_under_a_belief():
    np.testing.assert_allclose(beliefs.predictive(jnp.array([0.5, 0.5]), PREDICTED), [0.25, 0.25, 0.5, 0.0])
