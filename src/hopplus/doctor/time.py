"""Where does the time go? Phases of one more update, and how the speed of the run held up."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from hopplus.doctor.answer import Finding, Picture, Verdict
from hopplus.doctor.case import Case
from hopplus.doctor.imagining import imagined_play

ASKS = "where does the time go?"
REPEATS = 3
SLOWED = 0.5
"""A run whose speed falls below this share of its own median is losing something."""


def ask(case: Case) -> Iterator[Finding]:
    """One finding after the other."""
    yield phases(case)
    yield speed(case)


def phases(case: Case) -> Finding:
    """Playing, and what is learned from it; compiling is told apart, because it is paid once."""
    state = case.state(0)
    compile_play, playing = _timed(lambda: case.play(state))
    lived = case.lived[0]
    compile_learn, learning = _timed(lambda: case.learn(state, lived))
    seconds = {"play": playing}
    if case.learner.imagination.is_used:
        imagined = imagined_play(case)
        _, one_seat = _timed(lambda: imagined.of(0, 0))
        seconds["imagine"] = min(one_seat * len(case.seats), learning)
    seconds["learn"] = learning - seconds.get("imagine", 0.0)
    total = sum(seconds.values())
    shares = {name: each / total for name, each in seconds.items()}
    told = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    compiled = compile_play + compile_learn
    title = "one update of one seed"
    picture = Picture("bars", title, tuple(seconds), {"seconds": list(seconds.values())}, "seconds")
    says = f"an update of one seed takes {total:.2f} s: {told}"
    if compiled > 1:  # other questions may have compiled them before
        says += f"; compiling its parts took {compiled:.0f} s"
    return Finding("phases", "time", "fine", says, picture=picture)


def _timed(fn: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of the first call beyond the others, which is compiling, and of a usual one."""
    seconds = []
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        jax.block_until_ready(fn())
        seconds.append(time.perf_counter() - started)
    usual = float(np.median(seconds[1:]))
    return max(seconds[0] - usual, 0.0), usual


def speed(case: Case) -> Finding:
    """Steps per second over the run."""
    rates = case.recorded.timing.get("charts/steps_per_second", np.zeros(0))
    if len(rates) < 3:
        return Finding("speed", "time", "not enough evidence", "the run is too short to tell how its speed held up")
    parts = [float(np.median(part)) for part in np.array_split(rates, min(10, len(rates)))]
    share = parts[-1] / max(float(np.median(rates)), 1e-9)
    labels = tuple(f"{(index + 1) * 100 // len(parts)}%" for index in range(len(parts)))
    picture = Picture("lines", "environment steps per second, over the run", labels, {"steps per second": parts})
    verdict: Verdict = "fine" if share > SLOWED else "suspicious"
    says = f"{np.median(rates):,.0f} environment steps per second of all seeds together; at the end {share:.2f} of that"
    return Finding("speed", "time", verdict, says, picture=picture)
