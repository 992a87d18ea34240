"""Environments of JaxMARL, Jumanji and PettingZoo as games: does everything run on them, how fast, and is it learned?

adopted   trained with ppo for some updates, evaluated, reported and examined by the doctor, without an error
speed     steps per second through the bridge over the bare environment in a `lax.scan`: both reset by themselves,
          get the same numbers for their random actions, and record views, rewards and ends; median of the ratios
learned   the lower end of ppo's 95% interval over seeds is above the upper end of random play's

python benchmarks/any_game.py            all environments; several hours on two cores
python benchmarks/any_game.py --quick    four environments, a tenth of the steps
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.cli.figures import to_json
from hopplus.doctor import examine
from hopplus.evaluation.fairness import random_returns
from hopplus.games.coplayers import Lineup, Random
from hopplus.games.game import Game
from hopplus.games.presets import make
from hopplus.games.rollout import init_env, random_uniforms, rollout, sample_actions
from hopplus.learning.config import LearnerConfig, PPOConfig
from hopplus.runs import RunConfig, evaluate, train
from hopplus_doctor.statistics import Interval, seed_interval
from measure import PROGRESS, block_program, measure, print_json, print_table, times_as_fast

NUM_ENVS, ROUNDS, SECONDS = 64, 5, 1.0
SEEDS, EPISODES = 5, 200


@dataclass(frozen=True)
class Environment:
    """An environment, and how long ppo learns it."""

    game: str
    steps: int
    """Of each of five seeds."""
    envs: int = 64
    rollout_steps: int = 64
    learning_rate: float = 5e-4
    entropy: float = 0.01


ENVIRONMENTS = (
    Environment("jaxmarl:coin_game?shared_rewards=True", 400_000),
    Environment("jaxmarl:MPE_simple_spread_v3", 500_000, rollout_steps=104),
    Environment("jaxmarl:switch_riddle", 300_000),
    Environment("jumanji:LevelBasedForaging-v0", 400_000),
    Environment("jaxmarl:MPE_simple_tag_v3", 300_000, rollout_steps=104),
    Environment("jaxmarl:MPE_simple_reference_v3", 500_000, rollout_steps=104),
    Environment("jaxmarl:MPE_simple_speaker_listener_v4", 500_000, rollout_steps=104),
    Environment("jaxmarl:overcooked?layout=cramped_room&shaped_reward=1.0", 500_000, rollout_steps=128),
    Environment("jaxmarl:storm_2p", 200_000),
    Environment("jaxmarl:storm_np", 100_000),
    Environment("jaxmarl:hanabi?horizon=100", 100_000),
    Environment("jaxmarl:SMAX?scenario=3m", 150_000),
    Environment("jumanji:Cleaner-v0", 200_000),
    Environment("jumanji:RobotWarehouse-v0", 100_000),
    Environment("jumanji:Connector-v3", 200_000),
    Environment("pettingzoo:mpe2.simple_spread_v3.parallel_env", 60_000, envs=32, rollout_steps=50),
)
QUICK = 4


def config_of(environment: Environment, steps: int, seeds: int) -> RunConfig:
    ppo = PPOConfig(
        learning_rate=environment.learning_rate,
        entropy_coefficient=environment.entropy,
        final_entropy_coefficient=environment.entropy,
    )
    learner = replace(
        LearnerConfig(),
        envs=environment.envs,
        rollout_steps=environment.rollout_steps,
        sharing="shared",
        ppo=ppo,
    )
    return RunConfig(game=environment.game, seeds=seeds, steps=steps, learner=learner)


def adopt(environment: Environment, folder: Path) -> dict[str, Any]:
    """Run everything on it once; what the doctor says of each question, or the first error."""
    from hopplus.cli.main import main

    try:
        run = train(config_of(environment, 3 * environment.envs * environment.rollout_steps, 3), folder)
        evaluate(run, 16)
        if main(["report", str(folder)]) != 0:
            raise RuntimeError("no report")
        answers = examine(folder, ("seats", "critic", "time")).answers
    except Exception as error:  # whatever it is, it is the result
        return {"error": f"{type(error).__name__}: {error}"[:200], "answered": 0}
    verdicts = [finding.verdict for answer in answers for finding in answer.findings]
    return {"error": None, "answered": sum(verdict != "not enough evidence" for verdict in verdicts)}


def through_bridge(game: Game) -> Callable[..., Any]:
    """(environments, key, number of steps) -> environments and what they showed."""
    players = Lineup((Random(),) * game.spec.num_agents)

    def one(env: Any, key: jax.Array, num_steps: int) -> Any:
        def record(step: Any) -> Any:
            return step.observation, step.rewards, step.terminated_after

        return rollout(game, players, env, num_steps, key=key, record=record)

    def play(envs: Any, key: jax.Array, num_steps: int) -> Any:
        keys = jax.random.split(key, NUM_ENVS)
        return jax.vmap(lambda env, key: one(env, key, num_steps))(envs, keys)

    return play


def first_envs(game: Game) -> Any:
    players = Lineup((Random(),) * game.spec.num_agents)
    keys = jax.random.split(jax.random.key(0), NUM_ENVS)
    return jax.jit(jax.vmap(lambda key: init_env(game, players, key=key)))(keys)


def bare(game: Any) -> tuple[Any, Callable[..., Any]]:
    """The first states, and the loop over the environment itself. Numbers are drawn before the loop, as ours are."""
    source, spec = game.source, game.spec
    reset_keys = jax.random.split(jax.random.key(0), NUM_ENVS)
    first = jax.jit(jax.vmap(lambda key: source.reset(jax.random.key_data(key))))(reset_keys)

    def one_step(carry: Any, numbers: Any) -> tuple[Any, Any]:
        env_state, views = carry
        uniforms, step_key, reset_key = numbers
        legal = source.legal(env_state)
        actions = sample_actions(legal / jnp.sum(legal, axis=-1, keepdims=True), uniforms=uniforms)
        env_state, after, rewards, done = source.step(env_state, actions, step_key)
        over = jnp.all(done)
        fresh = source.reset(reset_key)
        carry = jax.tree.map(lambda new, old: jnp.where(over, new, old).astype(old.dtype), fresh, (env_state, after))
        return carry, (views, rewards, done)

    def play(carry: Any, key: jax.Array, num_steps: int) -> Any:
        def one(carry: Any, key: jax.Array) -> Any:
            act_key, step_key, reset_key = jax.random.split(key, 3)
            uniforms = random_uniforms(num_steps, spec.num_agents, key=act_key)
            keys = [jax.random.key_data(jax.random.split(each, num_steps)) for each in (step_key, reset_key)]
            return jax.lax.scan(one_step, carry, (uniforms, *keys))

        return jax.vmap(one)(carry, jax.random.split(key, NUM_ENVS))

    return first, play


def speed(game: Game) -> float | None:
    """Steps per second through the bridge over those of the bare environment; None for one that Python steps."""
    if not game.is_compiled:
        return None
    agents = game.spec.num_agents
    ours = block_program("bridge", through_bridge(game), first_envs(game), num_envs=NUM_ENVS, agents=agents)
    state, play = bare(game)
    theirs = block_program("bare", play, state, num_envs=NUM_ENVS, agents=agents)
    measure([theirs, ours], rounds=ROUNDS, seconds=SECONDS)
    return times_as_fast(ours, theirs)


def learn(environment: Environment, folder: Path, share: float) -> tuple[Interval, Interval]:
    """The mean return of a seat: of ppo, with its interval over seeds, and of random play in as many blocks."""
    run = train(config_of(environment, max(int(share * environment.steps), 3 * 64 * 128), SEEDS), folder)
    episodes = EPISODES if run.game.is_compiled else EPISODES // 4
    random = random_returns(run.game, SEEDS * episodes).mean(axis=-1, dtype=np.float64)
    return evaluate(run, episodes).mean, seed_interval(random.reshape(SEEDS, -1).mean(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="four environments, a tenth of the steps")
    parser.add_argument("--only", nargs="*", default=[], help="names that contain one of these words")
    quick, only = parser.parse_args().quick, parser.parse_args().only
    chosen = ENVIRONMENTS[:QUICK] if quick else ENVIRONMENTS
    chosen = tuple(one for one in chosen if not only or any(word in one.game for word in only))
    rows: list[dict[str, Any]] = []
    for environment in chosen:
        started, folder = time.perf_counter(), Path(tempfile.mkdtemp())
        adopted = adopt(environment, folder / "short")
        row: dict[str, Any] = {**asdict(environment), **adopted, "speed": None, "learned": False}
        if adopted["error"] is None:
            row["speed"] = speed(make(environment.game))
            ppo, random = learn(environment, folder / "long", 0.1 if quick else 1.0)
            row |= {"ppo": asdict(ppo), "random": asdict(random), "learned": ppo.low > random.high}
        shutil.rmtree(folder)
        jax.clear_caches()
        rows.append({**row, "seconds": time.perf_counter() - started})
        PROGRESS.print(json.dumps(to_json(rows[-1])), soft_wrap=True)
    speeds = [row["speed"] for row in rows if row["speed"] is not None]
    print_table(
        "other people's environments",
        ["environment", "error", "doctor: answered", "speed", "random", "ppo", "learned"],
        [
            [
                row["game"],
                row["error"] or "",
                str(row["answered"]),
                "" if row["speed"] is None else f"{row['speed']:.2f}",
                *(f"{row[name]['estimate']:.2f}" if name in row else "" for name in ("random", "ppo")),
                "yes" if row["learned"] else "no",
            ]
            for row in rows
        ],
    )
    figures = {
        "adopted": sum(row["error"] is None for row in rows),
        "answered": sum(row["answered"] > 0 for row in rows),
        "speed": float(np.median(speeds)) if speeds else None,
        "lowest_speed": min(speeds, default=None),
        "learned": sum(row["learned"] for row in rows),
        "environments": rows,
    }
    print_json(figures, ["jax", "jaxmarl", "jumanji"])


if __name__ == "__main__":
    main()
