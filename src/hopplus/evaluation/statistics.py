"""Intervals and tests that the rest of the package states its results with."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm, page_trend_test


@dataclass(frozen=True)
class Interval:
    """An estimate and where the truth lies, at the stated confidence."""

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
