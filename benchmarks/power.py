"""How large must a seat's advantage be for `doctor game` to find it, in five seconds and in a minute?

    python benchmarks/power.py                                     100 repeats
    python benchmarks/power.py --picture docs/pictures/power.png   the same, and a picture of it
    python benchmarks/power.py --quick                             20 repeats, under a minute

Each game is played once, which tells how many episodes a budget buys. Seconds are those of the process's own CPU time,
because a machine that is shared would tell another number every time. A repeat draws so many of the played episodes,
with their seats exchanged at random, so that nobody is favoured; multiplies the returns of the first seat, so that it
gets the planted share of the mean return over the mean of all seats; and has the doctor judge. Of the doctor's findings
only those by random play take part: in our games the contract's exact ones would find a planted reward at once.
"""

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from biased_envs import Foraging
from hopplus.doctor.game import game_findings
from hopplus.doctor.random_play import GamePlayed, play_game
from hopplus.evaluation.fairness import NUM_ENVS
from hopplus.games import draw
from hopplus.games.presets import make
from hopplus.report import save_figure
from hopplus.report.curves import WIDE
from hopplus_doctor.answer import Answer, Finding, settled
from hopplus_doctor.drawing import MUTED, add_legend, new_sheet
from hopplus_doctor.environment import SHARE_OF_PLAY, Advice, env_findings
from hopplus_doctor.random_play import MOST_EPISODES, Budget, EnvPlayed, play_env
from measure import print_json, print_table, short

GAME = "stag-hunt-4x4"
BUDGETS = (5, 60)
SHARES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
FOUND = 0.95
"""An advantage is called detectable where so many of the repeats find it."""


@dataclass(frozen=True)
class Subject:
    """A game that was played once."""

    name: str
    played: GamePlayed | EnvPlayed
    episodes: dict[int, int]
    """How many each budget of seconds buys."""
    episodes_per_second: float

    def findings(self, played: GamePlayed | EnvPlayed) -> list[Finding]:
        if isinstance(played, GamePlayed):
            return game_findings(played, {"player": range(played.returns.shape[1])}, advice=Advice("", ""))
        agents = Foraging().possible_agents
        return env_findings(played, agents, range(len(agents)), suffix="", advice=Advice("", ""))


def play_ours() -> Subject:
    """A program that is compiled first, and then plays thousands of tables at once."""
    started = time.process_time()
    ready: list[float] = []
    played = play_game(make(GAME), budget=Budget(), seed=1, on_progress=lambda _: ready.append(time.process_time()))
    rate = NUM_ENVS * (len(ready) - 1) / (ready[-1] - ready[0])
    left = {budget: max(0.0, budget - (ready[0] - started)) for budget in BUDGETS}
    bought = {budget: min(NUM_ENVS + int(rate * seconds), MOST_EPISODES) for budget, seconds in left.items()}
    return Subject(GAME, played, bought, rate)


def play_theirs(seconds: float) -> Subject:
    """An environment in plain Python."""
    started, deadline = time.process_time(), time.monotonic() + seconds
    played = play_env(Foraging(), budget=Budget(deadline), seed=1, on_progress=lambda _: None, on_reset=lambda _: None)
    rate = len(played.returns) / (time.process_time() - started)
    bought = {budget: min(int(rate * SHARE_OF_PLAY * budget), MOST_EPISODES) for budget in BUDGETS}
    return Subject("Foraging", played, bought, rate)


def planted(subject: Subject, episodes: int, share: float, random: np.random.Generator) -> Any:
    """So many episodes drawn from those that were played, with the advantage in them."""
    total, seats = subject.played.returns.shape
    rows = random.integers(total, size=(episodes, 1))
    columns = random.permuted(np.tile(np.arange(seats), (episodes, 1)), axis=1)
    drawn = type(subject.played)(*(values[rows, columns] for values in vars(subject.played).values()))
    factor = np.ones(seats)
    factor[0] += share * seats / (seats - 1)
    return replace(drawn, returns=drawn.returns * factor)


def power(subject: Subject, repeats: int) -> dict[str, dict[str, Any]]:
    """By budget: how often each planted share is found."""
    random = np.random.default_rng(0)
    by_budget = {}
    for budget, episodes in subject.episodes.items():
        found = {}
        for share in SHARES:
            drawn = (planted(subject, episodes, share, random) for _ in range(repeats))
            verdicts = [settled([Answer("", "", tuple(subject.findings(one)))])[0].verdict for one in drawn]
            found[str(share)] = float(np.mean([verdict in ("suspicious", "broken") for verdict in verdicts]))
        detectable = [share for share in SHARES if found[str(share)] >= FOUND]
        by_budget[str(budget)] = {"episodes": episodes, "found": found, "detectable": min(detectable, default=None)}
    return by_budget


def picture(games: dict[str, Any]) -> Figure:
    """A line for each game and budget; planted shares stand side by side, because they grow by factors."""
    sheet, axes = new_sheet(WIDE)
    axes.axhline(FOUND, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), label=f"{FOUND:.0%}")
    for index, (name, game) in enumerate(games.items()):
        for budget, marker, style in zip(BUDGETS, "o^", (":", "-"), strict=True):
            one = game["budgets"][str(budget)]
            label = f"{name}, {budget} s: {short(one['episodes'])} episodes"
            colour = draw.player_colour(index)
            axes.plot(list(one["found"].values()), color=colour, linestyle=style, marker=marker, label=label)
    axes.set_xticks(range(len(SHARES)), [f"{share:.1%}".replace(".0%", "%") for share in SHARES])
    axes.set_xlabel("planted advantage of a seat, of the mean return")
    axes.set_ylabel("share of repeats that find it")
    add_legend(sheet, axes)
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 repeats, and ten seconds of the environment")
    parser.add_argument("--picture", type=Path, help="draw it into this file")
    arguments = parser.parse_args()
    repeats, seconds = (20, 10.0) if arguments.quick else (100, 60.0)
    games, rows = {}, []
    for subject in (play_ours(), play_theirs(seconds)):
        returns = subject.played.returns
        games[subject.name] = {
            "episodes_per_second": subject.episodes_per_second,
            "mean_return": float(returns.mean()),
            "standard_deviation": float(returns.std()),
            "budgets": power(subject, repeats),
        }
        for budget, one in games[subject.name]["budgets"].items():
            cells = (f"{found:.2f}" for found in one["found"].values())
            rows.append((f"{subject.name}, {budget} s", f"{one['episodes']:,}", *cells))
    print_table(
        f"called suspicious or broken, {repeats} repeats", ("", "episodes", *(f"{s:.1%}" for s in SHARES)), rows
    )
    if arguments.picture:
        save_figure(picture(games), arguments.picture)
    print_json({"repeats": repeats, "games": games}, ["pettingzoo"])


if __name__ == "__main__":
    main()
