"""`hopplus evaluate RUN --adaptation`: the frozen agent with every line-up of scripts, beside the best response."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hopplus import __version__
from hopplus.cli.figures import plus_minus
from hopplus.evaluation.adaptation import KINDS, agent_returns, lineups, normalised
from hopplus.evaluation.clairvoyant import Known
from hopplus.evaluation.statistics import mean_of_known, seed_interval
from hopplus.games.coplayers import seat_names
from hopplus.learning.devices import num_cores, use_cores
from hopplus.learning.planner import PlanningConfig
from hopplus.runs.command import planning_flags, train_command
from hopplus.runs.folder import read_config
from hopplus.runs.oracles import (
    MANNERS,
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

SCRIPTED = {"nearest_stag": "NS", "nearest_hare": "NH", "by_belief": "belief", "random": "random"}
"""The yardsticks besides the oracle, and what they are called in the table."""
ORACLE_EPISODES = 2_000
"""How many episodes a yardstick's return is the mean of, however many the agent plays."""


@dataclass(frozen=True)
class Company:
    """Who the agent is seated with, for how long, and what it is held against."""

    kinds: str = ",".join(KINDS)
    """What co-players can be: every line-up of these is played. Also: patient_stag(3)."""
    series: int = 1
    """Episodes in a row with the same line-up; what the agent thinks of its co-players is carried on."""
    known: Known = "nothing"
    """What a planner is told of its co-players: nothing; goals: what they are after; others: exactly what they do. So
    one can see what its beliefs and its models cost."""
    oracles: Path = Path("runs/oracles")
    """The folder that keeps the oracles."""
    oracle_steps: int | None = None
    """Environment steps of each seed of an oracle's training. None: 1,000,000 on a 4x4 board, 2,000,000 on a larger
    one."""


DEFAULT_COMPANY = Company()


def judge_adaptation(
    folder: Path, episodes: int, seed: int, company: Company, planning: PlanningConfig
) -> dict[str, Any]:
    """All that is told about a run's agent among co-players that it did not choose."""
    if company.series < 1:
        raise ValueError(f"--series is {company.series}; give 1 or more")
    config = read_config(folder)
    spec = config.evaluation_game.spec
    kinds = tuple(seat_names(company.kinds))
    companies = lineups(spec, kinds)  # raises where the game is no stag hunt
    steps = default_steps(spec) if company.oracle_steps is None else company.oracle_steps
    settings = OracleSettings(config.game, company.oracles, steps, ORACLE_EPISODES, seed, num_cores(), kinds)
    use_cores(num_cores())
    run = load(folder)
    yardsticks = read_yardsticks(settings) or _measure(settings)
    started = time.perf_counter()
    returns = _play(run, companies, episodes, company, seed, planning)
    seconds = time.perf_counter() - started
    given = [f"--episodes {episodes}"]
    given += [f'--kinds "{company.kinds}"'] if kinds != KINDS else []
    given += [f"--series {company.series}"] if company.series > 1 else []
    given += [f"--known {company.known}"] if company.known != "nothing" else []
    given += [f"--oracles {company.oracles}", f"--oracle-steps {steps}", *planning_flags(planning)]
    return {
        "command": f"hopplus evaluate {folder} --adaptation {' '.join(given)} --seed {seed} --json",
        "version": __version__,
        "trained_by": train_command(config, folder),
        "game": config.game,
        "game_version": spec.version,
        "env_steps": run.num_updates * config.learner.steps_per_update,
        "seeds": config.seeds,
        "episodes": episodes,
        "series": company.series,
        "known": company.known,
        "seconds": seconds,
        "oracle_steps": steps,
        "saw": what_it_saw(config),
        **figures(returns, yardsticks),
    }


