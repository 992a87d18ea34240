"""Ways to compile hop_plus faster: seconds to compile its training program, and what a step then takes, with ppo's.

Every way is a process of its own: it compiles the default programs of ppo and hop_plus on 4x4, without a cache, and
trains both in turns. Most ways are flags of XLA, which JAX reads when it starts.

    python benchmarks/compilation.py            five seeds; about twenty minutes on two cores
    python benchmarks/compilation.py --quick    one seed, two ways; about three minutes; nothing is written
"""

import argparse
import json
import os
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

FILE = Path("results/compilation.json")
HASHES = "JAX's own hashes"
EXTRA = "--xla_backend_extra_options="
WAYS = {
    "defaults": "",
    HASHES: "",
    "optimisation level 1": "--xla_backend_optimization_level=1",
    "no expensive passes": "--xla_llvm_disable_expensive_passes=true",
    "older emitters of fusions": "--xla_cpu_use_fusion_emitters=false",
    "no unrolled loops": f"{EXTRA}xla_cpu_disable_loop_unrolling=true",
    "optimised for size": f"{EXTRA}xla_cpu_optimize_for_size=true",
    "one thread for machine code": "--xla_cpu_parallel_codegen_split_count=1",
}
"""The name of a way, and the flags of XLA."""
QUICK_WAYS = ("defaults", HASHES)
TURNS, SECONDS = 5, 2.0
ABOUT = "on two cores; a step is one of all seats of one environment and seed"


def one_way(seeds: int) -> dict[str, Any]:
    """In a process of its own: compile and train both agents."""
    import jax

    from defaults import Trainer
    from hopplus.core.devices import use_cores
    from hopplus.core.mesh import num_cores

    use_cores(num_cores())
    jax.config.update("jax_enable_compilation_cache", False)
    trainers, found = {}, {}
    for agent in ("ppo", "hop_plus"):
        started = time.perf_counter()
        trainers[agent] = Trainer(agent, seeds)
        found[f"{agent}_compile_seconds"] = time.perf_counter() - started
        trainers[agent].warm_up()
    for _ in range(TURNS):
        for trainer in trainers.values():
            trainer.turn(SECONDS)
    return found | {f"{agent}_step_microseconds": trainer.microseconds for agent, trainer in trainers.items()}


def measured(name: str, seeds: int) -> dict[str, Any]:
    flags = " ".join([os.environ.get("XLA_FLAGS", ""), WAYS[name]]).strip()
    command = [sys.executable, __file__, "--way", name, "--seeds", str(seeds)]
    printed = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "XLA_FLAGS": flags}
    ).stdout
    found = json.loads(printed.splitlines()[-1])
    ratio = found["hop_plus_compile_seconds"] / found["ppo_compile_seconds"]
    return {"way": name, "flags": WAYS[name], **found, "compile_ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, two ways; nothing is written")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=int, default=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        if given.way == HASHES:
            name = "hopplus.core.threefry"
            sys.modules[name] = types.ModuleType(name)  # so the real one is not imported and changes nothing
        print(json.dumps(one_way(given.seeds)))
        return
    from measure import PROGRESS, print_json, print_table, write_result

    rows: list[dict[str, Any]] = []
    for name in QUICK_WAYS if given.quick else WAYS:
        rows.append(measured(name, 1 if given.quick else given.seeds))
        PROGRESS.print(f"{name}: {rows[-1]['hop_plus_compile_seconds']:.0f} s")
    columns = ("hop_plus_compile_seconds", "ppo_compile_seconds", "compile_ratio", "hop_plus_step_microseconds")
    columns += ("ppo_step_microseconds",)
    cells = [(row["way"], *(f"{row[column]:.1f}" for column in columns)) for row in rows]
    print_table(ABOUT, ("way", *(column.replace("_", " ") for column in columns)), cells)
    figures = {"seeds": 1 if given.quick else given.seeds, "ways": rows}
    if not given.quick:
        write_result(FILE, {"commands": ["python benchmarks/compilation.py"], **figures})
    print_json(figures, ["jax"])


if __name__ == "__main__":
    main()
