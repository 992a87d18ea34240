"""How fast does training go, and how soon is it good? `hopplus` against a bare JAX loop and against PyTorch.

All programs train four independent MLP(128, 128) in self-play on the stag hunt: 256 tables x 36 steps an update, 4
epochs. They take turns in one process; a ratio is the median over rounds of the ratio within a round.

    python benchmarks/training.py            4x4 and 8x8, seeds, time to a mean return of 2.85: about 6 minutes
    python benchmarks/training.py --quick    4x4 only, a lower return; it gives up after two minutes and names the phase

Needs `benchmarks/requirements.txt` (torch). The last line is JSON.
"""

import argparse
import time
from dataclasses import replace
from statistics import median
from typing import Any

from hopplus.core.devices import on_every, use_cores
from hopplus.core.mesh import MeshConfig, num_cores

use_cores(num_cores())

import jax  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402  # pyright: ignore[reportMissingImports]

from bare_ppo import make_update  # noqa: E402
from flops import matmul_peak, update_flops  # noqa: E402
from hopplus.games.fields import num_features  # noqa: E402
from hopplus.learning.config import LearnerConfig  # noqa: E402
from hopplus.runs.config import RunConfig  # noqa: E402
from hopplus.runs.training import compile_program, seed_keys  # noqa: E402
from measure import Program, give_up_after, measure, phase, print_json, print_table, short, times_as_fast  # noqa: E402
from settings import Settings  # noqa: E402
from torch_ppo import Modules, Stacked, TorchPPO  # noqa: E402

SETTINGS = Settings()
GAMES = {4: "stag-hunt-4x4", 8: "stag-hunt-8x8"}
NUM_UPDATES, MANY_SEEDS = 217, 10
GOAL, QUICK_GOAL = 2.85, 0.9
"""The mean return to reach. Players that only catch hares get almost 1, so a goal of 1 may never be reached."""
QUICK_SECONDS = 105
"""After that many, --quick gives up: with the imports it then ends within two minutes."""
RETURN_TAG = "charts/episodic_return"


class Hopplus:
    """The product's own program for a run, as `hopplus train` compiles and calls it."""

    def __init__(self, side: int, seeds: int = 1, seed: int = 0) -> None:
        learner = LearnerConfig(mesh=MeshConfig(envs=num_cores()))
        steps = NUM_UPDATES * learner.steps_per_update
        self.config = RunConfig(game=GAMES[side], arenas="off", seeds=seeds, seed=seed, steps=steps, learner=learner)
        started = time.perf_counter()
        phase(f"compiling hopplus, {side}x{side}, {seeds} seeds")
        self.program = compile_program(learner, self.config.task, seed_keys(self.config))
        self.compile_seconds = time.perf_counter() - started
        self.restart(seed)
        self.active = 1.0
        """The share of samples, of the last update, in which the seat was still in the game."""

    def restart(self, seed: int) -> None:
        self.states = jax.block_until_ready(self.program.init(seed_keys(replace(self.config, seed=seed))))

    def update(self, count: int = 1) -> float:
        """The mean return of the last of so many updates."""
        amount = jax.device_put(
            np.array([count, self.config.num_updates], np.int32), on_every(self.config.learner.mesh)
        )
        self.states, metrics = self.program.block(self.states, amount)
        self.active = float(np.mean(metrics["count/samples/policy"][count - 1])) / SETTINGS.env_steps_per_update
        return float(np.mean(metrics[RETURN_TAG][count - 1]))


def bare_program(side: int, *, shared_board: bool) -> Program:
    init, update = make_update(side, SETTINGS, shared_board=shared_board)
    state, key, number = init(jax.random.key(0)), jax.random.key(1), 0

    def run() -> None:
        nonlocal state, number
        state, returned = update(state, jax.random.fold_in(key, number))
        number += 1
        returned.block_until_ready()

    name = f"bare JAX{', one shared board' if shared_board else ''}, {side}x{side}"
    return Program(name, run, SETTINGS.env_steps_per_update)


def torch_program(side: int, networks: type) -> Program:
    learner = TorchPPO(side, SETTINGS, seed=0, networks=networks)
    return Program(
        f"PyTorch, {networks.__name__.lower()}, {side}x{side}", learner.update, SETTINGS.env_steps_per_update
    )


def hopplus_program(learner: Hopplus, side: int) -> Program:
    seeds = learner.config.seeds
    name = f"hopplus, {seeds} seed{'s' if seeds > 1 else ''}, {side}x{side}"
    return Program(name, learner.update, seeds * SETTINGS.env_steps_per_update)