def figures(returns: np.ndarray, yardsticks: list[Yardsticks]) -> dict[str, Any]:
    """Returns and normalised returns for each line-up and in the mean over them.

    `returns` are [manners, seeds, lineups, episodes of a series]; where nothing else is said, of all episodes.
    Intervals are over seeds. A yardstick has none: it is one player, and its episodes are many.
    """
    uniform, oracle = (np.array([getattr(one, name) for one in yardsticks]) for name in ("random", "oracle"))
    by_episode = np.stack([normalised(one, uniform, oracle) for one in np.moveaxis(returns, -1, 0)])
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
                **{name: getattr(one, name) for name in SCRIPTED},
                "normalised": _intervals(scaled[..., index]),
                "by_episode": [_intervals(one[..., index]) for one in by_episode],
            }
        )
    scripted = {name: np.array([getattr(one, name) for one in yardsticks]) for name in ("oracle", *SCRIPTED)}
    return {
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
    }


def print_adaptation(name: str, result: dict[str, Any], console: Console) -> None:
    """The table of all line-ups, then the two means."""
    title = (
        f"{escape(name)}: a frozen seat of {result['game']} with co-players it did not choose; "
        f"{result['episodes']:,} episodes for each of {result['seeds']} seeds. It saw: {escape(result['saw'])}"
    )
    title += {
        "nothing": "",
        "goals": ". It is told what they are after",
        "others": ". It is told exactly what they do",
    }[result["known"]]
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("with", "sampled", "greedy", "oracle", *SCRIPTED.values(), "normalised"):
        table.add_column(column)
    for row in result["lineups"]:
        oracle = f"{row['oracle']:.2f} {SCRIPTED.get(row['oracle_player'], 'PPO')}"
        table.add_row(*_cells(row["lineup"], row, oracle), plus_minus(row["normalised"]["sampled"]))
    table.add_section()
    for label, name in (("mean", "mean"), ("norm.", "normalised")):
        table.add_row(*_cells(label, result[name], f"{result[name]['oracle']:.2f}"), "")
    console.print(table)
    console.print(
        "N nearest_stag, H nearest_hare, R random. Oracle: the best of a PPO responder, always NS and always NH; "
        "belief: NS or NH by belief; random: uniform legal play. Normalised, of sampled play: 0 is random, 1 the "
        "oracle; norm.: its mean over line-ups, for everybody. ± is half of the 95% interval over seeds.",
        soft_wrap=True,
    )


def _measure(settings: OracleSettings) -> list[Yardsticks]:
    console = Console(stderr=True)
    with ProgressDisplay(console) as display:
        announce = lambda name: console.print(f"responder for {name}", soft_wrap=True)  # noqa: E731
        responders = train_responders(settings, watcher=display, on_lineup=announce)
    with counting_bar() as progress:
        task = progress.add_task("yardsticks", total=num_rows(settings))
        return measure_yardsticks(settings, responders, on_row=lambda: progress.advance(task))


def _play(
    run: Run,
    companies: list[tuple[str, ...]],
    episodes: int,
    company: Company,
    seed: int,
    planning: PlanningConfig,
) -> np.ndarray:
    """In each manner; a planner has one: it takes the best action that it found."""
    manners = MANNERS[1:] if planning.is_used else MANNERS
    with counting_bar() as progress:
        task = progress.add_task("agent", total=len(manners) * len(companies) * run.num_learning * run.config.seeds)
        found = agent_returns(
            run.game,
            [run.players(greedy=manner == "greedy", planning=planning) for manner in manners],
            companies,
            episodes,
            company.series,
            num_seeds=run.config.seeds,
            known=company.known,
            key=jax.random.key(seed),
            on_row=lambda: progress.advance(task),
        )
    return np.broadcast_to(found, (len(MANNERS), *found.shape[1:]))


def _intervals(by_manner: np.ndarray) -> dict[str, Any]:
    """[manners, seeds] as intervals by name."""
    return {manner: asdict(seed_interval(values)) for manner, values in zip(MANNERS, by_manner, strict=True)}


def _cells(label: str, row: dict[str, Any], oracle: str) -> list[str]:
    scripted = [f"{row[name]:.2f}" for name in SCRIPTED]
    return [label, plus_minus(row["sampled"]), f"{row['greedy']['estimate']:.2f}", oracle, *scripted]
