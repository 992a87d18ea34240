"""`hopplus evaluate`: evaluate the final policies and models of a run."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape

from hopplus import __version__
from hopplus.agents.config import PlanningConfig
from hopplus.cli.adaptation import DEFAULT_SETTINGS, AdaptationSettings, judge_adaptation, print_adaptation
from hopplus.cli.figures import plus_minus, to_json
from hopplus.cli.others import judge_others, print_others
from hopplus.cli.tables import make_table
from hopplus.cli.world import judge_world, print_world
from hopplus.core.checks import check_seed
from hopplus.core.p_values import p_words
from hopplus.evaluation.selfplay import Played
from hopplus.evaluation.statistics import page_trend, seed_interval
from hopplus.games.game import GameSpec
from hopplus.runs.command import planning_flags, train_command
from hopplus.runs.evaluation import evaluate as evaluate_run
from hopplus.runs.folder import ADAPTATION, EVALUATION, OTHERS, WORLD, write_json
from hopplus.runs.progress import counting_bar
from hopplus.runs.records import read_run
from hopplus.runs.run import NO_PLANNING, load

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
    settings: Annotated[AdaptationSettings, tyro.conf.arg(name="")] = DEFAULT_SETTINGS,
    planning: PlanningConfig = NO_PLANNING,
    seed: int = 0,
    json_line: Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(name="json")] = False,
) -> int:
    """Play many episodes with the final policies of every seed: once with sampled actions, once with greedy ones.

    Intervals are 95% over seeds. Without --co-players the line-up is that of training, on the game's whole board.

    Args:
        run: A run folder.
        episodes: Episodes for each seed.
        co_players: Players for the last seats: scripts, as in nearest_stag,random, or runs, as in runs/a or runs/a:2
            (the policy of its second seat). The run's policies keep the seats before them.
        rotate: Move every policy on by this many seats, to see whether returns follow the policy or the seat.
        others: Instead, evaluate the opponent models: their accuracy beside the best possible one, and whether the
            inferred goals change the policies. --co-players names the players to predict.
        world: Instead, evaluate the learned worlds on real episodes of random play, mixed scripts and self-play.
        adaptation: Instead, play the frozen agent with every line-up of scripts, beside the oracle (the best of several
            responses to that line-up). Oracles that --oracles lacks are trained first.
        settings: With --adaptation.
        planning: Plan before acting, with the run's models. A planner always takes the action of highest value.
        seed: The seed of all random numbers.
        json_line: Print one line of JSON instead of tables.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")
    check_seed(seed)
    if others:
        if adaptation or world or rotate:
            raise ValueError("--others goes with --co-players alone; leave --adaptation, --world and --rotate out")
        return _output(run, OTHERS, judge_others(run, episodes, co_players, seed), json_line, print_others)
    if world:
        if adaptation or rotate or co_players is not None:
            raise ValueError("--world sets the line-ups itself; leave --co-players, --rotate and --adaptation out")
        return _output(run, WORLD, judge_world(run, episodes, seed), json_line, print_world)
    if adaptation:
        if co_players is not None or rotate:
            flag = "--rotate" if co_players is None else "--co-players"
            raise ValueError(f"--adaptation sets the line-ups itself; leave {flag} out, or --adaptation")
        result = judge_adaptation(run, episodes, seed, settings, planning)
        return _output(run, None if planning.is_used else ADAPTATION, result, json_line, print_adaptation)
    file = EVALUATION if co_players is None and not rotate and not planning.is_used else None
    result = _judge_play(run, episodes, co_players, rotate, seed, planning)
    return _output(run, file, result, json_line, _print_tables)


def _judge_play(
    folder: Path, episodes: int, co_players: str | None, rotate: int, seed: int, planning: PlanningConfig
) -> dict[str, Any]:
    """The contents of `evaluation.json`."""
    run = load(folder)
    play = partial(evaluate_run, run, episodes, seed, co_players, rotate=rotate, planning=planning)
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
    console.print(f"± is half of the 95% interval over seeds.{note}")
    for manner in MANNERS:
        by_seed = "  ".join(f"{seed[manner]:.3f}" for seed in result["per_seed"])
        console.print(f"{manner}, seed by seed: {by_seed}")
    if result["trend"]:
        trend = result["trend"]
        console.print(
            f"trend by seat over seeds (Page's test in both directions): {trend['direction']}, "
            f"{p_words(trend['p_value'])}"
        )
