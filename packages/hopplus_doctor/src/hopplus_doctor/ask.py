"""What the questions about a recording share: which steps count, and the answer where an array is missing."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hopplus_doctor.answer import Finding, Kind, Picture
from hopplus_doctor.recording import Recording
from hopplus_doctor.schema import GROUPS

SOURCES = ("real", "imagined")
TOLERANCE = 1e-3
"""Relative to the largest number; float32 and a sum in another order differ by less."""


def absent(recording: Recording, group: str, *names: str) -> list[str]:
    """The arrays of a group that were not recorded."""
    return [name for name in names if recording.get(group, name) is None]


def unanswered(check: str, module: str, kind: Kind, group: str, names: Sequence[str], why: str = "") -> Finding:
    """The finding of a check whose arrays are missing; it says what to write."""
    words = why or f"{' and '.join(f'{group}/{name}' for name in names)} not recorded"
    fields = [f"{name} ({GROUPS[group][name].says})" for name in names]
    advice = f'write with Recorder.record(update, "{group}", ...): {"; ".join(fields)}' if names else None
    threshold = "none: there is nothing to compare" if kind == "judgement" else ""
    return Finding(check, module, kind, "not enough evidence", words, next=advice, threshold=threshold)


def in_game(recording: Recording, group: str, shape: tuple[int, ...]) -> np.ndarray:
    """The steps in which a seat acts; all of them if that was not recorded."""
    there = recording.get(group, "in_game")
    return np.ones(shape, bool) if there is None else there


def by_seat(wrong: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """The share of the counted entries of each seat (axis 1) that are wrong."""
    axes = tuple(axis for axis in range(wrong.ndim) if axis != 1)
    return (wrong & counted).sum(axes) / np.maximum(counted.sum(axes), 1)


def judged_equal(
    recording: Recording,
    check: str,
    module: str,
    shares: np.ndarray,
    *,
    wrong: str,
    right: str,
    advice: str,
    **about: Any,
) -> Finding:
    """An exact finding about shares of each seat that must all be 0. `wrong` may name {seat} and {share}."""
    picture = Picture("bars", f"{check}: share that is wrong, by seat", recording.seats, {"wrong": shares.tolist()})
    finding = partial(Finding, check, module, "exact", picture=picture, **about)
    if not (shares > 0).any():
        return finding("fine", right)
    seat = int(np.argmax(shares))
    return finding("broken", wrong.format(seat=recording.seats[seat], share=share_words(shares[seat])), next=advice)


def share_words(share: float) -> str:
    """A share in words, never 0% for a share that is not 0."""
    return f"{share:.0%}" if share >= 0.01 or share == 0 else f"{share:.2%}" if share >= 1e-4 else "under 0.01%"


def scale(*arrays: np.ndarray | None) -> float:
    """The largest finite absolute number, and at least a tiny one: errors are compared with it."""
    parts = [np.abs(array[np.isfinite(array)]) for array in arrays if array is not None]
    return max([float(part.max()) for part in parts if part.size], default=0.0) or 1e-6


def ended(recording: Recording, group: str) -> np.ndarray | None:
    """Whether the seat's episode ends or is cut off after a step; None if its ends were not recorded."""
    terminated, truncated = recording.get(group, "terminated"), recording.get(group, "truncated")
    if terminated is None or truncated is None:
        return terminated
    return np.logical_or(terminated, truncated)


def shifted(flags: np.ndarray, steps: int) -> np.ndarray:
    """Flags moved along time (the last axis): by one step later for 1; steps without a source are False."""
    moved = np.zeros_like(flags)
    if steps > 0:
        moved[..., steps:] = flags[..., :-steps]
    elif steps < 0:
        moved[..., :steps] = flags[..., -steps:]
    else:
        moved[...] = flags
    return moved
