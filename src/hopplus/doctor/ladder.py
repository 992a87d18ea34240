"""Which module causes a symptom? The ladder builds the agent up from plain PPO, one module at a time, and trains each
rung with shared and with independent parameters. The first rung with the symptom names the module.

    ppo | + others | + goals | + world | + imagination, actor only | full

Opponent models come before goals, because goals are an input of the opponent models. Rungs are trials of a study: the
ladder runs on Ray, resumes after a stop, and every rung is a run folder that all other commands can read.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from scipy.stats import ttest_ind

from hopplus.agents.config import OpponentsConfig, PlanningConfig
from hopplus.doctor.questions import Symptom
from hopplus.learning.config import ImaginationConfig, LearnerConfig, UtilitiesConfig
from hopplus.models.config import GoalsConfig, WorldConfig
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import read_config
from hopplus.runs.records import RETURN_TAG, Recorded, final_by_seat, final_means, read_run
from hopplus.runs.studies import Study, run_study
from hopplus_doctor.answer import Answer, Finding, OnProgress, Picture, Significance
from hopplus_doctor.statistics import Interval, difference_interval

RUNGS = {
    "ppo": "policy",
    "+ others": "others",
    "+ goals": "goals",
    "+ world": "world",
    "+ imagination, actor only": "imagination",
    "full": "imagination: critic",
}
"""The rungs, and the module that each adds and blames."""
MATTERS: dict[Symptom, float] = {"value_loss": 0.5, "seats": 0.1, "return": 0.1}
"""The smallest effect that matters: shares of PPO's value loss, of the mean absolute return, and of PPO's return."""
WORDS: dict[Symptom, str] = {
    "value_loss": "value loss on real data",
    "seats": "distance of the best seat from the worst",
    "return": "shortfall of the return",
}


@dataclass(frozen=True)
class Ladder:
    """The rungs as a study, and the symptom to look for."""

    study: Study
    symptom: Symptom


def read_ladder(folder: Path, symptom: Symptom, steps: int | None = None) -> Ladder:
    """The ladder of a run; the run's settings are the top rung."""
    config = read_config(folder)
    steps = steps or config.steps
    config = replace(
        config, steps=steps, early_stop=0, pretrained=None, pretrained_world=None, init_from=None, wandb=None
    )
    variants = {
        f"{rung}, {sharing}": replace(config, agent=_agent(rung, config), learner=replace(learner, sharing=sharing))
        for rung, learner in rungs(config.learner).items()
        for sharing in ("independent", "shared")
    }
    return Ladder(Study(f"the ladder of {folder.name}: {WORDS[symptom]}", variants, 1), symptom)


def _agent(rung: str, config: RunConfig) -> str:
    """The agent name that a rung's run folder records."""
    return "ppo" if rung == "ppo" else str(config.agent)


def rungs(full: LearnerConfig) -> dict[str, LearnerConfig]:
    """The settings of each rung, from plain PPO to the full agent. A rung equal to an earlier one is left out."""
    ppo = replace(
        full,
        opponents=OpponentsConfig(),
        planning=PlanningConfig(),
        imagination=ImaginationConfig(),
        world=WorldConfig(),
        utilities=UtilitiesConfig(),
    )
    with_others = replace(ppo, opponents=OpponentsConfig(GoalsConfig(), full.opponents.others))
    with_goals = replace(ppo, opponents=full.opponents, utilities=full.utilities)
    with_world = replace(with_goals, world=full.world)
    for_actor = replace(full.imagination, critic="real") if full.imagination.is_used else full.imagination
    actor_only = replace(with_world, imagination=for_actor)
    built = dict(zip(RUNGS, (ppo, with_others, with_goals, with_world, actor_only, full), strict=True))
    different: dict[str, LearnerConfig] = {}
    for name, config in built.items():
        if config not in different.values():
            different[name] = config
    return different


def climb(ladder: Ladder, out: Path, *, on_progress: OnProgress = lambda _: None) -> Answer:
    """Train the rungs that are not trained yet, and compare all."""
    ended = run_study(ladder.study, out, on_state=lambda trial, state, _: on_progress(f"{trial.variant}: {state}"))
    if failed := [one for one in ended if one.reason]:
        reason = f"{failed[0].trial.variant}: {failed[0].reason}"
        raise ValueError(f"{reason}; see `hopplus study status {out}`, then run the command again")
    records = {trial.variant: read_run(out / trial.place) for trial in ladder.study.all_trials()}
    findings = [
        finding for sharing in ("independent", "shared") for finding in compare(records, sharing, ladder.symptom)
    ]
    return Answer("ladder", "which module causes the symptom?", tuple(findings))


def compare(records: dict[str, Recorded], sharing: str, symptom: Symptom) -> list[Finding]:
    """Compare every rung with plain PPO, with the same sharing of parameters."""
    by_rung = {
        name.removesuffix(f", {sharing}"): symptom_of(record, symptom)
        for name, record in records.items()
        if name.endswith(f", {sharing}")
    }
    base = by_rung["ppo"]
    boxes = {name: values.tolist() for name, values in by_rung.items()}
    picture = Picture("boxes", f"{WORDS[symptom]} at the end of training, {sharing} parameters", tuple(boxes), boxes)
    return [
        _rung(name, sharing, symptom, base, values, picture)
        for name, values in by_rung.items()
        if name != "ppo"
    ]  # fmt: skip


def _rung(name: str, sharing: str, symptom: Symptom, base: np.ndarray, values: np.ndarray, picture: Picture) -> Finding:
    scale = 1.0 if symptom == "seats" else max(abs(float(base.mean())), 1e-9)
    effect = difference_interval(values / scale, base / scale)
    p_value = _p_value(values, base) if len(base) > 1 else 1.0
    says = f"{WORDS[symptom]} with {name}: {values.mean():.3g}; of plain PPO: {base.mean():.3g}"
    unit = "of the mean absolute return" if symptom == "seats" else "of plain PPO's"
    test = Significance(p_value, MATTERS[symptom])
    worse = Interval(max(effect.estimate, 0.0), effect.low, effect.high)
    return Finding(f"{name}, {sharing}", RUNGS[name], "test", "fine", says, worse, unit, test, picture)


def _p_value(values: np.ndarray, base: np.ndarray) -> float:
    """One-sided p-value of Welch's t-test: are the values greater than the base?"""
    p_value = float(np.asarray(ttest_ind(values, base, equal_var=False, alternative="greater")[1]))
    return p_value if np.isfinite(p_value) else 1.0


def symptom_of(record: Recorded, symptom: Symptom) -> Float64[np.ndarray, " seeds"]:
    """The size of the symptom at the end of training, for each seed; greater is worse."""
    if symptom == "value_loss":
        return final_means(record, "policy/value_loss_real")
    if symptom == "return":
        return -final_means(record, RETURN_TAG)
    by_seat = final_by_seat(record)
    return np.ptp(by_seat, axis=1) / np.maximum(np.abs(by_seat).mean(axis=1), 1e-9)
