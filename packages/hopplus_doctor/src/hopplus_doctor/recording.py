"""Read a recording, and say what is wrong with its files. Nothing is executed: arrays are read without pickle.

A file that is damaged, too large or of a wrong shape is a problem, and its message says what to write instead. A file
that is missing is none.
"""

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from hopplus_doctor.schema import (
    DESCRIPTION,
    FORMAT,
    GROUPS,
    GROUPS_WORDS,
    MOST_BYTES,
    MOST_TEXT,
    MOST_TOGETHER,
    SCOPES,
    Field,
    Settings,
    names_groups,
)

MAGIC = b"\x93NUMPY"
KINDS = {"number": "biuf", "whole": "iu", "flag": "biu"}
"""The kinds of NumPy dtypes that each kind of array may have."""
WORDS = {"number": "float32", "whole": "int64", "flag": "bool"}
MOST_SHOWN = 20
"""Problems that a message lists."""
MOST_SEATS, MOST_LETTERS = 1000, 60


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording in memory. Arrays that are not there are None."""

    name: str
    seats: tuple[str, ...]
    updates: tuple[int, ...]
    settings: Settings
    modules: tuple[str, ...]
    num_actions: int | None
    groups: Mapping[str, Mapping[str, np.ndarray]]

    def get(self, group: str, name: str) -> np.ndarray | None:
        """An array, or None if it was not recorded."""
        if name not in GROUPS[group]:
            raise KeyError(f"{group} has no array {name!r}")
        return self.groups.get(group, {}).get(name)

    def has(self, group: str, *names: str) -> bool:
        return all(self.get(group, name) is not None for name in names)


def read_recording(folder: str | Path) -> Recording:
    """Read a recording. Raises a ValueError that lists all problems of its files."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"there is no folder {str(folder)!r}; give one that hopplus_doctor.Recorder wrote")
    about = _description(folder)
    problems: list[str] = []
    seats, updates, modules, num_actions = _named(about, problems)
    settings = _settings(about.get("settings", {}), seats, problems)
    sizes = {"updates": len(updates), "seats": len(seats), "modules": len(modules)}
    if num_actions is not None:
        sizes["actions"] = num_actions
    groups: dict[str, dict[str, np.ndarray]] = {}
    total = 0
    for group, wanted in GROUPS.items():
        groups[group] = {}
        known = dict(sizes)
        for name, field in wanted.items():
            path = folder / group / f"{name}.npy"
            if not os.path.lexists(path):
                continue
            try:
                array = _array(path)
                total += array.nbytes
                if total > MOST_TOGETHER:
                    raise ValueError(f"makes more than {MOST_TOGETHER:,} bytes in all; record fewer updates or envs")
                groups[group][name] = _checked(array, field, known)
            except ValueError as error:
                problems.append(f"{group}/{name}.npy {error}")
    problems += _unknown(folder)
    if problems:
        shown = problems[:MOST_SHOWN]
        more = [f"and {len(problems) - MOST_SHOWN} more"] if len(problems) > MOST_SHOWN else []
        raise ValueError("\n  ".join([f"{folder} is no complete recording:", *shown, *more]))
    return Recording(folder.name, seats, updates, settings, modules, num_actions, groups)


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if not path.is_file():
        raise ValueError(f"{folder} has no {DESCRIPTION}; call Recorder.save(), or write it: format, seats, updates")
    if path.stat().st_size > MOST_TEXT:
        raise ValueError(f"{path} has more than {MOST_TEXT:,} bytes; it holds settings and names only")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({type(error).__name__}); write it with Recorder.save()") from None
    if not isinstance(about, dict):
        raise ValueError(f'{path} is no JSON object; write {{"format": {FORMAT}, "seats": [...], "updates": [...]}}')
    if about.get("format") != FORMAT or isinstance(about.get("format"), bool):
        raise ValueError(f"{path} has the format {_short(about.get('format'))}; this version reads format {FORMAT}")
    return about


def _named(
    about: Mapping[str, Any], problems: list[str]
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...], int | None]:
    seats, modules = (_strings(about.get(name, []), name, problems) for name in ("seats", "modules"))
    if not 1 <= len(seats) <= MOST_SEATS:
        problems.append(f'{DESCRIPTION} names {len(seats)} seats; write "seats": ["red", "blue"]')
    updates = about.get("updates", [])
    if not isinstance(updates, list) or not updates or not all(_is_count(update) for update in updates):
        problems.append(f'{DESCRIPTION} has no list of updates; write "updates": [0, 10, 20], one number each')
        updates = []
    num_actions = about.get("num_actions")
    if num_actions is not None and not (_is_count(num_actions) and num_actions >= 1):
        problems.append(
            f'{DESCRIPTION}: num_actions is {_short(num_actions)}; write a whole number, as in "num_actions": 5'
        )
        num_actions = None
    return seats, tuple(updates), modules, num_actions


