"""Intervals and statistical tests for all results of the package."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm, page_trend_test, trim_mean
from scipy.stats import t as student

CONFIDENCE = 0.95
"""The confidence of every interval over seeds."""
NUM_BLOCKS = 200
"""Page's test ranks the seats within blocks of episodes; their means seldom tie."""


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
    forward, backward = np.arange(1, blocks.shape[1] + 1), np.arange(blocks.shape[1], 0, -1)
    rising, falling = (
        float(page_trend_test(blocks, predicted_ranks=ranks, method="asymptotic").pvalue)
        for ranks in (forward, backward)
    )
    return Trend("rising" if rising <= falling else "falling", min(1.0, 2 * min(rising, falling)))


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


def seed_band(values: np.ndarray) -> Band:
    """Mean and interval over seeds, the last axis, at each point, of the seeds that have a number there."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    mean = mean_of_known(values)
    squares = np.where(known, values - mean[..., None], 0.0) ** 2
    variance = np.divide(squares.sum(axis=-1), count - 1, out=np.full(count.shape, np.nan), where=count > 1)
    factor = student.ppf(0.5 + CONFIDENCE / 2, np.maximum(count - 1, 1))
    half = factor * np.sqrt(variance / np.maximum(count, 1))
    return Band(mean, np.asarray(mean - half), np.asarray(mean + half))


def seed_interval(values: np.ndarray) -> Interval:
    """The mean over seeds with its interval; with a single seed the ends are NaN, because the spread is unknown."""
    band = seed_band(values)
    return Interval(float(band.mean), float(band.low), float(band.high))


RESAMPLES = 5_000


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """The mean of the middle half along the last axis; single outlying seeds do not decide it."""
    return np.asarray(trim_mean(scores, 0.25, axis=-1))


def bootstrap(statistic: Callable[..., np.ndarray], *groups: np.ndarray) -> Interval:
    """The bootstrap interval of a statistic of groups of seeds; each group is resampled separately (stratified)."""
    random = np.random.default_rng(0)
    drawn = [group[random.integers(len(group), size=(RESAMPLES, len(group)))] for group in groups]
    estimate = statistic(*(group[None] for group in groups))[0]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(statistic(*drawn), [tail, 1 - tail]) if min(map(len, groups)) > 1 else (np.nan, np.nan)
    return Interval(float(estimate), float(low), float(high))


def improvement(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The probability that a seed of the first group beats one of the second; a tie is half a win."""
    differences = ones[..., :, None] - others[..., None, :]
    return np.asarray(np.mean(np.where(differences > 0, 1.0, np.where(differences < 0, 0.0, 0.5)), axis=(-1, -2)))
