"""What does a study cost beyond its trials? The same trainings as a study on Ray, and one after the other by hand.

    python benchmarks/study.py                     12 trials; a table, then one JSON line
    python benchmarks/study.py --quick             4 short ones
    python benchmarks/study.py --trivial 10000     trials that do nothing: how many a second, and what memory they take

`overhead` is the study's wall-clock over that of the commands: each trial has all cores, as a command has, and both
find what was compiled before. `side_by_side` is the same where every trial has one core, as trials usually have.
"""

import argparse
import os
import resource
import shlex
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from hopplus.core.mesh import MeshConfig, num_cores
from hopplus.runs.config import RunConfig
from hopplus.runs.studies import Study, run_study
from hopplus.runs.studies.cluster import connected, run_trials
from hopplus.runs.studies.study import read_variant
from measure import PROGRAM, print_json, print_table

VARIANTS = {"plain": "ppo", "one epoch": "ppo --ppo.epochs 1", "small steps": "ppo --ppo.clip 0.1"}
FLAGS = "--game stag-hunt-4x4 --sharing shared"
PACKAGES = ("jax", "ray")
STEPS, QUICK_STEPS = 600_000, 100_000


def make_study(steps: int, trials: int, cores: int) -> Study:
    laid_out = lambda config: replace(config, learner=replace(config.learner, mesh=MeshConfig(envs=cores)))  # noqa: E731
    variants = {name: read_variant(f"{typed} {FLAGS} --steps {steps}", name) for name, typed in VARIANTS.items()}
    return Study("overhead", {name: laid_out(config) for name, config in variants.items()}, trials)


def by_hand(study: Study, steps: int, cores: int, folder: Path) -> float:
    """Seconds that the commands take, one after the other."""
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
    }
    started = time.perf_counter()
    for trial in study.all_trials():
        typed = shlex.split(f"{VARIANTS[trial.variant]} {FLAGS} --steps {steps} --seeds 1 --seed {trial.index}")
        line = [*PROGRAM, "train", *typed, "--mesh.envs", str(cores), "--out", str(folder / trial.place)]
        subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def as_study(study: Study, folder: Path) -> float:
    started = time.perf_counter()
    ended = run_study(study, folder)
    assert all(one.reason is None for one in ended), ended
    return time.perf_counter() - started


def nothing(_config: RunConfig, _folder: str) -> None:
    """A trial that does nothing."""


def trivial(count: int) -> None:
    """So many trials that do nothing go through."""
    study = make_study(QUICK_STEPS, -(-count // len(VARIANTS)), 1)
    memory, done = [], 0
    megabytes = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # noqa: E731
    with tempfile.TemporaryDirectory() as folder, connected(None) as ray:
        trials = list(study.all_trials())[:count]
        started = time.perf_counter()
        for done, _ in enumerate(run_trials(ray, trials, Path(folder), nothing, fresh=False), start=1):
            if done % max(1, count // 10) == 0:
                memory.append(megabytes())
        seconds = time.perf_counter() - started
    rows = [[f"{(index + 1) * 10}%", f"{found:,.0f} MB"] for index, found in enumerate(memory)]
    print_table(f"{done:,} trials in {seconds:.0f} s", ("done", "most memory of the driver"), rows)
    print_json({"trials": done, "seconds": seconds, "megabytes": memory, "growth": memory[-1] - memory[0]}, PACKAGES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter trials")
    parser.add_argument("--trivial", type=int, metavar="N", help="so many trials that do nothing, instead")
    given = parser.parse_args()
    if given.trivial:
        trivial(given.trivial)
        return
    steps, trials, cores = (QUICK_STEPS, 1, num_cores()) if given.quick else (STEPS, 4, num_cores())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        study = make_study(steps, trials, cores)
        hand = by_hand(study, steps, cores, place / "hand")
        one_by_one = as_study(study, place / "study")
        side_by_side = as_study(make_study(steps, trials, 1), place / "side")
    count = trials * len(VARIANTS)
    rows = [
        ["by hand, one after the other, all cores each", f"{hand:.1f} s", "1.00"],
        ["as a study, all cores each", f"{one_by_one:.1f} s", f"{one_by_one / hand:.2f}"],
        ["as a study, one core each", f"{side_by_side:.1f} s", f"{side_by_side / hand:.2f}"],
    ]
    print_table(f"{count} trials of {steps:,} steps", ("", "wall-clock", "over by hand"), rows)
    found = {"overhead": one_by_one / hand, "side_by_side": side_by_side / hand, "seconds_by_hand": hand}
    print_json({**found, "trials": count, "steps": steps, "cores": cores}, PACKAGES)


if __name__ == "__main__":
    main()
