"""Write a recording from a training loop, with NumPy alone and in bounded memory.

    recorder = Recorder("recordings/first", ("red", "blue"), axes="time envs seats", discount=0.99)
    for update in range(num_updates):
        ...
        if recorder.wants(update):
            recorder.record(update, "real", actions=actions, rewards=rewards, values=values, targets=targets)
    recorder.save()

Of the envs of an update `envs` are kept, and at most `updates` updates: when more are recorded, every second one is
dropped, and from then on an update is wanted if it is as far from those that are kept as they are from each other. So
a long run leaves an even sample of its updates, of which the latest may be up to one interval old.
"""

import json
import operator
import zlib
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hopplus_doctor.schema import DESCRIPTION, FORMAT, GROUPS, GROUPS_WORDS, Field, Settings, fields, names_groups

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
        self.settings = Settings(**{name: _plain(value) for name, value in settings.items()})
        self.num_actions = _plain(num_actions)
        shared = self.settings.shared_parameters
        if not (shared is None or isinstance(shared, bool) or names_groups(shared, self.seats)):
            raise ValueError(f"shared_parameters is {shared!r}; give {GROUPS_WORDS}")
        self._axes, self._envs, self._updates, self._apart = axes.split(), envs, max(2, updates), every
        self._samples = samples
        self._kept: dict[int, Arrays] = {}

    def wants(self, update: int) -> bool:
        """Whether the recorder keeps this update. If not, `record` does nothing."""
        update = _whole(update)
        return update in self._kept or all(abs(update - kept) >= self._apart for kept in self._kept)

    def record(self, update: int, group: str = "real", **arrays: Any) -> None:
        """Keep arrays of one update: of real or imagined steps, or of "others", "world", "minibatch" or "updates"."""
        update = _whole(update)
        if not self.wants(update):
            return
        if group not in GROUPS:
            raise ValueError(f"there is no group {group!r}; give one of {', '.join(GROUPS)}")
        for name, given in arrays.items():
            if name not in GROUPS[group]:
                raise ValueError(f"{group} has no array {name!r}; give one of {', '.join(GROUPS[group])}")
            self._keep(update, group, name, self._part(group, name, GROUPS[group][name], given))

    def checksums(self, update: int, when: str, parameters: Mapping[str, Sequence[Any]]) -> None:
        """Keep checksums of the parameters of each module: for each seat, an array or a list of arrays.

        `when` is "before" or "after" the update.
        """
        if when not in ("before", "after"):
            raise ValueError(f'when is {when!r}; give "before" or "after"')
        update = _whole(update)
        if not self.wants(update):
            return
        missing = [module for module in self.modules if module not in parameters]
        if missing or not self.modules:
            raise ValueError(f"checksums need every module, as in Recorder(modules={list(parameters)}): {missing}")
        sums = [[checksum(parameters[module][seat]) for seat in range(len(self.seats))] for module in self.modules]
        self._keep(update, "updates", f"checksums_{when}", np.array(sums, np.int64))

    def save(self) -> Path:
        """Write the recording, also over an older one. Returns the folder."""
        updates, names = sorted(self._kept), self._names()
        for group, name in names:
            absent = [update for update in updates if (group, name) not in self._kept[update]]
            if absent:
                raise ValueError(f"{group}/{name} is missing in update {absent[0]}; record it in every wanted update")
            shapes = {self._kept[update][group, name].shape for update in updates}
            if len(shapes) > 1:
                raise ValueError(f"{group}/{name} has several shapes ({shapes}); record rollouts of one size")
        if updates:
            self._remove_older(names)
        for group, name in names:
            (self.folder / group).mkdir(parents=True, exist_ok=True)
            arrays = np.stack([self._kept[update][group, name] for update in updates])
            np.save(self.folder / group / f"{name}.npy", arrays)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / DESCRIPTION).write_text(json.dumps(self._about(updates), indent=1) + "\n", encoding="utf-8")
        return self.folder

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if error is None:
            if self._kept:
                self.save()
            return
        names = self._names()
        self._kept = {update: kept for update, kept in self._kept.items() if len(kept) == len(names)}
        try:
            if self._kept:
                self.save()
        except Exception as reason:  # the error of the training is the one to raise
            error.add_note(f"the recording in {self.folder} was not written: {reason}")

    def _about(self, updates: list[int]) -> dict[str, Any]:
        settings = {name: value for name, value in vars(self.settings).items() if value is not None}
        about = {"format": FORMAT, "seats": list(self.seats), "updates": updates, "settings": settings}
        if self.modules:
            about["modules"] = list(self.modules)
        if self.num_actions is not None:
            about["num_actions"] = self.num_actions
        return about

    def _names(self) -> list[tuple[str, str]]:
        """Group and name of the arrays that any update has."""
        return sorted({key for kept in self._kept.values() for key in kept})

    def _remove_older(self, names: Collection[tuple[str, str]]) -> None:
        """Remove the arrays of an older recording that are not written again."""
        for group, name, _ in fields():
            path = self.folder / group / f"{name}.npy"
            if (group, name) not in names and path.is_file():
                path.unlink()

    def _keep(self, update: int, group: str, name: str, array: np.ndarray) -> None:
        if update not in self._kept and len(self._kept) == self._updates:
            thinned = sorted([*self._kept, update])[::2]
            self._apart = min(later - earlier for earlier, later in pairwise(thinned))
            self._kept = {key: self._kept.get(key, {}) for key in thinned}
            if update not in self._kept:
                return
        self._kept.setdefault(update, {})[group, name] = array

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


def _plain(value: Any) -> Any:
    """A scalar of NumPy, PyTorch or JAX as a plain one, which JSON can hold."""
    return value.item() if hasattr(value, "item") else value


def _whole(update: Any) -> int:
    try:
        return int(operator.index(update))
    except TypeError:
        raise ValueError(f"update is {update!r}; give its number, a whole one") from None


def checksum(parameters: Any) -> int:
    """A checksum of an array or of a list of arrays. Equal parameters have equal checksums."""
    total = 0
    for array in parameters if isinstance(parameters, list | tuple) else [parameters]:
        total = zlib.crc32(np.ascontiguousarray(array).tobytes(), total)
    return total
