"""What is a larger search worth? Frozen agents among every line-up of scripts, by the budget of their planning.

    python benchmarks/simulations.py runs/hop-4x4                       in the true game
    python benchmarks/simulations.py runs/hop_plus-4x4 --model world    in the world that it learned
    python benchmarks/simulations.py runs/hop-4x4 --quick               few episodes, small budgets

The first run trains the oracles that returns are held against, unless --oracles has them.
`python scripts/pictures.py simulations` draws what is kept in results/.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopplus.agents.config import PlanningConfig
from hopplus.cli.adaptation import judge_adaptation
from hopplus.cli.verbs.evaluate import AdaptationSettings
from hopplus.planning.config import SearchConfig
from measure import print_json, print_table

TREES, DEPTH = 4, 8
BUDGETS = ("policy", "one_step", "8", "32", "64", "200")
QUICK = ("policy", "one_step", "8")


def planning_of(budget: str, model: Any) -> PlanningConfig:
    """No planning, one step with as many draws as a small search has nodes, or trees of so many nodes."""
    planning = PlanningConfig(model=model)
    if budget == "policy":
        return planning
    if budget == "one_step":
        return replace(planning, kind="one_step", policy_weight=0.5, search=SearchConfig(trees=16))
    return replace(planning, kind="search", search=SearchConfig(TREES, int(budget), DEPTH))


def judge(run: Path, budget: str, episodes: int, model: str, oracles: Path) -> dict[str, Any]:
    found = judge_adaptation(run, episodes, 0, AdaptationSettings(oracles=oracles), planning_of(budget, model))
    return {
        "budget": budget,
        "normalised": found["normalised"]["greedy"],
        "lowest": min(row["normalised"]["greedy"]["estimate"] for row in found["lineups"]),
        "seconds": found["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run of hop or hop_plus")
    parser.add_argument("--model", choices=("game", "world"), default="game", help="what is planned in")
    parser.add_argument("--episodes", type=int, default=40, help="for each seed and line-up")
    parser.add_argument("--oracles", type=Path, default=Path("runs/oracles"), help="where the oracles are kept")
    parser.add_argument("--quick", action="store_true", help="4 episodes, small budgets")
    given = parser.parse_args()
    episodes = 4 if given.quick else given.episodes
    started = time.perf_counter()
    rows = [
        judge(given.run, budget, episodes, given.model, given.oracles) for budget in (QUICK if given.quick else BUDGETS)
    ]
    cells = [
        (row["budget"], f"{row['normalised']['estimate']:.3f}", f"{row['lowest']:.2f}", f"{row['seconds']:.0f}")
        for row in rows
    ]
    heads = (f"simulations, in {TREES} trees", "normalised return", "lowest line-up", "seconds")
    print_table(f"{given.run}, planning in the {given.model}, {episodes} episodes a line-up", heads, cells)
    seconds = time.perf_counter() - started
    about = {"run": str(given.run), "model": given.model, "trees": TREES, "episodes": episodes, "seconds": seconds}
    print_json({**about, "budgets": rows}, ["jax", "mctx"])


if __name__ == "__main__":
    main()
