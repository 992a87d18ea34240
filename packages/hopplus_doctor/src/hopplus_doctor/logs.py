"""Read logs: TensorBoard events, CSV and JSON lines. Each becomes curves: for every tag its steps and values.

An events file is a list of records, [length, checksum, data, checksum], and the data is a protocol buffer. The reader
knows the few fields that hold scalars and skips all others, so neither TensorFlow nor protobuf is needed.
"""

import csv
import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MOST_BYTES = 1 << 30
"""The largest file that is read."""
MOST_RECORD = 1 << 26
"""The largest record of an events file; scalars need a few dozen bytes."""
STEPS = (
    "global_step",
    "step",
    "steps",
    "env_steps",
    "timesteps",
    "total_timesteps",
    "_step",
    "iteration",
    "update",
    "epoch",
)
"""The names of columns that count steps, the likeliest first."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class Curve:
    """The values of a tag, in the order of their steps."""

    steps: np.ndarray
    values: np.ndarray


def read_logs(folder: Path) -> dict[str, Curve]:
    """All curves of a file, or of a folder and the folders in it. Raises a ValueError if there are none."""
    if not folder.exists():
        raise ValueError(f"there is no {str(folder)!r}; give a folder with TensorBoard events, CSV or JSON lines")
    paths = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    found: dict[str, list[tuple[float, float]]] = {}
    for path in paths:
        reader = _reader(path)
        if reader is None:
            continue
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} has more than {MOST_BYTES:,} bytes; give a shorter log")
        for tag, step, value in reader(path):
            found.setdefault(tag, []).append((step, value))
    if not found:
        raise ValueError(f"{folder} holds no scalars; give events.out.tfevents.*, *.csv or *.jsonl files")
    curves = {}
    for tag, points in found.items():
        points.sort(key=lambda point: point[0])
        array = np.array(points, np.float64)
        curves[tag] = Curve(array[:, 0], array[:, 1])
    return curves


def _reader(path: Path):
    if "tfevents" in path.name:
        return _events
    return {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}.get(path.suffix.lower())


def _events(path: Path) -> Iterator[tuple[str, float, float]]:
    """The scalars of an events file. A file that is cut off, as of a run that was stopped, is read up to there."""
    with path.open("rb") as file:
        is_first = True
        while len(head := file.read(12)) == 12:
            (length,) = struct.unpack("<Q", head[:8])
            if length > MOST_RECORD:
                raise ValueError(f"{path} is no events file, or is damaged: a record has {length:,} bytes")
            data = file.read(length + 4)
            if len(data) < length + 4:
                return
            try:
                yield from _scalars(data[:-4])
            except (ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
                words = "is no events file" if is_first else "is damaged"
                raise ValueError(f"{path} {words} ({error}); give the file as TensorBoard wrote it") from None
            is_first = False


def _scalars(event: bytes) -> Iterator[tuple[str, float, float]]:
    step, summaries = 0, []
    for number, kind, value in _fields(event):
        if number == 2 and kind == VARINT:
            step = value - 2**64 if value >= 2**63 else value
        elif number == 5 and kind == BYTES:
            summaries.append(value)
    for summary in summaries:
        for number, kind, value in _fields(summary):
            if number == 1 and kind == BYTES:
                tag, scalar = _value(value)
                if scalar is not None:
                    yield tag, float(step), scalar


def _value(message: bytes) -> tuple[str, float | None]:
    """The tag and the scalar of a summary; None if it is a picture, a histogram or a text."""
    tag, scalar = "", None
    for number, kind, value in _fields(message):
        if number == 1 and kind == BYTES:
            tag = value.decode("utf-8")
        elif number == 2 and kind == FIXED32:
            (scalar,) = struct.unpack("<f", value)
        elif number == 8 and kind == BYTES:
            scalar = _tensor(value)
    return tag, scalar


def _tensor(message: bytes) -> float | None:
    """The number of a tensor with one float or double; otherwise None."""
    dtype, content = 0, b""
    for number, kind, value in _fields(message):
        if number == 1 and kind == VARINT:
            dtype = value
        elif number in (4, 5, 6) and kind in (BYTES, FIXED32, FIXED64):
            content = value
    if (dtype, len(content)) == (1, 4):
        return struct.unpack("<f", content)[0]
    return struct.unpack("<d", content)[0] if (dtype, len(content)) == (2, 8) else None


def _fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """The number, wire type and value of every field of a protocol buffer."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, place = _varint(message, place)
            yield number, kind, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if kind == BYTES:
            size, place = _varint(message, place)
        if size is None or place + size > len(message):
            raise ValueError(f"field {number} has a wrong type or length")
        yield number, kind, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number is too long")


def _csv(path: Path) -> Iterator[tuple[str, float, float]]:
    """The columns of a table. Comments before it, as of stable-baselines' monitor, are skipped."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = (line.replace("\0", "") for line in file if not line.startswith("#"))
        try:
            yield from _rows(csv.DictReader(lines))
        except csv.Error as error:
            raise ValueError(
                f"{path} is no table ({error}); write one row for each step, with a row of names"
            ) from None


def _json_lines(path: Path) -> Iterator[tuple[str, float, float]]:
    def rows() -> Iterator[Mapping[str, object]]:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    raise ValueError(f"{path}, line {number}: no JSON; write one object in each line") from None
                if not isinstance(row, dict):
                    raise ValueError(f'{path}, line {number}: no object; write {{"step": 1, "loss": 0.5}}')
                yield dict(_flat(row))

    return _rows(rows())


def _flat(row: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _rows(rows: Iterator[Mapping[str, object]]) -> Iterator[tuple[str, float, float]]:
    for place, row in enumerate(rows):
        named = {name.strip().lower(): name for name in row if isinstance(name, str)}
        column = next((named[name] for name in STEPS if name in named and _number(row[named[name]]) is not None), None)
        step = float(place) if column is None else _number(row[column])
        for name, value in row.items():
            number = _number(value)
            if isinstance(name, str) and name != column and number is not None and step is not None:
                yield name.strip(), step, number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if not isinstance(value, str) or value.strip() else math.nan
