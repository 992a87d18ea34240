"""How many real steps does it take to a mean return of 2.8 on 4x4? And is the critic any worse for imagined data?

hop_plus against ppo at its own best setting (the best of several sizes of a rollout) and against ppo with as many
gradient steps, among agents whose seats learn each for itself, and among agents whose seats share parameters. The
critics are compared on real play at matched returns, by the variance that they leave. Every run is an ordinary run
folder in --runs, so that it can be looked at and goes on after a kill.

    python benchmarks/sample_efficiency.py            10 seeds each
    python benchmarks/sample_efficiency.py --quick    2 seeds, one setting of each agent, seats that share parameters
"""

import argparse
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.learning.devices import num_cores, use_cores
from hopplus.learning.learner import LearnerConfig
from hopplus.report import Run, read_run
from hopplus.runs.agents import learner_of
from hopplus.runs.config import RunConfig
from hopplus.runs.progress import ProgressDisplay
from hopplus.runs.training import train
from measure import print_json, print_table

GAME, GOAL = "stag-hunt-4x4", 2.8
RETURN = "charts/episodic_return/mean"
WINDOW = 4608
"""Steps whose returns are averaged before they are held against the goal: one update has few episodes."""
RETURNS = (1.0, 1.5, 2.0, 2.5, 2.8, 3.1)
"""The ranges of returns at which critics are compared."""
RESAMPLES = 10_000


@dataclass(frozen=True)
class Variant:
    """One way to train."""

    agent: Any
    envs: int
    steps: int
    epochs: int = 4
    minibatch_size: int = 512
    sharing: Any = "independent"


INDEPENDENT = {
    "hop_plus": Variant("hop_plus", 16, 60_000),
    "ppo, 32 tables": Variant("ppo", 32, 200_000),
    "ppo, 16 tables": Variant("ppo", 16, 200_000),
    "ppo, 16 tables, shorter run": Variant("ppo", 16, 100_000),
    "ppo, 16 tables, 4 times the gradient steps": Variant("ppo", 16, 200_000, epochs=16),
    "ppo, 16 tables, as many gradient steps": Variant("ppo", 16, 200_000, epochs=16, minibatch_size=128),
}
"""Fewer tables are more updates for as many steps, a shorter run is one whose entropy bonus ends sooner."""
SHARED = {
    "hop_plus, shared": Variant("hop_plus", 16, 60_000, sharing="shared"),
    "ppo, 16 tables, shared": Variant("ppo", 16, 100_000, sharing="shared"),
    "ppo, 8 tables, shared": Variant("ppo", 8, 100_000, sharing="shared"),
    "ppo, 16 tables, shared, as many gradient steps": Variant(
        "ppo", 16, 100_000, epochs=16, minibatch_size=128, sharing="shared"
    ),
}


def config_of(variant: Variant, seeds: int) -> RunConfig:
    devices = num_cores() if variant.sharing == "independent" else 1  # learners are shared out, and here is only one
    learner = learner_of(variant.agent, LearnerConfig(devices=devices, sharing=variant.sharing))
    ppo = replace(learner.ppo, epochs=variant.epochs, minibatch_size=variant.minibatch_size)
    learner = replace(learner, envs=variant.envs, ppo=ppo)
    return RunConfig(agent=variant.agent, game=GAME, seeds=seeds, steps=variant.steps, learner=learner)


def steps_to_goal(run: Run) -> np.ndarray:
    """Real environment steps of each seed until the mean of some updates reaches the goal; infinite if never."""
    returns = run.metrics[RETURN]
    window = max(round(WINDOW / int(run.env_steps[0])), 1)
    smooth = np.stack([returns[max(0, i + 1 - window) : i + 1].mean(axis=0) for i in range(len(returns))])
    smooth[: window - 1] = -np.inf
    reached = smooth >= GOAL
    first = np.where(reached.any(axis=0), reached.argmax(axis=0), -1)
    return np.where(first >= 0, run.env_steps[first], np.inf)


def critics(run: Run) -> dict[str, float | None]:
    """1 - explained variance on real play, in the mean over updates and seeds whose returns are in a range."""
    returns, unexplained = run.metrics[RETURN], 1 - run.metrics["policy/explained_variance"]
    found = {}
    for low, high in pairwise(RETURNS):
        within = unexplained[(returns >= low) & (returns < high)]
        found[f"{low} to {high}"] = float(within.mean()) if within.size else None
    return found


