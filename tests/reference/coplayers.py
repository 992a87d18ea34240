"""The scripted co-players as action distributions, by breadth-first search from every prey.

A script is asked with what its seat sees, and answers with the probability of each action. Only `PatientStag` remembers
anything: how many steps it has spent on a stag's cell. Every script carries that count, so that all are called alike.
"""

from dataclasses import dataclass
from typing import Protocol

from reference import DIRECTIONS, STAY, neighbour, path_lengths

HUNT_STAG, HUNT_HARE, REMOVE = 5, 6, 5


@dataclass(frozen=True)
class View:
    """What one seat knows when it acts; a matrix game has no cells."""

    legal: list[bool]
    walls: list[list[bool]]
    cell: int | None
    stags: list[int]
    hares: list[int]
    drifts: list[int]

    @property
    def must_stay(self) -> bool:
        """So it is for a seat that has left, and for all when the episode is over."""
        return self.cell is not None and [action for action, allowed in enumerate(self.legal) if allowed] == [STAY]


class Script(Protocol):
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]: ...


def steps_on_stag_after(view: View, steps_on_stag: int) -> int:
    """The count after the step in which the seat sees this."""
    return steps_on_stag + (not view.must_stay and view.cell in view.stags)


def always(view: View, action: int) -> list[float]:
    return [float(other == action) for other in range(len(view.legal))]


def uniform(view: View, actions: list[int]) -> list[float]:
    return [(action in actions) / len(actions) for action in range(len(view.legal))]


def legal_actions(view: View) -> list[int]:
    return [action for action, allowed in enumerate(view.legal) if allowed]


def approach(view: View, things: list[int], act_there: int) -> list[float]:
    """A shortest path to the nearest thing: uniform among the nearest, then uniform among the steps that shorten it."""
    lengths = {thing: path_lengths(view.walls, thing) for thing in things}
    shortest = min(lengths[thing][view.cell] for thing in things)
    if shortest == 0:
        return always(view, act_there)
    nearest = [thing for thing in things if lengths[thing][view.cell] == shortest]
    mixture = [0.0 for _ in view.legal]
    for thing in nearest:
        steps = []
        for action in DIRECTIONS:
            beyond = neighbour(view.walls, view.cell, action)
            if beyond is not None and lengths[thing][beyond] == shortest - 1:
                steps.append(action)
        for action in steps:
            mixture[action] += 1.0 / len(nearest) / len(steps)
    return mixture


@dataclass(frozen=True)
class NearestHare:
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        if view.must_stay or not view.hares:
            return always(view, STAY)
        return approach(view, view.hares, HUNT_HARE)


@dataclass(frozen=True)
class NearestStag:
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        if view.must_stay or not view.stags:
            return NearestHare().probabilities(view, steps_on_stag)
        return approach(view, view.stags, HUNT_STAG)


@dataclass(frozen=True)
class PatientStag:
    patience: int

    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        script = NearestStag() if steps_on_stag < self.patience else NearestHare()
        return script.probabilities(view, steps_on_stag)


@dataclass(frozen=True)
class NearestDrift:
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        if view.must_stay or not view.drifts:
            return always(view, STAY)
        return approach(view, view.drifts, REMOVE)


@dataclass(frozen=True)
class Idler:
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        return uniform(view, [action for action in legal_actions(view) if action != REMOVE])


@dataclass(frozen=True)
class Random:
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        return uniform(view, legal_actions(view))


@dataclass(frozen=True)
class Noisy:
    script: Script
    share: float

    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        meant = self.script.probabilities(view, steps_on_stag)
        slipped = Random().probabilities(view, steps_on_stag)
        return [(1.0 - self.share) * one + self.share * other for one, other in zip(meant, slipped, strict=True)]
