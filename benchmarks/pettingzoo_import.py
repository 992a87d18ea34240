"""What does it cost to play an environment of PettingZoo as a game, and does ppo learn in it?

The first figure is the speed of `pettingzoo:` games over a bare Python loop: the same environments of mpe2's
simple_spread, the same seeds and actions, no policy. Both must give the same rewards. The second is the return of ppo
after a short training, and of random play.

    pip install mpe2
    python benchmarks/pettingzoo_import.py            both, about fifteen minutes on one core
    python benchmarks/pettingzoo_import.py --quick    the first alone, about a minute
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from hopplus.evaluation.fairness import random_returns
from hopplus.games.game import Game
from hopplus.games.presets import make
from hopplus.learning.config import LearnerConfig
from hopplus.runs.agents import learner_of
from hopplus.runs.config import RunConfig
from hopplus.runs.evaluation import evaluate
from hopplus.runs.progress import ProgressDisplay
from hopplus.runs.training import train
from hopplus_doctor.statistics import mean_interval
from measure import Program, interval_words, measure, print_json, print_table, short, times_as_fast

GAME = "pettingzoo:mpe2.simple_spread_v3.parallel_env"
PACKAGES = ("hopplus", "jax", "jaxlib", "pettingzoo", "mpe2")
NEEDED = 0.8
NUM_ENVS = 64
SETTINGS = {
    "learning_rate": 1e-3,
    "discount": 0.9,
    "entropy_coefficient": 0.005,
    "final_entropy_coefficient": 0.005,
}
"""Of ppo. With its usual discount the return of the same game in JaxMARL was below that of random play after 200,000
steps."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the speed, with shorter turns")
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps of each seed")
    parser.add_argument("--out", type=Path, help="the run folder; without it, a folder that is deleted")
    options = parser.parse_args()
    game = make(GAME)
    figures: dict[str, Any] = {"quick": options.quick, "speed": compare(game, num_steps=25 if options.quick else 100)}
    if not options.quick:
        with TemporaryDirectory() as folder:
            figures["learning"] = learn(game, options.steps, options.out or Path(folder) / "run")
    print_json(figures, PACKAGES)


def compare(game: Game, num_steps: int) -> dict[str, Any]:
    """Steps per second of the game and of the bare loop, in turns."""
    shape = (num_steps, NUM_ENVS, game.spec.num_agents)
    actions = np.random.default_rng(0).integers(game.spec.num_actions, size=shape, dtype=np.int32)
    play = jax.jit(lambda actions, key: rollout(game, actions, key=key))
    seeds, rewards = jax.device_get(play(actions, jax.random.key(0)))
    envs = [make_env() for _ in range(NUM_ENVS)]
    if not np.array_equal(rewards, bare_loop(envs, actions, seeds)):
        raise AssertionError("the game and the bare loop give different rewards")
    count = num_steps * NUM_ENVS
    programs = (
        Program("as a game", lambda: jax.block_until_ready(play(actions, jax.random.key(0))), count),
        Program("bare loop", lambda: bare_loop(envs, actions, seeds), count),
    )
    measure(programs, rounds=5, seconds=0.1)
    ratio = times_as_fast(*programs)
    rows = [(program.name, short(program.steps_per_second)) for program in programs]
    rows.append((f"ratio, of at least {NEEDED}", f"{ratio:.2f}"))
    print_table(f"{GAME}: {NUM_ENVS} environments without a policy", ("", "env steps/s"), rows)
    rates = {program.name: program.steps_per_second for program in programs}
    return {"envs": NUM_ENVS, "steps_per_second": rates, "ratio": ratio, "needed": NEEDED}


def rollout(game: Game, actions: Array | np.ndarray, *, key: Array) -> tuple[Array, Array]:
    """Take the actions [steps, envs, agents]; the seeds of the episodes [steps, envs], and the rewards."""
    first, rest = jax.random.split(key)

    def one_step(state: Any, now: tuple[Array, Array]) -> tuple[Any, Any]:
        step_key, reset_key = jax.random.split(jax.random.wrap_key_data(now[1]))
        after, rewards = game.step(state, now[0], key=step_key)
        over = jnp.all(game.terminated(after))
        return game.reset_where(over, after, key=reset_key), (state.seed, rewards)

    def one_env(actions: Array, first: Array, keys: Array) -> Any:
        return jax.lax.scan(one_step, game.reset(key=first), (actions, keys))[1]

    num_steps, num_envs, _ = actions.shape
    keys = jax.random.key_data(jax.random.split(rest, (num_envs, num_steps)))
    firsts = jax.random.split(first, num_envs)
    return jax.vmap(one_env, in_axes=(1, 0, 0), out_axes=1)(jnp.asarray(actions), firsts, keys)


def make_env() -> Any:
    from mpe2 import simple_spread_v3  # pyright: ignore[reportMissingImports]

    return simple_spread_v3.parallel_env()


def bare_loop(envs: list[Any], actions: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """The rewards of the same actions and episodes, by a loop in Python."""
    paid = np.zeros(actions.shape, np.float32)
    for env, seed in zip(envs, seeds[0], strict=True):
        env.reset(seed=int(seed))
    for step, joint in enumerate(actions):
        for index, env in enumerate(envs):
            if not env.agents:
                env.reset(seed=int(seeds[step, index]))
            _, rewards, _, _, _ = env.step(dict(zip(env.agents, joint[index].tolist(), strict=True)))
            paid[step, index] = list(rewards.values())
    return paid


def learn(game: Game, steps: int, out: Path) -> dict[str, Any]:
    """The return of a seat after training, with an interval over five seeds, and that of random play."""
    base = learner_of("ppo", LearnerConfig(sharing="shared"))
    ppo = replace(base.ppo, **SETTINGS)
    learner = replace(base, envs=16, rollout_steps=50, ppo=ppo)
    with ProgressDisplay() as display:
        run = train(RunConfig(agent="ppo", game=GAME, seeds=5, steps=steps, learner=learner), out, watcher=display)
    random = mean_interval(random_returns(game, 1000).mean(axis=1), confidence=0.95)
    trained = {manner: evaluate(run, 200, greedy=manner == "greedy").mean for manner in ("sampled", "greedy")}
    figures = {manner: asdict(interval) for manner, interval in trained.items()}
    named = {"random play": asdict(random)} | {f"ppo, {manner}": interval for manner, interval in figures.items()}
    rows = [(name, interval_words(interval, 2)) for name, interval in named.items()]
    print_table(f"{GAME}: return of a seat, {steps:,} steps of each of 5 seeds", ("", "95% interval"), rows)
    return {"steps": steps, "seeds": 5, "random": asdict(random), **figures}


if __name__ == "__main__":
    main()
