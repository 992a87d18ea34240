"""A run folder, read from disk.

This module reads the files and does not import the code that wrote them. Reports can therefore show a run of any
learner, a run that is still training, and a run that was killed in the middle of a line.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from hopplus.runs.formats import migrated_settings
from hopplus_doctor.statistics import mean_of_known

CONFIG_FILE, METRICS_FILE, TIMING_FILE, EVALUATION_FILE, OTHERS_FILE, WORLD_FILE = (
    "config.json",
    "metrics.jsonl",
    "timing.jsonl",
    "evaluation.json",
    "others.json",
    "world.json",
)
CHECKUPS_FILE = "checkups.jsonl"
POPULATION = "population"
"""The folder of a run with the population that it trained for itself."""
CONFIG_KEYS = ("agent", "game", "seeds", "steps")
AXIS_KEYS = ("update", "env_steps")
FINAL_SHARE = 0.2
"""The last part of training, which final scores are averaged over."""
RETURN_FAMILY = "charts/episodic_return"
RETURN_TAG = f"{RETURN_FAMILY}/mean"
SEAT = re.compile(r"(.+)/player_(\d+)")
PAIR = re.compile(r"(.+)/player_(\d+)_of_(\d+)")
"""The tag of a metric of a seat about one of its co-players."""


@dataclass(frozen=True)
class Recorded:
    """The records of one run. Seeds are the last axis of every metric; NaN means that a seed has no value."""

    name: str
    """The name of the folder."""
    config: dict[str, Any]
    env_steps: Int64[np.ndarray, " updates"]
    metrics: Mapping[str, Float64[np.ndarray, "updates seeds"]]
    timing: Mapping[str, Float64[np.ndarray, " blocks"]]
    evaluation: dict[str, Any] | None
    others: dict[str, Any] | None = None
    """How well its opponent models predict, if that was measured."""
    world: dict[str, Any] | None = None
    """How well its learned worlds predict, if that was measured."""
    checkups: tuple[dict[str, Any], ...] = ()
    """What the doctor said at checkpoints, if it was asked."""

    @property
    def num_updates(self) -> int:
        return len(self.env_steps)

    @property
    def planned_steps(self) -> int | None:
        """Environment steps of each seed when the run is complete: its `steps`, cut to whole updates if the settings
        give the length of an update. None if `steps` is not a whole number."""
        steps, learner = self.config["steps"], self.config.get("learner")
        sizes = [learner.get(name) for name in ("envs", "rollout_steps")] if isinstance(learner, dict) else []
        if not isinstance(steps, int):
            return None
        return steps - steps % math.prod(size if isinstance(size, int) and size > 0 else 1 for size in sizes)

    @property
    def population_steps(self) -> int:
        """Environment steps of the population that a best response was trained with, all members together; else 0."""
        learner = self.config.get("learner")
        population = learner.get("population", {}) if isinstance(learner, dict) else {}
        return population.get("members", 0) * population.get("steps", 0)

    @property
    def num_seeds(self) -> int:
        return next(iter(self.metrics.values())).shape[1]


def read_run(folder: Path) -> Recorded:
    """The run in a folder that `hopplus train --out` wrote."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; give the folder that `hopplus train --out` wrote")
    config = _read_object(folder, CONFIG_FILE)
    if "version" in config:  # hopplus wrote it, and not the user's own trainer
        config = migrated_settings(config, folder / CONFIG_FILE)
    missing = [key for key in CONFIG_KEYS if key not in config]
    if missing:
        raise ValueError(
            f"{folder / CONFIG_FILE} does not say {', '.join(missing)}; "
            "give a folder that `hopplus train --out` wrote, with its files as they were written"
        )
    lines = _in_order(folder, _read_lines(folder, METRICS_FILE))
    return Recorded(
        name=folder.resolve().name,
        config=config,
        env_steps=np.array([line["env_steps"] for line in lines], np.int64),
        metrics=_by_tag(folder, lines),
        timing=_timing(folder, _read_lines(folder, TIMING_FILE)),
        evaluation=_read_object_if_there(folder, EVALUATION_FILE),
        others=_read_object_if_there(folder, OTHERS_FILE),
        world=_read_object_if_there(folder, WORLD_FILE),
        checkups=tuple(_read_lines(folder, CHECKUPS_FILE)) if (folder / CHECKUPS_FILE).exists() else (),
    )


def _read_text(folder: Path, name: str) -> str:
    """The text of a file of the folder, even if its last character was cut in two."""
    path = folder / name
    if not path.is_file():
        raise ValueError(
            f"{folder} has no {name}; is it a run folder? give the folder that `hopplus train --out` wrote"
        )
    return path.read_text(encoding="utf-8", errors="replace")


