"""Agents of the notes' studies among scripts that they never met: results/notes_adaptation.json.

    hopplus study run examples/notes/goals.toml --out studies/notes/goals
    hopplus study run examples/notes/planning.toml --out studies/notes/planning
    python benchmarks/notes_studies.py goals planning         first: their returns in self-play
    python benchmarks/notes_adaptation.py                     all variants of both studies
    python benchmarks/notes_adaptation.py goals --quick       few episodes; print it, write nothing

One frozen agent sits with every line-up of four kinds of scripts, for series of ten episodes in which it keeps its
beliefs. Normalised: 0 is uniform legal play, 1 the oracle of the line-up. Both were measured by
`python benchmarks/defaults.py adaptation-4x4` and are read from its file, so no oracle is trained here. Agents that
search in training also search here, in the model that they trained with. Each figure is also given over that of the
base of its study: hindsight goals, and search in the true game.
"""

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hopplus.agents.config import NO_PLANNING, PlanningConfig
from hopplus.cli.adaptation import FROM, figures, lowest_late
from hopplus.core.devices import use_cores
from hopplus.evaluation.adaptation import agent_returns, normalised
from hopplus.planning.config import SearchConfig
from hopplus.runs.oracles import Yardsticks
from hopplus.runs.run import Run, load
from hopplus.runs.studies.study import open_study
from hopplus_doctor.statistics import mean_of_known, seed_interval
from measure import PROGRESS, interval_words, print_json, print_table, write_result

RESULTS = Path(__file__).resolve().parent.parent / "results"
ORACLES = "defaults_4x4_hop_plus"
BASES = {"goals": "hindsight", "planning": "search, in the game"}
"""The variant of each study that the others are compared with."""
SERIES, EPISODES, PLANNED_EPISODES, QUICK_EPISODES = 10, 200, 60, 40
SEARCH = SearchConfig(trees=4, simulations=16, depth=8)


def yardsticks() -> tuple[list[Yardsticks], list[str]]:
    """The yardsticks of every line-up, and the commands that measured them."""
    stored = json.loads((RESULTS / f"{ORACLES}.json").read_text())
    rows = [
        Yardsticks(tuple(row["co_players"]), row["oracle"], row["oracle_player"], {"random": row["random"]}, {})
        for row in stored["adaptation"]["lineups"]
    ]
    return rows, stored["commands"]


def planning_of(run: Run) -> PlanningConfig:
    """How this agent plans at the table: as in training, with more simulations if it searches."""
    trained = run.config.learner.planning
    if not trained.is_used:
        return NO_PLANNING
    return replace(trained, search=SEARCH) if trained.kind == "search" else trained


def measured(folder: Path, known: list[Yardsticks], *, quick: bool) -> dict[str, Any]:
    """What the agents of one trial get in the first seat with every line-up."""
    run = load(folder)
    planning = planning_of(run)
    episodes = QUICK_EPISODES if quick else PLANNED_EPISODES if planning.is_used else EPISODES
    started = time.perf_counter()
    returns = agent_returns(
        run.game,
        [run.players(greedy=planning.is_used, planning=planning)],
        [one.lineup for one in known],
        episodes,
        SERIES,
        num_seeds=run.config.seeds,
        key=jax.random.key(0),
    )
    found = figures(np.broadcast_to(returns, (2, *returns.shape[1:])), known)
    lowest = lowest_late(found)
    return {
        "episodes": episodes,
        "seconds": time.perf_counter() - started,
        "normalised": found["normalised"]["sampled"],
        "late": found["late"]["sampled"],
        "late_by_seed": late_by_seed(returns, known),
        "lowest": lowest["late"]["sampled"],
        "lowest_lineup": lowest["lineup"],
        "lineups": {row["lineup"]: row["late"]["sampled"] for row in found["lineups"]},
    }


def late_by_seed(returns: np.ndarray, known: list[Yardsticks]) -> list[float]:
    """The normalised return of each seed over all line-ups, from the fifth episode of a series on."""
    uniform, oracle = (np.array([getattr(one, name) for one in known]) for name in ("random", "oracle"))
    late = returns[0, ..., FROM - 1 :].mean(axis=-1)
    return mean_of_known(normalised(late, uniform, oracle)).tolist()


def over_base(
    found: dict[str, Any], base: dict[str, Any], self_play: dict[str, Any], base_play: dict[str, Any]
) -> dict[str, Any]:
    """Both figures over those of the base of the study; intervals over the seeds of the variant."""
    late = np.array(found["late_by_seed"]) / np.mean(base["late_by_seed"])
    own = np.array(self_play["by_seed"]) / np.mean(base_play["by_seed"])
    return {"late_over_base": asdict(seed_interval(late)), "self_play_over_base": asdict(seed_interval(own))}


def of_study(name: str, folder: Path, *, quick: bool) -> dict[str, Any]:
    """All variants of a study."""
    known, _ = yardsticks()
    played = json.loads((RESULTS / f"notes_{name}.json").read_text())["variants"]
    study, found = open_study(folder), {}
    for trial in study.all_trials():
        if not trial.is_done(folder):
            raise SystemExit(f"{folder / trial.place} is not done; hopplus study run ends it")
        PROGRESS.print(f"{name}: {trial.variant}", soft_wrap=True)
        found[trial.variant] = measured(folder / trial.place, known, quick=quick)
        if not quick:
            found[trial.variant]["self_play"] = played[trial.variant]["return"]
            found[trial.variant]["minutes"] = played[trial.variant]["minutes"]
    if not quick:
        base = BASES[name]
        for variant, one in found.items():
            one |= over_base(one, found[base], played[variant], played[base])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(BASES), help="studies; goals and planning if none is named")
    parser.add_argument("--studies", type=Path, default=Path("studies/notes"), help="the folder of the studies")
    parser.add_argument("--quick", action="store_true", help="few episodes; print it, write nothing")
    given = parser.parse_args()
    use_cores(1)
    path = RESULTS / "notes_adaptation.json"
    stored = json.loads(path.read_text()) if path.exists() else {"commands": [], "studies": {}}
    studies = {name: of_study(name, given.studies / name, quick=given.quick) for name in given.names}
    for name, variants in studies.items():
        rows = [
            (variant, interval_words(one["late"], 3), f"{interval_words(one['lowest'], 2)} {one['lowest_lineup']}")
            for variant, one in variants.items()
        ]
        heads = ("variant", "normalised, episodes 5 to 10", "lowest line-up")
        print_table(f"{name}: agents among scripts that they never met, 4x4", heads, rows)
    if not given.quick:
        commands = yardsticks()[1]
        for name in {**stored["studies"], **studies}:
            commands += [
                f"hopplus study run examples/notes/{name}.toml --out studies/notes/{name}",
                f"python benchmarks/notes_studies.py {name}",
                f"python benchmarks/notes_adaptation.py {name}",
            ]
        kept = {"studies": {**stored["studies"], **studies}, "series": SERIES}
        write_result(path, {"commands": commands, **kept})
    late = {name: {key: one["late"]["estimate"] for key, one in variants.items()} for name, variants in studies.items()}
    print_json({"late": late}, ["jax"])


if __name__ == "__main__":
    main()
