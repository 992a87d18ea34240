"""Which change ends which trouble of the notes' agent, and did the doctor name it first? results/notes_fixes.json.

    python benchmarks/notes_studies.py value_loss long sequence    first, with notes_troubles.py and notes_doctor.py
    python benchmarks/notes_fixes.py
    python benchmarks/notes_fixes.py --quick                       print it, write nothing

Every row of the sequence, which leads from hop_plus_notes to the default hop_plus, is judged as `notes_troubles.py`
judges the agent. The fix of a trouble is the first row from which on it appears in no row. The doctor examined the
agent before any fix was tried: of each trouble, what it blamed first where it asks about it; of a low return, what it
blamed first of all. It agrees if the fix changes the part that it named.
"""

import argparse
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from hopplus_doctor.statistics import seed_interval
from measure import print_json, print_table, write_result
from notes_troubles import AGENT, BASE, LONG, RESULTS, TROUBLES, Found, appears

EXAMINED = f"value_loss: {AGENT}, 0"
WHAT = {
    "return": "return below .9 of the default's",
    "value_loss": "value loss ten times ppo's",
    "seats": "an order of the seats",
    "collapse": "collapse of the opponent model",
    "boards": "impossible boards",
    "fall": "return falls after its best",
}
QUESTIONS = {"value_loss": "critic", "seats": "seats", "collapse": "others", "boards": "world"}
LOW = 0.9
PARTS = {
    "1": "world",
    "2": "imagined",
    "3": "imagined",
    "4": "goals",
    "5": "others",
    "6": "imagined",
    "7": "play",
    "8": "critic",
    "9": "play",
    "10": "imagined",
    "11": "sharing",
    "12": "policy",
    "13": "policy",
    "14": "play",
}
"""What each row changes, in the doctor's words where it has one."""


def returns(row: Found, last: Found) -> Found:
    """The return of each seed over the mean of the last row."""
    ratio = seed_interval(np.array(row["by_seed"]) / np.mean(last["by_seed"]))
    return {"figure": asdict(ratio), "appears": appears(ratio, LOW, above=False)}


def by_row(sequence: Found, base: Found) -> dict[str, dict[str, Found]]:
    """Each trouble in each row."""
    variants = sequence["variants"]
    last = list(variants.values())[-1]
    found = {"return": {name: returns(row, last) for name, row in variants.items()}}
    for trouble, (_, judge) in TROUBLES.items():
        found[trouble] = {
            name: judge({"variants": {AGENT: row, BASE: base}}, {"variants": {LONG: row}})
            for name, row in variants.items()
        }
    return found


def fix_of(rows: dict[str, Found]) -> str | None:
    """The first row from which on the trouble appears in no row; None if it was not in the first, or never ended."""
    names = list(rows)
    if rows[names[0]]["appears"] != "yes":
        return None
    last = max((place for place, name in enumerate(names) if rows[name]["appears"] == "yes"), default=None)
    return names[last + 1] if last is not None and last + 1 < len(names) else None


def blamed(examination: Found, trouble: str) -> str | None:
    """What the doctor blames first where it asks about this trouble."""
    if trouble not in QUESTIONS:
        return examination["blamed_first"]
    alarms = [
        one["module"]
        for one in examination["findings"]
        if one["question"] == QUESTIONS[trouble] and one["verdict"] in ("suspicious", "broken")
    ]
    return alarms[0] if alarms else None


def agreement(fix: str | None, blame: str | None) -> str:
    """Whether the fix changes the part that was blamed."""
    if fix is None:
        return "-" if blame is None else "nothing to agree with"
    part = PARTS[fix.split(".")[0]]
    return "yes" if blame is not None and blame.startswith(part) else "no"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="print it, write nothing")
    quick = parser.parse_args().quick
    known: dict[str, Any] = {
        name: json.loads((RESULTS / f"notes_{name}.json").read_text())
        for name in ("value_loss", "sequence", "troubles", "doctor")
    }
    rows = by_row(known["sequence"], known["value_loss"]["variants"][BASE])
    fixes = {}
    for trouble, of_rows in rows.items():
        names = list(of_rows)
        fix, blame = fix_of(of_rows), blamed(known["doctor"]["trials"][EXAMINED], trouble)
        fixes[trouble] = {
            "what": WHAT[trouble],
            "appears": of_rows[names[0]]["appears"],
            "before": of_rows[names[0]]["figure"],
            "after": of_rows[fix or names[-1]]["figure"],
            "blamed_first": blame,
            "fix": fix,
            "agrees": agreement(fix, blame),
            "by_row": {name: one["appears"] for name, one in of_rows.items()},
        }
    shown = [
        (one["what"], one["appears"], one["blamed_first"] or "-", one["fix"] or "-", one["agrees"])
        for one in fixes.values()
    ]
    heads = ("trouble", "in hop_plus_notes", "blamed first", "fix", "agrees")
    print_table("troubles, blame and fixes", heads, shown)
    if not quick:
        commands = [command for name in ("sequence", "troubles") for command in known[name]["commands"]]
        commands = [*dict.fromkeys(commands), "python benchmarks/notes_fixes.py"]
        write_result(RESULTS / "notes_fixes.json", {"commands": commands, "fixes": fixes})
    print_json({"fixes": {name: one["fix"] for name, one in fixes.items()}}, ["numpy"])


if __name__ == "__main__":
    main()
