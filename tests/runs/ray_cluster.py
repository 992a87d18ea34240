"""A Ray cluster of three nodes on this machine, a small study, and somebody who kills workers and nodes."""

import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from hopplus.runs.studies import Study
from runs.tiny import config


def small_study(*, trials: int, updates: int) -> Study:
    """Three variants of a training of a few seconds."""
    variant = lambda **ppo: config(updates=updates, seeds=1, checkpoint_every=5, ppo=ppo)  # noqa: E731
    return Study("small", {"plain": variant(), "one epoch": variant(epochs=1), "slow": variant(clip=0.1)}, trials)


def worker_pids() -> list[int]:
    """Processes that train a trial at this moment."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if b"ray::train_trial" in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
    return found


class Killer(threading.Thread):
    """Kills so many workers at random moments, and a node in between; the node is replaced."""

    def __init__(self, cluster, kills: int, *, between: tuple[float, float], seed: int):
        super().__init__(daemon=True)
        self._cluster, self._kills, self._between = cluster, kills, between
        self._random = random.Random(seed)
        self.killed: list[str] = []
        self.enough = threading.Event()

    def run(self) -> None:
        while len(self.killed) < self._kills and not self.enough.is_set():
            time.sleep(self._random.uniform(*self._between))
            if len(self.killed) == self._kills // 2:
                node = self._cluster.list_all_nodes()[-1]
                self._cluster.remove_node(node, allow_graceful=False)
                self.killed.append("node")
                with suppress(Exception):  # the study may have ended meanwhile
                    self._cluster.add_node(num_cpus=1)
            elif pids := worker_pids():
                try:
                    os.kill(self._random.choice(pids), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.killed.append("worker")
