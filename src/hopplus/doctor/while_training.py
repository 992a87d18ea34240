"""`train --doctor-every N`: the doctor's cheap questions at the checkpoints of a run that is still training.

Parameters: is every module of every learner updated, are they finite, and does each learner have its own? Returns: do
seats differ over seeds, in the updates since the last time? Both take milliseconds. One more rollout is played and
recomputed (rewards, targets, ends, samples) once the run is long enough that compiling it fits the time.

The doctor takes at most 3% of the time: a question that would take more waits for a later checkpoint. Nothing of the
training is changed, to the bit.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from hopplus.doctor.examined_run import ExaminedRun, learned_params
from hopplus.doctor.recording import recorded_steps, recorder_of
from hopplus.learning.state import LearnerState
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import METRICS
from hopplus.runs.records import RETURN_FAMILY
from hopplus_doctor import data_questions, target_questions, update_questions
from hopplus_doctor.answer import Answer, Finding, settled
from hopplus_doctor.names import player_name
from hopplus_doctor.recorder import checksum
from hopplus_doctor.recording import Recording, read_recording
from hopplus_doctor.schema import Settings
from hopplus_doctor.seat_returns import LEAST_SEEDS, returns_of_seeds

MOST = 0.03
"""The largest share of the time that the doctor takes."""
FIRST_ROLLOUT = 30.0
"""Seconds that are set aside for compiling and playing the first rollout."""
TAIL = 1 << 19
"""Bytes at the end of the metrics that are read."""
MODULES = ("policy", "others", "world")


class Checkup:
    """Called with the states of a run at its checkpoints; asks if N updates have passed since it last asked."""

    def __init__(self, config: RunConfig, out: Path, every: int, say: Callable[[str], None]):
        if every < 1:
            raise ValueError(f"--doctor-every is {every}; give 1 or more updates")
        self._examined, self._every, self._say = ExaminedRun(out, config), every, say
        self._started, self._spent, self._rollout_seconds = time.perf_counter(), 0.0, FIRST_ROLLOUT
        self._before: tuple[int, np.ndarray] | None = None
        self._said: set[tuple[str, str]] = set()
        self._checkups = 0

    @property
    def share(self) -> float:
        """The doctor's share of the time since the command began."""
        return self._spent / max(time.perf_counter() - self._started, 1e-9)

    def __call__(self, done: int, states: LearnerState) -> dict[str, Any] | None:
        """Ask, if it is time. Returns a row for the run's records: what is broken or suspicious, and the share."""
        if self._before is not None and done - self._before[0] < self._every:
            return None
        if self._before is not None and self.share > MOST:
            return None
        started = time.perf_counter()
        sums, finite = checksums_of(jax.device_get(learned_params(states)))
        before, self._before = self._before, (done, sums)
        if before is None:  # the beginning, which the first checkpoint is compared with
            self._spent += time.perf_counter() - started
            return None
        answers = [Answer("modules", update_questions.ASKS, tuple(self._parameters(before[1], sums, finite)))]
        answers.append(Answer("seats", update_questions.SEATS_ASK, tuple(self._returns(before[0], done))))
        self._spent += time.perf_counter() - started
        answers += self._rollout(states)
        self._checkups += 1
        found = settled([_for_many_checkups(answer, self._checkups) for answer in answers])
        return self._row(done, [finding for answer in found for finding in answer.findings])

    def _row(self, done: int, findings: list[Finding]) -> dict[str, Any]:
        bad = [finding for finding in findings if finding.verdict in ("suspicious", "broken")]
        for finding in bad:
            if (finding.check, finding.verdict) not in self._said:
                self._said.add((finding.check, finding.verdict))
                self._say(f"doctor, update {done}: {finding.verdict}: {finding.module}: {finding.says}")
        counts = {verdict: sum(f.verdict == verdict for f in bad) for verdict in ("broken", "suspicious")}
        shown = [{n: getattr(f, n) for n in ("verdict", "check", "module", "kind", "says", "next")} for f in bad]
        steps = done * self._examined.config.learner.steps_per_update
        about = {"update": done, "env_steps": steps, "asked": len(findings), "share": round(self.share, 5)}
        return about | counts | {"findings": shown}

    def _parameters(self, before: np.ndarray, after: np.ndarray, finite: bool) -> Iterator[Finding]:
        """`before` and `after` are checksums [seeds, modules, learners]."""
        if not finite:
            yield Finding("finite parameters", "policy", "exact", "broken", "some parameters are not finite")
        learners, shared = before.shape[2], self._examined.learner.sharing == "shared"
        names = tuple(player_name(seat) for seat in range(learners)) if learners > 1 or not shared else ("every seat",)
        there = [at for at in range(len(MODULES)) if MODULES[at] == "policy" or (before != after)[:, at].any()]
        groups = {"updates": {"checksums_before": before[:, there], "checksums_after": after[:, there]}}
        modules, seeds = tuple(MODULES[at] for at in there), tuple(range(len(before)))
        recording = Recording("", names, seeds, Settings(shared_parameters=False), modules, None, groups)
        for finding in update_questions.ask(recording):  # fixed models of others may be equal
            if finding.module == "policy" or finding.check.startswith("updates of"):
                yield finding

    def _returns(self, before: int, done: int) -> Iterator[Finding]:
        """Do the returns of the last updates differ between seats of one role?"""
        examined = self._examined
        roles = examined.game.spec.seats_by_role
        if not examined.is_symmetric or len(roles) > 1 or examined.config.seeds < LEAST_SEEDS:
            return
        tags = [f"{RETURN_FAMILY}/{player_name(seat)}" for seat in range(examined.game.spec.num_agents)]
        rows = [row for row in _last_rows(examined.folder / METRICS) if before < row["update"] <= done]
        rows = [row for row in rows if all(tag in row for tag in tags)]
        if not rows:
            return
        returns = np.array([[row[tag] for tag in tags] for row in rows], float)  # updates, seats, seeds
        known = np.isfinite(returns)
        if not known.any(axis=0).all():
            return
        means = np.where(known, returns, 0.0).sum(0) / known.sum(0)
        advice = f"hopplus doctor game {examined.config.game}"
        yield from returns_of_seeds(means.T, tuple(map(player_name, range(len(tags)))), "", advice)

    def _rollout(self, states: LearnerState) -> list[Answer]:
        """Play and recompute one more rollout of the first seed, if that fits the time."""
        elapsed = time.perf_counter() - self._started
        if not self._examined.game.is_compiled or self._spent + self._rollout_seconds > MOST * elapsed:
            return []
        started = time.perf_counter()
        with jax.debug_key_reuse(False), tempfile.TemporaryDirectory() as folder:
            state = jax.tree.map(lambda leaf: leaf[0], jax.device_get(states))
            recorder = recorder_of(self._examined, Path(folder))
            recorder.record(0, "real", **recorded_steps(self._examined, self._examined.play(state)))
            recording = read_recording(recorder.save())
        questions = {"data": data_questions, "targets": target_questions}
        answers = [Answer(name, of.ASKS, tuple(of.ask(recording))) for name, of in questions.items()]
        self._rollout_seconds = time.perf_counter() - started
        self._spent += self._rollout_seconds
        return answers


