"""Is the model of the others good, and is it used? The measures of `hopplus evaluate --others`, judged."""

from collections.abc import Iterator

import jax
import numpy as np

from hopplus.doctor import playing
from hopplus.doctor.answer import Finding, Picture, Verdict
from hopplus.doctor.case import Case
from hopplus.evaluation.others import judge, watch
from hopplus.evaluation.statistics import seed_interval
from hopplus.learning.minds import Player

ASKS = "is the opponent model good, and is it used?"
TABLES = 128
SURE = 0.15
"""Expected calibration error from which on a model is surer, or less sure, than it is right."""
RARE = 0.02
"""Share of an action below which its recall says little."""


def ask(case: Case) -> Iterator[Finding]:
    """One finding after the other."""
    if case.learner.mind.others.models == "none":
        yield Finding("models", "others", "fine", "this agent has no models of the others")
        return
    if found := playing.company(case):
        yield found
    lineup = case.run.lineup()
    names = [f"{'learned' if isinstance(one, Player) else type(one).__name__}" for one in lineup.policies]
    watched = watch(case.run.game, lineup, TABLES, num_seeds=case.config.seeds, key=jax.random.key(0))
    found = judge(case.run.game, watched, names)
    score = found["models"]["others"]
    yield yardsticks(score)
    yield pairs(found)
    yield recall(score)
    yield calibration(score)
    if case.learner.mind.goals.kind != "none":
        yield use(found)


def yardsticks(score: dict) -> Finding:
    """Better than mere frequencies, and how near to what can be known?"""
    model, marginal, ceiling = (
        score["cross_entropy"],
        score["yardsticks"]["marginal"]["cross_entropy"],
        score["yardsticks"]["ceiling"]["cross_entropy"],
    )
    learned = (marginal - model) / max(marginal - ceiling, 1e-9)
    labels = ("the model", "action frequencies", "the best possible")
    picture = Picture(
        "bars", "cross-entropy of what co-players do", labels, {"nats": [model, marginal, ceiling]}, "nats"
    )
    verdict: Verdict = "fine" if learned > 0.2 else "suspicious" if learned > 0 else "broken"
    says = f"of what can be known beyond action frequencies the models know {learned:.0%} (cross-entropy {model:.2f})"
    return Finding("yardsticks", "others", verdict, says, picture=picture, next="hopplus evaluate RUN --others")


def pairs(found: dict) -> Finding:
    """Is every seat's model of every other as good?"""
    ratios = np.array([pair["ratio"] for pair in found["pairs"]])
    labels = tuple(f"{pair['player']} of {pair['other'].removeprefix('player_')}" for pair in found["pairs"])
    effect = seed_interval(ratios)
    worst = int(ratios.argmin())
    verdict: Verdict = "fine" if ratios.min() > 0.6 * ratios.max() else "suspicious"
    says = f"top-1 is {effect.estimate:.0%} of the ceiling; least for {labels[worst]}, {ratios[worst]:.0%}"
    picture = Picture("bars", "top-1 over the ceiling, by pair", labels, {"ratio": ratios.tolist()})
    return Finding("pairs", "others", verdict, says, effect, "of the ceiling", picture=picture)


def recall(score: dict) -> Finding:
    """Rare actions are what games are about: are they foreseen as often as they can be?"""
    rows = [row for row in score["actions"] if row["support"]]
    labels = tuple(row["name"] for row in rows)
    of_model, best = ([row[key] or 0.0 for row in rows] for key in ("recall", "recall_ceiling"))
    common = [row for row in rows if (row["share"] or 0) > RARE and row["recall_ceiling"]]
    missed = [row["name"] for row in common if (row["recall"] or 0) < 0.1 < row["recall_ceiling"]]
    picture = Picture("bars", "recall of each action", labels, {"model": of_model, "best possible": best})
    verdict: Verdict = "suspicious" if missed else "fine"
    says = f"never foreseen: {', '.join(missed)}" if missed else "every action that is not rare is foreseen at times"
    return Finding("recall of actions", "others", verdict, says, picture=picture)


def calibration(score: dict) -> Finding:
    """Does what it says come true as often as it says?"""
    error = score["calibration"]["ece"]
    bins = [each for each in score["calibration"]["bins"] if each["count"]]
    labels = tuple(f"{each['confidence']:.2f}" for each in bins)
    told = {"came true": [each["accuracy"] for each in bins], "said": [each["confidence"] for each in bins]}
    picture = Picture("lines", "how often predictions came true, by how sure they were", labels, told)
    verdict: Verdict = "fine" if error < SURE else "suspicious"
    return Finding("calibration", "others", verdict, f"expected calibration error {error:.3f}", picture=picture)


def use(found: dict) -> Finding:
    """Do policies change when the goals are those of another table?"""
    moved = {how: change["total_variation"] for how, change in found["use"].items()}
    picture = Picture("bars", "change of the policies, total variation", tuple(moved), {"moved": list(moved.values())})
    says = f"with goals shuffled between tables the policies move by {moved['shuffled']:.3f}"
    if moved["shuffled"] < 1e-4:
        return Finding("use of goals", "goals", "suspicious", f"{says}: they are not used", picture=picture)
    return Finding("use of goals", "goals", "fine", f"{says}: they are used", picture=picture)
