"""`hopplus evaluate RUN --adaptation`: the frozen agent with every line-up of scripts, beside its oracle."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape

from hopplus import __version__
from hopplus.agents.config import PlanningConfig
from hopplus.cli.figures import FARTHER, plus_minus, seed_words
from hopplus.cli.tables import make_table
from hopplus.cli.verbs.evaluate import AdaptationSettings
from hopplus.core.devices import use_cores
from hopplus.core.extensions import named
from hopplus.core.mesh import num_cores
from hopplus.evaluation.adaptation import agent_returns, all_lineups, letter_of, normalised
from hopplus.games.coplayers import usual_kinds
from hopplus.games.lineups import seat_names
from hopplus.runs.command import planning_flags, train_command
from hopplus.runs.folder import read_config
from hopplus.runs.oracles import (
    MANNERS,
    SEARCHED,
    TRAINED,
    OracleSettings,
    Yardsticks,
    default_steps,
    measure_yardsticks,
    num_rows,
    read_yardsticks,
    train_responders,
    what_it_saw,
)
from hopplus.runs.progress import ProgressDisplay, counting_bar
from hopplus.runs.run import Run, load
from hopplus_doctor.statistics import FEW_SEEDS, mean_of_known, seed_interval

COLUMNS = {"nearest_stag": "NS", "nearest_hare": "NH", "by_belief": "belief", SEARCHED: "search"}
"""The short names of yardsticks."""
FROM = 5
"""The first episode of a series in which the agent is said to have had the time to adapt."""
ORACLE_EPISODES = 2_000
"""Episodes of each yardstick; --episodes counts the agent's."""


def judge_adaptation(
    folder: Path, episodes: int, seed: int, settings: AdaptationSettings, planning: PlanningConfig
) -> dict[str, Any]:
    """The contents of `adaptation.json`: returns of a run's agent with each line-up, beside the yardsticks."""
    if settings.series < 1:
        raise ValueError(f"--series is {settings.series}; give 1 or more")
    config = read_config(folder)
    spec = config.evaluation_game.spec
    asked = usual_kinds(spec) if settings.kinds is None else settings.kinds
    kinds = tuple(seat_names(asked) if isinstance(asked, str) else map(named, asked))
    lineups = all_lineups(spec, kinds)  # raises if the game has no such line-ups
    steps = default_steps(spec) if settings.oracle_steps is None else settings.oracle_steps
    oracles = OracleSettings(named(config.game), settings.oracles, steps, ORACLE_EPISODES, seed, num_cores(), kinds)
    use_cores(num_cores())
    run = load(folder)
    yardsticks = read_yardsticks(oracles) or _measure(oracles)
    started = time.perf_counter()
    returns = _play(run, lineups, episodes, settings, seed, planning)
    seconds = time.perf_counter() - started
    given = [f"--episodes {episodes}"]
    given += [f'--kinds "{",".join(kinds)}"'] if kinds != usual_kinds(spec) else []
    given += [f"--series {settings.series}"] if settings.series > 1 else []
    known = settings.known_co_players
    given += [f"--known-co-players {known}"] if known != "nothing" else []
    given += [f"--oracles {settings.oracles}", f"--oracle-steps {steps}", *planning_flags(planning)]
    return {
        "commands": [
            train_command(config, folder),
            f"hopplus evaluate {folder} --adaptation {' '.join(given)} --seed {seed} --json",
        ],
        "version": __version__,
        "game": config.game,
        "game_version": spec.version,
        "env_steps": run.num_updates * config.learner.steps_per_update,
        **({"population_env_steps": more} if (more := config.learner.population_steps) else {}),
        "seeds": config.seeds,
        "episodes": episodes,
        "series": settings.series,
        "known": known,
        "seconds": seconds,
        "oracle_steps": steps,
        "saw": what_it_saw(config),
        **figures(returns, yardsticks),
    }


def figures(returns: np.ndarray, yardsticks: list[Yardsticks]) -> dict[str, Any]:
    """Returns and normalised returns for each line-up, and their means over line-ups.

    `returns` are [manners, seeds, lineups, episodes of a series]; "by_episode" holds each episode of a series, "late"
    the mean from episode FROM on, all other figures are means over the series. Intervals are over seeds. A yardstick
    has no seeds and no interval.
    """
    uniform, oracle = (np.array([getattr(one, name) for one in yardsticks]) for name in ("random", "oracle"))
    by_episode = np.stack([normalised(one, uniform, oracle) for one in np.moveaxis(returns, -1, 0)])
    late = by_episode[FROM - 1 :].mean(axis=0) if len(by_episode) >= FROM else None
    returns = returns.mean(axis=-1)
    scaled = normalised(returns, uniform, oracle)
    rows = []
    for index, one in enumerate(yardsticks):
        rows.append(
            {
                "lineup": one.name,
                "co_players": list(one.lineup),
                **_intervals(returns[..., index]),
                "oracle": one.oracle,
                "oracle_player": one.oracle_player,
                **one.scripted,
                "normalised": _intervals(scaled[..., index]),
                "by_episode": [_intervals(one[..., index]) for one in by_episode],
                "late": None if late is None else _intervals(late[..., index]),
            }
        )
    scripted = {name: np.array([one.scripted[name] for one in yardsticks]) for name in yardsticks[0].scripted}
    scripted = {"oracle": oracle, **scripted}
    return {
        "scripted": list(yardsticks[0].scripted),
        "lineups": rows,
        "mean": {
            **_intervals(returns.mean(axis=-1)),
            **{name: float(values.mean()) for name, values in scripted.items()},
        },
        "normalised": {
            **_intervals(mean_of_known(scaled)),
            **{name: float(mean_of_known(normalised(values, uniform, oracle))) for name, values in scripted.items()},
        },
        "by_episode": [_intervals(mean_of_known(one)) for one in by_episode],
        "late": None if late is None else _intervals(mean_of_known(late)),
        "per_seed": [dict(zip(MANNERS, one, strict=True)) for one in mean_of_known(scaled).T.tolist()],
    }


