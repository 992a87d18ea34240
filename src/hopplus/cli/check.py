"""`hopplus check`: does a game keep its promises, and is it fair?"""

import json
from dataclasses import asdict
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from hopplus import __version__
from hopplus.cli.games import GameName
from hopplus.evaluation import fairness
from hopplus.evaluation.fairness import Fairness
from hopplus.games import contract
from hopplus.games.contract import Finding
from hopplus.games.game import Game
from hopplus.games.presets import make

NUM_PROMISES = len(contract.PROMISES_OF_A_RESET) + len(contract.PROMISES_OF_PLAY)


def check(
    game: GameName,
    episodes: int = 100_000,
    seed: int = 0,
    json_line: Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(name="json")] = False,
) -> int:
    """Examine a game: the contract that learners rely on, then whether random play pays every seat alike.

    Exit code 1 where a fault was found.

    Args:
        game: A name from `hopplus games`, or MODULE:FACTORY for a game of your own.
        episodes: How many episodes of random play to judge fairness by; 0 leaves that part out.
        seed: The seed of all random draws.
        json_line: Print one line of JSON instead of tables.
    """
    played = make(game)
    if episodes != 0 and episodes < fairness.MIN_EPISODES:
        raise ValueError(f"--episodes is {episodes}; give {fairness.MIN_EPISODES} or more, or 0 to leave fairness out")
    progress_console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=progress_console, transient=True) as progress:
        findings = _examine(played, seed, progress)
        fair = _measure(played, episodes, seed, progress) if episodes else None
    faults = [f"{finding.name}: {finding.fault}" for finding in findings if finding.fault]
    faults += [f"fairness: {fair.fault}"] if fair and fair.fault else []
    if json_line:
        command = f"hopplus check {game} --episodes {episodes} --seed {seed} --json"
        result = {
            "command": command,
            "version": __version__,
            "faults": faults,
            "fairness": asdict(fair) if fair else None,
        }
        print(json.dumps(result))
    else:
        _print_tables(game, findings, fair, Console())
    return 1 if faults else 0


def _examine(game: Game, seed: int, progress: Progress) -> list[Finding]:
    bar = progress.add_task("contract", total=NUM_PROMISES)
    findings = []
    for finding in contract.examine(game, seed=seed):
        findings.append(finding)
        progress.advance(bar)
    return findings


def _measure(game: Game, episodes: int, seed: int, progress: Progress) -> Fairness:
    bar = progress.add_task("episodes of random play", total=episodes)
    return fairness.measure(game, episodes, seed=seed, on_batch=lambda played: progress.advance(bar, played))


def _print_tables(name: str, findings: list[Finding], fair: Fairness | None, console: Console) -> None:
    table = Table(title=f"{name}: contract", title_justify="left")
    table.add_column("promise")
    table.add_column("what it says")
    table.add_column("kept")
    for finding in findings:
        table.add_row(
            finding.name, finding.promise, f"[red]no: {finding.fault}[/]" if finding.fault else "[green]yes[/]"
        )
    console.print(table)
    if fair is None:
        return
    table = Table(title=f"{name}: fairness, {fair.episodes:,} episodes of random play", title_justify="left")
    for column in ("seat", "mean return", "99.9% interval", "over the mean of all", "99.9% for all seats"):
        table.add_column(column)
    for seat, (returned, advantage) in enumerate(zip(fair.returns, fair.advantages, strict=True), start=1):
        mean = f"{returned.low:.4f} to {returned.high:.4f}"
        over = f"{advantage.low:+.4f} to {advantage.high:+.4f}"
        table.add_row(f"player_{seat}", f"{returned.estimate:.4f}", mean, f"{advantage.estimate:+.4f}", over)
    console.print(table)
    if fair.trend:
        console.print(
            f"trend by seat (Page's test, both directions): p = {fair.trend.p_value:.3f}, if any {fair.trend.direction}"
        )
    console.print(
        f"[red]unfair: {fair.fault}[/]" if fair.fault else "[green]fair: no seat and no order of seats stands out[/]"
    )
