"""Checkpoints by orbax: each is written to a temporary folder and moved to its place when it is complete."""

import gc
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jaxtyping import Array, PyTree

from hopplus.core.streams import is_key
from hopplus.runs.formats import Arrays

KEEP = 2


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has a whole checkpoint in its folder of checkpoints."""
    return folder.is_dir() and any(place.name.isdigit() for place in folder.iterdir())


class Checkpoints:
    """The checkpoints of one run, by the number of updates done."""

    def __init__(self, folder: Path, *, read_only: bool = False):
        """Open the folder. `read_only` leaves half-written checkpoints alone: a training may be writing them."""
        logging.getLogger("absl").setLevel(logging.ERROR)
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is not a folder; remove it, or train again into another folder")
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else KEEP,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=not read_only,
            create=not read_only,
            read_only=read_only,
        )
        handler = ocp.StandardCheckpointHandler()
        self._manager = ocp.CheckpointManager(folder.absolute(), options=options, item_handlers=handler)

    def save(self, num_updates: int, state: PyTree[Array]) -> None:
        """Write a checkpoint; every host writes what its devices hold."""
        plain = _plain(state)
        if jax.process_count() == 1:  # orbax would compile a program for every array, to divide it among devices
            plain = jax.device_get(plain)
        self._manager.save(num_updates, args=ocp.args.StandardSave(plain))

    @property
    def latest(self) -> int | None:
        """The number of updates of the last checkpoint; None if there is none."""
        return self._manager.latest_step()

    def restore(self, num_updates: int, like: PyTree, migrate: Callable[[Arrays], Arrays] = dict) -> PyTree[Array]:
        """The state of that update, in the shapes of `like`; `migrate` brings arrays of an older format up to date."""
        place = self.folder / str(num_updates)
        arrays, failure = {}, ""
        with _without_echoes():
            try:
                stored = self._manager.item_metadata(num_updates)
                if stored is None:
                    raise ValueError("its index is missing")
                empty = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), dict(stored))
                arrays = by_name(self._manager.restore(num_updates, args=ocp.args.StandardRestore(empty)))
            except Exception as error:
                failure = _first_line(error)
            if failure:
                # What orbax dropped prints its error when it is collected: now, while that is silenced.
                time.sleep(0.3)
                gc.collect()
        if failure:
            raise ValueError(
                f"the checkpoint {place} cannot be read ({failure}); "
                "delete it to resume from the one before it, or train again into another folder"
            )
        arrays = migrate(arrays)
        wanted = by_name(jax.eval_shape(_plain, like))
        if {name: leaf.shape for name, leaf in arrays.items()} != {name: leaf.shape for name, leaf in wanted.items()}:
            raise ValueError(
                f"the checkpoint {place} holds arrays of other shapes than the settings of the run ask for; "
                "put back the config.json that it was trained with, or train again into another folder"
            )
        leaves = [_from_plain(leaf, arrays[name]) for name, leaf in by_name(like).items()]
        return jax.tree.unflatten(jax.tree.structure(like), leaves)

    def close(self) -> None:
        self._manager.close()


def by_name(tree: PyTree) -> dict[str, Any]:
    """The leaves of a tree by the names on the way to them, joined by dots."""
    named = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {".".join(jax.tree_util.keystr((key,), simple=True) for key in path): leaf for path, leaf in named}


@contextmanager
def _without_echoes() -> Iterator[None]:
    """Silence stderr of orbax: if one array cannot be read, it drops the others, and each of them prints an error."""
    hook, log = sys.unraisablehook, logging.getLogger("asyncio")
    was_disabled = log.disabled
    sys.unraisablehook = lambda echo: None if "Event loop is closed" in str(echo.exc_value) else hook(echo)
    log.disabled = True
    try:
        yield
    finally:
        sys.unraisablehook, log.disabled = hook, was_disabled


def _plain(state: PyTree[Array]) -> PyTree:
    """The state as orbax can save it: keys as numbers, and a scalar in place of an empty array."""

    def plain(leaf: Array) -> Array | np.ndarray:
        return jax.random.key_data(leaf) if is_key(leaf) else leaf if leaf.size else np.zeros((), leaf.dtype)

    return jax.tree.map(plain, state)


def _from_plain(like: jax.ShapeDtypeStruct, leaf: np.ndarray) -> Array:
    if is_key(like):
        return jax.random.wrap_key_data(jax.device_put(leaf))
    return jax.device_put(leaf) if like.size else jnp.zeros(like.shape, like.dtype)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0][:200]
