"""`hopplus check`: does a game keep its promises, and is it fair?"""

import json
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hopplus import __version__
from hopplus.cli.figures import to_json
from hopplus.cli.tables import make_table
from hopplus.cli.verbs.check import Check
from hopplus.evaluation import fairness
from hopplus.evaluation.fairness import Fairness
from hopplus.games import contract
from hopplus.games.contract import Finding
from hopplus.games.game import CAPABILITIES, Game, capabilities
from hopplus.games.presets import make
from hopplus.runs.capabilities import agents_for
from hopplus_doctor.p_values import p_words

NUM_PROMISES = len(contract.PROMISES_OF_A_RESET) + len(contract.PROMISES_OF_PLAY)


def check_game(asked: Check) -> int:
    """Check a game, and print what was found."""
    played = make(asked.game)
    if asked.episodes != 0 and asked.episodes < fairness.MIN_EPISODES:
        raise ValueError(f"--episodes is {asked.episodes}; give {fairness.MIN_EPISODES} or more, or 0 to skip fairness")
    progress_console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=progress_console, transient=True) as progress:
        findings = _examine(played, asked.seed, progress)
        fair = _measure(played, asked.episodes, asked.seed, progress) if asked.episodes else None
    faults = [f"{finding.name}: {finding.fault}" for finding in findings if finding.fault]
    faults += [f"fairness: {fair.fault}"] if fair and fair.fault else []
    if asked.json:
        command = f"hopplus check {asked.game} --episodes {asked.episodes} --seed {asked.seed} --json"
        result = {
            "commands": [command],
            "version": __version__,
            "faults": faults,
            "fairness": asdict(fair) if fair else None,
            "offers": sorted(capabilities(played)),
            "missing_for": agents_for(played, asked.game),
        }
        print(json.dumps(to_json(result)))
    else:
        console = Console()
        _print_tables(asked.game, findings, fair, console)
        _print_agents(asked.game, played, console)
        _print_verdict(asked.game, faults, console)
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
    table = make_table(f"{escape(name)}: contract", "promise", "what it says", "kept")
    for finding in findings:
        kept = f"[red]no: {escape(finding.fault)}[/]" if finding.fault else "[green]yes[/]"
        kept = f"[dim]not checked: {escape(finding.unchecked)}[/]" if finding.unchecked else kept
        table.add_row(finding.name, finding.promise, kept)
    console.print(table)
    if fair is None:
        return
    title = f"{escape(name)}: fairness, {fair.episodes:,} episodes of random play"
    table = make_table(title, "seat", "mean return", "99.9% interval", "over the mean of all", "99.9% for all seats")
    for seat, (returned, advantage) in enumerate(zip(fair.returns, fair.advantages, strict=True), start=1):
        mean = f"{returned.low:.4f} to {returned.high:.4f}"
        over = f"{advantage.low:+.4f} to {advantage.high:+.4f}"
        table.add_row(f"player_{seat}", f"{returned.estimate:.4f}", mean, f"{advantage.estimate:+.4f}", over)
    console.print(table)
    if fair.trend:
        trend = f"{p_words(fair.trend.p_value)}, if any {fair.trend.direction}"
        console.print(f"trend by seat (Page's test, both directions): {trend}")
    console.print(
        f"[red]unfair: {fair.fault}[/]" if fair.fault else "[green]fair: no seat and no order of seats stands out[/]"
    )


def _print_verdict(name: str, faults: list[str], console: Console) -> None:
    """Print the faults again: after the tables they are the last lines on the screen."""
    for fault in faults:
        console.print(f"[red]{escape(name)}: fault: {escape(fault)}[/]")
    if not faults:
        console.print(f"[green]{escape(name)}: no fault was found[/]")


def _print_agents(name: str, game: Game, console: Console) -> None:
    """Print what the game offers, which agents can learn it, and what it lacks for the others."""
    offered = capabilities(game)
    table = make_table(
        f"{escape(name)}: what it offers", "capability", "offered", "what it opens", whole=("capability",)
    )
    for capability, opens in CAPABILITIES.items():
        table.add_row(capability, "[green]yes[/]" if capability in offered else "[dim]no[/]", escape(opens))
    console.print(table)
    table = make_table(f"{escape(name)}: agents", "agent", "can learn it", whole=("agent",))
    for agent, missing in agents_for(game, name).items():
        table.add_row(agent, f"[yellow]no: {escape(missing)}[/]" if missing else "[green]yes[/]")
    console.print(table)
