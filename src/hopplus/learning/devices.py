"""The work of one seed on several devices, which on a laptop are its cores.

XLA gains next to nothing from a second core inside small matrix products. So a CPU is used as one device per core, and
what is independent is cut in equal parts: tables while they are played, learners while they learn.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

PARTS = "parts"
MOST_CORES = 4
"""Used unless asked for more: a seed has seldom more learners to share out."""


def mesh(num_devices: int) -> Mesh:
    """The first so many devices."""
    found = jax.devices()
    if len(found) < num_devices:
        raise ValueError(
            f"--devices is {num_devices}, but JAX has {len(found)}; give fewer, or call "
            "hopplus.learning.devices.use_cores before JAX is first used"
        )
    return jax.make_mesh((num_devices,), (PARTS,), axis_types=(AxisType.Auto,), devices=found[:num_devices])


def on_every(num_devices: int) -> NamedSharding:
    """Where a run's state lives between blocks: a copy on each device."""
    return NamedSharding(mesh(num_devices), PartitionSpec())


def in_parts(fn: Callable[..., Any], num_devices: int, length: int) -> Callable[[Any, Any], Any]:
    """fn(same, parts), where each device has all of `same` and its share of the leading axis of `parts`.

    Where the axis cannot be cut equally, every device does all of it.
    """
    if num_devices == 1 or length % num_devices:
        return fn
    specs = (PartitionSpec(), PartitionSpec(PARTS))
    return jax.shard_map(fn, mesh=mesh(num_devices), in_specs=specs, out_specs=PartitionSpec(PARTS), check_vma=False)


def num_cores() -> int:
    """The largest power of two that is not above the number of cores, four at most."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_CORES, 1 << (cores.bit_length() - 1))


def use_cores(num_devices: int) -> None:
    """Show JAX the CPU as so many devices; it must not have been used yet."""
    with suppress(RuntimeError):  # raised when it has been used: `mesh` tells whether its devices are enough
        jax.config.update("jax_num_cpu_devices", num_devices)
