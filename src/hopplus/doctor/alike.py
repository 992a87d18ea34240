"""Are seats treated alike? Findings about numbers of which every episode has one for each seat.

If nothing depends on a seat's number, an episode is as likely as the same episode with its seats exchanged. So with x
the difference of a seat from the mean of all seats in its episode, the sum of x over episodes has the mean 0 and

    variance = the sum over episodes of the mean over seats of x^2

which is that of exchanging the seats of every episode at random. It holds for skewed and rare rewards too, where the
spread of one seat alone would not: a seat that by chance was never paid has none.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.stats import norm

from hopplus.doctor.answer import SUSPICIOUS_BELOW, Finding, Picture, Significance, Verdict
from hopplus.evaluation.fairness import NUM_BLOCKS
from hopplus.evaluation.statistics import Interval, mean_interval, page_trend

CONFIDENCE = 1 - SUSPICIOUS_BELOW
"""Of intervals, for all seats together: 0 is outside where a test alone would be suspicious."""
MATTERS = 0.02
"""Of the mean absolute return: a seat that gets less than that over the mean of all would change nothing."""
MIN_EPISODES = 30
"""Episodes in which seats differ: with fewer, the normal approximation is not to be trusted."""


@dataclass(frozen=True)
class Measured:
    """Something that every episode has a number of for each seat, and how to speak about it."""

    check: str
    module: str
    what: str
    """As in "return", "steps in the game"."""
    values: Float64[np.ndarray, "episodes seats"]
    seats: tuple[str, ...]
    matters: float
    """In the unit of the values."""
    next: str

    @property
    def over_mean(self) -> Float64[np.ndarray, "episodes seats"]:
        return self.values - self.values.mean(axis=1, keepdims=True)


def scale_of(values: Float64[np.ndarray, "episodes seats"]) -> float:
    """What a difference between seats is compared with; where gains and losses cancel, the mean itself would be 0."""
    return float(np.abs(values).mean()) if values.size else 0.0


def carried_by(sums: Any, sums_of_squares: Any) -> Any:
    """How many episodes carry the evidence: all where each says as much, one where a single one says everything."""
    return sums**2 / np.maximum(sums_of_squares, np.finfo(np.float64).tiny)


def _too_little(measured: Measured) -> Finding | None:
    """What can be said without a test."""
    squares = np.mean(measured.over_mean**2, axis=1)
    episodes = len(squares)

    def finding(verdict: Verdict, says: str) -> Finding:
        return Finding(measured.check, measured.module, verdict, says, next=measured.next)

    if episodes < MIN_EPISODES:
        return finding(
            "not enough evidence", f"only {episodes} episodes were played; {MIN_EPISODES} are the least to judge by"
        )
    if measured.matters == 0:
        return finding("not enough evidence", f"the {measured.what} was 0 in all {episodes:,} episodes of random play")
    if not np.any(squares):
        return finding("fine", f"all seats had the same {measured.what} in each of {episodes:,} episodes")
    if carried_by(squares.sum(), np.sum(squares**2)) < MIN_EPISODES:
        return finding(
            "not enough evidence",
            f"in {episodes:,} episodes of random play the {measured.what} differs between seats too seldom to judge by",
        )
    return None


def standing_out(measured: Measured) -> Finding:
    """The seat that is farthest from the mean of all, weighed as the farthest of so many."""
    if (unknown := _too_little(measured)) is not None:
        return unknown
    over = measured.over_mean
    episodes, seats = over.shape
    error = np.sqrt(np.mean(over**2, axis=1).sum()) / episodes
    half = float(norm.isf((1 - CONFIDENCE) / (2 * seats)) * error)
    means = over.mean(axis=0)
    seat = int(np.argmax(np.abs(means)))
    effect = Interval(float(means[seat]), float(means[seat]) - half, float(means[seat]) + half)
    return Finding(
        check=measured.check,
        module=measured.module,
        verdict="not enough evidence",
        says=f"{measured.seats[seat]}'s {measured.what} is {effect.estimate:+.4f} over the mean of all seats, "
        f"{measured.values.mean():.4f} ({_ends(effect)} for all seats together; {measured.matters:.2g} would matter), "
        f"in {episodes:,} episodes of random play",
        effect=effect,
        unit=measured.what,
        test=Significance(min(1.0, seats * 2 * float(norm.sf(abs(effect.estimate) / error))), measured.matters),
        picture=_bars(measured, half),
        next=measured.next,
    )


def trends(measured: Measured) -> list[Finding]:
    """Page's test in both directions; none for two seats, whose order says no more than who stands out."""
    episodes, seats = measured.values.shape
    if seats < 3 or _too_little(measured) is not None:
        return []
    num_blocks = min(NUM_BLOCKS, episodes)
    whole = measured.values[: episodes - episodes % num_blocks]
    trend = page_trend(whole.reshape(num_blocks, -1, seats).mean(axis=1))
    places = np.arange(seats) - (seats - 1) / 2
    effect = mean_interval(measured.values @ (places * places[-1] / np.sum(places**2)), confidence=CONFIDENCE)
    says = (
        f"the {measured.what} is, if anything, {trend.direction} with the seat's number (Page's test in both "
        f"directions, p = {trend.p_value:.2g}): a straight line puts the last seat {effect.estimate:+.4f} over "
        f"the mean of all ({_ends(effect)}; {measured.matters:.2g} would matter)"
    )
    test = Significance(trend.p_value, measured.matters)
    check = f"{measured.check}, trend"
    return [
        Finding(check, measured.module, "not enough evidence", says, effect, measured.what, test, next=measured.next)
    ]


def _bars(measured: Measured, half: float) -> Picture:
    means = measured.values.mean(axis=0)
    return Picture(
        kind="bars",
        title=f"mean {measured.what} of each seat",
        labels=measured.seats,
        series={measured.what: means.tolist()},
        unit=measured.what,
        low={measured.what: (means - half).tolist()},
        high={measured.what: (means + half).tolist()},
    )


def _ends(interval: Interval) -> str:
    return f"{interval.low:+.4f} to {interval.high:+.4f}"
