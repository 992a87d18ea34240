"""A run that was stopped and gone on with ends with the same bytes as one that never was."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hopplus.runs import load, train, training
from runs.tiny import PROGRAM, assert_same_run, compile_rarely, config, read_lines, train_line

UPDATES, EVERY = 40, 2


class StopAfter:
    """Somebody who stops a run as soon as so many updates are done."""

    def __init__(self, update):
        self.update = update

    def compiling(self, config, done):
        pass

    def block(self, row, updates_done, steps_per_second):
        if updates_done >= self.update:
            raise InterruptedError


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with pytest.MonkeyPatch.context() as monkeypatch:
        compile_rarely(monkeypatch)
        yield


@pytest.fixture(scope="module")
def at_one_go(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    train(config(updates=9, checkpoint_every=3), out)
    return out


@pytest.mark.parametrize("stops", [[1], [3], [5, 8]])
def test_a_run_that_goes_on_is_the_same_as_one_at_one_go(at_one_go, tmp_path, monkeypatch, stops):
    """Before the first checkpoint, on one, and between two; in blocks of another length than the run at one go."""
    monkeypatch.setattr(training, "BLOCK_SECONDS", 0.0)
    for stop in stops:
        with pytest.raises(InterruptedError):
            train(config(updates=9, checkpoint_every=3), tmp_path / "run", watcher=StopAfter(stop))
    train(config(updates=9, checkpoint_every=3), tmp_path / "run")
    assert_same_run(tmp_path / "run", at_one_go)


def test_a_kill_before_the_settings_were_in_place_is_no_obstacle(at_one_go, tmp_path):
    (tmp_path / "config.tmp").write_text('{"vers')
    train(config(updates=9, checkpoint_every=3), tmp_path)
    assert_same_run(tmp_path, at_one_go)


def test_who_reads_a_run_leaves_the_checkpoint_alone_that_is_being_written(tmp_path):
    out = tmp_path / "run"
    train(config(updates=1), out)
    begun = out / "checkpoints" / "2.orbax-checkpoint-tmp"
    begun.mkdir()
    assert load(out).num_updates == 1
    assert begun.exists()


def test_a_finished_run_is_not_trained_again(at_one_go):
    before = (at_one_go / "metrics.jsonl").stat().st_mtime_ns
    assert train(config(updates=9, checkpoint_every=3), at_one_go).num_updates == 9
    assert (at_one_go / "metrics.jsonl").stat().st_mtime_ns == before


def start(out: Path, cache: Path, program: str = PROGRAM) -> subprocess.Popen:
    """The command in a process of its own, with what was compiled before at hand."""
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }
    line = [sys.executable, "-c", program, *train_line(out, f"--checkpoint-every {EVERY}", updates=UPDATES)]
    return subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen) -> int:
    _, said = process.communicate(timeout=600)
    assert process.returncode in (0, -signal.SIGKILL), said.decode()
    return process.returncode


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    """A run in a process of its own that nobody killed, and the cache that it filled."""
    folder = tmp_path_factory.mktemp("unharmed")
    assert finish(start(folder / "run", folder / "cache")) == 0
    return folder / "run", folder / "cache"


def lines_written(out: Path) -> int:
    path = out / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_somewhere(process: subprocess.Popen, out: Path, dice: random.Random, *, anywhere: bool) -> str | None:
    """Kill a while after the process began to write, or, if anywhere, at any time of its life; say where it was."""
    before = lines_written(out)
    if anywhere and dice.random() < 0.3:
        until = time.monotonic() + dice.uniform(0.0, 5.0)
        ready = lambda: time.monotonic() > until  # noqa: E731
    else:
        more = dice.randint(1, max(1, (UPDATES - before) // 2))
        ready = lambda: lines_written(out) not in range(before + more)  # noqa: E731
    while process.poll() is None and not ready():
        time.sleep(0.001)
    time.sleep(dice.uniform(0.0, 0.02))  # a fraction of what the updates that are left take on any machine
    process.send_signal(signal.SIGKILL)
    if finish(process) == 0:
        return None
    writing = any("orbax-checkpoint-tmp" in path.name for path in (out / "checkpoints").glob("*"))
    return f"update {lines_written(out)}{' while writing a checkpoint' if writing else ''}"


def kill_and_go_on(out: Path, cache: Path, num_kills: int, dice: random.Random, *, anywhere: bool = False) -> list[str]:
    """Kill a run so often, then let it end; where the kills landed."""
    kills = []
    for _ in range(num_kills):
        kills.append(kill_somewhere(start(out, cache), out, dice, anywhere=anywhere))
    assert finish(start(out, cache)) == 0
    return [where for where in kills if where]


@pytest.mark.parametrize("num_kills", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_a_run_that_was_killed_ends_with_the_same_bytes(unharmed, tmp_path, num_kills):
    whole, cache = unharmed
    kills = kill_and_go_on(tmp_path / "run", cache, num_kills, random.Random(time.time_ns()))
    assert kills
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.heavy
def test_twenty_runs_that_were_killed_at_random_end_with_the_same_bytes(unharmed, tmp_path):
    whole, cache = unharmed
    dice, num_kills = random.Random(time.time_ns()), 0
    for index in range(20):
        out = tmp_path / f"run_{index}"
        kills = kill_and_go_on(out, cache, dice.randint(1, 3), dice, anywhere=True)
        num_kills += len(kills)
        print(f"run {index}: {'; '.join(kills)}")
        assert_same_run(out, whole)
    print(f"{num_kills} kills")
    assert num_kills >= 20


DIES = """
import os, signal
def deadly(act, end):
    def acts(place, *rest, **options):
        if str(place).endswith(end):
            os.kill(os.getpid(), signal.SIGKILL)
        return act(place, *rest, **options)
    return acts
"""
BEGUN = ".orbax-checkpoint-tmp"
MOMENTS = {
    "the arrays of 6 are not in place": (f"os.rename = deadly(os.rename, '/6{BEGUN}/default{BEGUN}')", 4),
    "10 is complete but not in place": (f"os.rename = deadly(os.rename, '/10{BEGUN}')", 8),
    "what was left of 10 is half cleaned up": ("os.rmdir = deadly(os.rmdir, 'ocdbt.process_0')", 8),
    "10 is in place and 6 is half deleted": ("os.rmdir = deadly(os.rmdir, '/checkpoints/6')", 10),
}
"""When the process dies, and the checkpoint that it can then go on from; each begins where the one before it died."""


def test_a_kill_while_checkpoints_are_written_or_deleted_costs_one_interval_at_most(unharmed, tmp_path):
    whole, cache = unharmed
    out = tmp_path / "run"
    for moment, (dies, last) in MOMENTS.items():
        assert finish(start(out, cache, f"{DIES}\n{dies}\n{PROGRAM}")) == -signal.SIGKILL, moment
        assert load(out).num_updates == last, moment
        assert lines_written(out) - last <= EVERY, moment
    assert finish(start(out, cache)) == 0
    assert_same_run(out, whole)
    assert sorted(path.name for path in (out / "checkpoints").iterdir()) == [str(UPDATES - EVERY), str(UPDATES)]
    assert read_lines(out / "timing.jsonl")[-1]["update"] == UPDATES
