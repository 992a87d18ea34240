"""How well is the world learned? Held-out episodes of random play, mixed scripts and self-play.

python benchmarks/world.py            4x4 (50,000 transitions), 8x8 with obstacles and arenas, and snowdrift (500,000)
python benchmarks/world.py --quick    4x4, 20,000 transitions without self-play, under a minute
"""

import argparse
import math
import tempfile
import time
from functools import partial
from typing import Any

import jax
import numpy as np

from hopplus.core.devices import use_cores
from hopplus.core.mesh import MeshConfig, num_cores
from hopplus.evaluation.world import (
    by_world,
    count_impossible,
    joined,
    judge_line_ups,
    line_ups,
    record_episodes,
    recorder,
    sums_of,
    transitions_of,
)
from hopplus.games.game import Game
from hopplus.learning.config import LearnerConfig
from hopplus.learning.worlds import fit
from hopplus.models import regression_world, world
from hopplus.models.config import WorldConfig
from hopplus.models.world import Transition
from hopplus.runs.config import RunConfig
from hopplus.runs.training import train
from measure import PROGRESS, print_json, print_table

GAMES = {
    "stag-hunt-4x4": {"transitions": 50_000, "epochs": 12},
    "stag-hunt-8x8-obstacles": {"transitions": 500_000, "epochs": 3},
    "snowdrift-8x8": {"transitions": 500_000, "epochs": 3},
}
SELF_PLAY_STEPS = 400_000
EPISODES, HELD_OUT = 512, 400
SAMPLED = 1_000_000


def self_play(name: str) -> Any:
    """Players that ppo trained for some minutes."""
    with tempfile.TemporaryDirectory() as folder:
        learner = LearnerConfig(mesh=MeshConfig(envs=num_cores()))
        run = train(RunConfig(game=name, seeds=1, steps=SELF_PLAY_STEPS, learner=learner), folder)
        return jax.tree.map(lambda leaf: leaf[0], run.lineup())


def collect(game: Game, players: Any, wanted: int, seed: int) -> Transition:
    """So many transitions of one line-up."""
    parts, count, play = [], 0, recorder(game, players, EPISODES)
    while count < wanted:
        parts.append(transitions_of(play(jax.random.fold_in(jax.random.key(seed), len(parts)))))
        count += len(parts[-1].now.time)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:wanted], *parts)


def one_game(name: str, transitions: int, epochs: int, with_self_play: bool, sampled: int) -> dict[str, Any]:
    game = RunConfig(game=name).task.game
    spec = game.spec
    groups = line_ups(game, self_play(name) if with_self_play else None)
    PROGRESS.print(f"{name}: {transitions:,} transitions of {', '.join(groups)}")
    parts = [collect(game, players, transitions // len(groups), 1) for players in groups.values()]
    data = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    held_out = {
        group: record_episodes(game, players, HELD_OUT, key=jax.random.key(2)) for group, players in groups.items()
    }
    started = time.perf_counter()
    say = lambda what: lambda epoch, _: PROGRESS.print(f"{what}: epoch {epoch + 1} of {epochs}")  # noqa: E731
    key = jax.random.key(3)
    planes = world.init(WorldConfig(members=1), spec, key=key)
    loss = lambda params, transition: world.loss(params, spec, transition)  # noqa: E731
    planes = fit(loss, planes, data, epochs=epochs, key=key, on_epoch=say("world"))
    seconds = time.perf_counter() - started
    baseline = regression_world.init(WorldConfig(kind="regression", hidden=256), spec, key=key)
    baseline = fit(loss, baseline, data, epochs=epochs, learning_rate=1e-3, key=key, on_epoch=say("regression"))
    models = {"world": by_world(spec, planes), "regression": by_world(spec, baseline)}
    scores = {
        model: judge_line_ups(spec, partial(sums_of, spec, predict), held_out) for model, predict in models.items()
    }
    rows = transitions_of(joined(held_out.values()))
    draws = math.ceil(sampled / len(rows.now.time))
    found = count_impossible(spec, planes, rows, draws, key=key)
    return {
        "scores": scores,
        "transitions": transitions,
        "seconds": seconds,
        "epochs": epochs,
        "sampled": draws * len(rows.now.time),
        "impossible_sampled": found,
    }


def show(name: str, found: dict[str, Any]) -> None:
    columns = ("model", "line-up", "exact", "obs. MSE", "PSNR", "reward MSE", "ends", "recall", "5 steps", "impossible")
    rows = []
    for model, by_group in found["scores"].items():
        for group, one in by_group.items():
            rows.append(
                (
                    model,
                    group,
                    f"{one['exact_next_state']:.4%}",
                    f"{one['observation_mse']:.1e}",
                    f"{one['psnr']:.1f}",
                    f"{one['reward_mse']:.1e}",
                    f"{one['end_error']:.1e}",
                    f"{one['paid_recall']:.4f}",
                    f"{one['open_loop_exact']:.4f}",
                    str(sum(one["impossible"].values())),
                )
            )
    print_table(f"{name}, held-out episodes", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4x4 only, less data, under a minute")
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), help="which games")
    given = parser.parse_args()
    use_cores(num_cores())
    if given.quick:
        games = {"stag-hunt-4x4": one_game("stag-hunt-4x4", 20_000, 8, with_self_play=False, sampled=SAMPLED // 10)}
    else:
        games = {name: one_game(name, **GAMES[name], with_self_play=True, sampled=SAMPLED) for name in given.games}
    for name, found in games.items():
        show(name, found)
        total = sum(found["impossible_sampled"].values())
        print(
            f"{name}: {total} impossible outcomes among {found['sampled']:,} that were drawn; {found['seconds']:.0f} s"
        )
    first = next(iter(games.values()))
    best = first["scores"]["world"]["all"]
    print_json(
        {
            "exact_next_state": best["exact_next_state"],
            "observation_mse": best["observation_mse"],
            "reward_mse": best["reward_mse"],
            "impossible": sum(first["impossible_sampled"].values()),
            "games": games,
        },
        ["jax"],
    )


if __name__ == "__main__":
    main()
