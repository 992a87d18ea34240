"""Write down what 1.x promises to keep: `python scripts/promises.py` adds what is new to tests/golden/promises.json.

Public names, commands with their flags, settings, metric tags, files of a run folder, arrays of a recording. Run it
when a minor version is released. A test checks that nothing of the file is lost (docs/project/releases.md).
"""

import importlib
import json
import re
from dataclasses import fields
from pathlib import Path

from docs_site import reference

FILE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "promises.json"
NOT_PROMISED = frozenset({"core"})
"""Folders whose names only hopplus itself needs."""
Promises = dict[str, dict[str, list[str]]]


def today() -> Promises:
    """What there is now: kinds of promises, and in each kind the members of every part."""
    from hopplus.runs.tags import TAGS
    from hopplus_doctor.schema import GROUPS

    folders = [folder for folder in (*reference.FOLDERS, "share") if folder not in NOT_PROMISED]
    packages = [*(f"hopplus.{folder}" if folder else "hopplus" for folder in folders), "hopplus_doctor"]
    commands = {}
    for title, (_, parser) in reference.commands().items():
        parsers = list(parser.values()) if isinstance(parser, dict) else [parser]
        commands[title] = sorted(set.intersection(*({*reference.flags(each)} for each in parsers)))
    settings = {kind.__name__: [field.name for field in fields(kind)] for kind in reference.settings_classes()}
    files = re.findall(r"^\| `([^`]+)`", reference.run_folder(), re.MULTILINE)
    return {
        "names": {package: sorted(importlib.import_module(package).__all__) for package in packages},
        "commands": commands,
        "settings": settings,
        "tags": {"metrics.jsonl": sorted(TAGS)},
        "files": {"run folder": files},
        "recordings": {group: sorted(arrays) for group, arrays in GROUPS.items()},
    }


def lost(promised: Promises, now: Promises) -> list[str]:
    """What was promised and is not there now."""
    return [
        f"{kind}: {part} no longer has {member}"
        for kind, parts in promised.items()
        for part, members in parts.items()
        for member in members
        if member not in now.get(kind, {}).get(part, [])
    ]


def merged(promised: Promises, now: Promises) -> Promises:
    """Both together."""
    return {
        kind: {
            part: sorted({*promised.get(kind, {}).get(part, []), *now[kind].get(part, [])})
            for part in sorted({*promised.get(kind, {}), *now[kind]})
        }
        for kind in now
    }


if __name__ == "__main__":
    promised = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    found = today()
    for line in lost(promised, found):
        print(f"lost: {line}")
    FILE.write_text(json.dumps(merged(promised, found), indent=1) + "\n", encoding="utf-8")
    print(f"wrote {FILE}")
