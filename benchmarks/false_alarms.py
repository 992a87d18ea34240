"""How often does the doctor complain of runs that have no fault? 200 tiny runs of ppo are trained and examined.

Each run has 5 seeds of its own and is short, so that its returns are noisy: the hardest case for the tests. Of each
kind of finding, those that are suspicious or broken are counted, and the runs that have one. The questions are those
that depend on the run; the one about the game is the same for all (benchmarks/biased_envs.py counts its false alarms).
Results of finished runs are kept in the folder and not made again.

    python benchmarks/false_alarms.py             200 runs
    python benchmarks/false_alarms.py --quick     5 runs, writes nothing
"""

import argparse
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from rich.progress import Progress
from scipy.stats import binomtest

from hopplus.core.compiled import use_cache
from hopplus.core.cores import claim_cores
from hopplus.doctor.examination import examine
from hopplus.runs import RunConfig, train
from hopplus.runs.agents import learner_of
from measure import PROGRESS, print_json, print_table, write_result

RUNS, QUICK_RUNS = 200, 5
SEEDS, ENVS, STEPS = 5, 16, 12_000
QUESTIONS = ("seats", "critic")
RUNS_PER_CACHE = 20
KINDS = ("exact", "test", "judgement")
ALARMS = ("suspicious", "broken")
COMMAND = "python benchmarks/false_alarms.py"


def one(number: int, folder: Path) -> dict[str, Any]:
    """Train and examine a run; what it found is kept, the run is not."""
    kept = folder / f"{number}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    place = folder / "run"
    shutil.rmtree(place, ignore_errors=True)
    started = time.perf_counter()
    learner = replace(learner_of("ppo"), envs=ENVS)
    train(RunConfig(agent="ppo", game="stag-hunt-4x4", seeds=SEEDS, steps=STEPS, seed=number, learner=learner), place)
    trained = time.perf_counter()
    examined = examine(place, QUESTIONS)
    result = {
        "number": number,
        "verdict": examined.verdict,
        "findings": {kind: sum(each.kind == kind for each in examined.findings) for kind in KINDS},
        "alarms": [
            {"check": each.check, "kind": each.kind, "verdict": each.verdict, "says": each.says}
            for each in examined.findings
            if each.verdict in ALARMS
        ],
        "training_seconds": round(trained - started, 1),
        "doctor_seconds": round(time.perf_counter() - trained, 1),
    }
    kept.write_text(json.dumps(result) + "\n")
    if number % RUNS_PER_CACHE == 0:  # a process can hold only so many programs
        jax.clear_caches()
    return result


def of_kind(results: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Findings of a kind, those that complain, and the share of runs with one of these, with a 95% interval."""
    alarms = [[each for each in result["alarms"] if each["kind"] == kind] for result in results]
    runs = sum(map(bool, alarms))
    interval = binomtest(runs, len(results)).proportion_ci(method="exact")
    return {
        "kind": kind,
        "findings": sum(result["findings"][kind] for result in results),
        **{verdict: sum(one["verdict"] == verdict for each in alarms for one in each) for verdict in ALARMS},
        "runs_with_an_alarm": runs,
        "share": {"estimate": runs / len(results), "low": float(interval.low), "high": float(interval.high)},
        "checks": sorted({one["check"] for each in alarms for one in each}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs; write nothing")
    parser.add_argument("--folder", type=Path, default=Path("runs/false_alarms"), help="where results are kept")
    options = parser.parse_args()
    claim_cores(1)
    use_cache()
    options.folder.mkdir(parents=True, exist_ok=True)
    with Progress(console=PROGRESS) as progress:
        numbers = range(QUICK_RUNS if options.quick else RUNS)
        results = [one(number, options.folder) for number in progress.track(numbers, description="runs")]
    kinds = [of_kind(results, kind) for kind in KINDS]
    heads = ("kind", "findings", *ALARMS, "runs with one", "share of runs, 95%", "checks")
    rows = [
        (
            each["kind"],
            *(str(each[name]) for name in ("findings", *ALARMS, "runs_with_an_alarm")),
            f"{each['share']['estimate']:.3f} ({each['share']['low']:.3f} to {each['share']['high']:.3f})",
            ", ".join(each["checks"]),
        )
        for each in kinds
    ]
    print_table(f"{len(results)} runs of ppo without a fault, {SEEDS} seeds x {STEPS:,} steps each", heads, rows)
    alarms = [{"run": result["number"], **each} for result in results for each in result["alarms"]]
    data = {"runs": len(results), "seeds": SEEDS, "steps": STEPS, "kinds": kinds, "alarms": alarms}
    if not options.quick:
        write_result(Path("results/false_alarms.json"), {"commands": [COMMAND], **data})
    print_json(data, ["jax"])


if __name__ == "__main__":
    main()
