"""Does the doctor find faults that were in published multi-agent code, and clear the fixed versions?

    python benchmarks/real_bugs.py --quick      three faults
    python benchmarks/real_bugs.py --out results/real_bugs.json

docs/real_bugs.md says where each fault was. Each is a small program of ours beside its fixed version: a trainer that
writes a recording, or a game that is played at random. Found means: the part that has the fault is named first. Those
of `bugs/latest.py` were written after the last change of the doctor's questions and thresholds; those of
`bugs/late.py` were, too, until some questions changed again.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bugs.base import Bug, Trainer
from bugs.early import BUGS as EARLY
from bugs.late import BUGS as LATE
from bugs.latest import BUGS as LATEST
from hopplus_doctor.answer import Examination
from hopplus_doctor.environment import examine_env
from hopplus_doctor.examination import examine_recordings
from hopplus_doctor.version import __version__

BUGS = tuple((bug, when) for when, bugs in (("early", EARLY), ("late", LATE), ("latest", LATEST)) for bug in bugs)
"""All faults, and when each was written."""
QUICK = ("a hidden layer that nobody reads", "memory cleared one step early", "double Q-learning one step off")
EPISODES = 4000
"""Episodes of games that are played at random."""


def examined(program: Any, folder: Path, seed: int) -> Examination:
    """What the doctor says of a trainer, through a recording, or of a game."""
    if isinstance(program, type) and issubclass(program, Trainer):
        return examine_recordings([program(seed).train(folder)])
    answer = examine_env(program, program.__name__, episodes=EPISODES, seed=seed)
    return Examination(program.__name__, "", __version__, (answer,))


def measured(bug: Bug, folder: Path, *, when: str, seed: int = 0) -> dict[str, Any]:
    """One fault and its fixed version."""
    started = time.perf_counter()
    broken, fixed = (examined(program, folder / str(at), seed) for at, program in enumerate((bug.broken, bug.fixed)))
    alarms = [finding for finding in broken.findings if finding.verdict in ("suspicious", "broken")]
    said = next((finding.says for finding in alarms if finding.module == broken.suspects[0]), "")
    return {
        "bug": bug.name,
        "reference": bug.reference,
        "written": when,
        "through": "recording" if isinstance(bug.broken, type) and issubclass(bug.broken, Trainer) else "game --env",
        "part": bug.part,
        "verdict": broken.verdict,
        "blamed": list(broken.suspects),
        "found": broken.suspects[:1] == (bug.part,),
        "says": said,
        "fixed_verdict": fixed.verdict,
        "fixed_blamed": list(fixed.suspects),
        "seconds": round(time.perf_counter() - started, 1),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found = sum(row["found"] for row in rows)
    late, latest = ([row for row in rows if row["written"] == when] for when in ("late", "latest"))
    return {
        "found": found,
        "bugs": len(rows),
        "found_share": round(found / len(rows), 3),
        "false_alarms": sum(row["fixed_verdict"] == "broken" for row in rows),
        "fixed_suspicious": sum(row["fixed_verdict"] == "suspicious" for row in rows),
        "late_found": sum(row["found"] for row in late),
        "late_bugs": len(late),
        "latest_found": sum(row["found"] for row in latest),
        "latest_bugs": len(latest),
    }


def main() -> None:
    from measure import print_table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three faults")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    bugs = [(bug, when) for bug, when in BUGS if bug.name in QUICK or not asked.quick]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for at, (bug, when) in enumerate(bugs):
            rows.append(measured(bug, Path(folder) / str(at), when=when))
    shown = [
        (row["bug"], "yes" if row["found"] else "no", ", ".join(row["blamed"]) or "nothing", row["fixed_verdict"])
        for row in rows
    ]
    print_table("real faults", ("fault", "found", "blamed, the likeliest first", "fixed version"), shown)
    if asked.out:
        result = {"commands": ["python benchmarks/real_bugs.py"], "version": __version__, **summary(rows), "rows": rows}
        asked.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(summary(rows)))


if __name__ == "__main__":
    main()
