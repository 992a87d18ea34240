"""Small run folders with made-up numbers, written the way a learner writes them."""

import json
from pathlib import Path

import numpy as np

POLICY_TAGS = ("value_loss", "policy_loss", "entropy", "approx_kl", "clip_fraction", "explained_variance")


def metric_line(update: int, num_seeds: int, num_seats: int, level: float = 1.0) -> dict:
    """One update: all seats get more as time goes on, later seats a little more, and seeds differ."""
    seeds = 0.1 * np.arange(num_seeds)
    seats = [level + 0.1 * update + 0.01 * seat + seeds for seat in range(num_seats)]
    line = {"update": update, "env_steps": 100 * update, "charts/episodic_return/mean": np.mean(seats, axis=0).tolist()}
    line |= {f"charts/episodic_return/player_{seat + 1}": got.tolist() for seat, got in enumerate(seats)}
    line["charts/stag_rate"] = (seeds / 2).tolist()
    return line | {f"policy/{tag}": (seeds + 1 / update).tolist() for tag in POLICY_TAGS}


def metric_lines(num_updates: int = 10, num_seeds: int = 3, num_seats: int = 4) -> list[dict]:
    return [metric_line(update, num_seeds, num_seats) for update in range(1, num_updates + 1)]


def write_run(folder: Path, lines: list[dict] | None = None, *, evaluation: bool = True, **config) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = metric_lines() if lines is None else lines
    settings = {"agent": "ppo", "game": "stag-hunt-4x4", "seeds": 3, "steps": 1000, "co_players": None}
    settings["learner"] = {"hidden": [128, 128], "ppo": {"clip": 0.2}}
    (folder / "config.json").write_text(json.dumps(settings | config))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    blocks = [
        {"update": 5 * block, "env_steps": 500 * block, "seconds": 3.2, "charts/steps_per_second": 19000.0 + block}
        for block in (1, 2, 3)
    ]
    (folder / "timing.jsonl").write_text("".join(json.dumps(block) + "\n" for block in blocks))
    if evaluation:
        (folder / "evaluation.json").write_text(json.dumps(evaluation_of(4)))
    return folder


def evaluation_of(num_seats: int) -> dict:
    got = {"estimate": 2.9, "low": 2.8, "high": 3.0}
    seats = [{"seat": f"player_{seat + 1}", "sampled": got, "greedy": got} for seat in range(num_seats)]
    return {"mean_return": 2.9, "mean_return_greedy": 2.95, "per_seat": seats, "episodes": 10000}
