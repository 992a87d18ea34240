"""Compiled training programs by their settings: a program that was made before is read without being traced again.

JAX's own cache knows a program by its content, so Python must trace it first, for many seconds. Here it is known by
the settings of the run, the sources of hopplus and the versions of what compiles it. Only programs of hopplus's own
agents and games are kept: what a user wrote can change without a trace.
"""

import json
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import get_ident
from typing import Any

import jax
from jax.experimental import serialize_executable
from jaxtyping import PyTree

import hopplus
from hopplus.agents.named import NAMES
from hopplus.core.compiled import PROGRAMS
from hopplus.core.devices import make_mesh
from hopplus.games.presets import PRESETS
from hopplus.runs.config import RunConfig

MOST = 16
"""Programs that are kept; those that were not used for longest are deleted."""
PACKAGES = ("jax", "jaxlib", "equinox", "optax", "flashbax", "mctx", "chex", "numpy")
"""What a program depends on, besides hopplus."""
CACHE_HIT = "/jax/compilation_cache/cache_hits"
WITHOUT = ("seed", "steps", "checkpoint_every", "wandb", "early_stop", "init_from")
"""Settings that the program does not contain."""


_hits: dict[int, int] = {}


def _count_hits(event: str, **_: Any) -> None:
    """Count the programs that JAX read from its own cache, for each thread."""
    if event == CACHE_HIT:
        _hits[get_ident()] = _hits.get(get_ident(), 0) + 1


jax.monitoring.register_event_listener(_count_hits)


def compiled_block(config: RunConfig, states: PyTree, counts: jax.ShapeDtypeStruct, compiler: Callable[[], Any]) -> Any:
    """The compiled program of a block of updates: read, or compiled and kept.

    Its results are the states and the metrics.
    """
    place = _place(config)
    if place is None:
        return compiler()
    with suppress(OSError, ValueError, KeyError, EOFError, pickle.UnpicklingError, jax.errors.JaxRuntimeError):
        kept = pickle.loads(place.read_bytes())
        trees = (((states, counts), {}), (states, dict.fromkeys(kept["metrics"], 0)))
        devices = list(make_mesh(config.learner.mesh).devices.flat)
        load = partial(serialize_executable.deserialize_and_load, execution_devices=devices)
        block = load(kept["program"], *map(jax.tree.structure, trees))
        os.utime(place)
        return block
    hits = _hits.get(get_ident(), 0)
    block = compiler()
    if _hits.get(get_ident(), 0) > hits:  # XLA cannot write a program that it has read itself
        return block
    program, _, results = serialize_executable.serialize(block)
    metrics = jax.tree.unflatten(results, range(results.num_leaves))[1]
    with suppress(OSError):
        _keep(place, pickle.dumps({"program": program, "metrics": sorted(metrics)}))
    return block


def _place(config: RunConfig) -> Path | None:
    """The file of the run's program; None if it is not kept."""
    folder = os.environ.get(PROGRAMS)
    settings = {name: value for name, value in asdict(config).items() if name not in WITHOUT}
    written = json.dumps(settings, sort_keys=True)
    is_known = config.agent in NAMES and config.game in PRESETS and not config.co_players
    if not folder or not is_known or _has_own(settings["learner"]) or jax.process_count() > 1:
        return None
    devices = [str(device) for device in jax.devices()]
    about = [written, _sources(), _versions(), devices, jax.config.values, os.environ.get("XLA_FLAGS")]
    return Path(folder) / f"{sha256(repr(about).encode()).hexdigest()[:24]}.program"


def _has_own(settings: Any) -> bool:
    """Whether a setting names something as MODULE:FACTORY."""
    if isinstance(settings, dict):
        return any(map(_has_own, settings.values()))
    return isinstance(settings, str) and ":" in settings


@cache
def _sources() -> str:
    """A name for the sources of hopplus as they are now."""
    root = Path(hopplus.__file__).parent
    found = sha256()
    for source in sorted(root.rglob("*.py")):
        found.update(source.relative_to(root).as_posix().encode() + source.read_bytes())
    return found.hexdigest()


@cache
def _versions() -> list[str | None]:
    found: list[str | None] = []
    for name in PACKAGES:
        try:
            found.append(version(name))
        except PackageNotFoundError:
            found.append(None)
    return found


def _keep(place: Path, content: bytes) -> None:
    """Write the file at once, so that another process never reads half of it, and delete the oldest."""
    place.parent.mkdir(parents=True, exist_ok=True)
    half = place.with_suffix(f".{os.getpid()}")
    half.write_bytes(content)
    half.replace(place)
    by_age = sorted(place.parent.glob("*.program"), key=lambda file: file.stat().st_mtime)
    for old in by_age[:-MOST]:
        old.unlink(missing_ok=True)
