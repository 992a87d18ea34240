"""What the doctor says about the trials of the studies of examples/notes: results/notes_doctor.json.

    python benchmarks/notes_doctor.py                                   every trial of studies/notes that is done
    python benchmarks/notes_doctor.py value_loss long                   those of some studies
    python benchmarks/notes_doctor.py value_loss --variants "critic on all"
    python benchmarks/notes_doctor.py value_loss --quick                print it, write nothing

Each trial is examined with `hopplus doctor TRIAL`, once: the examination stays in its folder as doctor.json. A later
call adds its trials to those in the file. Of each trial: the verdict, the parts to blame with the likeliest first,
and every finding that is not fine, with its kind. Commit the file before a fix is tried.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from hopplus.runs.studies.study import Trial, open_study
from hopplus_doctor.answer import VERDICTS
from measure import PROGRAM, PROGRESS, print_json, print_table, write_result

RESULT = Path(__file__).resolve().parent.parent / "results" / "notes_doctor.json"
KEPT = ("check", "module", "kind", "verdict", "says", "threshold")


def examined(place: Path) -> dict[str, Any]:
    """The examination of a trial; it is made if it is not there."""
    path = place / "doctor.json"
    if not path.exists():
        PROGRESS.print(f"hopplus doctor {place}", soft_wrap=True)
        done = subprocess.run([*PROGRAM, "doctor", str(place)], check=False, stdout=sys.stderr)
        if not path.exists():
            raise SystemExit(f"hopplus doctor {place} ended with {done.returncode} and wrote no {path.name}")
    return json.loads(path.read_text())


def verdict_of(study: str, trial: Trial, place: Path) -> dict[str, Any]:
    """What is stored of a trial's examination."""
    found = examined(place)
    findings = [
        {"question": answer["question"], **{name: finding[name] for name in KEPT}, "effect": finding["effect"]}
        for answer in found["answers"]
        for finding in answer["findings"]
        if finding["verdict"] != "fine"
    ]
    findings.sort(key=lambda one: -VERDICTS.index(one["verdict"]))
    blamed = found["suspects"][0] if found["suspects"] else None
    alarms = [one for one in findings if one["verdict"] in ("suspicious", "broken")]
    first = next((one for one in alarms if one["module"] == blamed), None)
    return {
        "study": study,
        "variant": trial.variant,
        "command": f"hopplus doctor {place}",
        "version": found["version"],
        "verdict": found["verdict"],
        "blamed_first": blamed,
        "finding": first and first["says"],
        "kind": first and first["kind"],
        "suspects": found["suspects"],
        "findings": findings,
        "fine": sum(one["verdict"] == "fine" for answer in found["answers"] for one in answer["findings"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="studies; all that are there if none is named")
    parser.add_argument("--variants", nargs="*", help="only these variants")
    parser.add_argument("--studies", type=Path, default=Path("studies/notes"), help="the folder of the studies")
    parser.add_argument("--quick", action="store_true", help="print it, write nothing")
    given = parser.parse_args()
    names = given.names or sorted(path.name for path in given.studies.iterdir() if path.is_dir())
    trials: dict[str, Any] = {}
    for name in names:
        folder = given.studies / name
        for trial in open_study(folder).all_trials():
            if given.variants and trial.variant not in given.variants:
                continue
            if not trial.is_done(folder):
                PROGRESS.print(f"{folder / trial.place} is not done")
                continue
            trials[f"{name}: {trial.variant}, {trial.index}"] = verdict_of(name, trial, folder / trial.place)
    rows = [
        (name, one["verdict"], one["blamed_first"] or "nothing", one["kind"] or "-", one["finding"] or "-")
        for name, one in trials.items()
    ]
    print_table("what the doctor says", ("trial", "verdict", "blamed first", "kind", "finding"), rows)
    if not given.quick:
        before = json.loads(RESULT.read_text()) if RESULT.exists() else {"commands": [], "trials": {}}
        command = " ".join(["python benchmarks/notes_doctor.py", *given.names])
        command += "".join(f' --variants "{variant}"' for variant in given.variants or ())
        commands = list(dict.fromkeys([*before["commands"], command]))
        write_result(RESULT, {"commands": commands, "trials": {**before["trials"], **trials}})
    print_json({"blamed_first": {name: one["blamed_first"] for name, one in trials.items()}}, ["jax"])


if __name__ == "__main__":
    main()
