"""`hopplus crossplay`: every run or script with every other."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich.console import Console
from rich.markup import escape

from hopplus import __version__
from hopplus.agents.config import PlanningConfig
from hopplus.cli.figures import plus_minus, to_json
from hopplus.cli.tables import make_table
from hopplus.core.checks import check_seed
from hopplus.core.devices import use_cores
from hopplus.core.mesh import num_cores
from hopplus.evaluation.crossplay import cross_play
from hopplus.evaluation.statistics import seed_interval
from hopplus.planning.config import SearchConfig
from hopplus.report.crossplay import heat_map
from hopplus.report.curves import save_figure
from hopplus.runs.command import planning_flags
from hopplus.runs.folder import write_json
from hopplus.runs.lineups import read_guests
from hopplus.runs.progress import counting_bar

SEARCH = PlanningConfig(kind="search", search=SearchConfig(trees=4, simulations=16, depth=8))
ACROSS = 4
"""Columns of a table: more do not fit into 80 characters beside the names."""
Players = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PLAYER")]


def crossplay(
    players: Players,
    episodes: int = 200,
    planning: PlanningConfig = SEARCH,
    seed: int = 0,
    out: Path | None = None,
    json_line: Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(name="json")] = False,
) -> int:
    """Play every player with every other: one in the first seat, copies of the other in all remaining seats.

    A run that plays with itself meets its other seeds, which learned independently.

    Args:
        players: Run folders and scripts, as in runs/ppo runs/hop nearest_stag. Give at least one run: it sets the game.
        episodes: Episodes for each pair of seeds.
        planning: Planning of the runs that learned from search (hop, direct_om). Other runs act by their policies.
        seed: The seed of all random numbers.
        out: A folder for crossplay.json and crossplay.png (a heat map).
        json_line: Print one line of JSON instead of a table.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")
    check_seed(seed)
    use_cores(num_cores())
    game, guests = read_guests(players, planning)
    with counting_bar() as progress:
        task = progress.add_task("pairs", total=len(guests) ** 2)

        def advance() -> None:
            progress.advance(task)

        returns = cross_play(game, guests, episodes, key=jax.random.key(seed), on_cell=advance)
    options = " ".join([f"--episodes {episodes}", *planning_flags(planning, SEARCH), f"--seed {seed}"])
    result: dict[str, Any] = {
        "commands": [f"hopplus crossplay {' '.join(players)} {options} --json"],
        "version": __version__,
        "game": game.spec.name,
        "episodes": episodes,
        "players": [guest.name for guest in guests],
        "seeds": [guest.seeds for guest in guests],
        "returns": [[asdict(seed_interval(cell)) for cell in row] for row in returns],
    }
    if out:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "crossplay.json", to_json(result))
        save_figure(heat_map(result["players"], result["returns"]), out / "crossplay.png")
    if json_line:
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
    console.print("± is half of the 95% interval over seeds. A run with itself: with its other seeds.")
