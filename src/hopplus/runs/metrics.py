"""The metrics of a run: JSON lines, TensorBoard events, and Weights & Biases with --wandb.

No update is lost or doubled: when a run resumes from a checkpoint, the lines after that checkpoint are cut off first.
"""

import json
import math
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CHECKUPS, METRICS, TENSORBOARD, TIMING, write_whole
from hopplus_doctor.statistics import mean_of_known

MEAN_HAS_A_NAME = {"charts/episodic_return"}
"""Tags whose mean over seats is called `/mean`; for all others the plain tag is the mean."""
RECALL = "moa/recall/"
"""Tags that have no number for a co-player that did not take the action: their means are over those that did."""
AXES = {"update", "env_steps"}
"""The position of a row; all other entries are lists over seeds."""
Row = dict[str, Any]


def rows(metrics: dict[str, np.ndarray], first_update: int, num_updates: int, steps_per_update: int) -> Iterator[Row]:
    """A row of lists over seeds for each update, from arrays [updates, seeds] with or without axes of seats."""
    by_tag = dict(sorted(tag for name, values in metrics.items() for tag in _tags(name, values[:num_updates])))
    for index in range(num_updates):
        update = first_update + index + 1
        row: Row = {"update": update, "env_steps": update * steps_per_update}
        yield row | {tag: [_number(value) for value in values[index]] for tag, values in by_tag.items()}


def _tags(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The tags of a metric: one for each seat, and one for each pair of a seat and a co-player."""
    if values.ndim == 2:
        yield name, values
        return
    mean = _mean_of_known if name.startswith(RECALL) else partial(np.mean, axis=-1)
    by_seat = values if values.ndim == 3 else mean(values)
    yield f"{name}/mean" if name in MEAN_HAS_A_NAME else name, mean(by_seat)
    seats = by_seat.shape[-1]
    if seats > 1:
        for seat in range(seats):
            yield f"{name}/player_{seat + 1}", by_seat[..., seat]
    if values.ndim == 4:
        agents = values.shape[-1] + 1
        for seat in range(seats):
            for offset in range(1, agents):
                other = (seat + offset) % agents
                yield f"{name}/player_{seat + 1}_of_{other + 1}", values[..., seat, offset - 1]


def _mean_of_known(values: np.ndarray) -> np.ndarray:
    return mean_of_known(values.astype(np.float64))


def _number(value: np.floating) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _event_writer() -> type:
    """TensorBoard's writer. It would import torch where that is installed, which takes seconds and is not needed."""
    hidden = {"torch": None} if "torch" not in sys.modules else {}
    sys.modules.update(hidden)  # pyright: ignore[reportArgumentType, reportCallIssue]
    try:
        from tensorboardX import SummaryWriter
    finally:
        for name in hidden:
            del sys.modules[name]
    return SummaryWriter


class Writers:
    """All outputs of a run's metrics."""

    def __init__(self, folder: Path, config: RunConfig, done: int, description: dict[str, Any]):
        event_writer = _event_writer()
        cut_after(folder / METRICS, done, every_update=True)
        cut_after(folder / TIMING, done)
        if (folder / CHECKUPS).exists():
            cut_after(folder / CHECKUPS, done)
        self._checkups = folder / CHECKUPS
        self._wandb = _start_wandb(config.wandb, folder, description) if config.wandb else None
        self._metrics, self._timing = ((folder / name).open("a") for name in (METRICS, TIMING))
        # TensorBoard hides the updates that will be repeated. The suffix keeps an older file from being emptied.
        again = done * config.learner.steps_per_update + 1 if (folder / TENSORBOARD).exists() else None
        self._events = [
            event_writer(
                str(folder / TENSORBOARD / f"seed_{seed}"), purge_step=again, filename_suffix=f".from_update_{done}"
            )
            for seed in range(config.seeds)
        ]

    def write(self, row: Row) -> None:
        self._metrics.write(json.dumps(row) + "\n")
        for tag, values in row.items():
            if isinstance(values, list):
                for events, value in zip(self._events, values, strict=True):
                    if value is not None:
                        events.add_scalar(tag, value, row["env_steps"])
        if self._wandb:
            self._wandb.log(_for_wandb(row), step=row["update"])

    def write_timing(self, row: Row) -> None:
        self._timing.write(json.dumps(row) + "\n")
        for events in self._events:
            events.add_scalar("charts/steps_per_second", row["charts/steps_per_second"], row["env_steps"])

    def write_doctor(self, row: Row) -> None:
        """Write what the doctor said at a checkpoint."""
        with self._checkups.open("a") as file:
            file.write(json.dumps(row) + "\n")
        for name in ("broken", "suspicious", "share"):
            for events in self._events:
                events.add_scalar(f"doctor/{name}", row[name], row["env_steps"])

    def flush(self) -> None:
        for file in (self._metrics, self._timing, *self._events):
            file.flush()

    def close(self) -> None:
        for file in (self._metrics, self._timing, *self._events):
            file.close()
        if self._wandb:
            self._wandb.finish()


def cut_after(path: Path, done: int, *, every_update: bool = False) -> None:
    """Drop the lines of updates after `done`, which will be repeated, and a last line that a kill cut in two."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    kept, last = [], 0
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break
        update = _update_of(line)
        if update is None or update <= last or (every_update and update != last + 1):
            raise ValueError(
                f"{path} is damaged at line {number}; put the file back, or train again into another folder"
            )
        if update > done:
            break
        kept.append(line)
        last = update
    if every_update and last < done:
        raise ValueError(
            f"{path} ends at update {last}, but the checkpoint is of update {done}; "
            "put the file back, or train again into another folder"
        )
    write_whole(path, b"".join(kept))


def _update_of(line: bytes) -> int | None:
    try:
        update = json.loads(line)["update"]
    except (ValueError, TypeError, KeyError):
        return None
    return update if isinstance(update, int) else None


def _for_wandb(row: Row) -> dict[str, float | int]:
    """A row as W&B draws it, in numbers: the mean over seeds under the tag itself, then one tag per seed."""
    drawn: dict[str, float | int] = {"env_steps": row["env_steps"]}
    for tag, values in row.items():
        known = {seed: value for seed, value in enumerate(values) if value is not None} if tag not in AXES else {}
        if known:
            drawn[tag] = sum(known.values()) / len(known)
            drawn |= {f"seed_{seed}/{tag}": value for seed, value in known.items()}
    return drawn


def find_wandb() -> Any:
    """Import the package; raise with the command that installs it."""
    try:
        import wandb  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("--wandb needs the wandb package; pip install wandb, or leave --wandb out") from None
    return wandb


def _start_wandb(project: str, folder: Path, config: dict[str, Any]) -> Any:
    unique = f"{folder.name}-{crc32(str(folder.absolute()).encode()):08x}"
    return find_wandb().init(project=project, name=folder.name, id=unique, resume="allow", dir=folder, config=config)
