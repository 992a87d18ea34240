"""Intervals and statistical tests for all results of the package.

Seeds are few, and their returns are seldom normal: skewed, close to the best return, or in two modes. Student's
interval is too short then, at the end of the longer tail. `widened` moves that end out. `benchmarks/coverage.py`
simulates how often each interval holds the true value; docs/statistics.md shows the result.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata, trim_mean
from scipy.stats import t as student

CONFIDENCE = 0.95
"""The confidence of every interval over seeds."""
NUM_BLOCKS = 200
"""Page's test ranks the seats within blocks of episodes; their means seldom tie."""
FEW_SEEDS = 6
"""With fewer seeds no interval is right for returns in two modes. The seeds' values are then shown beside it."""
SKEW_WEIGHT, SKEW_LIMIT, FLAT = 1.5, 1.7, 0.75
"""The weight of the skewness of few seeds, which is lower than that of their distribution; the limit of its effect, as
a single outlying seed is no proof of a long tail; and how near Hall's transformation may come to the point where it is
flat and intervals grow without bound. Chosen in simulations for coverage between 93% and 97%."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def mean_interval(samples: np.ndarray, *, confidence: float) -> Interval:
    """The mean of independent samples, by the normal approximation: for hundreds of samples or more."""
    samples = np.asarray(samples, np.float64)
    half = norm.ppf(0.5 + confidence / 2) * samples.std(ddof=1) / np.sqrt(len(samples))
    return Interval(float(samples.mean()), float(samples.mean() - half), float(samples.mean() + half))


@dataclass(frozen=True)
class Trend:
    """Whether later seats do better, or worse, than earlier ones."""

    direction: Literal["rising", "falling"]
    p_value: float
    """Two-sided: the smaller of the two directions' p-values, doubled."""


def page_trend(blocks: np.ndarray) -> Trend:
    """Page's trend test over [blocks, seats] in both directions; scipy's test knows only the rising one."""
    score = float(page_score(blocks))
    return Trend("rising" if score >= 0 else "falling", min(1.0, 2 * float(norm.sf(abs(score)))))


def page_score(blocks: np.ndarray) -> np.ndarray:
    """Page's statistic less its mean, over its standard deviation, if nothing depends on the seat's number.

    With ranks r of the seats within each block, the statistic is the sum over blocks and seats k of k r.
    """
    count, seats = blocks.shape[-2:]
    totals = rankdata(blocks, axis=-1).sum(axis=-2)
    statistic = totals @ np.arange(1.0, seats + 1)
    mean = count * seats * (seats + 1) ** 2 / 4
    variance = count * seats**2 * (seats + 1) * (seats**2 - 1) / 144
    return np.asarray((statistic - mean) / np.sqrt(variance))


@dataclass(frozen=True)
class Band:
    """A mean over seeds and its interval, at every point of a curve; NaN where too few seeds have a number."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def mean_of_known(values: np.ndarray) -> np.ndarray:
    """The mean along the last axis over finite values; NaN if there are none."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)


def _moment(values: np.ndarray, power: int) -> np.ndarray:
    """The central moment along the last axis over finite values; NaN if there are none."""
    return mean_of_known((values - mean_of_known(values)[..., None]) ** power)


def _quotient(one: ArrayLike, other: ArrayLike) -> np.ndarray:
    """one / other; 0 where `other` is 0 or unknown."""
    return np.divide(one, other, out=np.zeros(np.shape(other)), where=np.nan_to_num(other) > 0)


