"""Processes that run side by side claim cores of their own."""

import os
import subprocess
import sys

import pytest

from hopplus.core.cores import claim_cores, release_cores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cores are claimed on Linux alone")
OTHER = "from hopplus.core.cores import claim_cores; from pathlib import Path; import os, sys;"
OTHER += "print(claim_cores(1, Path(sys.argv[1])), os.sched_getaffinity(0))"


@pytest.fixture
def first_core(tmp_path):
    """The core that this process claimed; afterwards it may use all of them again."""
    before = os.sched_getaffinity(0)
    yield claim_cores(1, tmp_path)
    release_cores()
    os.sched_setaffinity(0, before)


def other(folder, cores):
    """What another process, which may use `cores`, claims, and where it then runs."""
    command = [sys.executable, "-c", OTHER, str(folder)]
    limited = ["taskset", "-c", ",".join(map(str, sorted(cores)))]
    return subprocess.run([*limited, *command], check=True, capture_output=True, text=True).stdout.strip()


def test_a_core_is_claimed_once_and_freed_with_its_process(first_core, tmp_path):
    (core,) = first_core
    assert os.sched_getaffinity(0) == {core}
    assert claim_cores(1, tmp_path) == [], "it has one"
    assert other(tmp_path, {core}) == f"[] {{{core}}}", "none is free; nothing changes"
    release_cores()
    assert other(tmp_path, {core}) == f"[{core}] {{{core}}}"
    assert other(tmp_path, {core}) == f"[{core}] {{{core}}}", "the lock of a process that ended"


def test_too_few_free_cores_change_nothing(tmp_path):
    before = os.sched_getaffinity(0)
    assert claim_cores(len(before) + 1, tmp_path) == []
    assert os.sched_getaffinity(0) == before
    assert other(tmp_path, {min(before)}) == f"[{min(before)}] {{{min(before)}}}", "and no lock is left"