def lowest_late(result: dict[str, Any]) -> dict[str, Any]:
    """The line-up with the lowest mean from episode FROM on."""
    known = [row for row in result["lineups"] if not np.isnan(row["late"]["sampled"]["estimate"])]
    return min(known, key=lambda row: row["late"]["sampled"]["estimate"])


def print_adaptation(name: str, result: dict[str, Any], console: Console) -> None:
    """Print a table of all line-ups, then the two means."""
    title = (
        f"{escape(name)}: the frozen agent in one seat of {result['game']}, with each line-up of scripts; "
        f"{result['episodes']:,} episodes for each of {result['seeds']} seeds. It saw: {escape(result['saw'])}"
    )
    title += {
        "nothing": "",
        "goals": ". It is given the co-players' true goals",
        "others": ". It is given the co-players' true policies",
    }[result["known"]]
    scripted = result["scripted"]
    heads = [_short(name) for name in scripted]
    table = make_table(title, "with", "sampled", "greedy", "oracle", *heads, "normalised")
    for row in result["lineups"]:
        oracle = f"{row['oracle']:.2f} {_oracle_name(row['oracle_player'])}"
        table.add_row(*_cells(row["lineup"], row, oracle, scripted), plus_minus(row["normalised"]["sampled"]))
    table.add_section()
    for label, name in (("mean", "mean"), ("norm.", "normalised")):
        table.add_row(*_cells(label, result[name], f"{result[name]['oracle']:.2f}", scripted), "")
    console.print(table)
    if result["late"] is not None:
        lowest = lowest_late(result)
        console.print(
            f"normalised, from episode {FROM} of a series on: {plus_minus(result['late']['sampled'])} over all "
            f"line-ups; lowest with {lowest['lineup']}: {plus_minus(lowest['late']['sampled'])}"
        )
    kinds = dict.fromkeys(kind for row in result["lineups"] for kind in row["co_players"])
    letters = ", ".join(f"{letter_of(kind)} {kind}" for kind in kinds)
    belief = "belief: NS or NH by belief; " if "by_belief" in scripted else ""
    console.print(
        f"{escape(letters)}. Oracle: the best of a PPO responder, the scripts, and search in the true game with the "
        f"true co-players; {belief}random: uniform legal play. Normalised, of sampled play: 0 is random, 1 is the "
        f"oracle; norm.: the mean of each column, normalised. {FARTHER}."
    )
    if 1 < result["seeds"] < FEW_SEEDS:
        by_seed = [seed["sampled"] for seed in result["per_seed"]]
        console.print(f"normalised mean of all line-ups, sampled, seed by seed: {seed_words(by_seed)}")


def _measure(oracles: OracleSettings) -> list[Yardsticks]:
    """Train the oracles' responders and measure the yardsticks."""
    console = Console(stderr=True)
    with ProgressDisplay(console) as display:

        def on_lineup(name: str) -> None:
            console.print(f"responder for {name}", soft_wrap=True)

        responders = train_responders(oracles, watcher=display, on_lineup=on_lineup)
    with counting_bar() as progress:
        task = progress.add_task("yardsticks", total=num_rows(oracles))
        return measure_yardsticks(oracles, responders, on_row=lambda: progress.advance(task))


def _play(
    run: Run,
    lineups: list[tuple[str, ...]],
    episodes: int,
    settings: AdaptationSettings,
    seed: int,
    planning: PlanningConfig,
) -> np.ndarray:
    """The agent's returns, sampled and greedy. A planner has one manner: it takes the action of highest value."""
    manners = MANNERS[1:] if planning.is_used else MANNERS
    with counting_bar() as progress:
        task = progress.add_task("agent", total=len(manners) * len(lineups) * run.num_learning * run.config.seeds)
        returns = agent_returns(
            run.game,
            [run.players(greedy=manner == "greedy", planning=planning) for manner in manners],
            lineups,
            episodes,
            settings.series,
            num_seeds=run.config.seeds,
            known=settings.known_co_players,
            key=jax.random.key(seed),
            on_row=lambda: progress.advance(task),
        )
    return np.broadcast_to(returns, (len(MANNERS), *returns.shape[1:]))


def _intervals(by_manner: np.ndarray) -> dict[str, Any]:
    """[manners, seeds] as intervals by name."""
    return {manner: asdict(seed_interval(values)) for manner, values in zip(MANNERS, by_manner, strict=True)}


def _short(name: str) -> str:
    """A name in the table."""
    return COLUMNS[name] if name in COLUMNS else name.replace("_", " ")


def _oracle_name(player: str) -> str:
    return "PPO" if player.startswith(TRAINED) else _short(player)


def _cells(label: str, row: dict[str, Any], oracle: str, scripted: list[str]) -> list[str]:
    returns = [f"{row[name]:.2f}" for name in scripted]
    return [label, plus_minus(row["sampled"]), f"{row['greedy']['estimate']:.2f}", oracle, *returns]
