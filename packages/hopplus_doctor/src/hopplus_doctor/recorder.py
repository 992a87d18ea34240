"""Write a recording from a training loop, with NumPy alone and in bounded memory.

    recorder = Recorder("recordings/first", ("red", "blue"), axes="time envs seats", discount=0.99)
    for update in range(num_updates):
        ...
        if recorder.wants(update):
            recorder.record(update, "real", actions=actions, rewards=rewards, values=values, targets=targets)
    recorder.save()

Of the envs of an update `envs` are kept, and at most `updates` updates: when more are recorded, every second one is
dropped and from then on half as many are wanted. So a long run leaves an even sample of its updates, of which the
latest may be up to one interval old.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hopplus_doctor.schema import DESCRIPTION, FORMAT, GROUPS, Field, Settings

Arrays = dict[tuple[str, str], np.ndarray]


class Recorder:
    """Keeps a sample of a training, and writes it as a recording."""

    def __init__(
        self,
        folder: str | Path,
        seats: Sequence[str],
        *,
        axes: str = "seats envs time",
        envs: int = 8,
        updates: int = 32,
        every: int = 1,
        samples: int = 256,
        modules: Sequence[str] = (),
        num_actions: int | None = None,
        **settings: Any,
    ):
        """`axes` is the order of the axes of the arrays that you pass, as in "time envs seats".

        The settings are those of `hopplus_doctor.schema.Settings`. `modules` names what `checksums` are about.
        """
        if sorted(axes.split()) != ["envs", "seats", "time"]:
            raise ValueError(f'axes is {axes!r}; give seats, envs and time in your order, as in "time envs seats"')
        for name, least in (("envs", envs), ("updates", updates), ("every", every), ("samples", samples)):
            if least < 1:
                raise ValueError(f"{name} is {least}; give 1 or more")
        self.folder, self.seats, self.modules = Path(folder), tuple(seats), tuple(modules)
        self.settings, self.num_actions = Settings(**settings), num_actions
        self._axes, self._envs, self._updates, self._every = axes.split(), envs, max(2, updates), every
        self._samples = samples
        self._kept: dict[int, Arrays] = {}

    def wants(self, update: int) -> bool:
        """Whether the recorder keeps this update. If not, `record` does nothing."""
        return update in self._kept or update % self._every == 0

    def record(self, update: int, group: str = "real", **arrays: Any) -> None:
        """Keep arrays of one update: of real or imagined steps, or of "others", "world", "minibatch" or "updates"."""
        if not self.wants(update):
            return
        if group not in GROUPS:
            raise ValueError(f"there is no group {group!r}; give one of {', '.join(GROUPS)}")
        for name, given in arrays.items():
            if name not in GROUPS[group]:
                raise ValueError(f"{group} has no array {name!r}; give one of {', '.join(GROUPS[group])}")
            self._update(update)[group, name] = self._part(group, name, GROUPS[group][name], given)

    def checksums(self, update: int, when: str, parameters: Mapping[str, Sequence[Any]]) -> None:
        """Keep checksums of the parameters of each module: for each seat, an array or a list of arrays.

        `when` is "before" or "after" the update.
        """
        if when not in ("before", "after"):
            raise ValueError(f'when is {when!r}; give "before" or "after"')
        if not self.wants(update):
            return
        missing = [module for module in self.modules if module not in parameters]
        if missing or not self.modules:
            raise ValueError(f"checksums need every module, as in Recorder(modules={list(parameters)}): {missing}")
        sums = [[checksum(parameters[module][seat]) for seat in range(len(self.seats))] for module in self.modules]
        self._update(update)["updates", f"checksums_{when}"] = np.array(sums, np.int64)

    def save(self) -> Path:
        """Write the recording, also over an older one of the same recorder. Returns the folder."""
        updates = sorted(self._kept)
        names = {key for update in updates for key in self._kept[update]}
        for group, name in sorted(names):
            having = [self._kept[update].get((group, name)) for update in updates]
            if any(array is None for array in having):
                absent = [update for update, array in zip(updates, having, strict=True) if array is None]
                raise ValueError(f"{group}/{name} is missing in update {absent[0]}; record it in every wanted update")
            shapes = {array.shape for array in having if array is not None}
            if len(shapes) > 1:
                raise ValueError(f"{group}/{name} has several shapes ({shapes}); record rollouts of one size")
            (self.folder / group).mkdir(parents=True, exist_ok=True)
            np.save(self.folder / group / f"{name}.npy", np.stack([a for a in having if a is not None]))
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / DESCRIPTION).write_text(json.dumps(self._about(updates), indent=1) + "\n", encoding="utf-8")
        return self.folder

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self._kept:
            self.save()

    def _about(self, updates: list[int]) -> dict[str, Any]:
        settings = {name: value for name, value in vars(self.settings).items() if value is not None}
        about = {"format": FORMAT, "seats": list(self.seats), "updates": updates, "settings": settings}
        if self.modules:
            about["modules"] = list(self.modules)
        if self.num_actions is not None:
            about["num_actions"] = self.num_actions
        return about

    def _update(self, update: int) -> Arrays:
        if update not in self._kept:
            self._kept[update] = {}
            if len(self._kept) > self._updates:
                self._every *= 2
                self._kept = {key: kept for key, kept in self._kept.items() if key % self._every == 0 or key == update}
        return self._kept[update]

    def _part(self, group: str, name: str, field: Field, given: Any) -> np.ndarray:
        array = np.asarray(given)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{group}/{name} holds {array.dtype}; give numbers or flags")
        axes = field.names[1:]
        if len(axes) != array.ndim and not (len(axes) < array.ndim and axes[-1] in ("numbers", "goals")):
            raise ValueError(f"{group}/{name} has {array.ndim} axes; give {len(axes)}: {', '.join(self._order(axes))}")
        order = self._order(axes)
        array = np.moveaxis(array, [order.index(axis) for axis in axes[:3]], list(range(len(axes[:3]))))
        if axes[-1] in ("numbers", "goals"):
            array = array.reshape(*array.shape[: len(axes) - 1], -1)
        seats = array.shape[axes.index("seats")]
        if seats != len(self.seats):
            raise ValueError(
                f"{group}/{name} has {seats} seats where {len(self.seats)} are named; check axes, now "
                f"{' '.join(self._axes)!r}"
            )
        for axis, most in (("envs", self._envs), ("samples", self._samples)):
            if axis in axes and array.shape[axes.index(axis)] > most:
                size = array.shape[axes.index(axis)]
                array = np.take(array, np.linspace(0, size - 1, most).round().astype(int), axes.index(axis))
        dtype = {"flag": np.bool_, "number": np.float32, "whole": np.int64}[field.kind]
        return np.array(array, dtype)

    def _order(self, axes: Sequence[str]) -> list[str]:
        """The axes of a given array. Arrays without all three of seats, envs and time keep the order of the rest."""
        times = {"ahead": "time"}
        wanted = [times.get(axis, axis) for axis in axes]
        if "samples" in axes or "modules" in axes or "envs" not in axes:
            return list(axes)
        named = [axis for axis in self._axes if axis in wanted]
        back = {times.get(axis, axis): axis for axis in axes}
        return [back[axis] for axis in named] + [axis for axis in axes if times.get(axis, axis) not in named]


def checksum(parameters: Any) -> int:
    """A checksum of an array or of a list of arrays. Equal parameters have equal checksums."""
    total = 0
    for array in parameters if isinstance(parameters, list | tuple) else [parameters]:
        total = zlib.crc32(np.ascontiguousarray(array).tobytes(), total)
    return total
