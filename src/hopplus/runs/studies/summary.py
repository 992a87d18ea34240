"""The results of a study: final scores by variant, answers to its questions, curves, and an export for other tools.

A score is the mean of a metric over the last fifth of training, one number for each seed of each trial.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.runs.folder import TIMING
from hopplus.runs.records import FINAL_SHARE, read_run, training_seconds
from hopplus.runs.studies.cluster import State, failure_file
from hopplus.runs.studies.study import RETURNS, Question, Study, Trial
from hopplus_doctor.statistics import (
    Interval,
    difference_interval,
    improvement_interval,
    interquartile_mean,
    seed_interval,
)


@dataclass(frozen=True)
class Curve:
    """A metric over training, for all seeds of all trials of a variant."""

    env_steps: np.ndarray
    values: np.ndarray
    """[updates, seeds]; NaN if a seed has no value, or its run ended earlier than the longest."""
    scores: np.ndarray
    """The final score of each seed: its mean over the last fifth of its own training."""


@dataclass(frozen=True)
class VariantSummary:
    """The scores of a variant."""

    name: str
    seeds: int
    score: Interval
    """The mean over seeds."""
    interquartile_mean: float
    scores: tuple[float, ...]
    """The score of each seed."""
    lowest: float
    highest: float
    optimality_gap: Interval
    """The mean over seeds of what the score lacks to the best one; 0 for a seed that is at the best one or above."""
    seconds: float
    """Seconds of training, summed over trials."""


@dataclass(frozen=True)
class Answer:
    """The answer of the trials to a question."""

    question: Question
    difference: Interval
    """The mean of the first variant minus that of the second."""
    probability: Interval
    """The probability that a seed of the first variant beats one of the second."""
    verdict: str


def state_of(trial: Trial, out: Path) -> tuple[State, int, str | None]:
    """The state of a trial from its folder, the updates done, and why it failed."""
    done = last_update(out / trial.place)
    if trial.is_done(out):
        return "done", trial.config.num_updates, None
    failure = failure_file(out, trial)
    if failure.exists():
        return "failed", done, failure.read_text().strip()
    return ("running" if done else "waiting"), done, None


def last_update(folder: Path) -> int:
    """The last update that a run has written, 0 if there is none; only the end of the file is read."""
    path = folder / TIMING
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1024))
        lines = file.read().splitlines()
    for line in reversed(lines):
        try:
            return int(json.loads(line)["update"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0


def read_curve(study: Study, out: Path, variant: str, metric: str) -> Curve | None:
    """The metric of all trials that are done; None if no trial is done."""
    steps, columns, scores = np.zeros(0), [], []
    for trial in study.all_trials():
        if trial.variant != variant or not trial.is_done(out):
            continue
        run = read_run(out / trial.place)
        if metric not in run.metrics:
            raise ValueError(f"variant {variant!r} records no {metric!r}; give one of {', '.join(sorted(run.metrics))}")
        values = run.metrics[metric]
        columns.append(values)
        scores.append(np.nanmean(values[-max(1, round(len(values) * FINAL_SHARE)) :], axis=0))
        steps = max(steps, np.asarray(run.env_steps + run.population_steps), key=len)
    if not columns:
        return None
    padded = [np.pad(each, ((0, len(steps) - len(each)), (0, 0)), constant_values=np.nan) for each in columns]
    return Curve(steps, np.concatenate(padded, axis=1), np.concatenate(scores))


def summarise(study: Study, out: Path, metric: str = RETURNS, *, best: float | None = None) -> list[VariantSummary]:
    """The summaries of the variants that have a trial that is done.

    `best` is the score that optimality gaps are measured to; by default the highest score of a seed in the study.
    """
    curves = {name: read_curve(study, out, name, metric) for name in study.variants}
    scores_by_name = {name: curve.scores for name, curve in curves.items() if curve is not None}
    highest = max((float(np.nanmax(scores)) for scores in scores_by_name.values()), default=0.0)
    best = highest if best is None else best
    return [
        VariantSummary(
            name,
            len(scores),
            seed_interval(scores),
            float(interquartile_mean(scores)),
            tuple(scores.tolist()),
            float(scores.min()),
            float(scores.max()),
            seed_interval(np.maximum(best - scores, 0.0)),
            sum(training_seconds(out / trial.place) for trial in study.all_trials() if trial.variant == name),
        )
        for name, scores in scores_by_name.items()
    ]


def performance_profile(scores: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The scores in rising order, and the share of seeds that have at least that score."""
    ordered = np.sort(np.asarray(scores, np.float64))
    return ordered, 1 - np.arange(len(ordered)) / len(ordered)


def answer(study: Study, out: Path, question: Question) -> Answer | None:
    """The answer to a question; None if one of its variants has no trial that is done."""
    curves = [read_curve(study, out, name, question.metric) for name in question.compare]
    if curves[0] is None or curves[1] is None:
        return None
    ones, others = (curve.scores for curve in curves if curve)
    difference = difference_interval(ones, others)
    return Answer(question, difference, improvement_interval(ones, others), _verdict(difference, question.compare))


def _verdict(difference: Interval, compare: tuple[str, str]) -> str:
    first, second = compare
    if not math.isfinite(difference.low):
        return "not enough seeds to tell"
    if difference.low > 0:
        return f"yes: {first} is above {second}"
    if difference.high < 0:
        return f"no: {first} is below {second}"
    return f"not told apart: the difference lies between {difference.low:.2g} and {difference.high:.2g}"


def marl_eval(study: Study, out: Path) -> dict[str, Any]:
    """The study in the format of the marl-eval tools: environment, task, algorithm, run, step."""
    exported: dict[str, Any] = {}
    for name, config in study.variants.items():
        curve = read_curve(study, out, name, RETURNS)
        if curve is None:
            continue
        environment, _, task = str(config.game).rpartition("-")
        runs = exported.setdefault(environment or task, {}).setdefault(task, {}).setdefault(name, {})
        for seed, (values, score) in enumerate(zip(curve.values.T, curve.scores, strict=True)):
            known = [(steps, value) for steps, value in zip(curve.env_steps, values, strict=True) if np.isfinite(value)]
            steps = {
                f"step_{index}": {"step_count": int(steps), "mean_episode_return": [float(value)]}
                for index, (steps, value) in enumerate(known)
            }
            runs[f"seed_{seed}"] = steps | {"absolute_metrics": {"mean_episode_return": [float(score)]}}
    return exported
