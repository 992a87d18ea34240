"""Do the seats of several runs differ in the same way? The settings and the seats' returns of the runs are compared."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float64

from hopplus.doctor.examined_run import ExaminedRun
from hopplus.doctor.seats import final_returns
from hopplus_doctor.answer import NO_THRESHOLD, Finding, Picture, Significance
from hopplus_doctor.seat_returns import LEAST_SEEDS, MATTERS, over_mean, stands_out

IGNORED = ("seed", "steps", "wandb", "checkpoint_every")
"""Settings that are not compared: they do not change how an update learns."""


def compare(examined: ExaminedRun, others: Sequence[ExaminedRun]) -> Iterator[Finding]:
    """Compare the settings, the returns of all seeds of all runs together, and the spread of seats in each run."""
    runs = [examined, *others]
    yield settings(runs)
    seats = {len(run.seats) for run in runs}
    if len(seats) > 1 or not all(run.is_symmetric and not run.game.spec.roles for run in runs):
        words, advice = (
            "the runs do not learn in the same seats",
            "give runs of the same game without --co-players and roles",
        )
        yield Finding("all runs", "seats", "test", "not enough evidence", words, next=advice)
        return
    over = [over_mean(final_returns(run)) for run in runs]
    yield together(examined, np.concatenate(over))
    yield spreads(runs, over)


def settings(runs: Sequence[ExaminedRun]) -> Finding:
    """The settings that differ between runs. Within a run all seats have the same settings."""
    flat = [dict(_flat(asdict(run.config))) for run in runs]
    names = [name for name in flat[0] if name not in IGNORED and len({str(each.get(name)) for each in flat}) > 1]
    words = "; ".join(f"{name}: {', '.join(str(each.get(name)) for each in flat)}" for name in names)
    says = f"the runs differ in {words}" if names else "the runs have the same settings, and no setting names a seat"
    return Finding("settings", "settings", "exact", "fine", says)


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def together(examined: ExaminedRun, pooled: Float64[np.ndarray, "seeds seats"]) -> Finding:
    """Test the seat that stands out most over the seeds of all runs."""
    if len(pooled) < LEAST_SEEDS:
        words = f"{len(pooled)} seeds have returns of all seats; the test needs {LEAST_SEEDS} or more"
        return Finding("all runs", "seats", "test", "not enough evidence", words, next="train with more --seeds")
    seat, effect, p_value = stands_out(pooled)
    samples = {name: pooled[:, at].tolist() for at, name in enumerate(examined.seats)}
    title = "return over the mean of all seats, for each seed of each run"
    picture = Picture("boxes", title, examined.seats, samples, "of the mean")
    says = f"over all {len(pooled)} seeds {examined.seats[seat]} gets {effect.estimate:+.1%} of the mean of all seats"
    test = Significance(p_value, MATTERS)
    return Finding("all runs", "seats", "test", "fine", says, effect, "of the mean", test, picture)


def spreads(runs: Sequence[ExaminedRun], over: Sequence[Float64[np.ndarray, "seeds seats"]]) -> Finding:
    """The distance of the best seat from the worst in each run. With shared parameters only chance makes one."""
    names = [f"{run.folder.name} ({run.learner.sharing})" for run in runs]
    by_run = {name: np.ptp(values, axis=1) for name, values in zip(names, over, strict=True)}
    boxes = {name: values.tolist() for name, values in by_run.items()}
    picture = Picture("boxes", "distance of the best seat from the worst, by seed", tuple(boxes), boxes, "of the mean")
    words = ", ".join(f"{name} {values.mean():.1%}" for name, values in by_run.items())
    about = partial(Finding, "spread of seats", "seats", "judgement", threshold=NO_THRESHOLD)
    return about("fine", f"best seat over worst: {words}", picture=picture)
