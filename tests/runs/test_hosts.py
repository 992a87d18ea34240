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

UPDATES, EVERY = 20, 5
PATIENCE = 600
"""Seconds after which a process counts as hung, on a slow and busy machine too; how long hosts are silent before they
are given up is `SILENT_SECONDS` of hosts.py."""


DIES = f"""
import os, signal
from hopplus.runs.checkpoints import Checkpoints
save = Checkpoints.save
def deadly(self, num_updates, state):
    if num_updates == {2 * EVERY}:
        os.kill(os.getpid(), signal.SIGKILL)
    save(self, num_updates, state)
Checkpoints.save = deadly
"""
"""The process dies when it would write its second checkpoint."""


def start(out: Path, cache: Path, mesh: str, *, victim: int | None = None) -> list[subprocess.Popen]:
    """The same command on two hosts of one device each; one of them may be made to die."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = as_users_run() | {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    line = train_line(out, f"{mesh} --checkpoint-every {EVERY} --hosts.coordinator 127.0.0.1:{port}", updates=UPDATES)
    programs = [DIES + PROGRAM if index == victim else PROGRAM for index in range(2)]
    hosts = [
        [sys.executable, "-c", program, *line, "--hosts.count", "2", "--hosts.index", str(index)]
        for index, program in enumerate(programs)
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(host, env=environment, **pipes) for host in hosts]


def on_one(out: Path) -> None:
    line = train_line(out, f"--checkpoint-every {EVERY}", updates=UPDATES)
    subprocess.run([sys.executable, "-c", PROGRAM, *line], env=as_users_run(), check=True, timeout=PATIENCE)


def as_users_run() -> dict[str, str]:
    """The environment without the flag that makes tests compile faster: with it, bits depend on seeds per device."""
    flags = os.environ.get("XLA_FLAGS", "").replace("--xla_cpu_use_fusion_emitters=false", "")
    return os.environ | {"XLA_FLAGS": flags}


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    out = tmp_path_factory.mktemp("single") / "run"
    on_one(out)
    return out


@pytest.mark.parametrize(("victim", "then"), [(1, 2), pytest.param(0, 1, marks=pytest.mark.heavy)])
def test_two_hosts_train_the_run_of_one_also_after_a_host_was_killed(single, tmp_path, victim, then):
    """The other host says so and stops; the run is resumed on one host or two, and ends as if one had trained it."""
    out, cache, mesh = tmp_path / "run", tmp_path / "cache", "--mesh.seeds 2 --mesh.envs 1"
    hosts = start(out, cache, mesh, victim=victim)
    hosts[victim].communicate(timeout=PATIENCE)
    killed = time.monotonic()
    _, complaint = hosts[1 - victim].communicate(timeout=PATIENCE)
    print(f"noticed after {time.monotonic() - killed:.1f} s: {complaint}")
    assert hosts[victim].returncode == -signal.SIGKILL
    assert hosts[1 - victim].returncode in (LOST, -signal.SIGABRT), complaint
    assert "another host of this run is lost" in complaint and "it resumes from there" in complaint
    kept = [int(place.name) for place in (out / "checkpoints").iterdir() if place.name.isdigit()]
    assert kept == [EVERY] and last_update(out) <= 2 * EVERY
    if then == 1:
        on_one(out)
    else:
        finish(start(out, cache, mesh))
    assert_same_run(out, single)


@pytest.mark.heavy
def test_two_hosts_that_share_environments_train_nearly_the_run_of_one(single, tmp_path):
    folders = tmp_path / "run", single
    finish(start(folders[0], tmp_path / "cache", "--mesh.seeds 1 --mesh.envs 2"))
    policies = (last_state(folder).learners.policy.params for folder in folders)
    for leaf, expected in zip(*map(jax.tree.leaves, policies), strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=0, atol=1e-5)
    curves = [read_lines(folder / "metrics.jsonl") for folder in folders]
    tag = "charts/episodic_return/mean"
    np.testing.assert_allclose([line[tag] for line in curves[0]], [line[tag] for line in curves[1]], rtol=1e-5)


def finish(hosts: list[subprocess.Popen]) -> None:
    """Wait for both hosts; one of them tells the result."""
    said = [host.communicate(timeout=PATIENCE) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], said
    assert f"trained {UPDATES} updates" in said[0][0] and "trained" not in said[1][0]
