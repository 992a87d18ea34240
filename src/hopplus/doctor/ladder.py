"""Which module brings the symptom? The agent is built up from plain PPO, one module after the other, and each rung is
trained with shared and with independent parameters. The first rung on which the symptom appears names the module.

    ppo | + others | + goals | + world | + imagination, actor only | full

Others come before goals: here goals are what models of the others are asked about. Rungs are trials of a study, so the
ladder runs on Ray, goes on where it was stopped, and every rung is a run folder that any other command reads.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float64
from scipy.stats import ttest_ind

from hopplus.doctor.answer import Answer, Finding, Picture, Significance
from hopplus.evaluation.statistics import Interval, bootstrap
from hopplus.learning.imagination import ImaginationConfig
from hopplus.learning.learner import LearnerConfig
from hopplus.learning.minds import MindConfig
from hopplus.learning.planner import PlanningConfig
from hopplus.models.goals import GoalsConfig
from hopplus.models.world import WorldConfig
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import read_config
from hopplus.runs.records import RETURN_TAG, Recorded, final_by_seat, final_means, read_run
from hopplus.runs.studies import Study, run_study

Symptom = Literal["value_loss", "seats", "return"]
RUNGS = {
    "ppo": "policy",
    "+ others": "others",
    "+ goals": "goals",
    "+ world": "world",
    "+ imagination, actor only": "imagination",
    "full": "imagination: critic",
}
"""What each rung adds, and whom it blames."""
MATTERS: dict[Symptom, float] = {"value_loss": 0.5, "seats": 0.1, "return": 0.1}
"""Of plain PPO's value loss, of the mean return, of PPO's return."""
WORDS: dict[Symptom, str] = {
    "value_loss": "value loss on real data",
    "seats": "distance of the best seat from the worst",
    "return": "shortfall of the return",
}


@dataclass(frozen=True)
class Ladder:
    """The rungs as a study, and what is looked for on them."""

    study: Study
    symptom: Symptom


def read_ladder(folder: Path, symptom: Symptom, steps: int | None = None) -> Ladder:
    """The ladder of a run: its settings are the top."""
    config = read_config(folder)
    config = replace(config, steps=steps or config.steps, pretrained=None, begin_with=None, wandb=None)
    variants = {
        f"{rung}, {sharing}": replace(config, agent=_agent(rung, config), learner=replace(learner, sharing=sharing))
        for rung, learner in rungs(config.learner).items()
        for sharing in ("independent", "shared")
    }
    return Ladder(Study(f"the ladder of {folder.name}: {WORDS[symptom]}", variants, 1), symptom)


def _agent(rung: str, config: RunConfig) -> str:
    """The name under which a rung is kept: what it is made of is in its settings."""
    return "ppo" if rung == "ppo" else config.agent


def rungs(full: LearnerConfig) -> dict[str, LearnerConfig]:
    """From plain PPO to the whole agent; rungs that would add nothing are left out."""
    nobody = replace(full, mind=MindConfig(), planning=PlanningConfig(), imagination=ImaginationConfig())
    nothing = replace(nobody, world=WorldConfig())
    with_others = replace(nothing, mind=MindConfig(GoalsConfig(), full.mind.others))
    with_goals = replace(nothing, mind=full.mind)
    with_world = replace(with_goals, world=full.world)
    for_actor = replace(full.imagination, critic="real") if full.imagination.is_used else full.imagination
    actor_only = replace(with_world, imagination=for_actor)
    built = dict(zip(RUNGS, (nothing, with_others, with_goals, with_world, actor_only, full), strict=True))
    found: dict[str, LearnerConfig] = {}
    for name, config in built.items():
        if config not in found.values():
            found[name] = config
    return found


def climb(ladder: Ladder, out: Path, *, tell: Callable[[str], None] = lambda _: None) -> Answer:
    """Train what is not trained yet, and compare."""
    ended = run_study(ladder.study, out, on_state=lambda trial, state, _: tell(f"{trial.variant}: {state}"))
    if failed := [one for one in ended if one.reason]:
        raise ValueError(f"{failed[0].trial.variant}: {failed[0].reason}")
    records = {trial.variant: read_run(out / trial.place) for trial in ladder.study.all_trials()}
    findings = [
        finding for sharing in ("independent", "shared") for finding in compare(records, sharing, ladder.symptom)
    ]
    return Answer("ladder", "which module brings the symptom?", tuple(findings))


def compare(records: dict[str, Recorded], sharing: str, symptom: Symptom) -> list[Finding]:
    """Every rung against plain PPO with the same sharing of parameters."""
    found = {
        name.removesuffix(f", {sharing}"): symptom_of(record, symptom)
        for name, record in records.items()
        if name.endswith(f", {sharing}")
    }
    base = found["ppo"]
    boxes = {name: values.tolist() for name, values in found.items()}
    picture = Picture("boxes", f"{WORDS[symptom]} at the end of training, {sharing} parameters", tuple(boxes), boxes)
    return [
        _rung(name, sharing, symptom, base, values, picture)
        for name, values in found.items()
        if name != "ppo"
    ]  # fmt: skip


def _rung(name: str, sharing: str, symptom: Symptom, base: np.ndarray, values: np.ndarray, picture: Picture) -> Finding:
    scale = 1.0 if symptom == "seats" else max(abs(float(base.mean())), 1e-9)
    effect = bootstrap(lambda one, other: (np.mean(one, -1) - np.mean(other, -1)) / scale, values, base)
    p_value = _p_value(values, base) if len(base) > 1 else 1.0
    says = f"{WORDS[symptom]} with {name}: {values.mean():.3g}; of plain PPO: {base.mean():.3g}"
    unit = "of the mean return" if symptom == "seats" else "of plain PPO's"
    test = Significance(p_value, MATTERS[symptom])
    worse = Interval(max(effect.estimate, 0.0), effect.low, effect.high)
    return Finding(f"{name}, {sharing}", RUNGS[name], "fine", says, worse, unit, test, picture)


def _p_value(values: np.ndarray, base: np.ndarray) -> float:
    _, p_value = ttest_ind(values, base, equal_var=False, alternative="greater")
    found = float(np.asarray(p_value))
    return found if np.isfinite(found) else 1.0


def symptom_of(record: Recorded, symptom: Symptom) -> Float64[np.ndarray, " seeds"]:
    """The greater, the worse; at the end of training, by seed."""
    if symptom == "value_loss":
        return final_means(record, "policy/value_loss_real")
    returns = final_means(record, RETURN_TAG)
    if symptom == "return":
        return -returns
    return np.ptp(final_by_seat(record), axis=1) / np.maximum(np.abs(returns), 1e-9)
