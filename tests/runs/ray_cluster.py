"""A Ray cluster of three nodes on this machine, a small study, and somebody who kills workers and nodes."""

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

from hopplus.runs.studies import Study
from hopplus.runs.studies.summary import last_update
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
    """Kills so many workers, and a node in between, which is replaced.

    Each when the study has done so many updates, drawn within its share of them: moments are counts, not seconds.
    """

    def __init__(self, cluster, kills: int, *, study: Study, out: Path, seed: int):
        super().__init__(daemon=True)
        self._cluster, self._kills = cluster, kills
        self._places = [out / trial.place for trial in study.all_trials()]
        total = sum(trial.config.num_updates for trial in study.all_trials())
        draw = random.Random(seed)
        self._choose = draw.choice
        self._moments = [int(total * (index + draw.uniform(0.1, 0.6)) / kills) for index in range(kills)]
        self.killed: list[str] = []
        self.enough = threading.Event()

    def run(self) -> None:
        while len(self.killed) < self._kills and not self.enough.wait(0.01):
            if sum(map(last_update, self._places)) < self._moments[len(self.killed)]:
                continue
            if len(self.killed) == self._kills // 2:
                node = self._cluster.list_all_nodes()[-1]
                self._cluster.remove_node(node, allow_graceful=False)
                self.killed.append("node")
                with suppress(Exception):  # the study may have ended meanwhile
                    self._cluster.add_node(num_cpus=1)
            elif pids := worker_pids():
                try:
                    os.kill(self._choose(pids), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.killed.append("worker")
