"""Boards and parameters for tests of models, drawn with NumPy: most of a test's time would be compiling the drawing."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.coplayers import Lineup, Random
from hopplus.games.fields import Observation
from hopplus.games.game import Game, GameSpec
from hopplus.games.rollout import init_env, rollout


def drawn_like(shapes: Any, *, seed: int = 0, scale: float = 1.0) -> Any:
    """Normal numbers in these shapes; as parameters of a network they are far from what it begins with."""
    generator = np.random.default_rng(seed)
    draw = lambda leaf: jnp.asarray(scale * generator.standard_normal(leaf.shape), jnp.float32)  # noqa: E731
    return jax.tree.map(draw, shapes)


@cache
def played(game: Game, num_envs: int = 3, num_steps: int = 8) -> tuple[Observation, np.ndarray, np.ndarray]:
    """What every seat saw in random play, what it might do, and whether it was in the game, [samples, ...]."""
    players = Lineup((Random(),) * game.spec.num_agents)

    def one_env(key):
        record = lambda step: (step.observation, step.legal, ~game.terminated(step.state))  # noqa: E731
        env = init_env(game, players, key=key)
        return rollout(game, players, env, num_steps, key=jax.random.fold_in(key, 1), record=record)[1]

    found = jax.device_get(jax.jit(jax.vmap(one_env))(jax.random.split(jax.random.key(0), num_envs)))
    count = num_envs * num_steps * game.spec.num_agents
    return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[3:]), found)


def boards(spec: GameSpec, walls: np.ndarray, count: int = 24, *, seed: int = 0) -> Observation:
    """Views of the first steps of games with these walls: everybody and everything on another free cell."""
    generator = np.random.default_rng(seed)
    planes = np.zeros((count, spec.height * spec.width, len(spec.planes)), np.uint8)
    free = np.flatnonzero(~walls)
    things = [index for index, plane in enumerate(spec.planes) if plane.name != "obstacles"]
    for board in planes:
        board[generator.permutation(free)[: len(things)], things] = 1
    planes[..., spec.plane_index("obstacles")] = walls.reshape(-1)
    return {
        "planes": jnp.asarray(planes.reshape(count, spec.height, spec.width, -1)),
        "time": jnp.zeros(count, jnp.float32),
        "last_actions": jnp.full((count, spec.num_agents), -1, jnp.int32),
    }
