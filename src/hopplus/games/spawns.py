"""Tests whether all seats start an episode with the same distribution, from many first boards.

The features of a seat: its starting cell, its distance to the nearest of each kind of prey, and its distance to the
other players. Seats of one role are exchangeable if each feature has one distribution for all of them; a chi-square
test checks it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import chi2_contingency

from hopplus.games.game import GameSpec
from hopplus_doctor.p_values import p_words

FALSE_ALARM = 1e-6
"""The probability that fair spawns are called unfair, shared among all features."""


def spawn_fault(spec: GameSpec, boards: np.ndarray) -> str | None:
    """A sentence that names the feature in which seats of one role differ most; None if they do not differ."""
    groups = [seats for seats in spec.seats_by_role.values() if len(seats) > 1 and max(seats) < spec.num_walkers]
    tests = [(homogeneity(values), name, values) for seats in groups for name, values in _features(spec, seats, boards)]
    if not tests:
        return None
    p_value, name, values = min(tests, key=lambda test: test[0])
    if p_value * len(tests) >= FALSE_ALARM:
        return None
    means = ", ".join(f"{mean:.2f}" for mean in values.mean(axis=1))
    return f"seats do not spawn alike: {name} differs by seat (mean {means}; chi-square {p_words(p_value)})"


def homogeneity(values: np.ndarray) -> float:
    """The p-value of the hypothesis that the rows of [seats, samples] have one distribution."""
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) == 1:
        return 1.0
    counts = np.stack([np.bincount(row, minlength=len(distinct)) for row in codes.reshape(values.shape)])
    common = counts.sum(axis=0) >= 5 * len(counts)
    pooled = np.column_stack([counts[:, common], counts[:, ~common].sum(axis=1)])
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    if pooled.shape[1] < 2:
        return 1.0
    _, p_value, _, _ = chi2_contingency(pooled)
    return float(np.asarray(p_value))


def _features(spec: GameSpec, seats: Sequence[int], boards: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Integer features, [seats, samples]. Each seat has its own boards, so that samples are independent."""
    own_boards = boards[: len(boards) - len(boards) % len(seats)].reshape(len(seats), -1, *boards.shape[1:])
    rows, columns = np.arange(spec.height)[:, None], np.arange(spec.width)
    own = np.stack([own_boards[index, ..., seat] for index, seat in enumerate(seats)]) > 0
    own_row, own_column = (np.sum(own * axis, axis=(2, 3))[..., None, None] for axis in (rows, columns))
    yield "the starting cell", (own_row * spec.width + own_column)[..., 0, 0]
    distance = np.abs(rows - own_row) + np.abs(columns - own_column)
    for index, plane in enumerate(spec.planes):
        if plane.kind == "set" and not plane.per_player:
            nearest = np.where(own_boards[..., index] > 0, distance, spec.height + spec.width).min(axis=(2, 3))
            yield f"the distance to the nearest of the {plane.name}", nearest
        if plane.kind == "category":
            on_it = np.sum(own * (own_boards[..., index] > 0), axis=(2, 3))
            yield f"the trait {plane.name}", on_it
    for start in range(spec.num_agents, spec.num_agents * spec.num_blocks, spec.num_agents):
        of_each = np.stack([own_boards[row, ..., start + seat] for row, seat in enumerate(seats)]) > 0
        nearest = np.where(of_each, distance, spec.height + spec.width).min(axis=(2, 3))
        yield f"the distance to the nearest of its own {spec.planes[start].name.rpartition('_')[0]}", nearest
    walkers = own_boards[..., : spec.num_walkers].sum(axis=-1)
    yield "the distance to the other players", np.sum(walkers * distance, axis=(2, 3))
