"""When a run ends before its last step: its held-out returns have stopped improving, for all seeds together.

The decision is a function of the recorded metrics, so a resumed run decides as one that was never stopped.
"""

import json
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from hopplus.runs.config import RunConfig
from hopplus.runs.folder import METRICS, write_json
from hopplus.runs.metrics import Row

TAG = "held_out/return"
LEAST_GAIN = 0.03
"""A gain below this share is not worth another window."""
ENDED = "ended.json"
"""A run that ended early has this file, with its last update."""


class Stopping:
    """The held-out returns of a run so far, and whether they still improve."""

    def __init__(self, config: RunConfig, folder: Path, done: int):
        self.config, self.folder = config, folder
        self.window = config.early_stop // config.learner.steps_per_update
        self._history = _read_history(folder / METRICS, done) if self.window else []

    def to_boundary(self, done: int, most: int) -> int:
        """The number of updates until the next decision."""
        return self.window - done % self.window if self.window else most

    def add(self, row: Row) -> None:
        """Add an update, rounded as in the file."""
        if self.window:
            self._history.append(_mean(row))

    def is_over(self) -> bool:
        """Whether the run ends here."""
        first = self.config.schedule_updates + self.window
        return bool(self.window) and has_stopped_improving(np.array(self._history), self.window, first)

    def end(self, done: int) -> None:
        """Record that the run ended after this update."""
        write_json(self.folder / ENDED, {"update": done, "env_steps": done * self.config.learner.steps_per_update})


def has_stopped_improving(history: Float64[np.ndarray, " updates"], window: int, first: int) -> bool:
    """Whether the last window is better than the best one before by less than `LEAST_GAIN`, or its standard error.

    Decisions are made at whole windows, and none before update `first`.
    """
    count = len(history) // window
    if len(history) % window or count < 2 or len(history) < first:
        return False
    windows = history.reshape(count, window)
    error = windows[-1].std(ddof=1) / np.sqrt(window) if window > 1 else 0.0
    best = windows[:-1].mean(axis=1).max()
    return bool(windows[-1].mean() <= best + max(error, LEAST_GAIN * abs(best)))


def ended_at(folder: Path) -> int | None:
    """The last update of a run that ended early; None for other runs."""
    path = folder / ENDED
    return int(json.loads(path.read_text())["update"]) if path.is_file() else None


def _read_history(path: Path, done: int) -> list[float]:
    if not done or not path.is_file():
        return []
    return [_mean(json.loads(line)) for line in path.read_text().splitlines()[:done]]


def _mean(row: Row) -> float:
    return float(np.mean([value or 0.0 for value in row[TAG]]))
