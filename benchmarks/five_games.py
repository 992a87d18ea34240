"""hop_plus with its defaults against ppo on five games: real steps to .95 of ppo's final return, and the final return.

On each game ppo trains with three settings; the best is the one with the highest final return. The goal is .95 of it.
Where selfish players end below random play there is no goal: every agent is there at once. Final returns are means over
the last tenth of training. Every run is an ordinary run folder in --runs; a run that is there already is read, and one
that was stopped is resumed.

    python benchmarks/five_games.py                     all games, 5 seeds; some hours on two cores
    python benchmarks/five_games.py --games coins-5x5   one game; its rows are merged into results/five_games.json
    python benchmarks/five_games.py --jaxmarl           two games of JaxMARL, 3 seeds; results/five_games_jaxmarl.json
    python benchmarks/five_games.py --fields            4x4, also with a world of fields; results/five_games_fields.json
    python benchmarks/five_games.py --quick             a tenth of the steps, 2 seeds, one game; writes nothing
"""

import argparse
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.cli.main import main as hopplus
from hopplus.evaluation.fairness import random_returns
from hopplus.games.presets import make
from hopplus.runs.records import Recorded, read_run
from measure import PROGRESS, interval_words, print_json, print_table, write_result
from sample_efficiency import by_seed, final_return, reached, steps_to_goal, times_fewer

RESULTS = Path(__file__).resolve().parent.parent / "results"
SHARE = 0.95
SEEDS, JAXMARL_SEEDS, QUICK_SEEDS, QUICK_PART, QUICK_STEPS = 5, 3, 2, 10, 20_000
"""QUICK_PART: the steps of ppo are divided by it; QUICK_STEPS: of hop_plus."""
GAMES = {
    "foraging-8x8": 1_000_000,
    "coins-5x5": 1_000_000,
    "harvest-8x8": 1_000_000,
    "snowdrift-8x8": 1_000_000,
    "stag-hunt-8x8-obstacles": 1_500_000,
}
"""The steps of ppo with many environments, for each seed."""
OF_JAXMARL = {
    "jaxmarl:coin_game?shared_rewards=True": 400_000,
    "jaxmarl:overcooked?layout=cramped_room&shaped_reward=1.0": 500_000,
}
WITH_FIELDS = {"stag-hunt-4x4": 400_000}
EPISODES = 500
"""Of random play."""
TRUST = ("trust/board", "trust/reward", "trust/end", "trust/others")
PPO = {
    "ppo, defaults": ("", 1.0),
    "ppo, 64 envs": ("--sharing shared --envs 64", 0.5),
    "ppo, 16 envs": ("--sharing shared --envs 16", 0.25),
}
"""The settings of ppo, and their share of these steps: fewer environments give more updates for as many steps."""
OWN = {"hop_plus": ""}
OWN_WITH_FIELDS = {**OWN, "hop_plus, fields": "--world.kind fields --world.hidden 512"}


def trained(typed: str, folder: Path) -> Recorded:
    """The run of a command; trained, resumed or read."""
    PROGRESS.print(f"hopplus train {typed} --out {folder}", soft_wrap=True)
    if hopplus(["train", *typed.split(), "--out", str(folder)]):
        raise SystemExit(f"hopplus train {typed} failed")
    return read_run(folder)


def runs_of(game: str, folder: Path, seeds: int, part: int) -> tuple[dict[str, Recorded], dict[str, str]]:
    """The runs of ppo and hop_plus, and what was typed."""
    steps = (GAMES | OF_JAXMARL | WITH_FIELDS)[game]
    typed = {
        name: f"ppo --game {game} --seeds {seeds} --steps {int(steps * share) // part} {flags}"
        for name, (flags, share) in PPO.items()
    }
    few = f" --steps {QUICK_STEPS}" if part > 1 else ""
    for name, flags in (OWN_WITH_FIELDS if game in WITH_FIELDS else OWN).items():
        typed[name] = f"hop_plus --game {game} --seeds {seeds}{few} {flags}"
    typed = {name: line.rstrip() for name, line in typed.items()}
    places = {name: folder / f"{plain(game)}-{plain(name)}-{seeds}" for name in typed}
    return {name: trained(typed[name], places[name]) for name in typed}, typed


