"""How many real steps, and how much time, does it take to a mean return of 2.8 on 4x4?

hop_plus with its defaults against ppo at its own best settings: several numbers of environments, shared and independent
parameters, and as many gradient steps as hop_plus makes. Time is counted from the start of the command with an empty
compilation cache to the update in which the median seed reaches the goal. The critics are compared on real play at
matched returns, by the variance that they leave. Every run is an ordinary run folder in --runs, so that it can be
inspected; runs that are there already are read.

    python benchmarks/sample_efficiency.py            10 seeds each
    python benchmarks/sample_efficiency.py --ideas    ways to make a step of hop_plus cheaper, 3 seeds each
    python benchmarks/sample_efficiency.py --quick    2 seeds, one setting of each agent
"""

import argparse
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.runs.records import Recorded, read_run
from hopplus_doctor.statistics import Interval, mean_of_known, seed_interval
from measure import interval_words, print_json, print_table, timed_training

GAME, GOAL = "stag-hunt-4x4", 2.8
RETURN = "charts/episodic_return/mean"
WINDOW = 4608
"""Steps whose returns are averaged before they are held against the goal: one update has few episodes."""
RETURNS = (1.0, 1.5, 2.0, 2.5, 2.8, 3.1)
"""The ranges of returns at which critics are compared."""
RESAMPLES = 10_000
COURSE = {
    "return": RETURN,
    "board": "trust/board",
    "rewards": "trust/reward",
    "ends": "trust/end",
    "others": "trust/others",
    "imagined play": "imagined/weight",
}
"""What is reported of the way to the goal, and its metric."""


VARIANTS = {
    "hop_plus": "hop_plus --steps 40000",
    "ppo, 8 envs": "ppo --sharing shared --envs 8 --steps 100000",
    "ppo, 16 envs": "ppo --sharing shared --envs 16 --steps 100000",
    "ppo, 64 envs": "ppo --sharing shared --envs 64 --steps 300000",
    "ppo, 256 envs": "ppo --sharing shared --envs 256 --steps 600000",
    "ppo, defaults": "ppo --steps 600000",
    "ppo, 16 envs, as many gradient steps": "ppo --sharing shared --envs 16 --steps 100000 --ppo.epochs 16 "
    "--ppo.minibatch-size 128",
}
"""What is typed after `hopplus train`. Fewer environments give more updates for the same number of steps. The schedules
of hop_plus do not depend on the length of the run."""
IDEAS = {
    "defaults": "",
    "16 envs": "--envs 16",
    "real ratio .4": "--imagination.real-ratio 0.4",
    "half of the gradient steps of the models": "--world-training.minibatches 4 --modelling.minibatches 2",
    "imagined samples in one epoch": "--ppo.imagined-epochs 1",
    "imagined samples in one epoch, minibatches of 160": "--ppo.imagined-epochs 1 --ppo.minibatch-size 160",
    "imagined samples in two epochs, minibatches of 256": "--ppo.imagined-epochs 2 --ppo.minibatch-size 256",
    "16 envs, real ratio .4, imagined samples in one epoch": "--envs 16 --imagination.real-ratio 0.4 "
    "--ppo.imagined-epochs 1 --ppo.minibatch-size 384",
    "32 envs, real ratio .4, imagined samples in one epoch": "--envs 32 --imagination.real-ratio 0.4 "
    "--ppo.imagined-epochs 1 --ppo.minibatch-size 384",
}
"""Flags of hop_plus that are compared by --ideas."""


def steps_to_goal(run: Recorded, goal: float = GOAL) -> np.ndarray:
    """Real environment steps of each seed until the mean of some updates reaches the goal; infinite if never.

    An update in which no episode ended has no return and does not count.
    """
    returns = run.metrics[RETURN]
    window = max(round(WINDOW / int(run.env_steps[0])), 1)
    smooth = np.stack([mean_of_known(returns[max(0, i + 1 - window) : i + 1].T) for i in range(len(returns))])
    smooth[: window - 1] = -np.inf
    reached = smooth >= goal
    first = np.where(reached.any(axis=0), reached.argmax(axis=0), -1)
    return np.where(first >= 0, run.env_steps[first], np.inf)


def by_seed(steps: np.ndarray) -> list[float | None]:
    """The steps of each seed; None: never."""
    return [step if step < np.inf else None for step in steps.tolist()]


