"""The command that trains a run again with the same result."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hopplus.agents.config import PlanningConfig
from hopplus.runs.config import RunConfig
from hopplus.runs.run import NO_PLANNING

ALWAYS = ("game", "seeds", "steps")


def train_command(config: RunConfig, folder: Path) -> str:
    """`hopplus train` with the flags that are not at their defaults, and the flags in ALWAYS."""
    default = RunConfig(agent=config.agent, game=config.game)
    given, usual = (_flags(asdict(one)) for one in (config, default))
    shown = [
        name
        for name in given
        if name in ALWAYS or (given[name] != usual[name] and name != "agent" and not name.startswith("mesh."))
    ]
    return " ".join(
        ["hopplus train", str(config.agent), *(_typed(name, given[name]) for name in shown), f"--out {folder}"]
    )


def planning_flags(planning: PlanningConfig, default: PlanningConfig = NO_PLANNING) -> list[str]:
    """The planning flags that are not at their defaults."""
    given, usual = (_flags({"planning": asdict(one)}) for one in (planning, default))
    return [_typed(name, value) for name, value in given.items() if value != usual[name]]


def _flags(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by flag; the learner's own fields have no prefix, as on the command line."""
    flags: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flags |= _flags(value, {"learner": "", "opponents": "", "search": prefix}.get(name, f"{name}."))
        else:
            flags[prefix + name] = value
    return flags


def _typed(name: str, value: Any) -> str:
    name = name.replace("_", "-")
    if isinstance(value, bool):  # a switch: its name says which way
        group, dot, last = name.rpartition(".")
        return f"--{name}" if value else f"--{group}{dot}no-{last}"
    values = value if isinstance(value, list | tuple) else [value]
    return f"--{name} {' '.join(shlex.quote(str(each)) for each in values)}"
