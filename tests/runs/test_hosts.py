"""One run on two hosts, here two processes on loopback: the same run, and a clear end when one of them dies."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from hopplus.runs.hosts import LOST
from hopplus.runs.studies.summary import last_update
from runs.tiny import PROGRAM, assert_same_run, last_state, read_lines, train_line

FEW, MANY, EVERY = 6, 600, 5
PATIENCE = 600
"""Seconds after which a process counts as hung, on a slow and busy machine too; how long hosts are silent before they
are given up is `SILENT_SECONDS` of hosts.py."""


def start(out: Path, cache: Path, mesh: str, *, updates: int) -> list[subprocess.Popen]:
    """The same command on two hosts of one device each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = as_users_run() | {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    line = train_line(out, f"{mesh} --checkpoint-every {EVERY} --hosts.coordinator 127.0.0.1:{port}", updates=updates)
    hosts = [[sys.executable, "-c", PROGRAM, *line, "--hosts.count", "2", "--hosts.index", str(i)] for i in range(2)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(host, env=environment, **pipes) for host in hosts]


def on_one(out: Path, *, updates: int) -> None:
    """Without the checkpoints that only a killed run needs: writing them takes most of the time."""
    line = train_line(out, f"--checkpoint-every {MANY}", updates=updates)
    subprocess.run([sys.executable, "-c", PROGRAM, *line], env=as_users_run(), check=True, timeout=PATIENCE)


def as_users_run() -> dict[str, str]:
    """The environment without the flag that makes tests compile faster: with it, bits depend on seeds per device."""
    flags = os.environ.get("XLA_FLAGS", "").replace("--xla_cpu_use_fusion_emitters=false", "")
    return os.environ | {"XLA_FLAGS": flags}


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    out = tmp_path_factory.mktemp("single") / "run"
    on_one(out, updates=FEW)
    return out


@pytest.mark.parametrize(
    "mesh",
    ["--mesh.seeds 2 --mesh.envs 1", pytest.param("--mesh.seeds 1 --mesh.envs 2", marks=pytest.mark.heavy)],
)
def test_two_hosts_train_the_run_of_one(single, tmp_path, mesh):
    hosts = start(tmp_path / "run", tmp_path / "cache", mesh, updates=FEW)
    said = [host.communicate(timeout=PATIENCE) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], said
    assert "trained 6 updates" in said[0][0] and "trained" not in said[1][0]  # told once
    if "seeds 2" in mesh:
        assert_same_run(tmp_path / "run", single)
        return
    folders = (tmp_path / "run", single)
    policies = (last_state(folder).learners.policy.params for folder in folders)
    leaves = zip(*map(jax.tree.leaves, policies), strict=True)
    for leaf, expected in leaves:
        np.testing.assert_allclose(leaf, expected, rtol=0, atol=1e-5)
    curves = [read_lines(folder / "metrics.jsonl") for folder in (tmp_path / "run", single)]
    tag = "charts/episodic_return/mean"
    np.testing.assert_allclose([line[tag] for line in curves[0]], [line[tag] for line in curves[1]], rtol=1e-5)


@pytest.fixture(scope="module")
def long_single(tmp_path_factory):
    out = tmp_path_factory.mktemp("long") / "run"
    on_one(out, updates=MANY)
    return out


@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.heavy), 1])
def test_a_host_whose_partner_is_killed_says_so_and_the_run_goes_on(long_single, tmp_path, victim):
    """On one host where the second was killed, on two where it was the first; either way as if nothing had happened."""
    out, cache, mesh = tmp_path / "run", tmp_path / "cache", "--mesh.seeds 2 --mesh.envs 1"
    hosts = start(out, cache, mesh, updates=MANY)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not last_update(out) > EVERY:
        assert all(host.poll() is None for host in hosts), [host.communicate() for host in hosts]
        time.sleep(0.1)
    hosts[victim].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    _, complaint = hosts[1 - victim].communicate(timeout=PATIENCE)
    print(f"noticed after {time.monotonic() - killed:.1f} s: {complaint}")
    hosts[victim].communicate()
    assert hosts[1 - victim].returncode in (LOST, -signal.SIGABRT), complaint
    assert "another host of this run is lost" in complaint and "it resumes from there" in complaint
    kept = max(int(place.name) for place in (out / "checkpoints").iterdir() if place.name.isdigit())
    assert EVERY <= kept < MANY and last_update(out) - kept <= EVERY
    if victim == 1:
        on_one(out, updates=MANY)
    else:
        again = start(out, cache, mesh, updates=MANY)
        said = [host.communicate(timeout=PATIENCE) for host in again]
        assert [host.returncode for host in again] == [0, 0], said
    assert_same_run(out, long_single)
