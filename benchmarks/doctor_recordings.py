"""How many planted faults does the doctor name from recordings alone, and how often is a clean one called broken?

    python benchmarks/doctor_recordings.py --quick
    python benchmarks/doctor_recordings.py --out results/doctor_recordings.json

Each fault of `examples/recordings/ppo_torch.py` and `notes_torch.py` is planted alone and recorded once. It is named if
the first part to blame is the right one. Clean recordings have other seeds. Needs PyTorch.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from hopplus_doctor import Recorder
from hopplus_doctor.examination import examine_recordings
from hopplus_doctor.version import __version__
from measure import write_result

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "recordings"
LOOPS = ("ppo_torch", "notes_torch")
CLEAN = 10
QUICK = {"ppo_torch": ("rewards_of_the_first_seat",), "notes_torch": ("imagined_goals_zero",)}


def examined(loop: ModuleType, folder: Path, fault: str | None, seed: int) -> dict:
    """What the doctor says of one recording, and what recording it took."""
    started = time.process_time()
    place = loop.train(folder / f"{fault}_{seed}", seed=seed, fault=fault)
    trained = time.process_time()
    examination = examine_recordings([place])
    bad = [f for f in examination.findings if f.verdict in ("suspicious", "broken")]
    return {
        "fault": fault,
        "seed": seed,
        "part": loop.FAULTS.get(fault),
        "verdict": examination.verdict,
        "blamed": list(examination.suspects),
        "alarms": [f"{f.verdict} {f.check} ({f.kind})" for f in bad],
        "train_seconds": round(trained - started, 2),
        "doctor_seconds": round(time.process_time() - trained, 2),
    }


@contextmanager
def timed_recorder() -> Iterator[list[float]]:
    """The CPU seconds that the recorder takes, in a list of one number."""
    spent = [0.0]

    def timed(method):
        def call(*arguments, **named):
            started = time.process_time()
            try:
                return method(*arguments, **named)
            finally:
                spent[0] += time.process_time() - started

        return call

    with ExitStack() as stack:
        for name in ("record", "checksums", "save"):
            stack.enter_context(patch.object(Recorder, name, timed(getattr(Recorder, name))))
        yield spent


def overhead(loop: ModuleType, folder: Path, trainings: int) -> float:
    """The recorder's share of the CPU time of clean trainings, at the setting that finds the faults."""
    started = time.process_time()
    with timed_recorder() as spent:
        for seed in range(trainings):
            loop.train(folder / f"overhead_{seed}", seed=seed, fault=None)
    return spent[0] / (time.process_time() - started)


def measure(names: tuple[str, ...], *, quick: bool) -> dict:
    """All faults and clean recordings of some loops."""
    sys.path.insert(0, str(EXAMPLES))
    result: dict = {"commands": ["python benchmarks/doctor_recordings.py"], "version": __version__, "loops": {}}
    for name in names:
        loop = import_module(name)
        with tempfile.TemporaryDirectory() as folder:
            rows = []
            for fault in QUICK[name] if quick else tuple(loop.FAULTS):
                rows.append(examined(loop, Path(folder), fault, seed=0))
                print_row(rows[-1])
            clean = []
            for seed in range(1 if quick else CLEAN):
                clean.append(examined(loop, Path(folder), None, seed=100 + seed))
                print_row(clean[-1])
            share = overhead(loop, Path(folder), 1 if quick else CLEAN)
        named = sum(row["blamed"][:1] == [row["part"]] for row in rows)
        alarms = [row["verdict"] for row in clean]
        result["loops"][name] = {
            "faults": len(rows),
            "named": named,
            "named_share": named / len(rows),
            "recorder_share": round(share, 4),
            "clean": len(clean),
            "clean_broken": alarms.count("broken"),
            "clean_suspicious": alarms.count("suspicious"),
            "rows": rows + clean,
        }
        print(
            f"{name}: {named} of {len(rows)} named, {alarms.count('broken')} of {len(clean)} clean ones broken",
            flush=True,
        )
    return result


def print_row(row: dict) -> None:
    right = "" if row["fault"] is None else f" (is {row['part']})"
    print(
        f"{row['fault'] or 'clean'} {row['seed']}: {row['verdict']}, {', '.join(row['blamed']) or 'nothing'}{right}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one fault and one clean recording of each loop")
    parser.add_argument("--loop", choices=LOOPS, help="one loop only")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    result = measure((asked.loop,) if asked.loop else LOOPS, quick=asked.quick)
    if asked.out:
        write_result(asked.out, result)


if __name__ == "__main__":
    main()