def final_return(run: Run) -> float:
    """Of all seeds, over the last tenth of the updates."""
    returns = run.metrics[RETURN]
    return float(returns[-max(len(returns) // 10, 1) :].mean())


def times_fewer(base: np.ndarray, other: np.ndarray) -> dict[str, float | None]:
    """How many times fewer steps `other` needs: of medians, and a 95% bootstrap interval. None: nobody can tell."""
    rng = np.random.default_rng(0)
    draw = lambda values: np.median(rng.choice(values, (RESAMPLES, len(values))), axis=1)  # noqa: E731
    with np.errstate(invalid="ignore"):  # neither ever did
        low, high = np.quantile(draw(base) / draw(other), [0.025, 0.975], method="nearest")
        estimate = np.median(base) / np.median(other)
    known = lambda number: float(number) if np.isfinite(number) else None  # noqa: E731
    return {"estimate": known(estimate), "low": known(low), "high": known(high)}


@dataclass(frozen=True)
class Family:
    """What came out of agents that may be compared: hop_plus is the first of them."""

    steps: dict[str, np.ndarray]
    unexplained: dict[str, dict[str, float | None]]
    final: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        agent, *others = self.steps
        best = min(others, key=lambda name: np.median(self.steps[name]))
        steps = {name: [step if step < np.inf else None for step in of.tolist()] for name, of in self.steps.items()}
        return {
            "times_fewer": times_fewer(self.steps[best], self.steps[agent]),
            "agent": agent,
            "base": best,
            "unexplained": self.unexplained,
            "final_return": self.final,
            "steps": steps,
        }


def measure_family(variants: dict[str, Variant], seeds: int, runs: Path) -> Family:
    """Train them all; those that are trained already are read."""
    family = Family({}, {}, {})
    for name, variant in variants.items():
        folder = runs / f"{name.replace(',', '').replace(' ', '-')}-{seeds}"
        with ProgressDisplay() as display:
            train(config_of(variant, seeds), folder, watcher=display)
        run = read_run(folder)
        family.steps[name], family.unexplained[name] = steps_to_goal(run), critics(run)
        family.final[name] = final_return(run)
    return family


def print_family(title: str, family: Family, found: dict[str, Any]) -> None:
    rows = [
        (
            name,
            f"{np.median(steps):,.0f}",
            f"{np.min(steps):,.0f} to {np.max(steps):,.0f}",
            f"{np.isinf(steps).sum()}",
            f"{family.final[name]:.3f}",
        )
        for name, steps in family.steps.items()
    ]
    heads = ("agent", "median steps", "range over seeds", "seeds that never did", "final return")
    print_table(f"{title}: real steps to a mean return of {GOAL} on 4x4", heads, rows)
    ranges = [f"{low} to {high}" for low, high in pairwise(RETURNS)]
    rows = [
        (name, *("-" if (value := of[each]) is None else f"{value:.3f}" for each in ranges))
        for name, of in family.unexplained.items()
    ]
    print_table(f"{title}: 1 - explained variance on real play, by mean return", ("agent", *ranges), rows)
    ratio = {name: "?" if value is None else f"{value:.2f}" for name, value in found["times_fewer"].items()}
    interval = f"{ratio['low']} to {ratio['high']}"
    print(f"{found['agent']} needs {ratio['estimate']} times fewer than {found['base']} ({interval})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 seeds, one setting of each, shared parameters")
    parser.add_argument("--runs", type=Path, default=Path("runs/sample-efficiency"), help="where the runs are kept")
    given = parser.parse_args()
    use_cores(num_cores())
    seeds = 2 if given.quick else 10
    families = {"shared parameters": dict(list(SHARED.items())[: 2 if given.quick else None])}
    if not given.quick:
        families["seats apart"] = INDEPENDENT
    found: dict[str, Any] = {}
    for title, variants in families.items():
        family = measure_family(variants, seeds, given.runs)
        found[title] = family.as_json()
        print_family(title, family, found[title])
    print_json({"goal": GOAL, "seeds": seeds, "families": found}, ["jax"])


if __name__ == "__main__":
    main()
