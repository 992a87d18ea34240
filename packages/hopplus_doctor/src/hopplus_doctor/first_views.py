"""Do the first observations of all agents of an environment have the same distribution?

The means of each number of an observation over many resets are compared between agents. So are the means of its square
and, if there are few numbers, of its products with the others. An agent that starts more often in one place, or nearer
to something, differs in them. Only sums are kept, so images can be compared too.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from scipy.stats import norm

from hopplus_doctor.answer import Finding, Significance, Verdict
from hopplus_doctor.seat_differences import CONFIDENCE, carried_by
from hopplus_doctor.statistics import Interval

CHECK, MODULE = "first observations", "game: spawns"
MATTERS = 0.2
"""The smallest difference that matters, in standard deviations: by convention a small effect."""
MOST_PAIRED = 40
"""Up to this many numbers, all products are compared (820 of 40); with more, only the squares."""
MIN_RESETS = 100
"""Resets in which agents see different things. Hundreds of numbers are compared, so the far tails must be right."""


class FirstViews:
    """The sums over resets for one group of agents."""

    def __init__(self, agents: tuple[Hashable, ...]):
        self.agents = agents
        self.num_resets = 0
        self.incomparable: str | None = None
        """Why the agents' observations cannot be compared; None if they can."""

    def add(self, observations: Mapping[Any, Any]) -> None:
        """Add the first observations of one episode."""
        if self.incomparable or any(agent not in observations for agent in self.agents):
            return
        try:
            views = [_numbers(observations[agent]) for agent in self.agents]
        except (TypeError, ValueError):
            self.incomparable = "observations are not numbers"
            return
        if len({len(view) for view in views}) > 1:
            self.incomparable = "observations have different shapes"
            return
        if self.num_resets == 0:
            self._begin(len(views[0]))
        if len(views[0]) != self.num_numbers:
            self.incomparable = "observations change their shape"
            return
        self._add(np.stack(views))

    def _begin(self, num_numbers: int) -> None:
        numbers = np.arange(num_numbers)
        self.factors = np.triu_indices(num_numbers) if num_numbers <= MOST_PAIRED else (numbers, numbers)
        columns = num_numbers + len(self.factors[0])
        self.num_numbers = num_numbers
        self.is_news = np.arange(columns) < num_numbers
        """Whether a column is new: a product of zeros and ones may always equal one of its factors."""
        self.changes = np.zeros((len(self.agents), columns), bool)
        self.over = np.zeros((len(self.agents), columns))
        self.squares, self.fourths, self.total, self.total_squares = np.zeros((4, columns))

    def _add(self, views: np.ndarray) -> None:
        left, right = self.factors
        products = views[:, left] * views[:, right]
        seen = np.concatenate([views, products], axis=1)
        if self.num_resets == 0:
            self.first = seen
        over = seen - seen.mean(axis=0)
        squares = np.mean(over**2, axis=0)
        self.num_resets += 1
        self.changes |= seen != self.first
        self.is_news[self.num_numbers :] |= np.any((products != views[:, left]) & (products != views[:, right]), axis=0)
        self.over += over
        self.squares += squares
        self.fourths += squares**2
        self.total += seen.mean(axis=0)
        self.total_squares += np.mean(seen**2, axis=0)

    def finding(self, suffix: str, *, advice: str, more: str) -> Finding:
        """Test the number in which one agent differs most from the mean of all; the p-value counts all numbers."""

        def untested(verdict: Verdict, says: str) -> Finding:
            return Finding(CHECK + suffix, MODULE, "test", verdict, says, more=more)

        if self.incomparable or not self.num_resets:
            return untested("not enough evidence", f"not compared: {self.incomparable or 'there was no reset'}")
        labels = self._labels()
        asked = self.is_news & ~labels & (self.squares > 0)
        asked_enough = asked & (carried_by(self.squares, self.fourths) >= MIN_RESETS)
        note = _about_labels(int(labels[: self.num_numbers].sum()))
        if not asked.any():
            return untested("fine", f"in {self.num_resets:,} resets all agents saw the same{note}")
        if not asked_enough.any():
            return untested("not enough evidence", f"{self.num_resets:,} resets are too few{note}")
        effect, p_value, agent, number = self._most_different(asked_enough)
        says = (
            f"{self._name(number)} in {self.agents[agent]}'s first observation is "
            f"{effect.estimate:+.3f} standard deviations over the mean of all agents, in {self.num_resets:,} "
            f"resets{note}"
        )
        return Finding(
            CHECK + suffix,
            MODULE,
            "test",
            "not enough evidence",
            says,
            effect,
            "standard deviations",
            Significance(p_value, MATTERS),
            next=advice,
            more=more,
        )

    def _labels(self) -> np.ndarray:
        """The numbers that are constant for each agent and differ between agents, and all products with them."""
        constant = ~self.changes.any(axis=0) & (np.ptp(self.first, axis=0) > 0)
        labels = constant[: self.num_numbers]
        return np.concatenate([labels, labels[self.factors[0]] | labels[self.factors[1]]])

    def _name(self, column: int) -> str:
        if column < self.num_numbers:
            return f"number {column} of {self.num_numbers}"
        left, right = (int(factors[column - self.num_numbers]) for factors in self.factors)
        return f"the square of number {left}" if left == right else f"the product of numbers {left} and {right}"

    def _most_different(self, asked: np.ndarray) -> tuple[Interval, float, int, int]:
        """The effect, its p-value, the agent and the number of the largest difference."""
        columns = np.flatnonzero(asked)
        count = self.num_resets
        error = np.sqrt(self.squares[columns])
        scores = np.abs(self.over[:, columns]) / error
        agent, place = np.unravel_index(np.argmax(scores), scores.shape)
        number = int(columns[place])
        variance = self.total_squares[number] / count - (self.total[number] / count) ** 2
        deviation = np.sqrt(max(variance, self.squares[number] / count))  # where the first is lost in rounding
        half = norm.isf((1 - CONFIDENCE) / (2 * scores.size)) * error[place] / count / deviation
        estimate = self.over[agent, number] / count / deviation
        p_value = min(1.0, scores.size * 2 * float(norm.sf(scores[agent, place])))
        return Interval(*map(float, (estimate, estimate - half, estimate + half))), p_value, int(agent), number


def _about_labels(count: int) -> str:
    if not count:
        return ""
    return f"; left out: {count} numbers never change and differ between agents, as an identity or a fixed place does"


def _numbers(observation: Any) -> np.ndarray:
    """All numbers of an observation, flattened."""
    if isinstance(observation, Mapping):
        parts = [_numbers(observation[name]) for name in sorted(observation)]
    elif isinstance(observation, tuple | list):
        parts = [_numbers(part) for part in observation]
    else:
        parts = [np.asarray(observation, np.float64).ravel()]
    return np.concatenate(parts) if parts else np.zeros(0)
