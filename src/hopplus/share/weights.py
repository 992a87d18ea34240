"""Arrays in the safetensors format: eight bytes with the length of a JSON header, the header, then the plain numbers.

A file holds no code. Everything in the header is checked before a byte is used: names, types, shapes and places.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "U32": np.dtype("<u4"),
    "BOOL": np.dtype("?"),
}
"""The types of the format that this project writes and reads."""
ABOUT = "__metadata__"
LONGEST_HEADER = 100_000_000
ALIGNED = 8


def write_safetensors(path: Path, arrays: Mapping[str, Any], about: Mapping[str, str]) -> None:
    """Write arrays by their names; `about` is text by name. The same content gives the same bytes."""
    names = {dtype: name for name, dtype in TYPES.items()}
    header: dict[str, Any] = {ABOUT: dict(sorted(about.items()))}
    parts, place = [], 0
    for name, array in sorted(arrays.items()):
        array = np.asarray(array)
        if array.dtype.newbyteorder("<") not in names:
            raise ValueError(f"{name} has the type {array.dtype}, which safetensors files of hopplus do not hold")
        part = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        kind = names[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [place, place + len(part)]}
        parts.append(part)
        place += len(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a file by their names, and its text by name; raises ValueError if the file is not well-formed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from None
    try:
        return _parse(content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{path} is no safetensors file ({error}); export the run again") from None


def _parse(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, LONGEST_HEADER):
        raise ValueError("the header is longer than the file")
    header = json.loads(content[8 : 8 + length].decode())
    if not isinstance(header, dict):
        raise ValueError("the header is no JSON object")
    about = header.pop(ABOUT, {})
    if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
        raise ValueError(f"{ABOUT} is not text by name")
    data, arrays, end = content[8 + length :], {}, 0
    for name, entry in sorted(header.items(), key=lambda item: _offsets(item[1])):
        dtype, shape, (first, last) = TYPES[entry["dtype"]], entry["shape"], _offsets(entry)
        if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 2**32 for size in shape):
            raise ValueError(f"the shape of {name} is {shape!r}")
        count = 1
        for size in shape:
            count *= size
        if first != end or last > len(data) or last - first != count * dtype.itemsize:
            raise ValueError(f"{name} does not lie where its shape and type say")
        if dtype == TYPES["BOOL"] and not set(data[first:last]) <= {0, 1}:
            raise ValueError(f"{name} has a flag that is neither 0 nor 1")
        arrays[name] = np.frombuffer(data, dtype, count, first).reshape(shape).copy()
        end = last
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes belong to no array")
    return arrays, about


def _offsets(entry: Any) -> tuple[int, int]:
    first, last = entry["data_offsets"]
    if type(first) is not int or type(last) is not int or not 0 <= first <= last:
        raise ValueError("an array has no place in the file")
    return first, last
