"""One run on several devices: the cores of a CPU, the GPUs of a host, or the devices of several hosts.

Devices form a mesh of two axes. Along `seeds` each device trains its own seeds, and devices exchange nothing. For `ppo`
every bit is that of a single device. XLA compiles the larger programs of other agents differently, so their numbers are
the same up to rounding. Along `envs` devices share the work of each seed: they share the environments during rollouts;
they share the learners during updates if the learners divide evenly, and otherwise the samples of every gradient step,
whose gradients XLA averages. Sums are then made in another order, so the last bits can differ there too.

XLA gains next to nothing from a second core inside small matrix products. So a CPU is used as one device per core.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, PyTree

from hopplus.core.mesh import MeshConfig

SEEDS, ENVS = "seeds", "envs"


def make_mesh(config: MeshConfig) -> Mesh:
    """A mesh over the first devices; the devices of one host are neighbours."""
    devices = jax.devices()
    if len(devices) < config.size:
        raise ValueError(
            f"--mesh.seeds {config.seeds} and --mesh.envs {config.envs} need {config.size} devices, but JAX has "
            f"{len(devices)}; give fewer, or call hopplus.core.devices.use_cores before JAX is first used"
        )
    if len(devices) > config.size and jax.process_count() > 1:
        raise ValueError(
            f"--mesh.seeds {config.seeds} and --mesh.envs {config.envs} use {config.size} of the {len(devices)} "
            "devices of all hosts; give a mesh that uses all of them"
        )
    shape, names = (config.seeds, config.envs), (SEEDS, ENVS)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * 2, devices=devices[: config.size])


def on_every(config: MeshConfig) -> NamedSharding:
    """The sharding that puts a copy on each device."""
    return NamedSharding(make_mesh(config), PartitionSpec())


def on_seeds(config: MeshConfig, num_envs: int | None = None) -> NamedSharding:
    """The sharding of arrays [seeds, ...], or [seeds, envs, ...] where `num_envs` is given and divides evenly."""
    by_env = num_envs is not None and num_envs % config.envs == 0
    return NamedSharding(make_mesh(config), PartitionSpec(SEEDS, ENVS) if by_env else PartitionSpec(SEEDS))


def by_seeds(fn: Callable[..., Any], config: MeshConfig, *, out_axes: tuple[int, ...]) -> Callable[..., Any]:
    """fn(states, shared), where each device has its share of the seeds and a copy of `shared`.

    The leading axis of `states` is seeds; `out_axes` gives the axis of seeds in each result.

    An axis `envs` of one device is mapped too, because JAX calls Python only where every axis is.
    """
    return jax.shard_map(
        fn,
        mesh=make_mesh(config),
        in_specs=(PartitionSpec(SEEDS), PartitionSpec()),
        out_specs=tuple(PartitionSpec(*(None,) * axis, SEEDS) for axis in out_axes),
        axis_names={SEEDS} if config.envs > 1 else {SEEDS, ENVS},
        check_vma=False,
    )


def over_devices(fn: Callable[..., Any], num_devices: int, length: int) -> Callable[[Any, Any], Any]:
    """fn(shared, parts), where each device has a copy of `shared` and its share of the leading axis of `parts`.

    If the axis does not divide evenly, every device computes all of it.
    """
    if num_devices == 1 or length % num_devices:
        return fn
    mesh = jax.sharding.get_abstract_mesh()  # of the surrounding program, if it has one
    return jax.shard_map(
        fn,
        mesh=make_mesh(MeshConfig(envs=num_devices)) if mesh.empty else mesh,
        in_specs=(PartitionSpec(), PartitionSpec(ENVS)),
        out_specs=PartitionSpec(ENVS),
        axis_names={ENVS},
        check_vma=False,
    )


def shard_samples(samples: PyTree[Array], *, axis: int = 0) -> PyTree[Array]:
    """The same samples, distributed over the devices along `envs` where the axis divides evenly.

    XLA then sums over devices whatever is summed over the samples, such as a gradient.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.shape[ENVS] == 1 or ENVS in mesh.manual_axes:
        return samples
    sharding = PartitionSpec(*(None,) * axis, ENVS)

    def shard(leaf: Array) -> Array:
        divides = leaf.shape[axis] % mesh.shape[ENVS] == 0
        return jax.lax.with_sharding_constraint(leaf, sharding) if divides else leaf

    return jax.tree.map(shard, samples)


def use_cores(num_devices: int) -> None:
    """Make JAX show the CPU as `num_devices` devices; call it before JAX is first used."""
    with suppress(RuntimeError):  # raised after JAX was used; `make_mesh` raises if the devices are too few
        jax.config.update("jax_num_cpu_devices", num_devices)
