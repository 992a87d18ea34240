"""Do the returns of seats differ over seeds, more than seeds differ?"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import t as student

from hopplus_doctor.answer import Finding, Picture, Significance
from hopplus_doctor.seat_differences import scale_of
from hopplus_doctor.statistics import Interval, page_trend

LEAST_SEEDS = 3
MATTERS = 0.1
"""The smallest difference of a seat that matters, as a share of the mean absolute return."""


def stands_out(values: np.ndarray) -> tuple[int, Interval, float]:
    """The seat that differs most from 0, its interval over seeds, and a p-value for all seats together.

    With too few seeds for an interval, the interval is infinite and the p-value 1.
    """
    num_seeds, num_seats = values.shape
    mean = values.mean(axis=0)
    if num_seeds < LEAST_SEEDS:
        seat = int(np.abs(mean).argmax())
        return seat, Interval(float(mean[seat]), -np.inf, np.inf), 1.0
    error = _errors(values)
    seat = int(np.abs(mean / error).argmax())
    half = float(student.ppf(1 - 0.025 / num_seats, num_seeds - 1) * error[seat])
    interval = Interval(float(mean[seat]), float(mean[seat] - half), float(mean[seat] + half))
    return seat, interval, float(seat_p_values(values))


def seat_p_values(values: np.ndarray) -> np.ndarray:
    """The p-value of the seat that differs most from 0, for all seats together (Bonferroni), by Student's test.

    `values` are [..., seeds, seats], one p-value for each leading place.
    """
    num_seeds, num_seats = values.shape[-2:]
    scores = np.abs(values.mean(axis=-2) / _errors(values)).max(axis=-1)
    return np.asarray(np.minimum(1.0, 2 * num_seats * student.sf(scores, num_seeds - 1)))


def _errors(values: np.ndarray) -> np.ndarray:
    return np.maximum(values.std(axis=-2, ddof=1) / np.sqrt(values.shape[-2]), 1e-12)


def over_mean(values: np.ndarray) -> np.ndarray:
    """The difference from the seed's mean, as a share of the mean absolute value: the mean of a zero-sum game is 0."""
    of_seed = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True)
    return (values - of_seed) / max(scale_of(values), 1e-9)


def returns_of_seeds(blocks: np.ndarray, names: tuple[str, ...], suffix: str, advice: str) -> Iterator[Finding]:
    """The findings about the returns [seeds, seats] of seats of one role."""
    over = over_mean(blocks)
    samples = {name: blocks[:, at].tolist() for at, name in enumerate(names)}
    picture = Picture("boxes", "return of each seat over the last fifth of training, by seed", names, samples)
    seat, effect, p_value = stands_out(over)
    more = "more" if effect.estimate > 0 else "less"
    says = f"{names[seat]} gets {abs(effect.estimate):.1%} {more} than the mean of all seats{suffix}"
    unit = "of the mean"
    if scale_of(blocks) > abs(blocks.mean()) * (1 + 1e-9):
        unit = "of the mean absolute return"
        says = f"{names[seat]} gets {more} than the mean of all seats{suffix}, by {abs(effect.estimate):.1%} {unit}"
    about = partial(Finding, module="seats", kind="test", verdict="fine", unit=unit, picture=picture, next=advice)
    yield about(f"returns{suffix}", says=says, effect=effect, test=Significance(p_value, MATTERS))
    if blocks.shape[1] > 2:
        trend = page_trend(blocks)
        slope = np.polyfit(np.arange(blocks.shape[1]), over.T, 1)[0] * (blocks.shape[1] - 1)
        _, size, _ = stands_out(slope[:, None])
        says = (
            f"from the first seat to the last returns change by {size.estimate:+.1%} (if anything, {trend.direction})"
        )
        test = Significance(trend.p_value, MATTERS)
        yield about(f"order of seats{suffix}", says=says, effect=size, test=test)
