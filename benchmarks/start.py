"""How long a command takes before it does anything: help, and training up to its first update.

help          seconds of `hopplus --help` and of every `hopplus VERB --help` over those of `python -c "import jax"`,
              in turns, the median of several rounds
first update  seconds of `hopplus train AGENT` for one update of five seeds, the start of Python included: with an empty
              compilation cache (cold) and once more with what the first command left in it (warm)

    python benchmarks/start.py            about fifteen minutes on two cores
    python benchmarks/start.py --quick    one round of help, one seed; about four minutes
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from hopplus.cli.main import VERBS
from hopplus.runs.config import RunConfig
from measure import PROGRAM, PROGRESS, print_json, print_table

ROUNDS, FIRST_UPDATES = 5, 3
IMPORT_JAX = [sys.executable, "-c", "import jax"]
AGENTS, GAME = ("ppo", "hop_plus"), "stag-hunt-4x4"
HELP_AT_MOST, COLD_AT_MOST, WARM_AT_MOST = 1.0, 3.0, 0.75


def seconds_of(command: list[str], **environment: str) -> float:
    """Run a command to its end."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - started


def help_ratios(rounds: int) -> dict[str, float]:
    """For each command, its seconds over those of importing JAX."""
    commands = {"hopplus --help": [*PROGRAM, "--help"]}
    commands |= {f"hopplus {verb} --help": [*PROGRAM, verb, "--help"] for verb in VERBS}
    commands |= {f"hopplus train {agent} --help": [*PROGRAM, "train", agent, "--help"] for agent in AGENTS}
    seconds_of(IMPORT_JAX)  # what is read from the disk the first time is not counted
    ratios: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        importing = seconds_of(IMPORT_JAX)
        for name, command in commands.items():
            ratios[name].append(seconds_of(command) / importing)
    return {name: median(values) for name, values in ratios.items()}


def first_update(agent: str, seeds: int, folder: Path) -> dict[str, float]:
    """Seconds to the end of one update, with an empty cache and with a filled one."""
    steps = RunConfig.for_agent(agent, game=GAME).learner.steps_per_update
    flags = ["--game", GAME, "--seeds", str(seeds), "--steps", str(steps)]
    found = {}
    for kind in ("cold", "warm"):
        command = [*PROGRAM, "--cache", str(folder / "cache"), "train", agent, *flags, "--out", str(folder / kind)]
        found[kind] = seconds_of(command, JAX_COMPILATION_CACHE_DIR="")
        PROGRESS.print(f"{agent}, {kind}: {found[kind]:.1f} s")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of help, one first update of one seed")
    quick = parser.parse_args().quick
    ratios = help_ratios(1 if quick else ROUNDS)
    rounds: list[dict[str, Any]] = []
    for _ in range(1 if quick else FIRST_UPDATES):
        with TemporaryDirectory() as folder:
            rounds.append({agent: first_update(agent, 1 if quick else 5, Path(folder) / agent) for agent in AGENTS})
    cold = median(one["hop_plus"]["cold"] / one["ppo"]["cold"] for one in rounds)
    warm = median(one["hop_plus"]["warm"] / one["ppo"]["cold"] for one in rounds)
    rows = [(name, f"{ratio:.2f}", f"{HELP_AT_MOST:g}") for name, ratio in ratios.items()]
    rows += [("first update of hop_plus, cold, over ppo, cold", f"{cold:.2f}", f"{COLD_AT_MOST:g}")]
    rows += [("first update of hop_plus, warm, over ppo, cold", f"{warm:.2f}", f"{WARM_AT_MOST:g}")]
    print_table("time before anything happens; help over `import jax`", ("what", "ratio", "at most"), rows)
    figures = {
        "help_over_import_jax": max(ratios.values()),
        "help": ratios,
        "cold_over_ppo": cold,
        "warm_over_ppo_cold": warm,
        "first_update_seconds": rounds,
    }
    print_json(figures, ["jax", "tyro"])


if __name__ == "__main__":
    main()
