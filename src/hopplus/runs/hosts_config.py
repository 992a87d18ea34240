"""The settings of `runs.hosts`. No JAX here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostsConfig:
    """The hosts that share the run. Each runs the same command, with its own index."""

    coordinator: str | None = None
    """ADDRESS:PORT of the first host, which all hosts can reach; or `auto`, if Slurm, Open MPI or Kubernetes gives JAX
    the hosts. None: this process trains alone."""
    count: int = 1
    """The number of hosts; not with `auto`."""
    index: int = 0
    """The number of this host, from 0; not with `auto`."""

    def check(self) -> None:
        """Raise if the settings contradict each other."""
        if self.coordinator is None and (self.count != 1 or self.index != 0):
            raise ValueError("--hosts.count and --hosts.index need --hosts.coordinator ADDRESS:PORT, the first host")
        if not 0 <= self.index < self.count:
            raise ValueError(f"--hosts.index is {self.index}; give 0 to {self.count - 1}, or more --hosts.count")
        if self.coordinator and self.coordinator != "auto" and not self.coordinator.rpartition(":")[2].isdigit():
            raise ValueError(f"--hosts.coordinator is {self.coordinator}; give ADDRESS:PORT, or auto")
