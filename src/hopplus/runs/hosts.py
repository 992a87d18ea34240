"""One run on several hosts by `jax.distributed`: each host is a process with the same command.

All hosts compute and write their share of a checkpoint; the first one writes metrics and shows progress.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils

from hopplus.runs.hosts_config import HostsConfig

SILENT_SECONDS = 30
"""A host without a heartbeat for this long is given up. A host whose process died is noticed at once."""
MEETING_SECONDS = 120
"""How long hosts wait for each other at the start."""
LOST = 3
"""The exit code of a host that noticed itself that another is lost; a host that JAX aborts has another code."""


class HostLostError(RuntimeError):
    """Another host of the run is gone."""


def join(config: HostsConfig) -> None:
    """Connect to the other hosts; JAX must not have been used yet."""
    global _standby
    config.check()
    if config.coordinator is None:
        return
    is_auto = config.coordinator == "auto"
    try:
        jax.distributed.initialize(
            coordinator_address=None if is_auto else config.coordinator,
            num_processes=None if is_auto else config.count,
            process_id=None if is_auto else config.index,
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
    """A second process that prints the error message if this one is aborted.

    JAX aborts a host whose coordinator is gone from a thread of its own, with only a stack trace. The standby process
    reads from a pipe; if the pipe closes without a word, it prints what went wrong and what to do.
    """

    def __init__(self):
        program = "import sys; sys.stdin.read() or print(sys.argv[1], file=sys.stderr)"
        message = f"hopplus: {_lost('this process was ended from outside, or by JAX')}"
        line = [sys.executable, "-S", "-c", program, message]
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, start_new_session=True)
        atexit.register(self.dismiss)

    def dismiss(self) -> None:
        """End the standby process without a message, because this process ends by itself."""
        if self._process.stdin and not self._process.stdin.closed:
            with suppress(OSError):
                self._process.stdin.write(b"fine")
                self._process.stdin.close()


_standby: _Standby | None = None


def _lost(reason: str) -> HostLostError:
    first = (reason.strip().splitlines() or ["no reason given"])[0][:200]
    return HostLostError(
        f"another host of this run is lost ({first}); the last checkpoint is kept. Start the same command again on "
        "all hosts, or on one with --mesh.seeds and --mesh.envs for its devices: it resumes from there"
    )


def is_first() -> bool:
    """Whether this process is the first host, which writes the files of the run."""
    return jax.process_index() == 0


def agreed(number: int) -> int:
    """The first host's number, on all hosts."""
    if jax.process_count() == 1:
        return number
    return int(multihost_utils.broadcast_one_to_all(np.int32(number)))


@contextmanager
def together() -> Iterator[None]:
    """Turn the error of a lost host into a HostLostError."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        of_jax = isinstance(error, jax.errors.JaxRuntimeError) or "Gloo" in str(error)  # the latter may come as either
        if jax.process_count() == 1 or not of_jax:
            raise
        raise _lost(str(error)) from None


def leave(error: HostLostError) -> NoReturn:
    """Exit at once: an orderly exit would wait for the lost host."""
    print(f"hopplus: {error}", file=sys.stderr, flush=True)
    if _standby:
        _standby.dismiss()
    os._exit(LOST)
