"""The agents that a reviewer asks for, beside hop_plus: self-play, and adaptation to scripts that none of them met.

Two tables for each game. Same steps: every agent trains for as many real steps, those of the population of fcp
included. Same time: every agent but hop_plus trains for as long as hop_plus did, at its own speed. Adaptation: one
frozen agent with every line-up of the game's scripts, series of ten episodes, from the fifth on; 0 is uniform legal
play, 1 the oracle of the line-up. Runs and oracles are ordinary folders in --runs; those that are there are read.

    python benchmarks/baselines.py stag-hunt-4x4                       all agents; an hour or more
    python benchmarks/baselines.py coins-5x5 --agents ppo hop_plus     some agents
    python benchmarks/baselines.py coins-3x3 --quick                   hardly trained; writes nothing

Each game has its part of results/baselines.json.
"""

import argparse
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hopplus.runs.folder import read_config
from hopplus.runs.records import read_run, training_seconds
from measure import PROGRAM, PROGRESS, evaluated, interval_words, print_json, print_table, write_result
from sample_efficiency import final_return

RESULT = Path(__file__).resolve().parent.parent / "results" / "baselines.json"
AGENTS = ("ppo", "mappo", "liam", "fcp", "omg", "hop_plus")
BASE, MEMBERS = "hop_plus", 8
"""MEMBERS: of the population of fcp. Half of its steps are theirs."""
SEEDS, EPISODES, ORACLE_STEPS = 3, 400, 1_000_000
QUICK = {"seeds": 2, "episodes": 40, "oracle_steps": 20_000}


@dataclass(frozen=True)
class Budget:
    """How long the agents train on a game."""

    steps: int
    """Real environment steps of each seed, in the table of the same steps."""
    envs: int = 16
    """Parallel environments of all agents but hop_plus, which has its default."""
    most: int = 3_000_000
    """The largest number of steps in the table of the same time: by then ppo no longer changes."""


GAMES = {
    "stag-hunt-4x4": Budget(120_000),
    "stag-hunt-8x8": Budget(400_000),
    "foraging-8x8": Budget(300_000),
    "coins-5x5": Budget(200_000),
    "coins-3x3": Budget(60_000),
}


def typed(agent: str, game: str, steps: int, seeds: int) -> str:
    """What is typed after `hopplus train`."""
    line = f"{agent} --game {game} --seeds {seeds} --steps {steps}"
    if agent == BASE:
        return f"{line} --early-stop 0"
    line += f" --sharing shared --envs {GAMES[game].envs}"
    return f"{line} --population.steps {steps // MEMBERS}" if agent == "fcp" else line


def trained(line: str, folder: Path) -> Path:
    PROGRESS.print(f"hopplus train {line} --out {folder}", soft_wrap=True)
    subprocess.run([*PROGRAM, "train", *line.split(), "--out", str(folder)], check=True)
    return folder


def microseconds(folder: Path) -> float:
    """Of a step of one seed, with those of a population, without compilation."""
    run = read_run(folder)
    return 1e6 * training_seconds(folder) / (int(run.env_steps[-1]) * run.num_seeds)


def adapted(folder: Path, oracles: Path, given: dict[str, int]) -> dict[str, Any]:
    """What `hopplus evaluate RUN --adaptation` found."""
    flags = ["--adaptation", "--series", "10", "--episodes", str(given["episodes"]), "--oracles", str(oracles)]
    return evaluated(folder, [*flags, "--oracle-steps", str(given["oracle_steps"])])


def row(line: str, folder: Path, oracles: Path, given: dict[str, int]) -> dict[str, Any]:
    """The figures of one agent."""
    found = adapted(trained(line, folder), oracles, given)
    late = {one["lineup"]: one["late"]["sampled"] for one in found["lineups"]}
    lowest = min(late, key=lambda name: late[name]["estimate"])
    config = read_config(folder)
    return {
        "command": f"hopplus train {line}",
        "env_steps": int(read_run(folder).env_steps[-1]),
        "population_env_steps": config.learner.population_steps,
        "minutes": training_seconds(folder) / 60,
        "self_play": asdict(final_return(read_run(folder))),
        "adaptation": found["late"]["sampled"],
        "lowest": late[lowest],
        "lowest_lineup": lowest,
        "lineups": late,
        "saw": found["saw"],
    }


def of_game(game: str, agents: list[str], folder: Path, given: dict[str, int]) -> dict[str, Any]:
    """Both tables of a game."""
    oracles, seeds = folder / f"oracles-{given['oracle_steps']}", given["seeds"]
    same_steps, same_time = {}, {}
    steps = GAMES[game].steps // (10 if given is QUICK else 1)
    order = [BASE, *(agent for agent in agents if agent != BASE)]
    for agent in order:
        own = steps // 2 if agent == "fcp" else steps
        place = folder / f"{game}-{agent}-{steps}-{seeds}"
        same_steps[agent] = row(typed(agent, game, own, seeds), place, oracles, given)
    base = folder / f"{game}-{BASE}-{steps}-{seeds}"
    for agent in order[1:]:
        ratio = microseconds(base) / microseconds(folder / f"{game}-{agent}-{steps}-{seeds}")
        longer = min(GAMES[game].most, int(steps * ratio))
        own = longer // 2 if agent == "fcp" else longer
        place = folder / f"{game}-{agent}-as-long-{seeds}"
        same_time[agent] = row(typed(agent, game, own, seeds), place, oracles, given)
    return {"seeds": seeds, **given, "same_steps": same_steps, "same_time": {BASE: same_steps[BASE], **same_time}}


def print_tables(game: str, found: dict[str, Any]) -> None:
    for name, title in (("same_steps", "as many real steps"), ("same_time", "as much time")):
        rows = [
            (
                agent,
                f"{one['env_steps'] + one['population_env_steps']:,}",
                f"{one['minutes']:.1f}",
                interval_words(one["self_play"], 2),
                interval_words(one["adaptation"], 2),
                f"{one['lowest']['estimate']:.2f} {one['lowest_lineup']}",
            )
            for agent, one in found[name].items()
        ]
        heads = ("agent", "steps", "minutes", "self-play", "adaptation", "lowest line-up")
        print_table(f"{game}, {title}", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=tuple(GAMES))
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS), help="hop_plus is always trained")
    parser.add_argument("--runs", type=Path, default=Path("runs/baselines"), help="where runs and oracles are kept")
    parser.add_argument("--quick", action="store_true", help="hardly trained; writes nothing")
    asked = parser.parse_args()
    full = {"seeds": SEEDS, "episodes": EPISODES, "oracle_steps": ORACLE_STEPS}
    given = QUICK if asked.quick else full
    folder = asked.runs / "quick" if asked.quick else asked.runs
    found = of_game(asked.game, asked.agents, folder, given)
    print_tables(asked.game, found)
    if not asked.quick:
        stored = json.loads(RESULT.read_text()) if RESULT.exists() else {"games": {}}
        games = {**stored["games"], asked.game: found}
        write_result(RESULT, {"commands": [f"python benchmarks/baselines.py {game}" for game in games], "games": games})
    late = {agent: one["adaptation"]["estimate"] for agent, one in found["same_steps"].items()}
    print_json({"game": asked.game, "adaptation": late}, ["jax"])


if __name__ == "__main__":
    main()