def _read_object(folder: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads(_read_text(folder, name))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{folder / name} is damaged at line {error.lineno} ({error.msg}); restore it, or train again"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{folder / name} holds no JSON object; restore it, or train again")
    return content


def _read_object_if_there(folder: Path, name: str) -> dict[str, Any] | None:
    return _read_object(folder, name) if (folder / name).exists() else None


def _read_lines(folder: Path, name: str) -> list[dict[str, Any]]:
    """The objects of a file, one per line. An incomplete last line is dropped: a run may be killed while it writes."""
    texts = [(number, text) for number, text in enumerate(_read_text(folder, name).split("\n"), 1) if text.strip()]
    lines = []
    for position, (number, text) in enumerate(texts):
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            if position == len(texts) - 1:
                break
            raise ValueError(
                f"{folder / name} is damaged at line {number} ({error.msg}); remove that line, or train again"
            ) from error
        if not isinstance(line, dict):
            raise ValueError(f"line {number} of {folder / name} is no JSON object; remove that line, or train again")
        lines.append(line)
    return lines


def _in_order(folder: Path, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines in order of updates. A resumed run may have written an update twice: the later line counts."""
    path = folder / METRICS_FILE
    if not lines:
        raise ValueError(f"{path} has no complete line yet; wait for the first update, or train again")
    for line in lines:
        wrong = [key for key in AXIS_KEYS if not isinstance(line.get(key), int)]
        if wrong:
            raise ValueError(f"a line of {path} has no whole number {wrong[0]!r}; remove that line, or train again")
    return [line for _, line in sorted({line["update"]: line for line in lines}.items())]


def _by_tag(folder: Path, lines: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """[updates, seeds] for every tag; NaN for an update without that tag."""
    path = folder / METRICS_FILE
    tags = list(dict.fromkeys(tag for line in lines for tag in line if tag not in AXIS_KEYS))
    if not tags:
        raise ValueError(f"{path} holds no metrics, only steps; give a folder that `hopplus train --out` wrote")
    rows = [(row, tag, line[tag]) for row, line in enumerate(lines) for tag in tags if tag in line]
    num_seeds = next((len(values) for _, _, values in rows if isinstance(values, list)), 0)
    metrics = {tag: np.full((len(lines), num_seeds), np.nan) for tag in tags}
    for row, tag, values in rows:
        if not isinstance(values, list) or len(values) != num_seeds or not all(map(_is_entry, values)) or not values:
            raise ValueError(
                f"update {lines[row]['update']} of {path}: {tag} is no list of one number per seed ({num_seeds}); "
                "remove that line, or train again"
            )
        metrics[tag][row] = [np.nan if value is None else value for value in values]
    return metrics


def _is_entry(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _timing(folder: Path, lines: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    tags = list(dict.fromkeys(tag for line in lines for tag in line))
    wrong = [tag for tag in tags if not all(_is_entry(line.get(tag)) for line in lines)]
    if wrong:
        raise ValueError(f"{folder / TIMING_FILE}: {wrong[0]} is not always a number; remove the lines where it is not")
    return {
        tag: np.array([np.nan if line.get(tag) is None else line[tag] for line in lines], np.float64) for tag in tags
    }


def training_seconds(folder: Path) -> float:
    """The seconds that a run has trained, with those of the population that it trained for itself."""
    places = [place for place in (folder, folder / POPULATION) if (place / TIMING_FILE).is_file()]
    return float(sum(line["seconds"] for place in places for line in _read_lines(place, TIMING_FILE)))


def final_updates(run: Recorded) -> Bool[np.ndarray, " updates"]:
    """A mask of the updates in the last fifth of training, by environment steps."""
    return run.env_steps >= (1 - FINAL_SHARE) * run.env_steps[-1]


def final_means(run: Recorded, tag: str) -> Float64[np.ndarray, " seeds"]:
    """Each seed's mean over the last fifth of training."""
    return mean_of_known(run.metrics[tag][final_updates(run)].T)


def final_by_seat(run: Recorded, family: str = RETURN_FAMILY) -> Float64[np.ndarray, "seeds seats"]:
    """Each seed's mean over the last fifth of training for every seat of a family of tags, in seat order.

    A family of the only seat that learns has one tag, without the seat's name.
    """
    return np.stack([final_means(run, tag) for tag in seat_tags(run, family) or [family]], axis=-1)


def seat_tags(run: Recorded, family: str = RETURN_FAMILY) -> list[str]:
    """The tags of a family that end in player_1, player_2, ..., in seat order."""
    tags = [(int(match[2]), tag) for tag in run.metrics if (match := SEAT.fullmatch(tag)) and match[1] == family]
    return [tag for _, tag in sorted(tags)]
