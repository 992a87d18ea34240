"""What does a step of training cost, and what do more devices bring? The figures of docs/scale.md.

    python benchmarks/scale.py            a table of costs, a table of weak scaling, one JSON line
    python benchmarks/scale.py --quick    weak scaling only, in less than a minute or so

Costs are of one seed on one device, in turns within one run. Weak scaling: two devices do twice the work of one, along
seeds or along environments; an efficiency of 1 means that they take no longer. Devices here are cores, which share
caches, memory and whatever else the machine runs, so this shows what the program loses, not what a cluster would.
"""

import argparse
from dataclasses import replace
from typing import Any

from agents import program
from hopplus.core.devices import use_cores
from hopplus.core.mesh import MeshConfig
from hopplus.games.board import Board
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.config import LearnerConfig
from hopplus.models.config import ActorCriticConfig
from hopplus.runs.agents import learner_of
from measure import Program, measure, print_json, print_table, times_as_fast

WARM_UP = 20


def two_seats() -> StagHunt:
    return StagHunt(grid=Board(4, 4), num_players=2)


def eight_seats() -> StagHunt:
    return StagHunt(grid=Board(8, 8), num_players=8)


def costs() -> list[Program]:
    plain, hop = LearnerConfig(sharing="shared"), learner_of("hop", LearnerConfig(sharing="shared"))
    of = lambda trees, simulations: replace(  # noqa: E731
        hop,
        planning=replace(hop.planning, search=replace(hop.planning.search, trees=trees, simulations=simulations)),
    )
    wanted: dict[str, tuple[LearnerConfig, dict[str, Any]]] = {
        "ppo, 4x4, 4 seats": (plain, {}),
        "2 seats": (plain, {"game": "scale:two_seats"}),
        "8x8 board": (plain, {"game": "stag-hunt-8x8"}),
        "8x8 board, 8 seats": (plain, {"game": "scale:eight_seats"}),
        "5 seeds": (plain, {"seeds": 5}),
        "network twice as wide": (replace(plain, network=ActorCriticConfig(hidden=(256, 256))), {}),
        "parameters of its own for each seat": (LearnerConfig(), {}),
        "omg": (learner_of("omg", plain), {}),
        "hop_plus": (learner_of("hop_plus", plain), {}),
        "hop, 2 trees of 16": (of(2, 16), {}),
        "hop, 2 trees of 64": (of(2, 64), {}),
    }
    few = lambda learner: 0 if learner.envs < 256 else WARM_UP  # noqa: E731
    return [program(name, learner, few(learner), **more) for name, (learner, more) in wanted.items()]


def scaling() -> dict[str, tuple[Program, Program]]:
    plain = LearnerConfig(sharing="shared")
    of = lambda seeds, envs: replace(plain, mesh=MeshConfig(seeds, envs))  # noqa: E731
    wide = replace(of(1, 2), envs=2 * plain.envs)
    one = program("1 device, 2 seeds", plain, WARM_UP, seeds=2)
    return {
        "seeds": (one, program("2 devices, 4 seeds", of(2, 1), WARM_UP, seeds=4)),
        "envs": (one, program("2 devices, twice the tables", wide, WARM_UP, seeds=2)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="weak scaling only")
    quick = parser.parse_args().quick
    use_cores(2)
    pairs = scaling()
    programs = [pairs["seeds"][0], *(pair[1] for pair in pairs.values())]
    measure(programs, rounds=3 if quick else 7, seconds=2.0)
    efficiency = {axis: times_as_fast(two, one) / 2 for axis, (one, two) in pairs.items()}
    rows = [
        (f"along {axis}", f"{two.steps_per_second:,.0f}", f"{efficiency[axis]:.2f}") for axis, (_, two) in pairs.items()
    ]
    one_rate = pairs["seeds"][0].steps_per_second
    print_table(
        "two devices", ("weak scaling", "env steps/s", "efficiency"), [("1 device", f"{one_rate:,.0f}", "1"), *rows]
    )
    found: dict[str, Any] = {"weak_scaling": efficiency}
    if not quick:
        measured = costs()
        measure(measured, rounds=3, seconds=2.0)
        found["microseconds"] = {each.name: 1e6 / each.steps_per_second for each in measured}
        found["relative"] = {each.name: times_as_fast(measured[0], each) for each in measured}
        rows = [
            (name, f"{cost:,.0f}", f"{found['relative'][name]:.2f} x") for name, cost in found["microseconds"].items()
        ]
        print_table("one device", ("training", "microseconds per env step", "over the first"), rows)
    print_json(found, ["jax"])


if __name__ == "__main__":
    main()
