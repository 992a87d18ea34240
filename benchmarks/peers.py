"""Other people's grid games, run as they come: random actions, their own auto-reset, observations recorded.

They get what the product gets: the whole batch in one compiled loop, actions drawn for all environments at once from
one key, and nothing computed that is not recorded.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from measure import Program, block_program

INSTALL = "pip install -r benchmarks/requirements.txt"
MAX_ENVS = 4096


def jumanji_foraging(num_envs: int, *, grid_observation: bool) -> Program:
    """LevelBasedForaging on 8x8 with four agents, its full field of view and its default two items of food."""
    env, first = _foraging(grid_observation)

    def play(carry: Any, key: Array, num_steps: int) -> tuple[Any, Any]:
        def one_step(carry: Any, key: Array) -> tuple[Any, Any]:
            state, seen = carry
            actions = draw_legal(seen.action_mask, key)
            state, timestep = jax.vmap(env.step)(state, actions)
            return (state, timestep.observation), (seen.agents_view, actions, timestep.reward, timestep.discount)

        return jax.lax.scan(one_step, carry, jax.random.split(key, num_steps))

    kind = "grid" if grid_observation else "vector"
    return block_program(f"Jumanji foraging, {kind}", play, _some(first, num_envs), num_envs=num_envs, agents=4)


@cache
def _foraging(grid_observation: bool) -> tuple[Any, Any]:
    """The environment, and the beginning of many episodes. Of its two wrappers for fresh ones, this was faster here."""
    with quietly():
        from jumanji.environments.routing.lbf.env import LevelBasedForaging  # pyright: ignore[reportMissingImports]
        from jumanji.environments.routing.lbf.generator import RandomGenerator  # pyright: ignore[reportMissingImports]
        from jumanji.wrappers import AutoResetWrapper  # pyright: ignore[reportMissingImports]

        generator = RandomGenerator(grid_size=8, fov=8, num_agents=4, num_food=2)
        env = AutoResetWrapper(LevelBasedForaging(generator, grid_observation=grid_observation))
        state, timestep = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), MAX_ENVS))
    return env, (state, timestep.observation)


def jaxmarl_game(num_envs: int, *, game: str) -> Program:
    """A grid game of two agents: `coin_game` or `storm_2p`."""
    env, first = _jaxmarl_env(game)
    num_actions = env.action_space(env.agents[0]).n

    def play(carry: Any, key: Array, num_steps: int) -> tuple[Any, Any]:
        def one_step(carry: Any, key: Array) -> tuple[Any, Any]:
            state, seen = carry
            act_key, step_key = jax.random.split(key)
            drawn = jax.random.randint(act_key, (env.num_agents, num_envs), 0, num_actions)
            actions = dict(zip(env.agents, drawn, strict=True)) if game == "coin_game" else tuple(drawn)
            after, state, rewards, dones, _ = jax.vmap(env.step)(jax.random.split(step_key, num_envs), state, actions)
            return (state, after), (seen, drawn, rewards, dones)

        return jax.lax.scan(one_step, carry, jax.random.split(key, num_steps))

    return block_program(f"JaxMARL {game}", play, _some(first, num_envs), num_envs=num_envs, agents=env.num_agents)


@cache
def _jaxmarl_env(game: str) -> tuple[Any, Any]:
    with quietly():
        import jaxmarl

        env = jaxmarl.make(game)
        seen, state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), MAX_ENVS))
    return env, (state, seen)


def _some(first: Any, num_envs: int) -> Any:
    """A copy of the first so many: the program gives its memory away."""
    return jax.tree.map(lambda leaf: jnp.copy(leaf[:num_envs]), first)


@contextmanager
def quietly() -> Iterator[None]:
    """Their greetings go to stderr, even where an import of theirs resets `sys.stdout`; their warnings nowhere."""
    warnings.filterwarnings("ignore", "scatter inputs have incompatible types", FutureWarning)
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)


def draw_legal(mask: Array, key: Array) -> Array:
    """Uniform among the allowed actions of the last axis."""
    up_to_here = jnp.cumsum(mask, axis=-1, dtype=jnp.int32)
    choice = jax.random.uniform(key, mask.shape[:-1]) * up_to_here[..., -1]
    return jnp.argmax(up_to_here > choice[..., None], axis=-1)
