"""The command that trains a run: what somebody else types to get the same result."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from hopplus.runs.agents import learner_of
from hopplus.runs.config import RunConfig

ALWAYS = ("game", "seeds", "steps")


def train_command(config: RunConfig, folder: Path) -> str:
    """`hopplus train` with the flags that are not at their defaults, and those that everybody wants to see."""
    default = RunConfig(agent=config.agent, learner=learner_of(config.agent))
    given, usual = (_flags(asdict(one)) for one in (config, default))
    shown = [
        name for name in given if name in ALWAYS or (given[name] != usual[name] and name not in ("agent", "devices"))
    ]
    flags = [f"--{name.replace('_', '-')} {given[name]}" for name in shown]
    return " ".join(["hopplus train", config.agent, *flags, f"--out {folder}"])


def _flags(settings: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """By flag, as it is typed; the learner's own fields stand without a prefix, as on the command line."""
    flags: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flags |= _flags(value, "" if name in ("learner", "mind") else f"{name}.")
        else:
            flags[prefix + name] = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return flags
