import numpy as np
import pytest
from scipy.stats import page_trend_test

from hopplus_doctor.statistics import (
    difference_band,
    difference_interval,
    improvement_band,
    mean_interval,
    page_trend,
    ratio_interval,
    seed_band,
    seed_interval,
)


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


def returns(shape, random, size):
    """Returns with mean 0."""
    if shape == "two modes":
        return np.where(random.random(size) < 0.6, 2.5, 1.0) + random.normal(0, 0.25, size) - 1.9
    draw = {
        "normal": lambda: random.normal(size=size),
        "skewed": lambda: random.gamma(2, size=size) - 2,
        "bounded": lambda: random.beta(8, 1, size) - 8 / 9,
    }
    return draw[shape]()


@pytest.mark.parametrize("shape", ["normal", "skewed", "bounded", "two modes"])
@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_intervals_over_seeds_hold_the_truth_in_93_to_97_studies_of_100(shape, seeds):
    """4,000 studies: three standard errors are one point. `benchmarks/coverage.py` has more, and all intervals."""
    random = np.random.default_rng([seeds, len(shape)])
    ones, others = (returns(shape, random, (4000, seeds)) for _ in range(2))
    bands = [(seed_band(ones), 0.0), (difference_band(ones, others), 0.0), (improvement_band(ones, others), 0.5)]
    for band, truth in bands:
        assert 0.92 < np.mean((band.low <= truth) & (truth <= band.high)) < 0.98


def test_students_interval_would_miss_too_often():
    """What the intervals were before: the longer reach on the side of the longer tail is what helps."""
    values = returns("bounded", np.random.default_rng(0), (4000, 6))
    half = 2.570582 * values.std(axis=1, ddof=1) / np.sqrt(6)
    assert np.mean(np.abs(values.mean(axis=1)) <= half) < 0.915


def test_an_interval_turns_and_scales_with_its_values():
    values = np.array([0.1, 0.2, 0.4, 0.5, 2.0, 0.3])
    one, turned, scaled = (seed_interval(each) for each in (values, -values, 3 * values + 7))
    np.testing.assert_allclose([turned.low, turned.high], [-one.high, -one.low])
    np.testing.assert_allclose([scaled.low, scaled.high], [3 * one.low + 7, 3 * one.high + 7])
    assert one.high - one.estimate > 1.05 * (one.estimate - one.low)


def test_a_difference_is_the_other_one_turned_around():
    random = np.random.default_rng(1)
    ones, others = random.gamma(2, size=7), random.normal(size=4)
    one, other = difference_interval(ones, others), difference_interval(others, ones)
    np.testing.assert_allclose([one.estimate, one.low, one.high], [-other.estimate, -other.high, -other.low])
    assert np.isnan(difference_interval(ones, others[:1]).low)


def test_a_ratio_is_exact_where_the_seeds_say_so():
    base = np.array([1.0, 2.0, 4.0, 3.0])
    exact = ratio_interval(2 * base, base)
    np.testing.assert_allclose([exact.estimate, exact.low, exact.high], 2.0)
    near = ratio_interval(2 * base + np.array([0.1, -0.1, 0.1, -0.1]), base)
    assert near.low < 2.0 < near.high and near.high - near.low < 0.2
