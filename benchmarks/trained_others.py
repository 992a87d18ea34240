"""How well does the default hop_plus play with agents that were trained without it?

Co-players on 4x4: ppo, omg and hop_plus, each trained by its own default command with other seeds, two agents of each.
The agent takes one seat, the others play in all 10 line-ups of three kinds, once with the first and once with the
second agent of each kind, in series of ten episodes. Episodes 5 to 10 count. 0 is uniform play; 1 is a best response:
the best of four ppo agents that were trained against exactly this line-up, and of two scripts. The figure of a kind is
the mean over the line-ups in which it plays.

    python benchmarks/trained_others.py            5 seeds of hop_plus, 1,000 episodes for each seed and line-up
    python benchmarks/trained_others.py --quick    one agent of each kind, little training, few episodes: does it run?
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.agents.config import NO_PLANNING
from hopplus.cli.adaptation import judge_adaptation
from hopplus.cli.verbs.evaluate import AdaptationSettings
from hopplus.core.devices import use_cores
from hopplus.core.extensions import Named
from hopplus.core.mesh import num_cores
from hopplus.runs.run import load
from measure import print_json, print_table, timed_training

GAME, KINDS = "stag-hunt-4x4", ("ppo", "omg", "hop_plus")
OTHER_SEED, EACH = 1000, 2
EPISODES, RESPONDER_STEPS = 1_000, 400_000
QUICK_EPISODES, QUICK_STEPS = 40, 20_000


def judge(run: Path, others: dict[str, Path], number: int, responders: Path, steps: int, episodes: int) -> Any:
    """Adaptation to the line-ups of one agent of each kind."""
    kinds = tuple(Named(f"{kind}-{number + 1}", load(path).policy(seed=number)) for kind, path in others.items())
    asked = AdaptationSettings(kinds=kinds, series=10, oracles=responders, oracle_steps=steps)
    return judge_adaptation(run, episodes, 0, asked, NO_PLANNING)


def by_kind(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The mean over the line-ups in which a kind plays."""
    late = lambda row: row["late"]["sampled"]["estimate"]  # noqa: E731
    plays = lambda kind, row: any(name.rpartition("-")[0] == kind for name in row["co_players"])  # noqa: E731
    return {kind: float(np.nanmean([late(row) for row in rows if plays(kind, row)])) for kind in KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one agent of each kind, little training, few episodes")
    parser.add_argument("--runs", type=Path, default=Path("runs/trained-others"), help="where the runs are kept")
    given = parser.parse_args()
    use_cores(num_cores())
    folder = given.runs / "quick" if given.quick else given.runs
    each, episodes, steps = (1, QUICK_EPISODES, QUICK_STEPS) if given.quick else (EACH, EPISODES, RESPONDER_STEPS)
    short = f" --steps {QUICK_STEPS}" if given.quick else ""
    agent, others = folder / "agent", {kind: folder / kind for kind in KINDS}
    timed_training(f"hop_plus --game {GAME}{' --seeds 2' if given.quick else ''}{short}", agent)
    for kind, path in others.items():
        timed_training(f"{kind} --game {GAME} --seeds {each} --seed {OTHER_SEED}{short}", path)
    found = [judge(agent, others, number, folder / "responders", steps, episodes) for number in range(each)]
    rows = [row for one in found for row in one["lineups"]]
    kinds = by_kind(rows)
    cells = [
        (
            ", ".join(row["co_players"]),
            f"{row['oracle']:.2f} ({row['oracle_player']})",
            f"{row['random']:.2f}",
            f"{row['late']['sampled']['estimate']:.2f}",
        )
        for row in rows
    ]
    heads = ("co-players", "best response", "uniform play", "hop_plus, normalised")
    print_table(f"hop_plus with trained co-players on {GAME}, episodes 5 to 10", heads, cells)
    print_table("by kind of co-player", ("kind", "hop_plus"), [(kind, f"{value:.3f}") for kind, value in kinds.items()])
    figures = {
        "trained_others_lowest": min(kinds.values()),
        "kinds": kinds,
        "lowest_lineup": min(row["late"]["sampled"]["estimate"] for row in rows),
        "responder_steps": steps,
        "lineups": rows,
        "seeds": found[0]["seeds"],
        "episodes": episodes,
    }
    print_json(figures, ["jax"])


if __name__ == "__main__":
    main()
