"""One run on several devices, which on a laptop are its cores, and on a cluster may be those of several hosts.

Devices are laid out as a mesh of two axes. Along `seeds` each device trains seeds of its own, and nothing is
exchanged: for `ppo` every bit is that of a single device, while XLA compiles the larger programs of other agents a
little otherwise, to the same numbers up to rounding. Along `envs` devices share the work of each seed: tables while
they are played; learners while they learn, where they can be dealt out equally; else the samples of every gradient
step, whose gradients XLA averages. Sums are then made in another order, so there too the last bits can differ.

XLA gains next to nothing from a second core inside small matrix products. So a CPU is used as one device per core.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, PyTree

SEEDS, ENVS = "seeds", "envs"
MOST_CORES = 4
"""Used unless asked for more: a seed has seldom more learners to share out."""


@dataclass(frozen=True)
class MeshConfig:
    """How many devices a run is laid out over; on a CPU they are cores."""

    seeds: int = 1
    """Devices that each train their share of the seeds, and exchange nothing."""
    envs: int = 1
    """Devices that share the work of each seed: its tables, its learners, or the samples of its gradient steps. The
    last bits depend on their number."""

    @property
    def size(self) -> int:
        return self.seeds * self.envs

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        for name, value in (("seeds", self.seeds), ("envs", self.envs)):
            if value < 1:
                raise ValueError(f"--mesh.{name} is {value}; give 1 or more")


def make_mesh(config: MeshConfig) -> Mesh:
    """The first so many devices, those of one host side by side."""
    found = jax.devices()
    if len(found) < config.size:
        raise ValueError(
            f"--mesh.seeds {config.seeds} and --mesh.envs {config.envs} need {config.size} devices, but JAX has "
            f"{len(found)}; give fewer, or call hopplus.learning.devices.use_cores before JAX is first used"
        )
    if len(found) > config.size and jax.process_count() > 1:
        raise ValueError(
            f"--mesh.seeds {config.seeds} and --mesh.envs {config.envs} use {config.size} of the {len(found)} devices "
            "of all hosts; give a mesh that uses all of them"
        )
    shape, names = (config.seeds, config.envs), (SEEDS, ENVS)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * 2, devices=found[: config.size])


def on_every(config: MeshConfig) -> NamedSharding:
    """A copy on each device."""
    return NamedSharding(make_mesh(config), PartitionSpec())


def on_seeds(config: MeshConfig, num_envs: int | None = None) -> NamedSharding:
    """The leading axis is of seeds; the next one, if they can be dealt out equally, of so many tables."""
    by_table = num_envs is not None and num_envs % config.envs == 0
    return NamedSharding(make_mesh(config), PartitionSpec(SEEDS, ENVS) if by_table else PartitionSpec(SEEDS))


def by_seeds(fn: Callable[..., Any], config: MeshConfig, *, out_axes: tuple[int, ...]) -> Callable[..., Any]:
    """fn(states, same), each device having its share of the seeds, and all of `same`.

    The leading axis of `states` is of seeds; that of each result is told by `out_axes`.
    """
    return jax.shard_map(
        fn,
        mesh=make_mesh(config),
        in_specs=(PartitionSpec(SEEDS), PartitionSpec()),
        out_specs=tuple(PartitionSpec(*(None,) * axis, SEEDS) for axis in out_axes),
        axis_names={SEEDS},
        check_vma=False,
    )


def in_parts(fn: Callable[..., Any], num_devices: int, length: int) -> Callable[[Any, Any], Any]:
    """fn(same, parts), where each device has all of `same` and its share of the leading axis of `parts`.

    Where the axis cannot be cut equally, every device does all of it.
    """
    if num_devices == 1 or length % num_devices:
        return fn
    laid_out = jax.sharding.get_abstract_mesh()  # of the program around it, if it has one
    return jax.shard_map(
        fn,
        mesh=make_mesh(MeshConfig(envs=num_devices)) if laid_out.empty else laid_out,
        in_specs=(PartitionSpec(), PartitionSpec(ENVS)),
        out_specs=PartitionSpec(ENVS),
        axis_names={ENVS},
        check_vma=False,
    )


def dealt_out(samples: PyTree[Array], *, axis: int = 0) -> PyTree[Array]:
    """The same samples, of which each device that has nothing else to do takes its share.

    What is summed over them afterwards, such as a gradient, XLA sums over devices.
    """
    laid_out = jax.sharding.get_abstract_mesh()
    if laid_out.empty or laid_out.shape[ENVS] == 1 or ENVS in laid_out.manual_axes:
        return samples
    place = PartitionSpec(*(None,) * axis, ENVS)
    divides = lambda leaf: leaf.shape[axis] % laid_out.shape[ENVS] == 0  # noqa: E731
    return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, place) if divides(leaf) else leaf, samples)


def num_cores() -> int:
    """The largest power of two that is not above the number of cores, four at most."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_CORES, 1 << (cores.bit_length() - 1))


def use_cores(num_devices: int) -> None:
    """Show JAX the CPU as so many devices; it must not have been used yet."""
    with suppress(RuntimeError):  # raised when it has been used: `make_mesh` tells whether its devices are enough
        jax.config.update("jax_num_cpu_devices", num_devices)