def widened(
    error: np.ndarray,
    freedom: np.ndarray,
    skewness: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How far an interval reaches below and above an estimate, given its standard error, degrees of freedom, skewness.

    Each end is the farther one of Student's interval and of Hall's (1992), which corrects for skewness:

        y -> 3 / k (cbrt(1 + k (y - k / 6)) - 1)    at Student's quantiles y; k is the skewness, weighted and limited
    """
    freedom = np.maximum(freedom, 1.0)
    quantile = student.ppf(0.5 + CONFIDENCE / 2, freedom)
    limit = np.minimum(SKEW_LIMIT / (freedom + 1), FLAT / quantile)
    skew = np.clip(SKEW_WEIGHT * np.nan_to_num(skewness), -limit, limit)
    is_even = np.abs(skew) < 1e-6
    skew = np.where(is_even, 1.0, skew)
    below, above = (
        np.where(is_even, quantile, np.abs(3 / skew * (np.cbrt(1 + skew * (end - skew / 6)) - 1)))
        for end in (quantile, -quantile)
    )
    return np.asarray(error * np.maximum(below, quantile)), np.asarray(error * np.maximum(above, quantile))


def seed_band(values: np.ndarray) -> Band:
    """Mean and interval over seeds, the last axis, at each point, of the seeds that have a number there."""
    count = np.isfinite(values).sum(axis=-1)
    mean, variance = mean_of_known(values), _moment(values, 2)
    skewness = _quotient(_moment(values, 3), variance**1.5 * np.sqrt(count))
    error = np.sqrt(np.divide(variance, count - 1, out=np.full(count.shape, np.nan), where=count > 1))
    below, above = widened(np.asarray(error), np.asarray(count - 1.0), skewness)
    return Band(mean, np.asarray(mean - below), np.asarray(mean + above))


def seed_interval(values: np.ndarray) -> Interval:
    """The mean over seeds with its interval; with a single seed the ends are NaN, because the spread is unknown."""
    band = seed_band(values)
    return Interval(float(band.mean), float(band.low), float(band.high))


def difference_band(ones: np.ndarray, others: np.ndarray) -> Band:
    """The difference of the means of two groups of seeds; NaN ends if a group has a single seed.

    Each group has its own variance. The degrees of freedom are Welch's for equal variances; those for the variances
    that few seeds happen to have would make the interval too long.
    """
    counts = np.array([ones.shape[-1], others.shape[-1]], float)
    difference = ones.mean(axis=-1) - others.mean(axis=-1)
    if counts.min() < 2:
        unknown = np.full_like(difference, np.nan)
        return Band(np.asarray(difference), unknown, unknown)
    squares, cubes = (
        [
            _moment(group, power) / (count - 1) ** (power - 1)
            for group, count in zip((ones, others), counts, strict=True)
        ]
        for power in (2, 3)
    )
    total = squares[0] + squares[1]
    freedom = np.full(np.shape(total), np.sum(1 / counts) ** 2 / np.sum(1 / (counts**2 * (counts - 1))))
    below, above = widened(np.asarray(np.sqrt(total)), freedom, _quotient(cubes[0] - cubes[1], total**1.5))
    return Band(np.asarray(difference), np.asarray(difference - below), np.asarray(difference + above))


def difference_interval(ones: np.ndarray, others: np.ndarray) -> Interval:
    """`difference_band` of two groups without further axes."""
    band = difference_band(ones, others)
    return Interval(float(band.mean), float(band.low), float(band.high))


def ratio_band(ones: np.ndarray, others: np.ndarray) -> Band:
    """The ratio of two means over the same seeds, the last axis; of the other mean's absolute value.

    The interval is that of one - ratio x other, by seed, over the other's mean.
    """
    mean = others.mean(axis=-1, keepdims=True)
    size, sign = np.maximum(np.abs(mean), 1e-9), np.where(mean < 0, -1.0, 1.0)
    ratio = ones.mean(axis=-1, keepdims=True) / size
    return seed_band(ratio + (ones - ratio * sign * others) / size)


def ratio_interval(ones: np.ndarray, others: np.ndarray) -> Interval:
    """`ratio_band` of two groups without further axes."""
    band = ratio_band(ones, others)
    return Interval(float(band.mean), float(band.low), float(band.high))


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """The mean of the middle half along the last axis. No interval of it is right for few seeds in two modes."""
    return np.asarray(trim_mean(scores, 0.25, axis=-1))


def improvement(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The probability that a seed of the first group beats one of the second; a tie is half a win."""
    differences = ones[..., :, None] - others[..., None, :]
    return np.asarray(np.mean(np.where(differences > 0, 1.0, np.where(differences < 0, 0.0, 0.5)), axis=(-1, -2)))


def improvement_band(ones: np.ndarray, others: np.ndarray) -> Band:
    """`improvement` with the interval of Newcombe (2006, method 5): the probabilities p that the data do not exclude,

        (estimate - p)^2 <= z^2 p (1 - p) (1 + m ((1 - p) / (2 - p) + p / (1 + p))) / (n1 n2),   m = (n1 + n2) / 2 - 1

    It has a length where every seed of one group beats all of the other; a bootstrap has none there.
    """
    estimate = improvement(ones, others)
    counts = ones.shape[-1], others.shape[-1]
    if min(counts) < 2:
        return Band(estimate, np.full_like(estimate, np.nan), np.full_like(estimate, np.nan))
    mean_count = sum(counts) / 2 - 1
    quantile = norm.ppf(0.5 + CONFIDENCE / 2)

    def is_excluded(p):
        spread = 1 + mean_count * ((1 - p) / (2 - p) + p / (1 + p))
        return (estimate - p) ** 2 > quantile**2 * p * (1 - p) * spread / (counts[0] * counts[1])

    ends = []
    for outer in (np.zeros_like(estimate), np.ones_like(estimate)):
        inside, outside = estimate, outer
        for _ in range(40):
            middle = (inside + outside) / 2
            out = is_excluded(middle)
            inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
        ends.append(outside)
    return Band(estimate, *ends)


def improvement_interval(ones: np.ndarray, others: np.ndarray) -> Interval:
    """`improvement_band` of two groups without further axes."""
    band = improvement_band(ones, others)
    return Interval(float(band.mean), float(band.low), float(band.high))
