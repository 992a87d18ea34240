"""How many real steps does it take to a mean return of 2.8 on 4x4? And is the critic any worse for imagined data?

hop_plus against ppo at its own best setting (the best of several sizes of a rollout) and against ppo with as many
gradient steps. The critics are compared on real play at matched returns, by the variance that they leave. Every run is
an ordinary run folder in --runs, so that it can be looked at and goes on after a kill.

    python benchmarks/sample_efficiency.py            10 seeds each
    python benchmarks/sample_efficiency.py --quick    2 seeds of hop_plus and one setting of ppo
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


VARIANTS = {
    "hop_plus": Variant("hop_plus", 16, 60_000),
    "ppo, 32 tables": Variant("ppo", 32, 200_000),
    "ppo, 16 tables": Variant("ppo", 16, 200_000),
    "ppo, 16 tables, shorter run": Variant("ppo", 16, 100_000),
    "ppo, 16 tables, 4 times the gradient steps": Variant("ppo", 16, 200_000, epochs=16),
    "ppo, 16 tables, as many gradient steps": Variant("ppo", 16, 200_000, epochs=16, minibatch_size=128),
}
"""Fewer tables are more updates for as many steps, a shorter run is one whose entropy bonus ends sooner."""
QUICK = ("hop_plus", "ppo, 16 tables")


def config_of(variant: Variant, seeds: int) -> RunConfig:
    learner = learner_of(variant.agent, LearnerConfig(devices=num_cores()))
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


def critics(run: Run) -> dict[str, float]:
    """1 - explained variance on real play, in the mean over updates and seeds whose returns are in a range."""
    returns, unexplained = run.metrics[RETURN], 1 - run.metrics["policy/explained_variance"]
    within = lambda low, high: unexplained[(returns >= low) & (returns < high)]  # noqa: E731
    return {f"{low} to {high}": float(np.nanmean(within(low, high))) for low, high in pairwise(RETURNS)}


def final_return(run: Run) -> float:
    """Of all seeds, over the last tenth of the updates."""
    returns = run.metrics[RETURN]
    return float(returns[-max(len(returns) // 10, 1) :].mean())


def ratio_interval(base: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """How many times fewer steps `other` needs: of medians, and a 95% bootstrap interval."""
    rng = np.random.default_rng(0)
    draw = lambda values: np.median(rng.choice(values, (RESAMPLES, len(values))), axis=1)  # noqa: E731
    low, high = np.quantile(draw(base) / draw(other), [0.025, 0.975])
    return float(np.median(base) / np.median(other)), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 seeds of hop_plus and one setting of ppo")
    parser.add_argument("--runs", type=Path, default=Path("runs/sample-efficiency"), help="where the runs are kept")
    given = parser.parse_args()
    use_cores(num_cores())
    seeds = 2 if given.quick else 10
    found: dict[str, np.ndarray] = {}
    left: dict[str, dict[str, float]] = {}
    final: dict[str, float] = {}
    for name in QUICK if given.quick else VARIANTS:
        folder = given.runs / f"{name.replace(',', '').replace(' ', '-')}-{seeds}"
        with ProgressDisplay() as display:
            train(config_of(VARIANTS[name], seeds), folder, watcher=display)
        run = read_run(folder)
        found[name], left[name], final[name] = steps_to_goal(run), critics(run), final_return(run)
    best = min((name for name in found if name != "hop_plus"), key=lambda name: np.median(found[name]))
    ratio = ratio_interval(found[best], found["hop_plus"])
    rows = [
        (name, f"{np.median(steps):,.0f}", f"{np.min(steps):,.0f} to {np.max(steps):,.0f}", f"{np.isinf(steps).sum()}")
        for name, steps in found.items()
    ]
    heads = ("agent", "median steps", "range over seeds", "seeds that never did")
    print_table(f"real steps to a mean return of {GOAL} on 4x4, {seeds} seeds", heads, rows)
    rows = [(name, *(f"{each:.3f}" for each in unexplained.values())) for name, unexplained in left.items()]
    print_table("1 - explained variance on real play, by mean return", ("agent", *left["hop_plus"]), rows)
    print(", ".join(f"{name}: final return {each:.3f}" for name, each in final.items()))
    print(f"hop_plus needs {ratio[0]:.2f} times fewer than {best} ({ratio[1]:.2f} to {ratio[2]:.2f})")
    print_json(
        {
            "goal": GOAL,
            "times_fewer": ratio[0],
            "interval": ratio[1:],
            "base": best,
            "unexplained": left,
            "final_return": final,
            "steps": {
                name: [step if step < np.inf else None for step in steps.tolist()] for name, steps in found.items()
            },
        },
        ["jax"],
    )


if __name__ == "__main__":
    main()
