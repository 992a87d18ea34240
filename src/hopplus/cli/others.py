"""`hopplus evaluate RUN --others`: how well the seats of a run predict their co-players."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hopplus import __version__
from hopplus.evaluation.others import judge, watch
from hopplus.runs.command import train_command
from hopplus.runs.lineups import seat_players
from hopplus.runs.records import PAIR, read_run
from hopplus.runs.run import load

MOST_TABLES = 256


def judge_others(folder: Path, episodes: int, co_players: str | None, seed: int) -> dict[str, Any]:
    """What `others.json` holds."""
    run = load(folder)
    if run.config.learner.mind.others.models == "none":
        raise ValueError(
            f"{folder} is a run of {run.config.agent}, which has no models of the others; train omg or hop"
        )
    lineup, names = seat_players(run, co_players, greedy=False)
    num_tables = min(episodes, MOST_TABLES)
    with Console(stderr=True).status("playing and predicting"):
        key = jax.random.key(seed)
        watched = watch(run.game, lineup, num_tables, num_seeds=run.config.seeds, key=key)
        found = judge(run.game, watched, names)
    options = [f"--episodes {episodes}"] + ([f"--co-players {co_players}"] if co_players else [])
    return {
        "command": " ".join(["hopplus evaluate", str(folder), "--others", *options, f"--seed {seed}", "--json"]),
        "version": __version__,
        "trained_by": train_command(run.config, folder),
        "game": run.config.game,
        "seeds": run.config.seeds,
        "episodes": int(watched.seen.over.sum()),
        "co_players": co_players or run.config.co_players or "themselves",
        "in_training": training_ratios(folder),
        **found,
    }


def training_ratios(folder: Path) -> dict[str, float] | None:
    """Top-1 over the ceiling from the middle of training to its end, on play that was not yet learned from."""
    metrics = read_run(folder).metrics
    pairs = [tag for tag in metrics if (found := PAIR.fullmatch(tag)) and found[1] == "moa/top1"]
    if not pairs:
        return None
    half = len(metrics[pairs[0]]) // 2
    ratios, tenths = [], []
    for tag in pairs:
        top1, ceiling = (metrics[name][half:] for name in (tag, tag.replace("top1", "ceiling")))
        ratios.append(np.nansum(top1, axis=0) / np.nansum(ceiling, axis=0))
        parts = zip(np.array_split(top1, 5), np.array_split(ceiling, 5), strict=True)
        tenths += [np.nansum(one, axis=0) / np.nansum(best, axis=0) for one, best in parts if len(one)]
    return {
        "pairs": len(pairs),
        "mean_ratio": float(np.mean(ratios)),
        "lowest_ratio": float(np.min(ratios)),
        "lowest_ratio_of_a_tenth": float(np.min(tenths)),
    }


def print_others(name: str, found: dict[str, Any], console: Console) -> None:
    """Tables for a reader."""
    score = found["models"]["others"]
    title = f"{escape(name)}: predictions of co-players, {found['episodes']:,} episodes, {found['seeds']} seeds"
    table = Table(title=title, title_justify="left")
    for column in ("", "top-1", "top-3", "cross-entropy", "ECE"):
        table.add_column(column, justify="left" if not column else "right")
    ece = f"{score['calibration']['ece']:.3f}"
    table.add_row("the model", *(f"{score[key]:.3f}" for key in ("top1", "top3", "cross_entropy")), ece)
    for yardstick, values in score["yardsticks"].items():
        if values is not None:
            cells = (values.get(key) for key in ("top1", "top3", "cross_entropy"))
            table.add_row(yardstick.replace("_", " "), *(f"{cell:.3f}" if cell is not None else "" for cell in cells))
    console.print(table)
    _print_actions(score, console)
    pairs = Table(title="by pair: top-1, and its share of the ceiling", title_justify="left")
    for column in ("player", "predicts", "top-1", "ceiling", "ratio", "lowest seed"):
        pairs.add_column(column)
    for pair in found["pairs"]:
        numbers = (f"{pair[key]:.3f}" for key in ("top1", "ceiling", "ratio", "lowest_seed"))
        pairs.add_row(pair["player"], pair["other"], *numbers)
    console.print(pairs)
    if found["in_training"]:
        during = found["in_training"]
        console.print(
            f"second half of training, {during['pairs']} pairs, every seed: {during['mean_ratio']:.3f} of the ceiling, "
            f"lowest {during['lowest_ratio']:.3f}, in the worst tenth {during['lowest_ratio_of_a_tenth']:.3f}"
        )
    for how, change in found["use"].items():
        console.print(
            f"goals {how}: the policies move by {change['total_variation']:.3f} (total variation), "
            f"{change['other_likeliest_action']:.1%} of likeliest actions change"
        )


def _print_actions(score: dict[str, Any], console: Console) -> None:
    table = Table(title="by action", title_justify="left")
    for column in ("action", "share", "precision", "recall", "F1", "recall of the ceiling", "support"):
        table.add_column(column, justify="left" if column == "action" else "right")
    for row in score["actions"]:
        keys = ("share", "precision", "recall", "f1", "recall_ceiling")
        cells = (f"{row[key]:.3f}" if row[key] is not None else "-" for key in keys)
        table.add_row(row["name"], *cells, f"{row['support']:,}")
    console.print(table)
