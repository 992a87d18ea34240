"""Differences of seats are shares of the mean absolute return, also where returns add up to nothing."""

import numpy as np
import pytest

from hopplus_doctor.answer import Answer, settled
from hopplus_doctor.seat_returns import over_mean, returns_of_seeds


def findings(returns):
    names = tuple(f"player_{seat + 1}" for seat in range(returns.shape[1]))
    return settled([Answer("seats", "?", tuple(returns_of_seeds(returns, names, "", "")))])[0].findings


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 3)])
def test_returns_of_one_sign_are_shares_of_their_mean(shape):
    returns = np.random.default_rng(0).uniform(0, 4, shape)
    for paid in (returns, returns + 1):
        of_seed = paid.mean(axis=tuple(range(1, paid.ndim)), keepdims=True)
        np.testing.assert_array_equal(over_mean(paid), (paid - of_seed) / paid.mean())


def test_a_small_difference_in_a_zero_sum_game_is_no_alarm():
    """Every player gets about 1 or -1; the first 2% more than the mean, in every seed."""
    draws = np.random.default_rng(0).normal(0, 1e-3, (5, 2))
    returns = np.tile([[1.0, -1.0], [-1.0, 1.0]], (3, 1))[:5] + np.array([[0.02, -0.02]])
    returns += draws - draws.mean(1, keepdims=True)
    assert abs(returns.mean()) < 1e-12
    finding = findings(returns)[0]
    assert finding.verdict not in ("suspicious", "broken") and finding.effect is not None
    assert abs(finding.effect.estimate) < 1


def test_a_seat_that_always_wins_a_zero_sum_game_stands_out():
    returns = np.array([[2.0, -1.0, -1.0]]) + np.random.default_rng(0).normal(0, 0.01, (6, 3))
    finding = findings(returns)[0]
    assert finding.verdict == "broken" and finding.effect is not None
    assert finding.effect.estimate == pytest.approx(1.5, rel=0.02)
    assert finding.says == "player_1 gets more than the mean of all seats, by 149.9% of the mean absolute return"


def test_words_of_returns_of_one_sign_are_as_before():
    returns = np.array([[2.0, 1.0, 1.0]]) + np.random.default_rng(0).normal(0, 0.01, (6, 3))
    assert findings(returns)[0].says == "player_1 gets 50.0% more than the mean of all seats"
