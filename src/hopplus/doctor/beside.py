"""A run beside others of its kind: what they were told differently, and whether their seats differ in the same way."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Float64

from hopplus.doctor.answer import Finding, Picture, Significance
from hopplus.doctor.case import Case
from hopplus.doctor.seats import LEAST_SEEDS, MATTERS, final_returns, over_mean, stands_out

NAMES = ("seed", "steps", "wandb", "checkpoint_every")
"""Settings that do not change what is learned at a time."""


def compare(case: Case, others: Sequence[Case]) -> Iterator[Finding]:
    """The settings, then the returns of all seeds of all runs together, then the spread of seats run by run."""
    runs = [case, *others]
    yield settings(runs)
    seats = {len(run.seats) for run in runs}
    if len(seats) > 1 or not all(run.is_symmetric for run in runs):
        yield Finding("all runs", "seats", "not enough evidence", "the runs have not the same seats to compare")
        return
    over = [over_mean(final_returns(run)) for run in runs]
    yield together(case, np.concatenate(over))
    yield spreads(runs, over)


def settings(runs: Sequence[Case]) -> Finding:
    """What differs between them; between the seats of a run nothing can, because settings have no seats."""
    flat = [dict(_flat(asdict(run.config))) for run in runs]
    names = [name for name in flat[0] if name not in NAMES and len({str(each.get(name)) for each in flat}) > 1]
    told = "; ".join(f"{name}: {', '.join(str(each.get(name)) for each in flat)}" for name in names)
    says = f"the runs differ in {told}" if names else "the runs have the same settings; no setting speaks of a seat"
    return Finding("settings", "settings", "fine", says)


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def together(case: Case, pooled: Float64[np.ndarray, "seeds seats"]) -> Finding:
    """More seeds see smaller differences."""
    if len(pooled) < LEAST_SEEDS:
        return Finding("all runs", "seats", "not enough evidence", "fewer than three seeds have returns of all seats")
    seat, effect, p_value = stands_out(pooled)
    samples = {name: pooled[:, at].tolist() for at, name in enumerate(case.seats)}
    title = "return over the mean of all seats, every seed of every run"
    picture = Picture("boxes", title, case.seats, samples, "of the mean")
    says = f"over all {len(pooled)} seeds {case.seats[seat]} gets {effect.estimate:+.1%} of the mean of all seats"
    return Finding("all runs", "seats", "fine", says, effect, "of the mean", Significance(p_value, MATTERS), picture)


def spreads(runs: Sequence[Case], over: Sequence[Float64[np.ndarray, "seeds seats"]]) -> Finding:
    """How far apart the seats of each run are: shared parameters cannot differ by seat, independent ones can."""
    names = [f"{run.folder.name} ({run.learner.sharing})" for run in runs]
    by_run = {name: np.ptp(values, axis=1) for name, values in zip(names, over, strict=True)}
    boxes = {name: values.tolist() for name, values in by_run.items()}
    picture = Picture("boxes", "distance of the best seat from the worst, by seed", tuple(boxes), boxes, "of the mean")
    told = ", ".join(f"{name} {values.mean():.1%}" for name, values in by_run.items())
    return Finding("spread of seats", "seats", "fine", f"best seat over worst: {told}", picture=picture)
