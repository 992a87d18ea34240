"""Does the doctor find faults, and only faults?

Every named fault is switched on for one run of 5 seeds, which is then examined. It counts as found if the verdict is
broken and the right module is blamed first. Then runs without a fault are examined, of ppo and hop_plus with other
seeds: any verdict of suspicious or broken is a false alarm. Finished examinations are not repeated.

    python benchmarks/doctor.py                     # 15 faults, 20 clean runs
    python benchmarks/doctor.py --quick             # 3 faults, 1 clean run
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.progress import Progress

from hopplus.doctor.examination import examine
from hopplus.doctor.faults import FAULTS, switched_on
from hopplus.runs import RunConfig, train
from hopplus.runs.agents import learner_of
from measure import PROGRESS, print_json, print_table

QUICK = ("tie_to_the_lowest_seat", "one_random_stream", "buffer_starved")
STEPS = {"ppo": 100_000, "hop_plus": 12_000}
SEEDS, CLEAN, CLEAN_HOP_PLUS = 5, 20, 4
REAL_RATIO = 0.5
"""As much imagined as real: hop_plus takes a tenth of its usual time, and uses every part of it."""
PACKAGES = ("jax", "hopplus")
QUESTIONS = ("game", "seats", "others", "world", "critic")


def one(name: str, folder: Path) -> dict[str, Any]:
    """Train and examine one run: with a named fault, or a clean one, named by its agent and its seed."""
    fault = FAULTS.get(name)
    agent: Any
    agent, seed = (fault.agent, 0) if fault else name.split("-")
    game = (fault.game if fault else None) or "stag-hunt-4x4"
    learner = learner_of(agent)
    if learner.imagination.is_used:
        learner = replace(learner, imagination=replace(learner.imagination, real_ratio=REAL_RATIO))
    with switched_on(name) if fault else nullcontext():
        config = RunConfig(agent=agent, game=game, seeds=SEEDS, steps=STEPS[agent], seed=int(seed), learner=learner)
        started = time.perf_counter()
        train(config, folder / "run")
        trained = time.perf_counter()
        examination = examine(folder / "run", QUESTIONS)
    alarms = [finding for finding in examination.findings if finding.verdict in ("suspicious", "broken")]
    suspects = examination.suspects
    first = next((each for each in alarms if suspects and each.module == suspects[0]), None)
    return {
        "name": name,
        "about": fault.about if fault else f"nothing wrong: {agent}, seed {seed}",
        "expected": fault.module if fault else None,
        "verdict": examination.verdict,
        "suspects": list(suspects),
        "question": next((each.question for each in examination.answers if first in each.findings), None),
        "evidence": first.says if first else "",
        "alarms": [f"{each.check}: {each.verdict}: {each.says}" for each in alarms],
        "training_seconds": round(trained - started, 1),
        "doctor_seconds": round(time.perf_counter() - trained, 1),
    }


def in_a_process(name: str, folder: Path) -> dict[str, Any]:
    """Run `one` in its own process, so that a fault cannot outlive its run. The result is kept in a file."""
    path = folder / name / "result.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {
            "JAX_COMPILATION_CACHE_DIR": str(folder.absolute() / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1",
        }
        command = [sys.executable, __file__, "--one", name, "--folder", str(folder)]
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return json.loads(path.read_text())


def is_found(result: dict[str, Any]) -> bool:
    """The first module to blame is the one that has the fault."""
    return result["verdict"] == "broken" and result["suspects"][0] == result["expected"]


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    faulty = [each for each in results if each["expected"]]
    clean = [each for each in results if not each["expected"]]
    return {
        "faults": len(faulty),
        "faults_found": sum(map(is_found, faulty)),
        "clean_runs": len(clean),
        "false_alarms": sum(bool(each["alarms"]) for each in clean),
        "false_broken": sum(each["verdict"] == "broken" for each in clean),
    }


def rows(results: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for each in results:
        right = is_found(each) if each["expected"] else not each["alarms"]
        blamed = each["suspects"][0] if each["suspects"] else ""
        cells = (each["verdict"], each["question"] or "", blamed, each["evidence"])
        yield each["about"], "yes" if right else "NO", *cells, f"{each['doctor_seconds']:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 faults and 1 clean run")
    parser.add_argument("--folder", type=Path, default=Path("runs/doctor"), help="where the runs are kept")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at once")
    parser.add_argument("--only", nargs="*", help="only these faults or clean runs, as in no_termination ppo-3")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        result = one(options.one, options.folder / options.one)
        (options.folder / options.one / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        return
    clean = [f"{'hop_plus' if seed <= CLEAN_HOP_PLUS else 'ppo'}-{seed}" for seed in range(1, CLEAN + 1)]
    names = [*QUICK, "ppo-5"] if options.quick else [*FAULTS, *clean]
    names = options.only or names
    with Progress(console=PROGRESS) as progress, ThreadPoolExecutor(options.jobs) as pool:
        bar = progress.add_task("runs", total=len(names))

        def examined(name: str) -> dict[str, Any]:
            result = in_a_process(name, options.folder)
            progress.advance(bar)
            return result

        results = list(pool.map(examined, names))
    columns = ("fault", "as it should be", "verdict", "question", "blamed", "evidence", "doctor, s")
    print_table(f"faults and clean runs, {SEEDS} seeds each", columns, rows(results))
    flags = ["--quick"] if options.quick else []
    flags += ["--only", *options.only] if options.only else []
    command = " ".join(["python benchmarks/doctor.py", *flags])
    results = [{**each, "found": is_found(each)} for each in results]
    print_json({**summary(results), "results": results}, PACKAGES, command=command)


if __name__ == "__main__":
    main()
