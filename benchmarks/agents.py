"""What do models of the others cost? Training speed of the named agents on 4x4, in turns within one run.

python benchmarks/agents.py [--quick]
"""

import argparse
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from hopplus.core.devices import on_every, use_cores
from hopplus.core.mesh import MeshConfig, num_cores
from hopplus.learning.config import LearnerConfig
from hopplus.models.config import GoalsConfig
from hopplus.runs.agents import learner_of
from hopplus.runs.config import RunConfig
from hopplus.runs.training import compile_program, seed_keys
from measure import Program, measure, print_json, print_table, short, times_as_fast

WARM_UP = 40
"""Updates before the first turn: until then episodes are longer than they will be."""


def variants() -> dict[str, LearnerConfig]:
    cores = LearnerConfig(mesh=MeshConfig(envs=num_cores()))
    agents = {name: learner_of(name, cores) for name in ("ppo", "omg")}
    with_goals = lambda goals: replace(agents["omg"], opponents=replace(agents["omg"].opponents, goals=goals))  # noqa: E731
    return {
        "ppo": agents["ppo"],
        "omg, 16 dimensions": agents["omg"],
        "omg, 8 dimensions": with_goals(GoalsConfig(kind="continuous", size=8)),
        "omg, 4 symbols": with_goals(GoalsConfig(kind="discrete", size=4)),
    }


def program(name: str, learner: LearnerConfig, warm_up: int, *, game: str = "stag-hunt-4x4", seeds: int = 1) -> Program:
    """Training as `hopplus train` runs it, one update at a time."""
    config = RunConfig(game=game, seeds=seeds, learner=learner)
    compiled = compile_program(learner, config.task, seed_keys(config))
    states: Any = compiled.init(seed_keys(config))

    def run(count: int = 1) -> None:
        nonlocal states
        counts = jax.device_put(np.array([count, config.num_updates], np.int32), on_every(learner.mesh))
        states, metrics = compiled.block(states, counts)
        jax.block_until_ready(metrics)

    for _ in range(0, warm_up, 20):
        run(20)
    return Program(name, run, learner.steps_per_update * seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="ppo and omg with 16 dimensions only")
    quick = parser.parse_args().quick
    use_cores(num_cores())
    chosen = dict(list(variants().items())[: 2 if quick else None])
    programs = [program(name, learner, WARM_UP) for name, learner in chosen.items()]
    measure(programs, rounds=5, seconds=2.0)
    slower = {each.name: times_as_fast(programs[0], each) for each in programs}
    rows = [(each.name, short(each.steps_per_second), f"{slower[each.name]:.2f} x") for each in programs]
    print_table("training on 4x4, one seed, 2 M steps", ("agent", "env steps/s", "time, ppo being 1"), rows)
    print_json(
        {"time_over_ppo": slower, "steps_per_second": {each.name: each.steps_per_second for each in programs}}, ["jax"]
    )


if __name__ == "__main__":
    main()
