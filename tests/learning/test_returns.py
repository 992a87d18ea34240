"""Advantages against numbers worked by hand and against the definition summed term by term."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopplus.learning.returns import advantages


def compute(rewards, values, last_value, terminated_after, discount, gae_lambda):
    return np.asarray(
        advantages(
            jnp.array(rewards, jnp.float32),
            jnp.array(values, jnp.float32),
            jnp.float32(last_value),
            jnp.array(terminated_after, bool),
            discount=discount,
            gae_lambda=gae_lambda,
        )
    )


def by_definition(rewards, values, last_value, terminated_after, discount, gae_lambda):
    """The sum of discounted surprises until the seat terminates, written as the O(T^2) double loop."""
    following = [*values[1:], last_value]
    result = []
    for start in range(len(rewards)):
        total, weight = 0.0, 1.0
        for step in range(start, len(rewards)):
            goes_on = 0.0 if terminated_after[step] else 1.0
            total += weight * (rewards[step] + discount * goes_on * following[step] - values[step])
            weight *= discount * gae_lambda * goes_on
        result.append(total)
    return result


def test_hand_worked():
    # The last surprise is 10 - 4 = 6. The one before is 0 + .5 * 4 - 2 = 0, plus .5 * .5 * 6 = 1.5. The first is
    # 1 + .5 * 2 - 3 = -1, plus .25 * 1.5 = .375.
    found = compute([1, 0, 10], [3, 2, 4], 100, [False, False, True], 0.5, 0.5)
    np.testing.assert_allclose(found, [-0.625, 1.5, 6.0])


def test_nothing_is_counted_past_a_termination_and_the_last_value_is_bootstrapped():
    found = compute([1, 2, 3], [0, 0, 0], 8, [True, False, False], 0.5, 1.0)
    np.testing.assert_allclose(found, [1, 2 + 0.5 * (3 + 0.5 * 8), 3 + 0.5 * 8])


def test_lambda_1_is_the_monte_carlo_return():
    rewards, values = [1.0, 2.0, 4.0], [5.0, -1.0, 0.5]
    found = compute(rewards, values, 0, [False, False, True], 0.9, 1.0) + np.array(values, np.float32)
    np.testing.assert_allclose(found, [1 + 0.9 * 2 + 0.81 * 4, 2 + 0.9 * 4, 4], rtol=1e-6)


numbers = st.floats(-10, 10, width=32)


@settings(deadline=None)
@given(st.data(), st.integers(1, 12), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_equals_the_definition(data, length, gae_lambda):
    rewards, values = (data.draw(st.lists(numbers, min_size=length, max_size=length)) for _ in range(2))
    terminated = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
    last_value = data.draw(numbers)
    found = compute(rewards, values, last_value, terminated, 0.99, gae_lambda)
    expected = by_definition(rewards, values, last_value, terminated, 0.99, gae_lambda)
    assert found == pytest.approx(expected, abs=1e-3)
