"""`hopplus crossplay`: every run or script with every other."""

import json
from dataclasses import asdict
from typing import Any

import jax
from rich.console import Console
from rich.markup import escape

from hopplus import __version__
from hopplus.cli.figures import FARTHER, plus_minus, seed_words, to_json
from hopplus.cli.tables import make_table
from hopplus.cli.verbs.crossplay import SEARCH, CrossPlay
from hopplus.core.checks import check_seed
from hopplus.core.devices import use_cores
from hopplus.core.mesh import num_cores
from hopplus.evaluation.crossplay import cross_play
from hopplus.report.crossplay import heat_map
from hopplus.runs.command import planning_flags
from hopplus.runs.folder import write_json
from hopplus.runs.lineups import read_guests
from hopplus.runs.progress import counting_bar
from hopplus_doctor.drawing import save_figure
from hopplus_doctor.statistics import FEW_SEEDS, seed_interval

ACROSS = 4
"""Columns of a table: more do not fit into 80 characters beside the names."""


def play_pairs(asked: CrossPlay) -> int:
    """Play every pair, and print the returns."""
    if asked.episodes < 1:
        raise ValueError(f"--episodes is {asked.episodes}; give 1 or more")
    check_seed(asked.seed)
    use_cores(num_cores())
    game, guests = read_guests(asked.players, asked.planning)
    with counting_bar() as progress:
        task = progress.add_task("pairs", total=len(guests) ** 2)

        def advance() -> None:
            progress.advance(task)

        returns = cross_play(game, guests, asked.episodes, key=jax.random.key(asked.seed), on_cell=advance)
    options = " ".join(
        [f"--episodes {asked.episodes}", *planning_flags(asked.planning, SEARCH), f"--seed {asked.seed}"]
    )
    result: dict[str, Any] = {
        "commands": [f"hopplus crossplay {' '.join(asked.players)} {options} --json"],
        "version": __version__,
        "game": game.spec.name,
        "episodes": asked.episodes,
        "players": [guest.name for guest in guests],
        "seeds": [guest.seeds for guest in guests],
        "returns": [[asdict(seed_interval(cell)) for cell in row] for row in returns],
        "by_seed": [[cell.tolist() for cell in row] for row in returns],
    }
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        write_json(asked.out / "crossplay.json", to_json(result))
        save_figure(heat_map(result["players"], result["returns"]), asked.out / "crossplay.png")
    if asked.json:
        print(json.dumps(to_json(result)))
    else:
        _print(result, Console())
    return 0


def _print(result: dict[str, Any], console: Console) -> None:
    title = f"Mean return of the first seat, {result['episodes']:,} episodes for each pair of seeds"
    players = result["players"]
    for first in range(0, len(players), ACROSS):
        columns = [f"with {number + 1}" for number in range(first, min(first + ACROSS, len(players)))]
        table = make_table(title if first == 0 else "", "", "first seat", *columns, whole=("", *columns))
        for number, (name, row) in enumerate(zip(players, result["returns"], strict=True), start=1):
            table.add_row(str(number), escape(name), *map(plus_minus, row[first : first + ACROSS]))
        console.print(table)
    console.print(f"{FARTHER} of the first seat. A run with itself: with its other seeds.")
    for number, (row, seeds) in enumerate(zip(result["by_seed"], result["seeds"], strict=True), start=1):
        if 1 < seeds < FEW_SEEDS:
            cells = "; ".join(f"with {column}: {seed_words(cell)}" for column, cell in enumerate(row, start=1))
            console.print(f"{number}, seed by seed, {cells}")