def reached(steps: np.ndarray) -> dict[str, float | None]:
    """Median, lowest and highest number of steps to the goal, and how many seeds never reached it."""
    known = steps[np.isfinite(steps)]
    middle = float(np.median(steps))
    return {
        "median": middle if np.isfinite(middle) else None,
        "lowest": float(known.min()) if known.size else None,
        "highest": float(known.max()) if known.size else None,
        "never": len(steps) - len(known),
    }


def critics(run: Recorded) -> dict[str, float | None]:
    """1 - explained variance on real play, in the mean over updates and seeds whose returns are in a range."""
    returns, unexplained = run.metrics[RETURN], 1 - run.metrics["policy/explained_variance"]
    found = {}
    for low, high in pairwise(RETURNS):
        within = unexplained[(returns >= low) & (returns < high)]
        found[f"{low} to {high}"] = float(within.mean()) if within.size else None
    return found


def final_return(run: Recorded) -> Interval:
    """Over the last tenth of the updates; the interval is over seeds."""
    returns = run.metrics[RETURN]
    return seed_interval(mean_of_known(returns[-max(len(returns) // 10, 1) :].T))


def course(run: Recorded) -> list[dict[str, float]]:
    """How the agent got to the goal, in the mean over seeds: what it got, and how far its models were trusted."""
    updates = np.searchsorted(run.env_steps, np.arange(2_000, 20_001, 2_000))
    mean = lambda tag, update: float(np.nanmean(run.metrics[tag][update]))  # noqa: E731
    return [
        {"steps": int(run.env_steps[update])} | {name: mean(tag, update) for name, tag in COURSE.items()}
        for update in updates
        if update < len(run.env_steps)
    ]


def times_fewer(base: np.ndarray, other: np.ndarray) -> dict[str, float | None]:
    """How many times fewer steps `other` needs: of medians, and a 95% bootstrap interval. None: nobody can tell."""
    rng = np.random.default_rng(0)
    draw = lambda values: np.median(rng.choice(values, (RESAMPLES, len(values))), axis=1)  # noqa: E731
    with np.errstate(invalid="ignore"):  # neither ever did
        low, high = np.quantile(draw(base) / draw(other), [0.025, 0.975], method="nearest")
        estimate = np.median(base) / np.median(other)
    known = lambda number: float(number) if np.isfinite(number) else None  # noqa: E731
    return {"estimate": known(estimate), "low": known(low), "high": known(high)}


def measure(variants: dict[str, str], seeds: int, folder: Path) -> tuple[dict[str, Recorded], dict[str, float]]:
    """Train them all, each with an empty compilation cache; those that are trained already are read.

    Also the seconds of each command.
    """
    runs, seconds = {}, {}
    for name, typed in variants.items():
        out = folder / f"{name.replace(',', '').replace(' ', '-')}-{seeds}"
        seconds[name] = timed_training(f"{typed} --game {GAME} --seeds {seeds}", out)
        runs[name] = read_run(out)
    return runs, seconds


def seconds_to_goal(run: Recorded, total: float) -> float:
    """From the start of the command to the end of the block in which the median seed reaches the goal.

    `total`: the seconds of the whole command.
    """
    training = run.timing["seconds"]
    blocks = np.searchsorted(run.timing["env_steps"], np.median(steps_to_goal(run)))
    if blocks == len(training):
        return float("inf")
    return float(total - training.sum() + training[: blocks + 1].sum())


def summary(runs: dict[str, Recorded], totals: dict[str, float]) -> dict[str, Any]:
    """What is printed and kept. The first is the agent; its base is the quickest of the others."""
    agent, *others = runs
    steps = {name: steps_to_goal(run) for name, run in runs.items()}
    base = min(others, key=lambda name: np.median(steps[name]))
    seconds = {name: seconds_to_goal(run, totals[name]) for name, run in runs.items()}
    fastest, fewer = min(others, key=seconds.__getitem__), times_fewer(steps[base], steps[agent])
    return {
        "steps_ratio": fewer["estimate"],
        "wall_clock_ratio": seconds[agent] / seconds[fastest],
        "fastest": fastest,
        "times_fewer": fewer,
        "agent": agent,
        "base": base,
        "unexplained": {name: critics(run) for name, run in runs.items()},
        "final_return": {name: asdict(final_return(run)) for name, run in runs.items()},
        "reached": {name: reached(of) for name, of in steps.items()},
        "steps": {name: by_seed(of) for name, of in steps.items()},
        "course": course(runs[agent]),
        "seconds": {name: float(run.timing["seconds"].sum()) for name, run in runs.items()},
        "seconds_to_goal": {name: value if value < np.inf else None for name, value in seconds.items()},
    }


def print_summary(found: dict[str, Any]) -> None:
    rows = []
    for name, steps in found["reached"].items():
        low, middle, high = (f"{steps[key] or np.inf:,.0f}" for key in ("lowest", "median", "highest"))
        rows.append(
            (
                name,
                middle,
                f"{low} to {high}",
                f"{steps['never']}",
                interval_words(found["final_return"][name], 3),
                f"{found['seconds_to_goal'][name] or np.inf:,.0f}",
            )
        )
    heads = ("agent", "median steps", "range over seeds", "seeds that never did", "final return", "seconds to the goal")
    print_table(f"real steps to a mean return of {GOAL} on 4x4", heads, rows)
    ranges = [f"{low} to {high}" for low, high in pairwise(RETURNS)]
    rows = [
        (name, *("-" if (value := of[each]) is None else f"{value:.3f}" for each in ranges))
        for name, of in found["unexplained"].items()
    ]
    print_table("1 - explained variance on real play, by mean return", ("agent", *ranges), rows)
    rows = [
        tuple(f"{one[name]:.2f}" if name != "steps" else f"{one[name]:,}" for name in one) for one in found["course"]
    ]
    print_table(f"the way of {found['agent']}: how far it trusts its models", ("steps", *COURSE), rows)
    ratio = {name: "?" if value is None else f"{value:.2f}" for name, value in found["times_fewer"].items()}
    interval = f"{ratio['low']} to {ratio['high']}"
    print(f"{found['agent']} needs {ratio['estimate']} times fewer than {found['base']} ({interval})")
    times = f"{found['wall_clock_ratio']:.1f} times as long"
    print(f"{found['agent']} takes {times} as {found['fastest']}, compilation included")


def microseconds(run: Recorded) -> float:
    """Of a step of one seed, without compilation and without the first block."""
    steps = run.timing["env_steps"][-1] - run.timing["env_steps"][0]
    return float(1e6 * run.timing["seconds"][1:].sum() / (steps * run.num_seeds))


def compare_ideas(ideas: dict[str, str], folder: Path, seeds: int) -> dict[str, Any]:
    """What each idea costs, and what it does to learning; the last row is ppo with its defaults."""
    typed = {name: f"hop_plus --steps 30000 {flags}".rstrip() for name, flags in ideas.items()}
    runs, seconds = measure({**typed, "ppo": VARIANTS["ppo, defaults"]}, seeds, folder / "ideas")
    cost = {name: microseconds(run) for name, run in runs.items()}
    steps = {name: steps_to_goal(run) for name, run in runs.items()}
    rows = {
        name: {
            "flags": ideas.get(name, ""),
            "step_cost_ratio": cost[name] / cost["ppo"],
            "steps": by_seed(steps[name]),
            "reached": reached(steps[name]),
            "final_return": asdict(final_return(run)),
            "seconds_to_goal": seconds_to_goal(run, seconds[name]),
        }
        for name, run in runs.items()
    }
    cells = [
        (
            name,
            f"{row['step_cost_ratio']:.1f}",
            " ".join("never" if step is None else f"{step:,.0f}" for step in row["steps"]),
            f"{row['final_return']['estimate']:.2f}",
            f"{row['seconds_to_goal']:,.0f}",
        )
        for name, row in rows.items()
    ]
    heads = ("hop_plus with", "step, over ppo's", "steps to 2.8, by seed", "final return", "seconds to 2.8")
    print_table("cheaper steps on 4x4", heads, cells)
    return {"goal": GOAL, "seeds": seeds, "ideas": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 seeds, the first settings only")
    parser.add_argument("--runs", type=Path, default=Path("runs/sample-efficiency"), help="where the runs are kept")
    parser.add_argument("--ideas", action="store_true", help="compare ways to make a step of hop_plus cheaper")
    given = parser.parse_args()
    first = lambda of: dict(list(of.items())[: 2 if given.quick else None])  # noqa: E731
    if given.ideas:
        print_json(compare_ideas(first(IDEAS), given.runs, 2 if given.quick else 3), ["jax"])
        return
    seeds = 2 if given.quick else 10
    found = summary(*measure(first(VARIANTS), seeds, given.runs))
    print_summary(found)
    print_json({"goal": GOAL, "seeds": seeds, **found}, ["jax"])


if __name__ == "__main__":
    main()
