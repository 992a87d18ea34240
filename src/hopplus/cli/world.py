"""`hopplus evaluate RUN --world`: how good the learned worlds of a run are."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hopplus import __version__
from hopplus.evaluation.world import (
    count_impossible,
    examples,
    joined,
    judge_line_ups,
    line_ups,
    record_episodes,
    sums_of_worlds,
    transitions_of,
)
from hopplus.runs.command import train_command
from hopplus.runs.run import load

MOST_EPISODES = 256
DRAWS = 20
"""Outcomes that are drawn for each situation, to look for impossible ones."""


def judge_world(folder: Path, episodes: int, seed: int) -> dict[str, Any]:
    """What `world.json` holds."""
    run = load(folder)
    if run.worlds is None:
        raise ValueError(f"{folder} is a run of {run.config.agent}, which learns no world; train hop_plus")
    spec, num_episodes = run.game.spec, min(episodes, MOST_EPISODES)
    players = jax.tree.map(lambda leaf: leaf[0], run.lineup())
    key = jax.random.key(seed)
    every = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), run.worlds)
    first = jax.tree.map(lambda leaf: leaf[0], every)
    with Console(stderr=True).status("playing and foretelling"):
        records = {
            name: record_episodes(run.game, make, num_episodes, key=jax.random.fold_in(key, index))
            for index, (name, make) in enumerate(line_ups(run.game, players).items())
        }
        whole = joined(records.values())
        found = count_impossible(spec, first, transitions_of(whole), DRAWS, key=jax.random.fold_in(key, len(records)))
        scores = judge_line_ups(spec, partial(sums_of_worlds, spec, every), records)
    return {
        "command": f"hopplus evaluate {folder} --world --episodes {episodes} --seed {seed} --json",
        "version": __version__,
        "trained_by": train_command(run.config, folder),
        "game": run.config.game,
        "seeds": run.config.seeds,
        "episodes": num_episodes,
        "worlds": len(every.cell.bias),
        "line_ups": scores,
        "impossible_drawn": found,
        "planes": [plane.name for plane in spec.planes],
        "examples": examples(spec, first, whole),
    }


def print_world(name: str, found: dict[str, Any], console: Console) -> None:
    """Tables for a reader."""
    title = (
        f"{escape(name)}: {found['worlds']} learned worlds on {found['episodes']:,} real episodes of each line-up, "
        "none of which they learned from"
    )
    table = Table(title=title, title_justify="left")
    for column in ("", "exact", "obs. MSE", "PSNR", "reward MSE", "wrong ends", "paid steps right", "5 steps exact"):
        table.add_column(column, justify="left" if not column else "right")
    for group, one in found["line_ups"].items():
        numbers = (f"{one['observation_mse']:.1e}", f"{one['psnr']:.1f} dB", f"{one['reward_mse']:.1e}")
        rates = (f"{one[key]:.2%}" for key in ("end_error", "paid_recall", "open_loop_exact"))
        table.add_row(group, f"{one['exact_next_state']:.2%}", *numbers, *rates)
    console.print(table)
    planes = "  ".join(f"{plane} {mse:.1e}" for plane, mse in found["line_ups"]["all"]["plane_mse"].items())
    console.print(f"MSE of each plane: {planes}", soft_wrap=True)
    drawn = ", ".join(f"{count} {what}" for what, count in found["impossible_drawn"].items())
    console.print(f"impossible outcomes among those drawn: {drawn}")