def _strings(given: Any, name: str, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) and _is_name(each) for each in given):
        problems.append(
            f"{DESCRIPTION}: {name} is {_short(given)}; write a list of names, of {MOST_LETTERS} letters at most"
        )
        return ()
    if len(set(given)) < len(given):
        problems.append(f"{DESCRIPTION}: {name} repeats a name; give each seat or module a name of its own")
    return tuple(str(each) for each in given)


def _settings(given: Any, seats: tuple[str, ...], problems: list[str]) -> Settings:
    if not isinstance(given, dict):
        problems.append(f'{DESCRIPTION}: settings is {_short(given)}; write an object, as in {{"discount": 0.99}}')
        return Settings()
    known = {field.name for field in fields(Settings)}
    numbers, flags = (
        ("discount", "gae_lambda", "clip", "max_gradient_norm"),
        ("shared_rewards", "symmetric", "shared_observations", "one_per_cell", "swaps"),
    )
    kept: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            problems.append(
                f"{DESCRIPTION}: there is no setting {_short(name)}; the settings are {', '.join(sorted(known))}"
            )
        elif value is None:
            continue
        elif name in numbers and not (_is_number(value) and 0 <= value <= (1 if name in numbers[:2] else math.inf)):
            problems.append(
                f"{DESCRIPTION}: {name} is {_short(value)}; write a number{' from 0 to 1' * (name in numbers[:2])}"
            )
        elif name in flags and not isinstance(value, bool):
            problems.append(f"{DESCRIPTION}: {name} is {_short(value)}; write true or false")
        elif name == "shared_parameters" and not (isinstance(value, bool) or names_groups(value, seats)):
            problems.append(f"{DESCRIPTION}: {name} is {_short(value)}; write {GROUPS_WORDS}")
        elif name not in (*numbers, *flags, "shared_parameters") and value not in (
            SCOPES if name != "others_order" else ("ego", "seats")
        ):
            words = SCOPES if name != "others_order" else ("ego", "seats")
            problems.append(f"{DESCRIPTION}: {name} is {_short(value)}; write one of {', '.join(words)}")
        else:
            kept[name] = value
    return Settings(**kept)


def _array(path: Path) -> np.ndarray:
    """The array of a file, read without pickle. Raises a ValueError that says what to write."""
    try:
        about = path.stat()
    except OSError as error:
        raise ValueError(f"cannot be read ({type(error).__name__}); write the array again with numpy.save") from None
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("is no file; write one array there with numpy.save")
    if about.st_size > MOST_BYTES:
        raise ValueError(f"has {about.st_size:,} bytes; record fewer updates or envs, {MOST_BYTES:,} bytes at most")
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("is no .npy file; write one array with numpy.save(path, array)")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"holds {_short(str(array.dtype))}; write plain numbers or flags")
        return np.array(array)
    except ValueError as error:
        words = str(error)
        if any(mark in words for mark in ("; write", "; record")):
            raise
        if "pickle" in words or "Python objects" in words:
            raise ValueError("holds Python objects, which are never loaded; write plain numbers") from None
        raise ValueError("is damaged or cut off; write it again with numpy.save") from None
    except Exception as error:  # a damaged header can fail in any way
        raise ValueError(f"cannot be read ({type(error).__name__}); write it again with numpy.save") from None


def _checked(array: np.ndarray, field: Field, known: dict[str, int]) -> np.ndarray:
    """The array with the dtype of its kind. The sizes of its axes are those of the other arrays of its group."""
    names = field.names
    if array.ndim != len(names):
        raise ValueError(f"has {array.ndim} axes ({array.shape}); write {len(names)}: {', '.join(names)}")
    for axis, size in zip(names, array.shape, strict=True):
        if size == 0:
            raise ValueError(f"is empty ({array.shape}); write one entry or more along {axis}")
        if known.setdefault(axis, size) != size:
            where = f"{DESCRIPTION} and the other arrays have"
            raise ValueError(f"has {size} along {axis}, where {where} {known[axis]}; write the same {axis} everywhere")
    if array.dtype.kind not in KINDS[field.kind]:
        raise ValueError(f"holds {array.dtype}; write {WORDS[field.kind]}: {field.says}")
    if field.kind == "flag":
        if array.dtype.kind != "b" and (array.max() > 1 or array.min() < 0):
            raise ValueError(f"holds other numbers than 0 and 1; write bool: {field.says}")
        return array.astype(bool)
    if field.kind == "number":
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise ValueError("holds numbers beyond int64; write int64")
    return array.astype(np.int64)


def _unknown(folder: Path) -> list[str]:
    """Arrays whose names mean nothing: they may be typing errors."""
    found = []
    for group in sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()):
        names = GROUPS.get(group.name)
        for path in sorted(group.glob("*.npy"))[:MOST_SHOWN]:
            if names is None:
                found.append(f"{group.name}/ means nothing; the folders are {', '.join(GROUPS)}")
                break
            if path.stem not in names:
                found.append(f"{group.name}/{_short(path.name)} means nothing; the arrays are {', '.join(names)}")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _is_name(text: str) -> bool:
    """Whether a text can be shown: control characters could change what a terminal shows."""
    return 0 < len(text) <= MOST_LETTERS and text.isprintable()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
