"""Where does the time go? The phases of one update, and the speed over the run."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from hopplus.doctor.examined_run import ExaminedRun
from hopplus.doctor.imagined_rollout_checks import imagined_rollouts
from hopplus_doctor.answer import NO_THRESHOLD, Finding, Picture, Verdict

ASKS = "where does the time go?"
REPEATS = 3
SLOWED = 0.5
"""Suspicious: the speed at the end is below this share of the run's median speed."""


def ask(examined: ExaminedRun) -> Iterator[Finding]:
    """Yield the findings."""
    yield phases(examined)
    yield speed(examined)


def phases(examined: ExaminedRun) -> Finding:
    """Seconds of rollout, imagination and learning in one update; compile time is reported separately."""
    state = examined.state(0)
    compile_play, playing = _timed(lambda: examined.play(state))
    experience = examined.experience[0]
    compile_learn, learning = _timed(lambda: examined.learn(state, experience))
    seconds = {"play": playing}
    if examined.learner.imagination.is_used:
        imagined = imagined_rollouts(examined)
        _, one_seat = _timed(lambda: imagined.of(0, 0))
        seconds["imagine"] = min(one_seat * len(examined.seats), learning)
    seconds["learn"] = learning - seconds.get("imagine", 0.0)
    total = sum(seconds.values())
    shares = {name: each / total for name, each in seconds.items()}
    words = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    compiled = compile_play + compile_learn
    title = "one update of one seed"
    picture = Picture("bars", title, tuple(seconds), {"seconds": list(seconds.values())}, "seconds")
    says = f"an update of one seed takes {total:.2f} s: {words}"
    if compiled > 1:  # an earlier question may have compiled the parts already
        says += f"; compiling took {compiled:.0f} s"
    return Finding("phases", "time", "judgement", "fine", says, picture=picture, threshold=NO_THRESHOLD)


def _timed(fn: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of compiling (the first call minus the median of the others), and the median of the others."""
    seconds = []
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        jax.block_until_ready(fn())
        seconds.append(time.perf_counter() - started)
    usual = float(np.median(seconds[1:]))
    return max(seconds[0] - usual, 0.0), usual


def speed(examined: ExaminedRun) -> Finding:
    """Environment steps per second over the run."""
    threshold = f"suspicious below {SLOWED} of the median speed at the end"
    about = partial(Finding, "speed", "time", "judgement", threshold=threshold)
    rates = examined.recorded.timing.get("charts/steps_per_second", np.zeros(0))
    if len(rates) < 3:
        return about("not enough evidence", "the run is too short to compare speeds", next="train with more --steps")
    parts = [float(np.median(part)) for part in np.array_split(rates, min(10, len(rates)))]
    share = parts[-1] / max(float(np.median(rates)), 1e-9)
    labels = tuple(f"{(index + 1) * 100 // len(parts)}%" for index in range(len(parts)))
    picture = Picture("lines", "environment steps per second, over the run", labels, {"steps per second": parts})
    verdict: Verdict = "fine" if share > SLOWED else "suspicious"
    says = f"{np.median(rates):,.0f} environment steps per second over all seeds; at the end {share:.2f} times that"
    return about(verdict, says, picture=picture)
