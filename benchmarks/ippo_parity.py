"""`hopplus train ppo` against a bare JAX IPPO (bare_ippo.py) on games of JaxMARL: the same network, settings and steps.

return       the final return, the mean of the last tenth of training: (hopplus - random) / (bare - random)
wall-clock   seconds of hopplus over those of the bare program for all seeds, without compilation: the median of rounds
             in which both train for a few updates in turns

Returns are what the agents were paid, with the shaped reward of overcooked, whose weight is 1 in both.

    python benchmarks/ippo_parity.py            8 seeds of three games; about half an hour on two cores
    python benchmarks/ippo_parity.py --quick    2 seeds, a fiftieth of the steps
"""

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np

import bare_ippo
from bare_ippo import SETTINGS, Settings
from hopplus.learning.config import LearnerConfig, PPOConfig
from hopplus.models.config import ActorCriticConfig
from hopplus.runs import RunConfig, train
from hopplus.runs.records import RETURN_TAG, read_run
from hopplus.runs.training import MOST_UPDATES, compile_program, placed, seed_keys
from hopplus_doctor.statistics import seed_interval
from measure import PROGRESS, interval_words, print_json, print_table

SEEDS, ROUNDS, UPDATES_PER_ROUND = 8, 5, 4
RETURN_AT_LEAST, SECONDS_AT_MOST = 0.95, 1.1


def config_of(name: str, settings: Settings, seeds: int) -> RunConfig:
    """The same settings for hopplus."""
    options = dict(settings.options)
    if settings.shaping:
        options |= {"shaped_reward": settings.shaping}
    flags = "&".join(f"{option}={value}" for option, value in options.items())
    ppo = PPOConfig(
        discount=settings.discount,
        gae_lambda=settings.gae_lambda,
        clip=settings.clip,
        value_clip=settings.value_clip,
        value_coefficient=settings.value_coefficient,
        entropy_coefficient=settings.entropy_coefficient,
        final_entropy_coefficient=settings.final_entropy_coefficient,
        learning_rate=settings.learning_rate,
        max_gradient_norm=settings.max_gradient_norm,
        epochs=settings.epochs,
        minibatch_size=settings.minibatch_size,
    )
    learner = LearnerConfig(
        envs=settings.envs,
        rollout_steps=settings.rollout_steps,
        sharing="shared",
        network=ActorCriticConfig(hidden=settings.hidden),
        ppo=ppo,
    )
    return RunConfig(
        game=f"jaxmarl:{name}" + (f"?{flags}" if flags else ""),
        seeds=seeds,
        steps=settings.steps,
        checkpoint_every=MOST_UPDATES,
        learner=learner,
    )


def seconds_ratio(name: str, settings: Settings, config: RunConfig) -> tuple[float, list[float]]:
    """Seconds of hopplus over those of the bare program for the same updates of all seeds, in turns."""
    short = replace(settings, steps=UPDATES_PER_ROUND * settings.steps_per_update)
    keys = seed_keys(config)
    bare = jax.jit(bare_ippo.make_run(bare_ippo.Game(name, short.options), short)).lower(keys[0]).compile()
    program = compile_program(config.learner, config.task, keys)
    ratios = []
    for _ in range(ROUNDS):
        states = placed(jax.block_until_ready(program.init(keys)), program.places)
        started = time.perf_counter()
        jax.block_until_ready(program.block(states, np.array([UPDATES_PER_ROUND, config.num_updates], np.int32)))
        ours = time.perf_counter()
        for key in keys:
            jax.block_until_ready(bare(key))
        ratios.append((ours - started) / (time.perf_counter() - ours))
    return median(ratios), ratios


def compare(name: str, settings: Settings, seeds: int, folder: Path) -> dict[str, Any]:
    """The final returns of both, of random play, and the ratio of their seconds."""
    config = config_of(name, settings, seeds)
    ratio, ratios = seconds_ratio(name, settings, config)
    PROGRESS.print(f"{name}: {ratio:.2f} of the bare program's seconds")
    random = bare_ippo.random_return(name, settings)
    result = bare_ippo.train(name, settings, seeds)
    bare = bare_ippo.final_returns(result.paid_returns)
    train(config, folder)
    recorded = read_run(folder)
    ours = bare_ippo.final_returns(recorded.metrics[RETURN_TAG].T)
    PROGRESS.print(f"{name}: random {random:.2f}, bare {bare.mean():.2f}, hopplus {ours.mean():.2f}")
    return {
        "random": random,
        "bare": asdict(seed_interval(bare)),
        "hopplus": asdict(seed_interval(ours)),
        "return": float((ours.mean() - random) / (bare.mean() - random)),
        "seconds": ratio,
        "seconds_by_round": ratios,
        "whole_run_seconds": {"bare": result.seconds, "hopplus": float(recorded.timing["seconds"].sum())},
        "settings": asdict(settings),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 seeds, a fiftieth of the steps")
    parser.add_argument("--games", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    given = parser.parse_args()
    games: dict[str, Any] = {}
    for name in given.games:
        settings = SETTINGS[name]
        if given.quick:
            settings = replace(settings, steps=max(settings.steps // 50, 2 * settings.steps_per_update))
        with TemporaryDirectory() as folder:
            games[name] = compare(name, settings, 2 if given.quick else SEEDS, Path(folder) / "run")
        jax.clear_caches()
    rows = [
        (
            name,
            f"{settings.num_updates * settings.steps_per_update:,}",
            *(interval_words(result[who], 2) for who in ("bare", "hopplus")),
            f"{result['random']:.2f}",
            f"{result['return']:.2f}",
            f"{result['seconds']:.2f}",
        )
        for name, result in games.items()
        for settings in [SETTINGS[name]]
    ]
    heads = ("game", "env steps", "bare", "hopplus", "random", f"return, {RETURN_AT_LEAST}", f"time, {SECONDS_AT_MOST}")
    print_table("ppo of hopplus and a bare IPPO", heads, rows)
    print_json({"seeds": 2 if given.quick else SEEDS, "games": games}, ["jax", "jaxmarl", "optax"])


if __name__ == "__main__":
    main()
