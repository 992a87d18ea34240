"""Several hosts that train one run together: each is a process that runs the same command, by `jax.distributed`.

All of them compute; the first one writes metrics and shows progress; all write their share of a checkpoint.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils

SILENT_SECONDS = 30
"""After so long without a sign of life a host is given up. One whose process died is noticed at once."""
MEETING_SECONDS = 120
"""How long hosts wait for each other to begin."""
LOST = 3
"""The exit code of a host that noticed by itself that it lost another; one that JAX aborts has another."""


class HostLostError(RuntimeError):
    """Another host of the run is gone."""


@dataclass(frozen=True)
class HostsConfig:
    """Other hosts that the run is shared with; each runs the same command with its own --hosts.index."""

    coordinator: str | None = None
    """ADDRESS:PORT of the first host, which all can reach; or `auto`, where Slurm, Open MPI or Kubernetes tells JAX who
    takes part. None: this process trains alone."""
    count: int = 1
    """How many hosts there are; not with `auto`."""
    index: int = 0
    """Which one this is, from 0; not with `auto`."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        if self.coordinator is None and (self.count != 1 or self.index != 0):
            raise ValueError("--hosts.count and --hosts.index need --hosts.coordinator ADDRESS:PORT, the first host")
        if not 0 <= self.index < self.count:
            raise ValueError(f"--hosts.index is {self.index}; give 0 to {self.count - 1}, or more --hosts.count")
        if self.coordinator and self.coordinator != "auto" and not self.coordinator.rpartition(":")[2].isdigit():
            raise ValueError(f"--hosts.coordinator is {self.coordinator}; give ADDRESS:PORT, or auto")


def join(config: HostsConfig) -> None:
    """Meet the other hosts; JAX must not have been used yet."""
    global _standby
    config.check()
    if config.coordinator is None:
        return
    told = config.coordinator == "auto"
    try:
        jax.distributed.initialize(
            coordinator_address=None if told else config.coordinator,
            num_processes=None if told else config.count,
            process_id=None if told else config.index,
            heartbeat_timeout_seconds=SILENT_SECONDS,
            initialization_timeout=MEETING_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        first = str(error).strip().splitlines()[0][:200]
        raise ValueError(
            f"--hosts.coordinator {config.coordinator}: the hosts did not meet ({first}); start the same command on "
            "each of them within two minutes, with its own --hosts.index, and see that the port can be reached"
        ) from None
    _standby = _Standby()


class _Standby:
    """A process that speaks when this one no longer can.

    A host whose coordinator is gone is aborted by JAX from a thread of its own, with a stack trace for words. The
    standby holds the other end of a pipe; when that closes and nothing was said, it says what happened and what to do.
    """

    def __init__(self):
        program = "import sys; sys.stdin.read() or print(sys.argv[1], file=sys.stderr)"
        words = f"hopplus: {_lost('this process was ended from outside, or by JAX')}"
        line = [sys.executable, "-S", "-c", program, words]
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, start_new_session=True)
        atexit.register(self.dismiss)

    def dismiss(self) -> None:
        """This process ends by itself, and has said why."""
        if self._process.stdin and not self._process.stdin.closed:
            with suppress(OSError):
                self._process.stdin.write(b"fine")
                self._process.stdin.close()


_standby: _Standby | None = None


def _lost(reason: str) -> HostLostError:
    first = (reason.strip().splitlines() or ["no reason told"])[0][:200]
    return HostLostError(
        f"another host of this run is lost ({first}); the last checkpoint is kept. Start the same command again on "
        "all hosts, or on one with --mesh.seeds and --mesh.envs for its devices: it goes on from there"
    )


def is_first() -> bool:
    """Whether this process writes what is written once."""
    return jax.process_index() == 0


def agreed(number: int) -> int:
    """The first host's number, for all."""
    if jax.process_count() == 1:
        return number
    return int(multihost_utils.broadcast_one_to_all(np.int32(number)))


@contextmanager
def together() -> Iterator[None]:
    """What is done with other hosts: where one of them is lost, say so."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        of_jax = isinstance(error, jax.errors.JaxRuntimeError) or "Gloo" in str(error)  # the latter may come as either
        if jax.process_count() == 1 or not of_jax:
            raise
        raise _lost(str(error)) from None


def leave(error: HostLostError) -> NoReturn:
    """End at once: an orderly end would wait for the host that is lost."""
    print(f"hopplus: {error}", file=sys.stderr, flush=True)
    if _standby:
        _standby.dismiss()
    os._exit(LOST)
