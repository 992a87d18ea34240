"""The format of run folders, pretraining folders and studies, and what brings an older one up to date.

From format 1 on, every version reads all formats up to its own: load, evaluate, report, doctor. A new setting goes
into `ADDED`, with the value that acts as before. Any other change of the settings or of the arrays in a checkpoint is a
new format: write a `Migration`, append it to `MIGRATIONS`, and add golden folders of the new format with `python
scripts/golden.py` (tests/golden). A run is resumed only in its own format.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Settings = dict[str, Any]
Arrays = dict[str, np.ndarray]
"""The arrays of a checkpoint by their names, as in `learners.policy.params.trunk.layers.0.weight`."""


@dataclass(frozen=True)
class Migration:
    """From one format to the next. Both functions are pure."""

    settings: Callable[[Settings], Settings] = dict
    """Of the content of `config.json`."""
    arrays: Callable[[Settings, Arrays], Arrays] = lambda _, arrays: arrays
    """Of the arrays of a run's checkpoint; gets the settings of the newer format too."""
    pretraining: Callable[[Settings], Settings] = dict
    """Of the content of the `config.json` of a pretraining."""


MIGRATIONS: tuple[Migration, ...] = ()
"""The first leads from format 1 to format 2."""
FORMAT = 1 + len(MIGRATIONS)
ADDED: Settings = {
    "early_stop": 0,
    "pretrained_world": None,
    "learner": {
        "schedule": None,
        "utilities": {"share": 0.0, "own": 0.25, "reward": 1.0},
        "imagination": {"held_out": 0.0, "explore": 1.0, "branch": "last"},
        "network": {"destinations": 0, "critic": "own", "reconstruct": False},
        "population": {"members": 0, "steps": 1_000_000, "run": None},
        "ppo": {"imagined_epochs": 0},
        "world": {"walker_weight": 2.0},
        "opponents": {"goals": {"posterior": "additive"}, "others": {"as_input": False, "learned_paths": False}},
        "modelling": {"temperature": 1.0, "final_temperature": 1.0, "max_grad_norm": 0.0},
    },
}
"""Settings that are newer than the last format, with the values that act as if they were not there."""


def migrated_settings(written: Settings, path: Path) -> Settings:
    """The content of a run's `config.json` in the format of today; raises if this version cannot read its format."""
    for migration in MIGRATIONS[format_of(written, path) - 1 :]:
        written = migration.settings(written)
    return _with_added(written) | {"format": FORMAT}


def _with_added(written: Settings, added: Settings = ADDED) -> Settings:
    """The settings with those that were added since; what is written stays."""
    filled = {
        name: _with_added(written[name], value)
        if isinstance(value, dict) and isinstance(written.get(name), dict)
        else value
        for name, value in added.items()
        if name not in written or isinstance(value, dict)
    }
    return written | filled


def migrated_pretraining(written: Settings, path: Path) -> Settings:
    """The content of a pretraining's `config.json` in the format of today."""
    for migration in MIGRATIONS[format_of(written | written.get("about", {}), path) - 1 :]:
        written = migration.pretraining(written)
    added = {name: ADDED["learner"][name] for name in ("opponents", "modelling")}
    return written | {"settings": _with_added(written["settings"], added)}


def migrated_variants(written: Settings, path: Path) -> Settings:
    """The settings of a study's variants in the format of today; `written` is the content of its `study.json`."""
    variants = written["variants"]
    for migration in MIGRATIONS[format_of(written, path) - 1 :]:
        variants = {name: migration.settings(settings) for name, settings in variants.items()}
    return {name: _with_added(settings) for name, settings in variants.items()}


def migrated_arrays(written: Settings, path: Path, arrays: Arrays) -> Arrays:
    """The arrays of a checkpoint in the format of today; `written` is the content of its `config.json`."""
    for migration in MIGRATIONS[format_of(written, path) - 1 :]:
        written = migration.settings(written)
        arrays = migration.arrays(written, arrays)
    return arrays


def format_of(written: Settings, path: Path) -> int:
    """The format of the folder that holds this file; raises if this version cannot read it."""
    number, version = written.get("format"), written.get("version", "of an older version")
    if number is None:
        raise ValueError(
            f"{path.parent} was written by hopplus {version}, before run folders had a format number; use hopplus "
            f"{version} to read it, or train again into another folder"
        )
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"{path}: the format is {number!r}, which is not a number of a format; put the file back")
    if number > FORMAT:
        raise ValueError(
            f"{path.parent} has format {number}, written by hopplus {version}; this version reads formats up to "
            f"{FORMAT}; use hopplus {version} or a later one"
        )
    return number
