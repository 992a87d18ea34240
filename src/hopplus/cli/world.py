"""`hopplus evaluate RUN --world`: evaluate the learned worlds of a run."""

from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.markup import escape

from hopplus import __version__
from hopplus.cli.tables import make_table
from hopplus.core.numerics import count_rows
from hopplus.evaluation.world import examples, joined, judge
from hopplus.runs.command import train_command
from hopplus.runs.run import load

MOST_EPISODES = 256
DRAWS = 20
"""Outcomes sampled for each situation, to look for impossible ones."""


def judge_world(folder: Path, episodes: int, seed: int) -> dict[str, Any]:
    """The contents of `world.json`."""
    run = load(folder)
    spec, num_episodes = run.game.spec, min(episodes, MOST_EPISODES)
    players = jax.tree.map(lambda leaf: leaf[0], run.lineup())
    with Console(stderr=True).status("playing and predicting"):
        judged = judge(run.game, run.every_world, players, num_episodes, DRAWS, key=jax.random.key(seed))
    return {
        "commands": [
            train_command(run.config, folder),
            f"hopplus evaluate {folder} --world --episodes {episodes} --seed {seed} --json",
        ],
        "version": __version__,
        "game": run.config.game,
        "seeds": run.config.seeds,
        "episodes": num_episodes,
        "worlds": count_rows(judged.worlds),
        "line_ups": judged.figures,
        "impossible_drawn": judged.impossible_drawn,
        "planes": [plane.name for plane in spec.planes],
        "examples": examples(spec, judged.first, joined(judged.records.values())),
    }


def print_world(name: str, result: dict[str, Any], console: Console) -> None:
    """Print the result as tables."""
    title = (
        f"{escape(name)}: {result['worlds']} learned worlds on {result['episodes']:,} new real episodes of each line-up"
    )
    figures = ("exact", "obs. MSE", "PSNR", "reward MSE", "wrong ends", "paid steps right", "5 steps exact")
    table = make_table(title, "", *figures, right=figures)
    for group, one in result["line_ups"].items():
        numbers = (f"{one['observation_mse']:.1e}", f"{one['psnr']:.1f} dB", f"{one['reward_mse']:.1e}")
        rates = (f"{one[key]:.2%}" for key in ("end_error", "paid_recall", "open_loop_exact"))
        table.add_row(group, f"{one['exact_next_state']:.2%}", *numbers, *rates)
    console.print(table)
    ahead = "  ".join(f"{one['steps']}: {one['exact']:.1%}" for one in result["line_ups"]["all"]["by_steps"])
    console.print(f"exact for so many steps in a row, on its own predictions: {ahead}")
    planes = "  ".join(f"{plane} {mse:.1e}" for plane, mse in result["line_ups"]["all"]["plane_mse"].items())
    console.print(f"MSE of each plane: {planes}")
    one = result["line_ups"]["all"]
    console.print(f"players that vanish though they stay in the game: {one['vanished'] / max(one['players'], 1):.2%}")
    drawn = ", ".join(f"{count} {what}" for what, count in result["impossible_drawn"].items())
    console.print(f"impossible outcomes among the samples: {drawn}")
