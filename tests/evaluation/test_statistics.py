import numpy as np
import pytest
from scipy.stats import page_trend_test

from hopplus_doctor.statistics import mean_interval, page_trend


def test_interval_of_a_mean_by_hand():
    samples = np.array([0.0, 2.0] * 50)
    interval = mean_interval(samples, confidence=0.95)
    half = 1.959964 * np.sqrt(100 / 99) / 10
    assert interval.estimate == 1.0
    np.testing.assert_allclose([interval.low, interval.high], [1 - half, 1 + half], rtol=1e-6)
    assert 1.1 in interval and 1.3 not in interval


def test_intervals_hold_the_truth_as_often_as_they_say():
    random = np.random.RandomState(0)
    held = [5.0 in mean_interval(random.normal(5, 2, 200), confidence=0.9) for _ in range(2000)]
    assert 0.88 < np.mean(held) < 0.92


@pytest.mark.parametrize(("slope", "direction"), [(0.3, "rising"), (-0.3, "falling")])
def test_a_planted_trend_is_found_in_either_direction(slope, direction):
    random = np.random.RandomState(1)
    blocks = random.normal(size=(100, 4)) + slope * np.arange(4)
    trend = page_trend(blocks)
    assert trend.direction == direction and trend.p_value < 1e-4


def test_no_trend_is_found_where_there_is_none():
    random = np.random.RandomState(2)
    p_values = [page_trend(random.normal(size=(50, 4))).p_value for _ in range(300)]
    assert np.mean(np.array(p_values) < 0.05) < 0.1
    assert max(p_values) <= 1.0


def test_p_value_is_the_smaller_one_doubled():
    blocks = np.array([[1.0, 2, 3, 4], [1, 2, 4, 3], [2, 1, 3, 4], [1, 3, 2, 4]])
    one_sided = page_trend_test(blocks, method="asymptotic").pvalue
    assert page_trend(blocks).p_value == pytest.approx(2 * one_sided)
    assert page_trend(-blocks).p_value == pytest.approx(2 * one_sided)
