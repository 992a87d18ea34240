"""Does a number that every episode has for each seat, as the return, differ between seats?

If nothing depends on a seat's number, an episode is as likely as the episode with its seats exchanged. Let x be the
difference of a seat from the mean of all seats in its episode. Then the sum of x over episodes has the mean 0 and

    variance = the sum over episodes of the mean over seats of x^2

This is the variance of exchanging the seats of every episode at random. It is also right for skewed and rare rewards,
where the spread of one seat alone is not: a seat that was never paid has no spread.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

from hopplus_doctor.answer import SUSPICIOUS_BELOW, Finding, Picture, Significance, Verdict
from hopplus_doctor.statistics import NUM_BLOCKS, Interval, mean_interval, page_trend

CONFIDENCE = 1 - SUSPICIOUS_BELOW
"""Of intervals, for all seats together: 0 lies outside if an unadjusted test is suspicious."""
MATTERS = 0.02
"""The smallest difference of a seat from the mean of all seats that matters, as a share of the mean absolute return."""
MIN_EPISODES = 30
"""Episodes in which seats differ; with fewer, the normal approximation is poor."""


@dataclass(frozen=True)
class Measured:
    """A number for each episode and seat, and the words for its findings."""

    check: str
    module: str
    what: str
    """The name of the number, as in "return"."""
    values: np.ndarray
    seats: tuple[str, ...]
    matters: float
    """The smallest difference that matters, in the unit of the values."""
    next: str
    """What to do if seats differ."""
    more: str
    """How to get more evidence."""
    played: str = "random play"
    """Whose episodes they are."""

    @property
    def over_mean(self) -> np.ndarray:
        return self.values - self.values.mean(axis=1, keepdims=True)


def scale_of(values: np.ndarray) -> float:
    """The mean absolute value, with which differences are compared. The mean itself is 0 in a zero-sum game."""
    return float(np.abs(values).mean()) if values.size else 0.0


def carried_by(sums: Any, sums_of_squares: Any) -> Any:
    """The effective number of episodes: all if every episode weighs the same, 1 if one outweighs all others."""
    return sums**2 / np.maximum(sums_of_squares, np.finfo(np.float64).tiny)


def _too_little(measured: Measured) -> Finding | None:
    """The finding if there is too little data, or no difference, to test; otherwise None."""
    squares = np.mean(measured.over_mean**2, axis=1)
    episodes = len(squares)

    def finding(verdict: Verdict, says: str) -> Finding:
        return Finding(measured.check, measured.module, "test", verdict, says, more=measured.more)

    if episodes < MIN_EPISODES:
        return finding(
            "not enough evidence", f"only {episodes} episodes were played; the test needs {MIN_EPISODES} or more"
        )
    if measured.matters == 0:
        return finding(
            "not enough evidence", f"the {measured.what} was 0 in all {episodes:,} episodes of {measured.played}"
        )
    if not np.any(squares):
        return finding("fine", f"all seats had the same {measured.what} in each of {episodes:,} episodes")
    if carried_by(squares.sum(), np.sum(squares**2)) < MIN_EPISODES:
        return finding(
            "not enough evidence",
            f"in {episodes:,} episodes of {measured.played} the {measured.what} differs between seats too seldom for a "
            "test",
        )
    return None


def standing_out(measured: Measured) -> Finding:
    """Test the seat that is farthest from the mean of all seats; the p-value counts all seats."""
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
        kind="test",
        verdict="not enough evidence",
        says=f"{measured.seats[seat]}'s {measured.what} is {effect.estimate:+.4f} over the mean of all seats, "
        f"{measured.values.mean():.4f}, in {episodes:,} episodes of {measured.played}",
        effect=effect,
        unit=measured.what,
        test=Significance(min(1.0, seats * 2 * float(norm.sf(abs(effect.estimate) / error))), measured.matters),
        picture=_bars(measured, half),
        next=measured.next,
        more=measured.more,
    )


def trends(measured: Measured) -> list[Finding]:
    """Page's trend test in both directions; none for two seats, for which `standing_out` says the same."""
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
        f"directions): a fitted line puts the last seat {effect.estimate:+.4f} over the mean of all seats"
    )
    test = Significance(trend.p_value, measured.matters)
    check = f"{measured.check}, trend"
    about = partial(Finding, check, measured.module, "test", "not enough evidence", says, effect, measured.what, test)
    return [about(next=measured.next, more=measured.more)]


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
