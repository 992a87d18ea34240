"""The few-shot setting of HOP (Huang et al., ICML 2024): one agent meets three co-players that it never trained with.

The game has four hares and one stag. The co-players are three of a kind: players at random, cooperators (they hunt
stags) or defectors (they hunt hares). The agent plays series of ten episodes with the same co-players, without a
gradient step; beliefs carry over. Normalised: 0 is uniform legal play, 1 the best of a responder that was trained for
exactly these co-players, two scripts, and search in the true game with the true co-players.

    python benchmarks/few_shot.py                     train hop on 8x8 (60,000 steps, 3 seeds), then measure
    python benchmarks/few_shot.py --run runs/hop-8x8  measure a run that is there
    python benchmarks/few_shot.py --quick             4x4, little training, few episodes: does it run?

Without --quick it writes results/few_shot.json. What differs from the paper is in docs/notes.md.
"""

import argparse
from pathlib import Path
from typing import Any

from hopplus.agents.config import PlanningConfig
from hopplus.cli.adaptation import judge_adaptation
from hopplus.cli.verbs.evaluate import AdaptationSettings
from hopplus.core.devices import use_cores
from hopplus.core.mesh import num_cores
from hopplus.planning.config import SearchConfig
from hopplus.runs.folder import read_config
from measure import PROGRESS, interval_words, print_json, print_table, timed_training, write_result

RESULT = Path(__file__).resolve().parent.parent / "results" / "few_shot.json"
CO_PLAYERS = {"random": "random", "cooperators": "nearest_stag", "defectors": "nearest_hare"}
IN_THE_NOTES = {"random": 0.96, "cooperators": 0.74, "defectors": 0.51}
"""As a note quotes them; they were not checked against the paper."""
GAME, SMALL = "stag-hunt-8x8", "stag-hunt-4x4"
STEPS, SEEDS, SERIES, EPISODES, RESPONDER_STEPS = 60_000, 3, 10, 100, 400_000
QUICK_STEPS, QUICK_EPISODES, QUICK_RESPONDER_STEPS = 1_152, 4, 20_000
SEARCH = PlanningConfig(kind="search", search=SearchConfig(trees=4, simulations=16, depth=8, playout=12))


def measured(run: Path, kind: str, oracles: Path, *, episodes: int, steps: int) -> dict[str, Any]:
    """The agent's scores with three co-players of one kind."""
    PROGRESS.print(f"with three of {kind}")
    asked = AdaptationSettings(kinds=(kind,), series=SERIES, oracles=oracles, oracle_steps=steps)
    found = judge_adaptation(run, episodes, 0, asked, SEARCH)
    (row,) = found["lineups"]
    scores = [one["sampled"] for one in row["by_episode"]]
    return {
        "co_player": kind,
        "normalised": row["normalised"]["sampled"],
        "first_episode": scores[0],
        "late": row["late"]["sampled"],
        "return": row["sampled"],
        "oracle": row["oracle"],
        "oracle_player": row["oracle_player"],
        "uniform": row["random"],
        "saw": found["saw"],
        "commands": found["commands"],
        "seeds": found["seeds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a run folder of hop; it is trained if it is not there")
    parser.add_argument("--oracles", type=Path, default=Path("runs/few-shot-oracles"), help="folder of the responders")
    parser.add_argument("--episodes", type=int, default=EPISODES, help="episodes for each seed and kind of co-player")
    parser.add_argument("--steps", type=int, default=STEPS, help="environment steps of training, for each seed")
    parser.add_argument("--quick", action="store_true", help="4x4, little training, few episodes; writes nothing")
    given = parser.parse_args()
    use_cores(num_cores())
    game, steps, seeds = (SMALL, QUICK_STEPS, 2) if given.quick else (GAME, given.steps, SEEDS)
    run = given.run or Path("runs") / ("few-shot-quick" if given.quick else "few-shot")
    oracles = given.oracles / "quick" if given.quick else given.oracles
    if not run.exists():
        timed_training(f"hop --game {game} --sharing shared --seeds {seeds} --steps {steps}", run)
    sizes = {"episodes": given.episodes, "steps": RESPONDER_STEPS}
    sizes = {"episodes": QUICK_EPISODES, "steps": QUICK_RESPONDER_STEPS} if given.quick else sizes
    found = {
        name: {**measured(run, kind, oracles, **sizes), "in_the_notes": IN_THE_NOTES[name]}
        for name, kind in CO_PLAYERS.items()
    }
    rows = [
        (
            name,
            interval_words(one["normalised"], 2),
            interval_words(one["first_episode"], 2),
            interval_words(one["late"], 2),
            f"{one['oracle']:.2f} ({one['oracle_player']})",
            f"{one['in_the_notes']:.2f}",
        )
        for name, one in found.items()
    ]
    heads = ("co-players", "normalised", "first episode", "episodes 5 to 10", "oracle", "in the notes")
    print_table(f"hop among three co-players that it never met, {run}", heads, rows)
    command = "python benchmarks/few_shot.py" + (f" --run {given.run}" if given.run else "")
    before = next(iter(found.values()))["commands"][:1]
    config = read_config(run)
    about = {"game": config.game, "seeds": config.seeds, "env_steps": config.steps}
    figures = {**about, "episodes": sizes["episodes"], "series": SERIES, "co_players": found}
    if not given.quick:
        write_result(RESULT, {"commands": [*before, command], **figures})
    print_json(figures, ["jax"], before=before, command=command)


if __name__ == "__main__":
    main()
