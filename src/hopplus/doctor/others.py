"""Are the opponent models good, and are they used? Judges the measures of `hopplus evaluate --others`."""

from collections.abc import Iterator
from functools import partial

import jax
import numpy as np

from hopplus.agents.player import Player
from hopplus.doctor import rollout_checks
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.evaluation.others import judge, watch
from hopplus_doctor.answer import Finding, Picture, Verdict
from hopplus_doctor.statistics import seed_interval

ASKS = "are the opponent models good, and are they used?"
ENVS = 128
SURE = 0.15
"""Suspicious: an expected calibration error of this or more."""
RARE = 0.02
"""Actions with a smaller share are not judged by their recall."""
LITTLE = 0.2
"""Suspicious: the model gains no more than this share of the possible gain over action frequencies."""
BEHIND = 0.6
"""Suspicious: a pair has this share of the best pair's ratio, or less."""
PREDICTED = 0.1
"""An action with a lower recall counts as never predicted."""
UNMOVED = 1e-4
"""Suspicious: other goals change the policies by less than this total variation."""


def ask(examined: ExaminedRun) -> Iterator[Finding]:
    """Yield the findings."""
    if not examined.learner.opponents.is_used:
        yield Finding("models", "others", "exact", "fine", "this agent has no opponent models")
        return
    if finding := rollout_checks.examples_after_leaving(examined):
        yield finding
    lineup = examined.run.lineup()
    names = [f"{'learned' if isinstance(one, Player) else type(one).__name__}" for one in lineup.policies]
    watched = watch(examined.run.game, lineup, ENVS, num_seeds=examined.config.seeds, key=jax.random.key(0))
    result = judge(examined.run.game, watched, names)
    score = result["models"]["others"]
    yield yardsticks(score)
    yield pairs(result)
    yield recall(score)
    yield calibration(score)
    if examined.learner.opponents.goals.kind != "none":
        yield use(result)


def yardsticks(score: dict) -> Finding:
    """Are the models better than action frequencies, and how near to the best possible predictor?"""
    model, marginal, ceiling = (
        score["cross_entropy"],
        score["yardsticks"]["marginal"]["cross_entropy"],
        score["yardsticks"]["ceiling"]["cross_entropy"],
    )
    learned = (marginal - model) / max(marginal - ceiling, 1e-9)
    labels = ("the model", "action frequencies", "the best possible")
    picture = Picture(
        "bars", "cross-entropy of the co-players' actions", labels, {"nats": [model, marginal, ceiling]}, "nats"
    )
    verdict: Verdict = "fine" if learned > LITTLE else "suspicious" if learned > 0 else "broken"
    says = f"the models have {learned:.0%} of the possible gain over action frequencies (cross-entropy {model:.2f})"
    threshold = f"suspicious up to {LITTLE:.0%}, broken at 0 or below"
    about = partial(Finding, "yardsticks", "others", "judgement", threshold=threshold)
    return about(verdict, says, picture=picture, next="hopplus evaluate RUN --others")


def pairs(result: dict) -> Finding:
    """Are all opponent models, one for each pair of seats, equally good?"""
    ratios = np.array([pair["ratio"] for pair in result["pairs"]])
    labels = tuple(f"{pair['player']} of {pair['other'].removeprefix('player_')}" for pair in result["pairs"])
    effect = seed_interval(ratios)
    worst = int(ratios.argmin())
    verdict: Verdict = "fine" if ratios.min() > BEHIND * ratios.max() else "suspicious"
    says = f"top-1 is {effect.estimate:.0%} of the ceiling; the lowest pair is {labels[worst]}, {ratios[worst]:.0%}"
    picture = Picture("bars", "top-1 over the ceiling, by pair", labels, {"ratio": ratios.tolist()})
    threshold = f"suspicious if the lowest is {BEHIND} of the best, or less"
    about = partial(Finding, "pairs", "others", "judgement", threshold=threshold)
    return about(verdict, says, effect, "of the ceiling", picture=picture)


def recall(score: dict) -> Finding:
    """Is every action predicted at times? The actions that pay are rare, and accuracy alone does not show them."""
    rows = [row for row in score["actions"] if row["support"]]
    labels = tuple(row["name"] for row in rows)
    of_model, best = ([row[key] or 0.0 for row in rows] for key in ("recall", "recall_ceiling"))
    common = [row for row in rows if (row["share"] or 0) > RARE and row["recall_ceiling"]]
    missed = [row["name"] for row in common if (row["recall"] or 0) < PREDICTED < row["recall_ceiling"]]
    picture = Picture("bars", "recall of each action", labels, {"model": of_model, "best possible": best})
    verdict: Verdict = "suspicious" if missed else "fine"
    says = f"never predicted: {', '.join(missed)}" if missed else "every action that is not rare is predicted at times"
    threshold = f"suspicious if recall is below {PREDICTED} and its ceiling above, for actions with a share over {RARE}"
    about = partial(Finding, "recall of actions", "others", "judgement", threshold=threshold)
    return about(verdict, says, picture=picture)


def calibration(score: dict) -> Finding:
    """Are predictions right as often as their probability says?"""
    error = score["calibration"]["ece"]
    bins = [each for each in score["calibration"]["bins"] if each["count"]]
    labels = tuple(f"{each['confidence']:.2f}" for each in bins)
    series = {"accuracy": [each["accuracy"] for each in bins], "probability": [each["confidence"] for each in bins]}
    picture = Picture("lines", "accuracy of predictions, by their probability", labels, series)
    verdict: Verdict = "fine" if error < SURE else "suspicious"
    about = partial(Finding, "calibration", "others", "judgement", threshold=f"suspicious from {SURE} on")
    return about(verdict, f"expected calibration error {error:.3f}", picture=picture)


def use(result: dict) -> Finding:
    """Do the policies change when goals are shuffled between environments?"""
    moved = {how: change["total_variation"] for how, change in result["use"].items()}
    picture = Picture("bars", "change of the policies, total variation", tuple(moved), {"moved": list(moved.values())})
    says = f"with goals shuffled between environments the policies change by {moved['shuffled']:.3f}"
    about = partial(Finding, "use of goals", "goals", "judgement", threshold=f"suspicious below {UNMOVED:g}")
    if moved["shuffled"] < UNMOVED:
        return about("suspicious", f"{says}: goals are not used", picture=picture)
    return about("fine", f"{says}: goals are used", picture=picture)
