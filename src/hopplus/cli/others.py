"""`hopplus evaluate RUN --others`: evaluate the opponent models of a run."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape

from hopplus import __version__
from hopplus.agents.player import Player
from hopplus.cli.tables import make_table
from hopplus.evaluation.others import judge, watch
from hopplus.evaluation.recorded import judge_recorded, predict_recorded
from hopplus.learning.page_episodes import read_page_episodes
from hopplus.runs.command import train_command
from hopplus.runs.lineups import seat_players
from hopplus.runs.records import PAIR, read_run
from hopplus.runs.run import load

MOST_ENVS = 256


def judge_others(folder: Path, episodes: int, co_players: str | None, seed: int) -> dict[str, Any]:
    """The contents of `others.json`."""
    run = load(folder)
    if not run.config.learner.opponents.is_used:
        raise ValueError(f"{folder} is a run of {run.config.agent}, which has no opponent models; train omg or hop")
    lineup, names = seat_players(run, co_players, greedy=False)
    num_envs = min(episodes, MOST_ENVS)
    with Console(stderr=True).status("playing and predicting"):
        key = jax.random.key(seed)
        watched = watch(run.game, lineup, num_envs, num_seeds=run.config.seeds, key=key)
        result = judge(run.game, watched, names)
    options = [f"--episodes {episodes}"] + ([f"--co-players {co_players}"] if co_players else [])
    return {
        "commands": [
            train_command(run.config, folder),
            " ".join(["hopplus evaluate", str(folder), "--others", *options, f"--seed {seed}", "--json"]),
        ],
        "version": __version__,
        "game": run.config.game,
        "seeds": run.config.seeds,
        "episodes": int(watched.seen.over.sum()),
        "co_players": co_players or run.config.co_players or "themselves",
        "in_training": training_ratios(folder),
        **result,
    }


def training_ratios(folder: Path) -> dict[str, float] | None:
    """Top-1 over the ceiling in the second half of training, on data that the models had not learned from yet."""
    metrics = read_run(folder).metrics
    pairs = [tag for tag in metrics if (match := PAIR.fullmatch(tag)) and match[1] == "moa/top1"]
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


def judge_saved(folder: Path, path: Path) -> dict[str, Any]:
    """How well the opponent models of a run's first seed predict the players of saved episodes."""
    run = load(folder)
    if not run.config.learner.opponents.is_used:
        raise ValueError(f"{folder} is a run of {run.config.agent}, which has no opponent models; train omg or hop")
    saved = read_page_episodes(path, run.game)
    players = [run.policy(seat=seat % run.num_learning) for seat in range(run.game.spec.num_agents)]
    with Console(stderr=True).status("predicting"):
        of_run = [player for player in players if isinstance(player, Player)]
        expected = predict_recorded(run.game, of_run, saved.episodes)
    return {
        "commands": [train_command(run.config, folder), f"hopplus evaluate {folder} --others --recorded {path} --json"],
        "version": __version__,
        "game": run.config.game,
        "episodes": len(saved.seats),
        **judge_recorded(run.game, expected, saved.episodes, saved.seats),
    }


def print_saved(name: str, result: dict[str, Any], console: Console) -> None:
    """Print the result as tables."""
    score = result["models"]["others"]
    _print_score(f"{escape(name)}: predictions of the players of {result['episodes']:,} saved episodes", score, console)
    table = make_table("by player", "player", "top-1", "cross-entropy", "samples", right=("top-1", "samples"))
    for player, kind in score["by_kind"].items():
        figures = (f"{kind[key]:.3f}" if kind[key] is not None else "-" for key in ("top1", "cross_entropy"))
        table.add_row(escape(player), *figures, f"{kind['samples']:,}")
    console.print(table)
    _print_actions(score, console)


def print_others(name: str, result: dict[str, Any], console: Console) -> None:
    """Print the result as tables."""
    score = result["models"]["others"]
    title = f"{escape(name)}: predictions of co-players, {result['episodes']:,} episodes, {result['seeds']} seeds"
    _print_score(title, score, console)
    _print_actions(score, console)
    _print_pairs(result, console)


def _print_score(title: str, score: dict[str, Any], console: Console) -> None:
    figures = ("top-1", "top-3", "cross-entropy", "ECE")
    table = make_table(title, "", *figures, right=figures)
    ece = f"{score['calibration']['ece']:.3f}"
    table.add_row("the model", *(f"{score[key]:.3f}" for key in ("top1", "top3", "cross_entropy")), ece)
    for yardstick, values in score["yardsticks"].items():
        if values is not None:
            cells = (values.get(key) for key in ("top1", "top3", "cross_entropy"))
            table.add_row(yardstick.replace("_", " "), *(f"{cell:.3f}" if cell is not None else "" for cell in cells))
    console.print(table)


def _print_pairs(result: dict[str, Any], console: Console) -> None:
    figures = ("top-1", "ceiling", "ratio", "lowest seed")
    pairs = make_table("by pair: top-1, and its share of the ceiling", "player", "predicts", *figures, right=figures)
    for pair in result["pairs"]:
        numbers = (f"{pair[key]:.3f}" for key in ("top1", "ceiling", "ratio", "lowest_seed"))
        pairs.add_row(escape(pair["player"]), escape(pair["other"]), *numbers)
    console.print(pairs)
    if result["in_training"]:
        during = result["in_training"]
        console.print(
            f"second half of training, {during['pairs']} pairs, every seed: {during['mean_ratio']:.3f} of the ceiling, "
            f"lowest {during['lowest_ratio']:.3f}, in the worst tenth {during['lowest_ratio_of_a_tenth']:.3f}"
        )
    for how, change in result["use"].items():
        console.print(
            f"goals {how}: the policies change by {change['total_variation']:.3f} (total variation), "
            f"{change['other_likeliest_action']:.1%} of likeliest actions change"
        )


def _print_actions(score: dict[str, Any], console: Console) -> None:
    figures = ("share", "precision", "recall", "F1", "recall of the ceiling", "support")
    table = make_table("by action", "action", *figures, right=figures)
    for row in score["actions"]:
        keys = ("share", "precision", "recall", "f1", "recall_ceiling")
        cells = (f"{row[key]:.3f}" if row[key] is not None else "-" for key in keys)
        table.add_row(escape(row["name"]), *cells, f"{row['support']:,}")
    console.print(table)
