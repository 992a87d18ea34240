"""The settings of `core.devices`. No JAX here."""

import os
from dataclasses import dataclass

MOST_CORES = 4
"""The default limit: a seed seldom has more learners to distribute."""


@dataclass(frozen=True)
class MeshConfig:
    """How many devices a run uses; on a CPU they are cores."""

    seeds: int = 1
    """Devices that each train their share of the seeds; they exchange nothing. If one flag of the mesh is given, the
    default of the other is 1."""
    envs: int = 1
    """Devices that share the work of each seed: its environments, its learners, or the samples of its gradient steps.
    The last bits of the results depend on this number."""

    @property
    def size(self) -> int:
        return self.seeds * self.envs

    def check(self) -> None:
        """Raise if a setting is out of range."""
        for name, value in (("seeds", self.seeds), ("envs", self.envs)):
            if value < 1:
                raise ValueError(f"--mesh.{name} is {value}; give 1 or more")


def num_cores() -> int:
    """The largest power of two up to the number of cores, at most MOST_CORES."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_CORES, 1 << (cores.bit_length() - 1))


def usual_mesh(seeds: int, cores: int) -> MeshConfig:
    """The mesh of a run without flags: every core trains whole seeds, if there are several."""
    return MeshConfig(seeds=min(seeds, cores)) if seeds > 1 else MeshConfig(envs=cores)
