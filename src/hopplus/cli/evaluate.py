"""`hopplus evaluate`: evaluate the final policies and models of a run."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from hopplus import __version__
from hopplus.agents.config import PlanningConfig
from hopplus.cli.adaptation import judge_adaptation, print_adaptation
from hopplus.cli.figures import FARTHER, plus_minus, seed_words, to_json
from hopplus.cli.others import judge_others, judge_saved, print_others, print_saved
from hopplus.cli.tables import make_table
from hopplus.cli.verbs.evaluate import Evaluate
from hopplus.cli.world import judge_world, print_world
from hopplus.core.checks import check_seed
from hopplus.evaluation.selfplay import Played
from hopplus.games.game import GameSpec
from hopplus.runs.command import planning_flags, train_command
from hopplus.runs.evaluation import evaluate
from hopplus.runs.folder import ADAPTATION, EVALUATION, OTHERS, WORLD, write_json
from hopplus.runs.progress import counting_bar
from hopplus.runs.records import read_run
from hopplus.runs.run import load
from hopplus_doctor.p_values import p_words
from hopplus_doctor.statistics import page_trend, seed_interval

MANNERS = ("sampled", "greedy")


def evaluate_run(asked: Evaluate) -> int:
    """Evaluate a run, write the result into its folder, and print it."""
    run, episodes, seed, planning = asked.run, asked.episodes, asked.seed, asked.planning
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")
    check_seed(seed)
    if asked.others:
        if asked.adaptation or asked.world or asked.rotate:
            raise ValueError("--others goes with --co-players alone; leave --adaptation, --world and --rotate out")
        if asked.recorded is not None:
            if asked.co_players is not None:
                raise ValueError("--recorded names the players itself; leave --co-players out")
            return _output(run, None, judge_saved(run, asked.recorded), asked.json, print_saved)
        return _output(
            run,
            OTHERS,
            judge_others(run, episodes, asked.co_players, seed),
            asked.json,
            print_others,
        )
    if asked.recorded is not None:
        raise ValueError("--recorded goes with --others: the opponent models are evaluated on it")
    if asked.world:
        if asked.adaptation or asked.rotate or asked.co_players is not None:
            raise ValueError("--world sets the line-ups itself; leave --co-players, --rotate and --adaptation out")
        return _output(run, WORLD, judge_world(run, episodes, seed), asked.json, print_world)
    if asked.adaptation:
        if asked.co_players is not None or asked.rotate:
            flag = "--rotate" if asked.co_players is None else "--co-players"
            raise ValueError(f"--adaptation sets the line-ups itself; leave {flag} out, or --adaptation")
        result = judge_adaptation(run, episodes, seed, asked.settings, planning)
        return _output(run, None if planning.is_used else ADAPTATION, result, asked.json, print_adaptation)
    file = EVALUATION if asked.co_players is None and not asked.rotate and not planning.is_used else None
    result = _judge_play(run, episodes, asked.co_players, asked.rotate, seed, planning)
    return _output(run, file, result, asked.json, _print_tables)


def _judge_play(
    folder: Path, episodes: int, co_players: str | None, rotate: int, seed: int, planning: PlanningConfig
) -> dict[str, Any]:
    """The contents of `evaluation.json`."""
    run = load(folder)
    play = partial(evaluate, run, episodes, seed, co_players, rotate=rotate, planning=planning)
    played: dict[str, Played] = {}
    with counting_bar() as progress:
        for manner in MANNERS[1:] if planning.is_used else MANNERS:
            advance = partial(progress.advance, progress.add_task(manner, total=episodes))
            played[manner] = play(greedy=manner == "greedy", on_batch=advance)
    played = dict.fromkeys(MANNERS, played["greedy"]) | played
    options = [f"--episodes {episodes}"] + ([f"--co-players {co_players}"] if co_players else [])
    options += [f"--rotate {rotate}"] if rotate else []
    options += planning_flags(planning)
    return {
        "commands": [
            train_command(run.config, folder),
            " ".join(["hopplus evaluate", str(folder), *options, f"--seed {seed}", "--json"]),
        ],
        "version": __version__,
        "game": run.config.game,
        "game_version": run.game.spec.version,
        "env_steps": run.num_updates * run.config.learner.steps_per_update,
        **({"population_env_steps": more} if (more := run.config.learner.population_steps) else {}),
        "training_seconds": float(read_run(folder).timing["seconds"].sum()),
        "seeds": run.config.seeds,
        "episodes": episodes,
        **figures(run.game.spec, played, played["greedy"].names),
    }


def _output(run: Path, file: str | None, result: dict[str, Any], json_line: bool, show: Callable[..., None]) -> int:
    """Write the result to a file of the run folder, if one is named, and print it."""
    if file:
        write_json(run / file, to_json(result))
    if json_line:
        print(json.dumps(to_json(result)))
    else:
        show(str(run), result, Console())
    return 0


def figures(spec: GameSpec, played: dict[str, Played], names: Sequence[str]) -> dict[str, Any]:
    """Mean returns with intervals over seeds, per seat and per seed, and a trend test over seats of one kind."""
    sampled, greedy = played["sampled"], played["greedy"]
    per_seat = []
    for seat, name in enumerate(names):
        by_manner = {manner: asdict(played[manner].per_seat()[seat]) for manner in MANNERS}
        events = {
            event.name: asdict(seed_interval(greedy.events[:, :, index, seat].mean(axis=1, dtype=float)))
            for index, event in enumerate(spec.events)
        }
        per_seat.append({"seat": f"player_{seat + 1}", "player": name, **by_manner, "events_greedy": events})
    seeds, seats = sampled.seat_means.shape
    is_one_kind = len({name.rpartition(":")[0] for name in names}) == 1 and not spec.roles
    trend = page_trend(sampled.seat_means) if is_one_kind and seats > 2 and seeds > 2 else None
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
    events = list(result["per_seat"][0]["events_greedy"])
    table = make_table(title, "seat", "player", "sampled", "greedy", *events, whole=("seat", "sampled", "greedy"))
    words = partial(plus_minus, digits=3)
    for seat in result["per_seat"]:
        rates = [f"{seat['events_greedy'][event]['estimate']:.3f}" for event in events]
        table.add_row(seat["seat"], escape(seat["player"]), words(seat["sampled"]), words(seat["greedy"]), *rates)
    table.add_section()
    blank = [""] * len(events)
    table.add_row("mean", "", words(result["interval"]), words(result["interval_greedy"]), *blank)
    console.print(table)
    note = f" {', '.join(events)}: per episode of greedy play." if events else ""
    console.print(f"{FARTHER}.{note}")
    for manner in MANNERS:
        by_seed = [seed[manner] for seed in result["per_seed"]]
        console.print(f"{manner}, seed by seed: {seed_words(by_seed, 3)}")
    if result["trend"]:
        trend = result["trend"]
        console.print(
            f"trend by seat over seeds (Page's test in both directions): {trend['direction']}, "
            f"{p_words(trend['p_value'])}"
        )
