"""What does a bad model do to an agent that imagines? Four poisons, with trust and without.

The poisons are put on from outside, for one run: nothing in the product knows them.

    python benchmarks/poisons.py            3 seeds each
    python benchmarks/poisons.py --quick    one seed, two poisons, short
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.agents import goals, opponents
from hopplus.learning import replay
from hopplus.learning.config import LearnerConfig
from hopplus.models import world
from hopplus.runs.agents import learner_of
from hopplus.runs.config import RunConfig
from hopplus.runs.progress import ProgressDisplay
from hopplus.runs.records import Recorded, read_run
from hopplus.runs.training import train
from hopplus_doctor.statistics import seed_interval
from measure import print_json, print_table
from sample_efficiency import steps_to_goal

GAME, ENVS, REAL_RATIO = "stag-hunt-4x4", 16, 0.5
"""As much imagined as real play: enough for a poison to show, and quick; so are parameters that all seats share."""
LAST = 10
"""Updates at the end of a run whose returns are averaged."""


@contextmanager
def reward_times_five() -> Iterator[None]:
    """The world pays five times what it should."""
    draw = world.draw

    def generous(spec: Any, now: Any, predicted: Any, *, key: Any) -> Any:
        found = draw(spec, now, predicted, key=key)
        return replace(found, rewards=5 * found.rewards)

    with patch.object(world, "draw", generous):
        yield


@contextmanager
def no_end() -> Iterator[None]:
    """In the world nobody ever leaves the game, though the board says so."""
    draw = world.draw

    def endless(spec: Any, now: Any, predicted: Any, *, key: Any) -> Any:
        return replace(draw(spec, now, predicted, key=key), ended=now.ended)

    with patch.object(world, "draw", endless):
        yield


@contextmanager
def random_co_players() -> Iterator[None]:
    """The predicted actions do not depend on what the co-player sees or wants."""
    predict = opponents.predict

    def anything(models: Any, seen: Any, goal: Any) -> Any:
        honest = predict(models, seen, goal)
        noise = jnp.sin(1e3 * jnp.arange(1, honest.shape[-1] + 1) * (1 + seen.observation["time"][:, None]))
        return jax.nn.softmax(jnp.where(seen.legal, 4.0 * noise, -1e9))

    with patch.object(opponents, "predict", anything), patch.object(goals, "predict", anything):
        yield


@contextmanager
def a_hundred_transitions() -> Iterator[None]:
    """The world learns from the first hundred transitions and from nothing else."""
    add_steps, empty = replay.add_steps, replay.empty
    few = replay.ReplayConfig(size=100)

    def forgetful(config: Any, kept: Any, steps: Any) -> Any:
        if kept is None:
            return None, None
        after, _ = add_steps(few, kept, steps)
        _, transition = add_steps(config, empty(config, SPEC), steps)
        return jax.tree.map(lambda old, new: jnp.where(kept.is_full, old, new), kept, after), transition

    with (
        patch.object(replay, "add_steps", forgetful),
        patch.object(replay, "empty", lambda _, *like: empty(few, *like)),
    ):
        yield


SPEC = RunConfig(game=GAME).task.game.spec
POISONS: dict[str, Callable[[], Any]] = {
    "rewards times 5": reward_times_five,
    "no end": no_end,
    "random co-players": random_co_players,
    "a world of 100 transitions": a_hundred_transitions,
}


def final_returns(found: Recorded) -> np.ndarray:
    """Of each seed, at the end of training."""
    return found.metrics["charts/episodic_return/mean"][-LAST:].mean(axis=0)


def unexplained(found: Recorded) -> float:
    """1 - explained variance of the critics on real play, over the second half of the run."""
    explained = found.metrics["policy/explained_variance"]
    return float(1 - explained[len(explained) // 2 :].mean())


def median_steps(found: Recorded) -> float | None:
    """Real steps to a return of 2.8; None where half of the seeds never got there."""
    steps = float(np.median(steps_to_goal(found)))
    return steps if np.isfinite(steps) else None


def distrusted(found: Recorded) -> str:
    """Which models were trusted less than SOUND, in the mean over the second half of the run."""
    metrics = found.metrics
    means = {
        name: float(np.nanmean(metrics[f"trust/{name}"][len(metrics[f"trust/{name}"]) // 2 :])) for name in TRUSTED
    }
    return ", ".join(f"{name} {mean:.2f}" for name, mean in means.items() if mean < SOUND) or "-"


TRUSTED = ("board", "reward", "end", "others")
SOUND = 0.9
"""Models of an agent that nobody poisoned are trusted more than this."""


def run(
    agent: Any, folder: Path, seeds: int, steps: int, trust: bool, poison: Callable[[], Any] | None
) -> dict[str, Any]:
    learner = learner_of(agent, LearnerConfig(sharing="shared"))
    if agent == "hop_plus":
        learner = replace(learner, imagination=replace(learner.imagination, real_ratio=REAL_RATIO, trust=trust))
    learner = replace(learner, envs=ENVS)
    config = RunConfig(agent=agent, game=GAME, seeds=seeds, steps=steps, learner=learner)
    with ProgressDisplay() as display:
        if poison is None:
            train(config, folder, watcher=display)
        else:
            with poison():
                train(config, folder, watcher=display)
    found = read_run(folder)
    returns = final_returns(found)
    return {
        "returns": returns.tolist(),
        "interval": asdict(seed_interval(returns)),
        "unexplained": unexplained(found),
        "steps_to_goal": median_steps(found),
        "distrusted": distrusted(found) if agent == "hop_plus" and trust else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, two poisons, short")
    parser.add_argument("--runs", type=Path, default=Path("runs/poisons"), help="where the runs are kept")
    given = parser.parse_args()
    seeds, steps = (1, 30_000) if given.quick else (3, 100_000)
    poisons: dict[str, Any] = {"none": None} | dict(list(POISONS.items())[: 2 if given.quick else None])
    base = run("ppo", given.runs / "ppo", seeds, steps, True, None)
    found: dict[str, Any] = {}
    for name, poison in poisons.items():
        for trust in (True, False):
            folder = given.runs / f"{name.replace(' ', '-')}-{'trust' if trust else 'no-trust'}"
            one = run("hop_plus", folder, seeds, steps, trust, poison)
            over = float(np.mean(one["returns"]) / np.mean(base["returns"]))
            found[f"{name}, {'trust' if trust else 'no trust'}"] = one | {"over_ppo": over}
    heads = ("poison, trust", "final return", "over ppo's", "steps to 2.8", "unexplained", "distrusted (mean trust)")
    rows = [("ppo", *_cells(base | {"over_ppo": 1.0})), *((name, *_cells(one)) for name, one in found.items())]
    print_table(f"{GAME}, {steps:,} steps, {seeds} seeds", heads, rows)
    print_json({"steps": steps, "seeds": seeds, "ppo": base, "poisons": found}, ["jax"])


def _cells(one: dict[str, Any]) -> tuple[str, ...]:
    steps = one["steps_to_goal"]
    return (
        f"{np.mean(one['returns']):.3f}",
        f"{one['over_ppo']:.3f}",
        "never" if steps is None else f"{steps:,.0f}",
        f"{one['unexplained']:.2f}",
        one["distrusted"] or "",
    )


if __name__ == "__main__":
    main()
