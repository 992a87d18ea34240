"""The figures of the default agent, one part at a time; each part is merged into results/defaults.json.

start     time to the first update of hop_plus, over ppo's (benchmarks/start.py)
cost      a step of hop_plus over a step of ppo: both train with their defaults, in turns, hop_plus to its end
learning  real steps and time to a return of 2.8, over ppo's (benchmarks/sample_efficiency.py)
others    among agents that were trained without it (benchmarks/trained_others.py)
4x4, 8x8  the default command: its minutes with an empty compilation cache, and self-play
adaptation-4x4, adaptation-8x8
          its agent with every line-up of scripts; oracles are trained first, which takes half an hour or more

Parts with the size of a board also take --agent ppo, omg or hop. What `evaluate` prints of an agent on a board is kept
in results/defaults_SIZE_AGENT.json.

    python benchmarks/defaults.py 4x4            one part
    python benchmarks/defaults.py cost --quick   a small version; nothing is written
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hopplus.core.devices import on_every, use_cores
from hopplus.core.mesh import num_cores, usual_mesh
from hopplus.runs.config import RunConfig
from hopplus.runs.training import compile_program, for_mesh, seed_keys
from measure import PROGRESS, evaluated, interval_words, print_json, print_table, timed_training, write_result

FILE = Path("results/defaults.json")
KINDS = "nearest_stag,nearest_hare,random,patient_stag(3)"
EPISODES, QUICK_EPISODES, SEARCH_EPISODES = 1_000, 40, 60
SEARCHING = ("hop", "direct_om")
SEARCH = ["--planning.kind", "search", "--planning.trees", "4", "--planning.simulations", "16", "--planning.depth", "8"]
SECONDS, QUICK_SECONDS = 3.0, 1.0
"""The least time of a turn of hop_plus, in the part of costs. A turn of ppo is a fifth: its updates are all alike."""
FROM_OTHERS = {
    "start": ("start.py", ("cold_over_ppo", "warm_over_ppo_cold")),
    "learning": ("sample_efficiency.py", ("steps_ratio", "wall_clock_ratio")),
    "others": ("trained_others.py", ("trained_others_lowest",)),
}
"""Parts that are benchmarks of their own, and the figures that are taken from their last line."""


def of_benchmark(script: str, names: tuple[str, ...], *, quick: bool) -> dict[str, Any]:
    command = [sys.executable, os.path.relpath(Path(__file__).parent / script), *(["--quick"] if quick else [])]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(printed, end="")
    last = json.loads(printed.splitlines()[-1])
    return {name: last[name] for name in names}


class Trainer:
    """The program of a default command with so many seeds on all cores."""

    def __init__(self, agent: str, seeds: int):
        usual = RunConfig(agent=agent, seeds=seeds)
        self.config = replace(usual, learner=replace(usual.learner, mesh=usual_mesh(seeds, num_cores())))
        keys = for_mesh(self.config, seed_keys(self.config))
        self.program = compile_program(self.config.learner, self.config.task, keys)
        self.states = jax.block_until_ready(self.program.init(keys))
        self.done, self.seconds, self.steps = 0, 0.0, 0

    def warm_up(self) -> None:
        """Make one update that is not counted: the first one of a program takes longer."""
        self.turn(0.001)
        self.seconds, self.steps = 0.0, 0

    def turn(self, least: float) -> None:
        """Train for at least so many seconds, or to the end."""
        started = time.perf_counter()
        while time.perf_counter() - started < least and self.done < self.config.num_updates:
            counts = np.array([1, self.config.schedule_updates], np.int32)
            counts = jax.device_put(counts, on_every(self.config.learner.mesh))
            self.states, metrics = self.program.block(self.states, counts)
            jax.block_until_ready(metrics)
            self.done += 1
            self.steps += self.config.learner.steps_per_update
        self.seconds += time.perf_counter() - started

    @property
    def microseconds(self) -> float:
        return 1e6 * self.seconds / (self.steps * self.config.seeds)


def cost(*, quick: bool) -> dict[str, Any]:
    use_cores(num_cores())
    trainers = {agent: Trainer(agent, 2 if quick else 5) for agent in ("hop_plus", "ppo")}
    for trainer in trainers.values():
        trainer.warm_up()
    own, base = trainers.values()
    while own.done < own.config.num_updates and not (quick and own.done > 20):
        for trainer, part in ((own, 1.0), (base, 0.2)):
            trainer.turn(part * (QUICK_SECONDS if quick else SECONDS))
        PROGRESS.print(f"{own.done} of {own.config.num_updates} updates: {own.microseconds / base.microseconds:.1f}")
    rows = [(agent, f"{one.microseconds:.1f}") for agent, one in trainers.items()]
    print_table("microseconds per environment step and seed, on all cores", ("agent", "microseconds"), rows)
    return {"step_cost_ratio": own.microseconds / base.microseconds}


def run_of(agent: str, size: str, folder: Path, *, quick: bool) -> tuple[Path, float]:
    """The folder of the default command, and its seconds."""
    run = folder / f"{agent}-{size}{'-quick' if quick else ''}"
    few = " --seeds 2 --steps 40000" if quick else ""
    few += " --early-stop 0" if quick and agent == "hop_plus" else ""
    return run, timed_training(f"{agent} --game stag-hunt-{size}{few}", run)


def self_play(agent: str, size: str, folder: Path, *, quick: bool) -> dict[str, Any]:
    """How long the default command takes, and what its players get together."""
    run, seconds = run_of(agent, size, folder, quick=quick)
    played = evaluated(run, _episodes(agent, QUICK_EPISODES if quick else 10 * EPISODES))
    own = [seed["sampled"] for seed in played["per_seed"]]
    if not quick:
        keep(agent, size, {"minutes": seconds / 60, "self_play": played})
    rows = [("minutes", f"{seconds / 60:.1f}"), ("self-play, by seed", " ".join(f"{value:.2f}" for value in own))]
    print_table(f"hopplus train {agent} --game stag-hunt-{size}", ("what", "figure"), rows)
    return {f"minutes_{size}": seconds / 60, f"self_play_{size}_lowest_seed": min(own)}


def adaptation(agent: str, size: str, folder: Path, *, quick: bool) -> dict[str, Any]:
    """What its agent gets with every line-up of scripts."""
    run, _ = run_of(agent, size, folder, quick=quick)
    steps = ["--oracle-steps", "20000"] if quick else []
    oracles = ["--oracles", str(folder / ("oracles-quick" if quick else "oracles"))]
    series = ["--adaptation", "--kinds", KINDS, "--series", "10"]
    adapted = evaluated(run, [*series, *_episodes(agent, QUICK_EPISODES if quick else EPISODES), *oracles, *steps])
    if not quick:
        keep(agent, size, {"adaptation": adapted})
    return adaptation_figures(agent, size, adapted)


def adaptation_figures(agent: str, size: str, adapted: dict[str, Any]) -> dict[str, Any]:
    """Print and return what counts of an evaluation of adaptation."""
    late = {row["lineup"]: row["late"]["sampled"] for row in adapted["lineups"]}
    estimates = {name: interval["estimate"] for name, interval in late.items()}
    lowest, highest = (extreme(estimates, key=estimates.__getitem__) for extreme in (min, max))
    mean, capped = adapted["late"]["sampled"], sum(min(1.0, one) for one in estimates.values()) / len(estimates)
    rows = [
        ("all line-ups", interval_words(mean, 3)),
        ("the same, nothing above 1 counted", f"{capped:.3f}"),
        (f"lowest, {lowest}", interval_words(late[lowest], 3)),
        (f"highest, {highest}", interval_words(late[highest], 3)),
    ]
    print_table(f"adaptation of {agent} on {size}, episodes 5 to 10", ("line-ups", "normalised return"), rows)
    named = {
        "mean": mean["estimate"],
        "mean_up_to_1": capped,
        "lowest": estimates[lowest],
        "lowest_interval": [late[lowest]["low"], late[lowest]["high"]],
        "lowest_lineup": lowest,
        "highest": estimates[highest],
        "highest_lineup": highest,
    }
    return {f"adaptation_{size}_{name}": value for name, value in named.items()}


def _episodes(agent: str, episodes: int) -> list[str]:
    """The episodes of an evaluation; agents that learn from search also search when they act, in fewer of them."""
    if agent in SEARCHING:
        return ["--episodes", str(min(episodes, SEARCH_EPISODES)), *SEARCH]
    return ["--episodes", str(episodes)]


def keep(agent: str, size: str, found: dict[str, Any]) -> None:
    """Add what was found to the file of an agent on a board."""
    path = FILE.parent / f"defaults_{size}_{agent}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    of_agent = "" if agent == "hop_plus" else f" --agent {agent}"
    commands = [f"hopplus train {agent} --game stag-hunt-{size}"]
    figures = {**known, **found}
    parts = [part for name, part in (("self_play", size), ("adaptation", f"adaptation-{size}")) if name in figures]
    commands += [f"python benchmarks/defaults.py {part}{of_agent}" for part in parts]
    write_result(path, {**figures, "commands": commands})


def merge(part: str, figures: dict[str, Any]) -> None:
    """Add the figures to the file; each has the command that printed it."""
    kept = json.loads(FILE.read_text()) if FILE.exists() else {"commands": {}}
    commands = kept.pop("commands") | dict.fromkeys(figures, f"python benchmarks/defaults.py {part}")
    write_result(FILE, {"commands": commands, **kept, **figures})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = ("4x4", "8x8")
    parser.add_argument("part", choices=(*FROM_OTHERS, "cost", *sizes, *(f"adaptation-{size}" for size in sizes)))
    parser.add_argument("--quick", action="store_true", help="a small version; nothing is written")
    parser.add_argument("--runs", type=Path, default=Path("runs/defaults"), help="where the runs are kept")
    parser.add_argument("--agent", default="hop_plus", help="whose default command; for parts with a size of a board")
    given = parser.parse_args()
    if given.part in FROM_OTHERS:
        figures = of_benchmark(*FROM_OTHERS[given.part], quick=given.quick)
    elif given.part == "cost":
        figures = cost(quick=given.quick)
    else:
        measure = adaptation if given.part.startswith("adaptation") else self_play
        figures = measure(given.agent, given.part.removeprefix("adaptation-"), given.runs, quick=given.quick)
    if not given.quick and given.agent == "hop_plus":
        merge(given.part, figures)
    print_json(figures, ["jax"])


if __name__ == "__main__":
    main()
