"""The numbers behind the pictures: means and intervals over seeds, smoothing for display, and the comparison of seats.

Seeds are the only independent samples of a run: updates depend on earlier updates, and seats share episodes. So every
interval here is over seeds: Student's, with a longer reach on the side of the longer tail.
"""

import numpy as np
from jaxtyping import Float64

from hopplus.runs.records import FINAL_SHARE, PAIR, SEAT, Recorded, final_by_seat, final_means, seat_tags
from hopplus_doctor.p_values import p_words
from hopplus_doctor.statistics import CONFIDENCE, Interval, Trend, page_trend, seed_interval

LEAST_SEATS = LEAST_SEEDS = 3
MANY_UPDATES = 100
"""Curves with at least this many updates are smoothed for display."""


def display_window(num_updates: int) -> int:
    """The number of updates that are averaged for one point of a curve: about 2% of them, and odd."""
    return 1 if num_updates < MANY_UPDATES else 2 * (num_updates // MANY_UPDATES) + 1


def smooth(values: Float64[np.ndarray, "updates seeds"], window: int) -> Float64[np.ndarray, "updates seeds"]:
    """A centred moving mean of the finite values, narrower at both ends; NaN if the window has none."""
    known = np.isfinite(values)
    reach = window // 2
    ends = np.arange(len(values))
    first, last = np.maximum(ends - reach, 0), np.minimum(ends + reach + 1, len(values))
    totals, counts = (
        np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(each, axis=0)])
        for each in (np.where(known, values, 0.0), known)
    )
    total, count = totals[last] - totals[first], counts[last] - counts[first]
    return np.divide(total, count, out=np.full(values.shape, np.nan), where=count > 0)


def seat_index(tag: str) -> int:
    """The seat of a tag, counted from 0."""
    match = SEAT.fullmatch(tag)
    if match is None:
        raise ValueError(f"{tag!r} names no seat; give a tag that ends in /player_1, /player_2, ...")
    return int(match[2]) - 1


def co_player_index(tag: str) -> int:
    """The co-player of a tag of pairs, counted from 0."""
    match = PAIR.fullmatch(tag)
    if match is None:
        raise ValueError(f"{tag!r} names no co-player; give a tag that ends in /player_1_of_2 and the like")
    return int(match[3]) - 1


def seat_trend(run: Recorded) -> tuple[Trend | None, str]:
    """Page's trend test over [seeds, seats] of the last fifth (None if it is not possible), and the result in words."""
    tags = seat_tags(run)
    if len(tags) < LEAST_SEATS:
        return None, f"Page's trend test is left out: it needs {LEAST_SEATS} seats or more; this run has {len(tags)}."
    if run.num_seeds < LEAST_SEEDS:
        return (
            None,
            f"Page's trend test is left out: it needs {LEAST_SEEDS} seeds or more; this run has {run.num_seeds}.",
        )
    blocks = final_by_seat(run)
    if not np.isfinite(blocks).all():
        return None, "Page's trend test is left out: a seed has no return of a seat at the end of training."
    trend = page_trend(blocks)
    test = f"Page's trend test in both directions, the smaller p-value doubled: {p_words(trend.p_value)}"
    if trend.p_value >= 1 - CONFIDENCE:
        return trend, f"{test}. These seeds show no trend over seats."
    better = "better" if trend.direction == "rising" else "worse"
    return trend, f"{test}. Returns are {trend.direction} with the seat's number: later seats do {better}."


def seat_spread(run: Recorded) -> str:
    """The difference between the best and the worst seat at the end of training, in words."""
    means = {tag.rsplit("/", 1)[1]: seed_interval(final_means(run, tag)).estimate for tag in seat_tags(run)}
    means = {seat: mean for seat, mean in means.items() if np.isfinite(mean)}
    if len(means) < 2:
        return "Fewer than two seats have returns, so seats are not compared."
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    return (
        f"Over the last {FINAL_SHARE:.0%} of training the seats' means lie {means[best] - means[worst]:.2f} apart: "
        f"{best} has the highest, {means[best]:.2f}, and {worst} the lowest, {means[worst]:.2f}."
    )


def number_words(number: float) -> str:
    """A number with three significant digits; a dash if it is not finite."""
    if not np.isfinite(number):
        return "-"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.2f}" if abs(number) >= 0.1 else f"{number:.3g}"


def interval_words(interval: Interval) -> str:
    """An interval in words, as in "2.91 (2.85 to 2.97)"."""
    estimate = number_words(interval.estimate)
    if not np.isfinite([interval.low, interval.high]).all():
        return estimate
    return f"{estimate} ({number_words(interval.low)} to {number_words(interval.high)})"
