"""`hopplus evaluate`: how well the final policies of a run play."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID
from rich.table import Table

from hopplus import __version__
from hopplus.cli.adaptation import DEFAULT_COMPANY, Company, judge_adaptation, print_adaptation
from hopplus.cli.figures import without_nan
from hopplus.cli.others import judge_others, print_others
from hopplus.cli.world import judge_world, print_world
from hopplus.evaluation.selfplay import Played, play
from hopplus.evaluation.statistics import Interval, page_trend, seed_interval
from hopplus.games.coplayers import Lineup
from hopplus.games.game import GameSpec
from hopplus.learning.planner import PlanningConfig
from hopplus.runs.command import planning_flags, train_command
from hopplus.runs.config import check_seed
from hopplus.runs.folder import ADAPTATION, EVALUATION, OTHERS, WORLD, write_json
from hopplus.runs.lineups import seat_players
from hopplus.runs.progress import counting_bar
from hopplus.runs.records import read_run
from hopplus.runs.run import NO_PLANNING, Run, load

RunPath = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
MANNERS = ("sampled", "greedy")


def evaluate(
    run: RunPath,
    episodes: int = 10_000,
    co_players: str | None = None,
    rotate: int = 0,
    others: tyro.conf.FlagCreatePairsOff[bool] = False,
    world: tyro.conf.FlagCreatePairsOff[bool] = False,
    adaptation: tyro.conf.FlagCreatePairsOff[bool] = False,
    company: Annotated[Company, tyro.conf.arg(name="")] = DEFAULT_COMPANY,
    planning: PlanningConfig = NO_PLANNING,
    seed: int = 0,
    json_line: Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(name="json")] = False,
) -> int:
    """Play many episodes with the final policies of every seed, drawing actions and always taking the likeliest.

    Intervals are 95% over seeds. Without --co-players the table is that of training, on the game's whole board.

    Args:
        run: A run folder.
        episodes: How many episodes for each seed.
        co_players: Who sits in the last seats instead: scripts, as in nearest_stag,random, or other runs, as in
            runs/other or runs/other:2 (its second seat's policy). The run's policies keep the seats before them.
        rotate: Seat every policy so many seats further on: does the return follow the policy or the seat?
        others: Instead, tell how well the run's seats predict their co-players, against what is possible, and whether
            the goals that they infer change what they do; --co-players says whom to predict.
        world: Instead, tell how good the worlds are that the run's learners learned, on real episodes of random play,
            mixed scripts and self-play.
        adaptation: Instead, seat the frozen agent with every line-up of scripts, beside the best response to each (its
            oracle), which is trained first where --oracles does not have it yet.
        company: With --adaptation.
        planning: Plan before acting, with the run's models: it then always takes the action that it found best.
        seed: The seed of all random draws.
        json_line: Print one line of JSON instead of tables.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")
    check_seed(seed)
    if others:
        if adaptation or world or rotate:
            raise ValueError("--others goes with --co-players alone; leave --adaptation, --world and --rotate out")
        found = judge_others(run, episodes, co_players, seed)
        return _tell(run, OTHERS, found, json_line, print_others)
    if world:
        if adaptation or rotate or co_players is not None:
            raise ValueError("--world says itself who plays; leave --co-players, --rotate and --adaptation out")
        return _tell(run, WORLD, judge_world(run, episodes, seed), json_line, print_world)
    if adaptation:
        if co_players is not None or rotate:
            flag = "--rotate" if co_players is None else "--co-players"
            raise ValueError(f"--adaptation says itself who sits where; leave {flag} out, or --adaptation")
        found = judge_adaptation(run, episodes, seed, company, planning)
        return _tell(run, None if planning.is_used else ADAPTATION, found, json_line, print_adaptation)
    kept = EVALUATION if co_players is None and not rotate and not planning.is_used else None
    return _tell(run, kept, _judge_play(run, episodes, co_players, rotate, seed, planning), json_line, _print_tables)


def _judge_play(
    folder: Path, episodes: int, co_players: str | None, rotate: int, seed: int, planning: PlanningConfig
) -> dict[str, Any]:
    """What `evaluation.json` holds."""
    run = load(folder)
    manners = MANNERS[1:] if planning.is_used else MANNERS
    seat = partial(seat_players, run, co_players, rotate=rotate, planning=planning)
    seated = {manner: seat(greedy=manner == "greedy") for manner in manners}
    with counting_bar() as progress:
        played = {
            manner: _play(run, lineup, episodes, seed, progress.add_task(manner, total=episodes), progress)
            for manner, (lineup, _) in seated.items()
        }
    played = dict.fromkeys(MANNERS, played["greedy"]) | played
    _, names = seated["greedy"]
    options = [f"--episodes {episodes}"] + ([f"--co-players {co_players}"] if co_players else [])
    options += [f"--rotate {rotate}"] if rotate else []
    options += planning_flags(planning)
    return {
        "command": " ".join(["hopplus evaluate", str(folder), *options, f"--seed {seed}", "--json"]),
        "version": __version__,
        "trained_by": train_command(run.config, folder),
        "game": run.config.game,
        "game_version": run.game.spec.version,
        "env_steps": run.num_updates * run.config.learner.steps_per_update,
        "training_seconds": float(read_run(folder).timing["seconds"].sum()),
        "seeds": run.config.seeds,
        "episodes": episodes,
        **figures(run.game.spec, played, names),
    }


def _tell(run: Path, kept: str | None, found: dict[str, Any], json_line: bool, show: Callable[..., None]) -> int:
    """Keep what was found in a file of the run folder, where it has one, and print it."""
    if kept:
        write_json(run / kept, without_nan(found))
    if json_line:
        print(json.dumps(without_nan(found)))
    else:
        show(str(run), found, Console())
    return 0


def _play(run: Run, lineup: Lineup, episodes: int, seed: int, bar: TaskID, progress: Progress) -> Played:
    return play(
        run.game,
        lineup,
        episodes,
        num_seeds=run.config.seeds,
        key=jax.random.key(seed),
        on_batch=lambda count: progress.advance(bar, count),
    )


def figures(spec: GameSpec, played: dict[str, Played], names: list[str]) -> dict[str, Any]:
    """Means, intervals over seeds, per seat and per seed, and whether the seats are in an order."""
    sampled, greedy = played["sampled"], played["greedy"]
    per_seat = []
    for seat, name in enumerate(names):
        by_manner = {manner: asdict(played[manner].per_seat()[seat]) for manner in MANNERS}
        deeds = {
            deed: asdict(seed_interval(greedy.deeds[:, :, index, seat].mean(axis=1, dtype=float)))
            for index, (deed, _) in enumerate(spec.deeds)
        }
        per_seat.append({"seat": f"player_{seat + 1}", "player": name, **by_manner, "deeds_greedy": deeds})
    seeds, seats = sampled.seat_means.shape
    trend = page_trend(sampled.seat_means) if seats > 2 and seeds > 2 else None
    return {
        "mean_return": sampled.mean.estimate,
        "mean_return_greedy": greedy.mean.estimate,
        "interval": asdict(sampled.mean),
        "interval_greedy": asdict(greedy.mean),
        "per_seat": per_seat,
        "per_seed": [
            {"sampled": float(one), "greedy": float(other)}
            for one, other in zip(sampled.by_seed, greedy.by_seed, strict=True)
        ],
        "trend": asdict(trend) if trend else None,
    }


def _print_tables(name: str, result: dict[str, Any], console: Console) -> None:
    title = f"{escape(name)}: {result['episodes']:,} episodes on {result['game']} for each of {result['seeds']} seeds"
    table = Table(title=title, title_justify="left")
    deeds = list(result["per_seat"][0]["deeds_greedy"])
    for column in ("seat", "player", "sampled", "greedy", *(f"{deed}, greedy" for deed in deeds)):
        table.add_column(column)
    for seat in result["per_seat"]:
        did = [f"{seat['deeds_greedy'][deed]['estimate']:.3f}" for deed in deeds]
        table.add_row(seat["seat"], escape(seat["player"]), _words(seat["sampled"]), _words(seat["greedy"]), *did)
    table.add_section()
    blank = [""] * len(deeds)
    table.add_row("mean", "", _words(result["interval"]), _words(result["interval_greedy"]), *blank)
    console.print(table)
    for manner in MANNERS:
        by_seed = "  ".join(f"{seed[manner]:.3f}" for seed in result["per_seed"])
        console.print(f"{manner}, seed by seed: {by_seed}")
    if result["trend"]:
        trend = result["trend"]
        console.print(
            f"trend by seat over seeds (Page's test, both directions): p = {trend['p_value']:.3f}, "
            f"if any {trend['direction']}"
        )


def _words(interval: dict[str, float]) -> str:
    found = Interval(**interval)
    if not math.isfinite(found.low):
        return f"{found.estimate:.3f}"
    return f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})"
