"""What every table of a page is made of: results, their commands, cells."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def read(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def commands_of(*names: str) -> str:
    """The commands behind a table, and the version they were run with."""
    lines = []
    for result in map(read, names):
        commands = [result[key] for key in ("trained_by", "command") if key in result]
        when = f"; {result['measured_at']}" if "measured_at" in result else ""
        lines.append(f"{', '.join(f'`{command}`' for command in commands)} (hopplus {result['version']}{when})")
    return "  \n".join(lines)


def plus_minus(interval: dict[str, float]) -> str:
    return f"{interval['estimate']:.2f} ± {interval['high'] - interval['estimate']:.2f}"


def with_interval(interval: dict[str, float], form: str) -> str:
    return f"{interval['estimate']:{form}} ({interval['low']:{form}} to {interval['high']:{form}})"


def lines_of(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
