"""The scripted co-players as action distributions, by breadth-first search from every prey.

A script is asked with what its seat sees, and answers with the probability of each action. Only `PatientStag` remembers
anything: how many steps it has spent on a stag's cell. Every script carries that count, so that all are called alike.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Protocol

from reference import DIRECTIONS, STAY, neighbour, path_lengths

HUNT_STAG, HUNT_HARE, REMOVE, LOAD, FIRST_ZAP = 5, 6, 5, 5, 5


@dataclass(frozen=True)
class View:
    """What one seat knows when it acts; a matrix game has no cells."""

    legal: list[bool]
    walls: list[list[bool]]
    cell: int | None
    stags: list[int]
    hares: list[int]
    drifts: list[int]
    coins: list[int] = field(default_factory=list)
    """Its own, then those of the players after it."""
    foods: dict[int, int] = field(default_factory=dict)
    """The level of the food on each cell that has any."""
    level: int = 0
    others: list[int] = field(default_factory=list)
    """The cells of the other players that are on the board."""
    apples: list[int] = field(default_factory=list)

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
class OwnCoins:
    """Walks around the coins of others, and stays if they are in the way."""

    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        if view.must_stay:
            return always(view, STAY)
        others = set(view.coins[1:])
        walls = blocked_at(view.walls, others)
        around = replace(view, walls=walls)
        if view.coins[0] not in path_lengths(walls, view.cell):
            return always(view, STAY)
        return approach(around, view.coins[:1], STAY)


@dataclass(frozen=True)
class AnyCoins:
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        return always(view, STAY) if view.must_stay else approach(view, view.coins, STAY)


def blocked_at(walls: list[list[bool]], cells: Collection[int]) -> list[list[bool]]:
    """The walls, and these cells as walls too."""
    width = len(walls[0])
    return [[wall or row * width + at in cells for at, wall in enumerate(line)] for row, line in enumerate(walls)]


@dataclass(frozen=True)
class Forager:
    """Walks beside a food that it wants, around walls, foods and players; stays if it cannot get there."""

    choice: str

    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        if view.must_stay or not view.foods:
            return always(view, STAY)
        wanted = list(view.foods)
        if self.choice == "strongest":
            wanted = [food for food in wanted if view.foods[food] == max(view.foods.values())]
        if self.choice == "easy":
            wanted = [food for food in wanted if view.foods[food] <= view.level] or wanted
        open_board = [[False for _ in line] for line in view.walls]
        around = {neighbour(open_board, food, action) for food in wanted for action in DIRECTIONS} - {None}
        walls = blocked_at(view.walls, [*view.foods, *view.others])
        places = sorted(around & set(path_lengths(walls, view.cell)))
        return approach(replace(view, walls=walls), places, LOAD) if places else always(view, STAY)


@dataclass(frozen=True)
class Greedy:
    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        return always(view, STAY) if view.must_stay or not view.apples else approach(view, view.apples, STAY)


@dataclass(frozen=True)
class Sustainable:
    least: int

    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        if view.must_stay:
            return always(view, STAY)
        spared = [apple for apple in view.apples if self.number_around(view, apple) < self.least]
        walls = blocked_at(view.walls, set(spared) - {view.cell})
        near = path_lengths(walls, view.cell)
        wanted = [apple for apple in view.apples if apple not in spared and apple in near]
        return approach(replace(view, walls=walls), wanted, STAY) if wanted else always(view, STAY)

    def number_around(self, view: View, cell: int) -> int:
        row, column = divmod(cell, len(view.walls[0]))
        places = [divmod(apple, len(view.walls[0])) for apple in view.apples if apple != cell]
        return sum(abs(row - down) <= 1 and abs(column - right) <= 1 for down, right in places)


@dataclass(frozen=True)
class Zapper:
    reach: int

    def probabilities(self, view: View, steps_on_stag: int) -> list[float]:
        if view.must_stay:
            return always(view, STAY)
        open_board = [[False for _ in line] for line in view.walls]
        zaps = []
        for action in DIRECTIONS:
            cell = view.cell
            for _ in range(self.reach):
                cell = None if cell is None else neighbour(open_board, cell, action)
                if cell in view.others:
                    zaps.append(FIRST_ZAP + action)
                    break
        return uniform(view, zaps) if zaps else Greedy().probabilities(view, steps_on_stag)


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