def time_to_return(goal: float, seeds: int, learner: Hopplus) -> dict[str, Any]:
    """Seconds until the mean return of an update reaches the goal: ours with its compilation, and PyTorch's."""
    times: dict[str, list[float]] = {"hopplus": [], "torch": []}
    steps: dict[str, list[int]] = {"hopplus": [], "torch": []}
    for seed in range(seeds):
        for name in times:
            phase(f"time to a return of {goal}, {name}, seed {seed}")
            started = time.perf_counter() - (learner.compile_seconds if name == "hopplus" else 0)
            learner.restart(seed)
            update = learner.update if name == "hopplus" else _torch_update(seed)
            number = 1
            while update() < goal and number < NUM_UPDATES:
                number += 1
            times[name].append(time.perf_counter() - started)
            steps[name].append(number * SETTINGS.env_steps_per_update)
    ratio = median(theirs / ours for ours, theirs in zip(times["hopplus"], times["torch"], strict=True))
    return {"goal": goal, "seconds": times, "env_steps": steps, "ratio": ratio, "compilation": learner.compile_seconds}


def _torch_update(seed: int):
    learner = TorchPPO(4, SETTINGS, seed=seed, networks=Modules)
    return lambda: learner.update()["mean_return"]


def peak_share(side: int, program: Program, active: float, peak: float) -> float:
    """The share of the machine's matmul peak that the dense layers reach; what is masked out is not computed."""
    inputs = num_features(RunConfig(game=GAMES[side], arenas="off").evaluation_game.spec.observation)
    acted = update_flops(inputs, Settings(num_epochs=0))
    learned = update_flops(inputs, SETTINGS) - acted
    return (acted + active * learned) * program.steps_per_second / SETTINGS.env_steps_per_update / peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4x4 only, fewer rounds, a lower return to reach")
    quick = parser.parse_args().quick
    if quick:
        give_up_after(QUICK_SECONDS)
    torch.set_num_threads(num_cores())
    sides = (4,) if quick else (4, 8)
    learners = {side: Hopplus(side) for side in sides}
    programs: dict[str, Program] = {}
    for side, learner in learners.items():
        programs[f"hopplus_{side}"] = hopplus_program(learner, side)
        programs[f"bare_{side}"] = bare_program(side, shared_board=False)
        programs[f"torch_{side}"] = torch_program(side, Modules)
        if not quick:
            programs[f"bare_shared_{side}"] = bare_program(side, shared_board=True)
            programs[f"torch_stacked_{side}"] = torch_program(side, Stacked)
    programs["seeds"] = hopplus_program(Hopplus(4, 2 if quick else MANY_SEEDS), 4)
    measure(list(programs.values()), rounds=2 if quick else 5, seconds=0.7 if quick else 3.0)
    phase("the matmul peak")
    peak = matmul_peak()
    reached = time_to_return(QUICK_GOAL if quick else GOAL, 1 if quick else 3, learners[4])
    ratios = {
        name: times_as_fast(programs[f"hopplus_{name[-1]}"], program)
        for name, program in programs.items()
        if name[-1] in "48"
    }
    share = {
        side: peak_share(side, programs[f"hopplus_{side}"], learner.active, peak) for side, learner in learners.items()
    }
    figures = {
        "product_over_bare": ratios["bare_4"],
        "product_over_torch": ratios["torch_4"],
        "seed_cost": times_as_fast(programs["hopplus_4"], programs["seeds"]),
        "time_to_return_over_torch": reached["ratio"],
        "time_to_return": reached,
        "ratios": ratios,
        "env_steps_per_second": {name: program.steps_per_second for name, program in programs.items()},
        "matmul_peak": peak,
        "matmul_share": share,
        "active": {side: learner.active for side, learner in learners.items()},
        "seeds": 2 if quick else MANY_SEEDS,
    }
    print_tables(programs, figures)
    print_json(figures, ["jax", "torch", "optax", "numpy"])


def print_tables(programs: dict[str, Program], figures: dict[str, Any]) -> None:
    ratios, reached = figures["ratios"], figures["time_to_return"]
    rows = [
        (program.name, f"{program.steps_per_second:,.0f}", f"{ratios[name]:.2f}" if name in ratios else "")
        for name, program in programs.items()
    ]
    print_table("training, env steps/s", ("program", "env steps/s", "hopplus is, times"), rows)
    title = f"seconds to a mean return of {reached['goal']} on 4x4, compilation included"
    rows = [
        (name, " ".join(f"{value:.1f}" for value in seconds), " ".join(map(short, reached["env_steps"][name])))
        for name, seconds in reached["seconds"].items()
    ]
    print_table(title, ("program", "seconds, seed by seed", "env steps"), rows)
    share = ", ".join(f"{share:.0%} on {side}x{side}" for side, share in figures["matmul_share"].items())
    print(f"one seed of {figures['seeds']} costs {figures['seed_cost']:.2f} of a run of its own")
    print(f"share of the matmul peak of {short(figures['matmul_peak'])}FLOP/s that training reaches: {share}")


if __name__ == "__main__":
    main()