def _for_many_checkups(answer: Answer, number: int) -> Answer:
    """The answer of the checkup of this number, from 1. The shares of the level that checkups use, 1 / (k (k + 1)), sum
    to one over any number of them: a longer run has no more false alarms."""

    def adjusted(finding: Finding) -> Finding:
        if finding.test is None:
            return finding
        p_value = min(finding.test.p_value * number * (number + 1), 1.0)
        return replace(finding, test=replace(finding.test, p_value=p_value))

    return replace(answer, findings=tuple(map(adjusted, answer.findings)))


def checksums_of(params: Sequence[PyTree]) -> tuple[np.ndarray, bool]:
    """Checksums [seeds, modules, learners] of the parameters of each module, and whether all of them are finite."""
    leaves = [[leaf for leaf in jax.tree.leaves(part) if np.size(leaf)] for part in params]
    seeds, learners = _leading(params[0])
    sums = np.zeros((seeds, len(MODULES), learners), np.int64)
    for at, part in enumerate(leaves):
        for seed, learner in np.ndindex(seeds, learners):
            sums[seed, at, learner] = checksum([np.asarray(leaf[seed, learner]) for leaf in part])
    finite = all(np.isfinite(leaf).all() for part in leaves for leaf in part if np.asarray(leaf).dtype.kind == "f")
    return sums, finite


def _leading(part: PyTree) -> tuple[int, int]:
    shape = np.shape(jax.tree.leaves(part)[0])
    return shape[0], shape[1]


def _last_rows(path: Path) -> list[dict[str, Any]]:
    """The rows at the end of the metrics."""
    with path.open("rb") as file:
        file.seek(0, 2)
        size = file.tell()
        file.seek(max(0, size - TAIL))
        lines = file.read().splitlines(keepends=True)
    whole = lines[1 if size > TAIL else 0 :]
    return [json.loads(line) for line in whole if line.endswith(b"\n")]
