"""Tests run with JAX watching for keys that are used twice; those of the parts also with shapes checked at run time."""

import gc
import os
import resource
from pathlib import Path

# Most of a test's time is compiling; programs that run for milliseconds need no optimising. The newer emitters of fused
# loops take at least half of XLA's time for a training step. Set before JAX is imported.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_use_fusion_emitters=false",
    ]
).strip()

import jax
import jaxtyping
import pytest
from jaxtyping import install_import_hook

install_import_hook("hopplus", "beartype.beartype")
jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_num_cpu_devices", 2)

# Processes that test side by side have a core each; threads of two that share both cores wait for each other.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if _worker and hasattr(os, "sched_setaffinity"):
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {_cores[int(_worker.removeprefix("gw")) % len(_cores)]})

# Tracing makes very many small objects that live on; looking for cycles among them less often saves time.
gc.set_threshold(100_000, 50, 100)

CLEAR_ABOVE = 1000
"""Megabytes. A process that is larger after a file of tests forgets what it has compiled: the next file needs little of
it, and finds that in the compilation cache on disk, if there is one."""
PEAKS = pytest.StashKey[dict[str, int]]()


HEAVY = Path(__file__).with_name("heavy.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Marks the tests that `heavy.txt` names; a name without a test is an error where its whole file is collected."""
    named = {line for line in HEAVY.read_text().splitlines() if not line.startswith("#")}
    collected = {item.nodeid for item in items}
    files = {name.partition("::")[0] for name in collected}
    whole = not any("::" in asked for asked in config.args)
    for name in sorted(named - collected):
        file = name.partition("::")[0]
        if (whole and file in files) or not (HEAVY.parent.parent / file).exists():
            raise pytest.UsageError(f"tests/heavy.txt names {name}, which is no test; correct the line")
    for item in items:
        if item.nodeid in named:
            item.add_marker(pytest.mark.heavy)


def pytest_collection_finish():
    """All modules are imported now; what they made stays, so that looking for cycles need not pass through it."""
    gc.collect()
    gc.freeze()


PARTS = ("agents", "core", "games", "learning", "models", "planning")
"""The folders of tests in which shapes are checked. The others run the same code as a whole; checking takes a tenth of
their time."""


@pytest.fixture(scope="module", autouse=True)
def _check_shapes(request):
    is_part = request.path.parent.name in PARTS
    jaxtyping.config.update("jaxtyping_disable", not is_part)


@pytest.fixture(scope="module", autouse=True)
def _forget_programs():
    yield
    if _megabytes() > CLEAR_ABOVE:
        jax.clear_caches()
        gc.collect()


def _megabytes() -> int:
    """Memory that this process has now, where the system tells."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() >> 20 if status.exists() else 0


def _peak() -> int:
    """The most memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Keeps what a worker of pytest-xdist said when it ended."""
    peak = getattr(node, "workeroutput", {}).get("peak")
    if peak is not None:
        node.config.stash.setdefault(PEAKS, {})[node.gateway.id] = peak


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak"] = _peak()


def pytest_terminal_summary(terminalreporter, config):
    peaks = config.stash.get(PEAKS, {}) or {"this process": _peak()}
    told = ", ".join(f"{name} {peak:,} MB" for name, peak in sorted(peaks.items()))
    terminalreporter.write_line(f"peak memory: {told}")
