"""Runs that take a moment: what they are started with, and how their folders are compared."""

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
from tensorboardX.proto import event_pb2

from hopplus.learning.config import LearnerConfig, PPOConfig
from hopplus.learning.state import LearnerState
from hopplus.models.config import ActorCriticConfig
from hopplus.runs import RunConfig, run, training
from hopplus.runs.folder import read_config
from hopplus.runs.stopping import ended_at

PROGRAM = "from hopplus.cli.main import entry; entry()"
FLAGS = "--game matrix-stag-hunt --envs 8 --rollout-steps 10 --ppo.minibatch-size 40 --network.hidden 8 --seeds 2"
STEPS_PER_UPDATE = 80
NUM_DEVICES = len(jax.devices())
"""JAX must be in use before a command is run in this process: `hopplus train` would give it another number of them."""


def compile_rarely(monkeypatch) -> None:
    """Within one test process the same program is compiled once, however many runs need it."""
    compiled, compile_program = {}, training.compile_program

    def remembered(config, task, keys, _run):
        name = f"{config} {replace(task, schedule=0)} {keys.shape}"
        return compiled[name] if name in compiled else compiled.setdefault(name, compile_program(config, task, keys))

    monkeypatch.setattr(training, "compile_program", remembered)


def train_line(out: Path, more: str = "", *, updates: int = 10) -> list[str]:
    """What is typed to train, after `hopplus`; a flag in `more` counts instead of the usual one."""
    flags = f"{FLAGS} --mesh.envs 1 --steps {updates * STEPS_PER_UPDATE} {more}".split()
    return ["train", "ppo", "--out", str(out), *flags]


def config(*, updates: int = 10, game: str = "matrix-stag-hunt", ppo: dict | None = None, **settings) -> RunConfig:
    """The same as settings."""
    learner = LearnerConfig(
        envs=8,
        rollout_steps=10,
        network=ActorCriticConfig(hidden=(8,)),
        ppo=PPOConfig(**{"minibatch_size": 40, **(ppo or {})}),
    )
    return RunConfig(**{"game": game, "seeds": 2, "steps": updates * STEPS_PER_UPDATE, "learner": learner, **settings})


def last_state(folder: Path) -> LearnerState:
    """Everything in the last checkpoint: parameters, optimiser, keys, boards."""
    return run.last_state(folder, read_config(folder))[1]


def assert_same_run(one: Path, other: Path) -> None:
    """To the bit: all that was learned, all random streams, and every byte of the metrics."""
    states = [jax.tree.leaves_with_path(last_state(folder)) for folder in (one, other)]
    for (path, leaf), (_, of_other) in zip(*states, strict=True):
        assert leaf.dtype == of_other.dtype and _bits(leaf) == _bits(of_other), jax.tree_util.keystr(path)
    assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    updates = [line["update"] for line in read_lines(one / "metrics.jsonl")]
    last = ended_at(one) or read_config(one).num_updates
    assert updates == list(range(1, last + 1))


def _bits(leaf: jax.Array) -> bytes:
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf).tobytes()


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) of every tag, as TensorBoard shows them: a restart hides what was recorded from its step on."""
    shown: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        for event in _records(path.read_bytes()):
            if event.HasField("session_log"):
                shown = {tag: [pair for pair in pairs if pair[0] < event.step] for tag, pairs in shown.items()}
            for value in event.summary.value:
                shown.setdefault(value.tag, []).append((event.step, value.simple_value))
    return shown


def _records(data: bytes) -> Iterator[event_pb2.Event]:
    """Of the TFRecord format: a length, its checksum, the event, its checksum; the last may be cut off."""
    place = 0
    while place + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        body = data[place + 12 : place + 12 + length]
        if len(body) < length:
            return
        yield event_pb2.Event.FromString(body)
        place += length + 16