def plain(name: str) -> str:
    """As a part of the name of a folder."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower())


def trust_of(run: Recorded) -> float | None:
    """The product of the trust in all models, in the last tenth of the updates; None without models."""
    if TRUST[0] not in run.metrics:
        return None
    last = slice(-max(len(run.env_steps) // 10, 1), None)
    return float(np.nanmean(np.prod([run.metrics[tag][last] for tag in TRUST], axis=0)))


def compared(game: str, runs: dict[str, Recorded]) -> dict[str, Any]:
    """hop_plus beside the best ppo."""
    random = float(random_returns(make(game), EPISODES).mean())
    final = {name: final_return(run) for name, run in runs.items()}
    best = max(PPO, key=lambda name: final[name].estimate)
    goal = SHARE * final[best].estimate if final[best].estimate > random else None
    steps = {name: steps_to_goal(run, np.inf if goal is None else goal) for name, run in runs.items()}
    own = [name for name in runs if name not in PPO]
    width = {name: (one.high - one.low) / 2 / abs(one.estimate) for name, one in final.items()}
    return {
        "random": random,
        "best_ppo": best,
        "goal": goal,
        "final_return": {name: asdict(one) for name, one in final.items()},
        "interval_over_mean": width,
        "return_ratio": {name: final[name].estimate / final[best].estimate for name in own},
        "steps": {name: by_seed(of) for name, of in steps.items()},
        "reached": {name: reached(of) for name, of in steps.items()},
        "steps_ratio": {name: times_fewer(steps[best], steps[name]) for name in own},
        "trust": {name: trust_of(run) for name, run in runs.items()},
        "minutes": {name: float(run.timing["seconds"].sum() / 60) for name, run in runs.items()},
        "seeds": {name: run.num_seeds for name, run in runs.items()},
        "env_steps": {name: int(run.env_steps[-1]) for name, run in runs.items()},
    }


def print_game(game: str, found: dict[str, Any]) -> None:
    rows = [
        (
            name,
            f"{found['env_steps'][name]:,}",
            interval_words(final, 2),
            f"{steps['median']:,.0f}" if steps["median"] else "-",
            f"{steps['never']}",
            f"{found['minutes'][name]:.0f}",
        )
        for (name, final), steps in zip(found["final_return"].items(), found["reached"].values(), strict=True)
    ]
    heads = ("agent", "steps", "final return", "steps to the goal", "seeds that never did", "minutes")
    goal = f"{found['goal']:.2f}, .95 of {found['best_ppo']}" if found["goal"] else "none"
    print_table(f"{game}: random play {found['random']:.2f}, the goal {goal}", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="*", choices=tuple(GAMES), help="some of the games; all if none is named")
    parser.add_argument("--jaxmarl", action="store_true", help="two games of JaxMARL instead")
    parser.add_argument("--fields", action="store_true", help="4x4 instead, also with the world of fields")
    parser.add_argument("--seeds", type=int, help=f"seeds of every run; {SEEDS}, of JaxMARL's games {JAXMARL_SEEDS}")
    parser.add_argument("--runs", type=Path, default=Path("runs/five-games"), help="where the runs are kept")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, 2 seeds, one game; writes nothing")
    given = parser.parse_args()
    kind, games = "", GAMES
    if given.jaxmarl:
        kind, games = "_jaxmarl", OF_JAXMARL
    elif given.fields:
        kind, games = "_fields", WITH_FIELDS
    path = RESULTS / f"five_games{kind}.json"
    names = list(games) if kind else given.games or (["coins-5x5"] if given.quick else list(GAMES))
    stored = json.loads(path.read_text()) if path.exists() else {"commands": [], "games": {}}
    found = {}
    for game in names:
        seeds = QUICK_SEEDS if given.quick else given.seeds or (JAXMARL_SEEDS if given.jaxmarl else SEEDS)
        part = QUICK_PART if given.quick else 1
        folder = given.runs / "quick" if given.quick else given.runs
        runs, typed = runs_of(game, folder, seeds, part)
        found[game] = compared(game, runs)
        print_game(game, found[game])
        if not given.quick:
            trained_by = {name: f"hopplus train {of}" for name, of in typed.items()}
            stored["games"][game] = {**found[game], "typed": trained_by}
            flags = f"--{kind[1:]}" if kind else f"--games {' '.join(stored['games'])}"
            commands = [f"python benchmarks/five_games.py {flags}"]
            write_result(path, {"commands": commands, "games": stored["games"]})
    figures = ("return_ratio", "steps_ratio", "best_ppo")
    print_json({game: {name: one[name] for name in figures} for game, one in found.items()}, ["jax"])


if __name__ == "__main__":
    main()
