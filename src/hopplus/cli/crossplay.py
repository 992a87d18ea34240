"""`hopplus crossplay`: runs and scripts, everybody with everybody."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hopplus import __version__
from hopplus.cli.figures import plus_minus, without_nan
from hopplus.evaluation.crossplay import cross_play
from hopplus.evaluation.statistics import seed_interval
from hopplus.learning.devices import num_cores, use_cores
from hopplus.learning.planner import PlanningConfig
from hopplus.planning.search import SearchConfig
from hopplus.report.crossplay import heat_map
from hopplus.report.curves import save_figure
from hopplus.runs.command import planning_flags
from hopplus.runs.config import check_seed
from hopplus.runs.folder import write_json
from hopplus.runs.lineups import read_guests
from hopplus.runs.progress import counting_bar

SEARCH = PlanningConfig(kind="search", search=SearchConfig(trees=4, simulations=16, depth=8))
Players = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PLAYER")]


def crossplay(
    players: Players,
    episodes: int = 200,
    planning: PlanningConfig = SEARCH,
    seed: int = 0,
    out: Path | None = None,
    json_line: Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(name="json")] = False,
) -> int:
    """Seat each player in the first seat among three (or as many as the game has) of every other, and of itself.

    A run among its own kind meets other seeds than its own: strangers who learned as it did.

    Args:
        players: Run folders and scripts, as in runs/ppo runs/hop nearest_stag; one run at least, which names the game.
        episodes: How many episodes for each pair of seeds.
        planning: How the runs plan that learned from search (hop, direct_om); the others act by their policies.
        seed: The seed of all random draws.
        out: A folder for crossplay.json and crossplay.png, a heat map.
        json_line: Print one line of JSON instead of a table.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")
    check_seed(seed)
    use_cores(num_cores())
    game, guests = read_guests(players, planning)
    with counting_bar() as progress:
        task = progress.add_task("pairs", total=len(guests) ** 2)
        advance = lambda: progress.advance(task)  # noqa: E731
        returns = cross_play(game, guests, episodes, key=jax.random.key(seed), on_cell=advance)
    options = " ".join([f"--episodes {episodes}", *planning_flags(planning, SEARCH), f"--seed {seed}"])
    found: dict[str, Any] = {
        "command": f"hopplus crossplay {' '.join(players)} {options} --json",
        "version": __version__,
        "game": game.spec.name,
        "episodes": episodes,
        "players": [guest.name for guest in guests],
        "seeds": [guest.seeds for guest in guests],
        "returns": [[asdict(seed_interval(cell)) for cell in row] for row in returns],
    }
    if out:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "crossplay.json", without_nan(found))
        save_figure(heat_map(found["players"], found["returns"]), out / "crossplay.png")
    if json_line:
        print(json.dumps(without_nan(found)))
    else:
        _print(found, Console())
    return 0


def _print(found: dict[str, Any], console: Console) -> None:
    title = f"Mean return of the first seat, {found['episodes']:,} episodes for each pair of seeds"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("first seat")
    for name in found["players"]:
        table.add_column(f"among {escape(name)}")
    for name, row in zip(found["players"], found["returns"], strict=True):
        table.add_row(escape(name), *map(plus_minus, row))
    console.print(table)
    console.print("± is half of the 95% interval over seeds. A run among its own kind: other seeds than its own.")
