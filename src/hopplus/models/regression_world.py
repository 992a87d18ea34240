"""The older kind of world model, as a baseline: every plane is regressed cell by cell.

    loss = sum over planes of weight * squared error + squared error of rewards + cross-entropy of ends

Weights such as 2,2,2,2,1,1,1 count the players' planes double; such a loss cannot be compared with an unweighted one.
Nothing prevents a predicted player from being in two cells or in none: the output is rounded to a board.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from hopplus.core.numerics import Metrics
from hopplus.games.game import GameSpec
from hopplus.models.config import RegressionConfig
from hopplus.models.networks import Dense, init_dense
from hopplus.models.world import Outcome, Situation, Transition


class RegressionWorld(eqx.Module):
    """The parameters."""

    first: Dense
    second: Dense
    planes: Dense
    seats: Dense
    """Reward and end of each seat."""


def init(config: RegressionConfig, spec: GameSpec, *, key: Key[Array, ""]) -> RegressionWorld:
    first_key, second_key, planes_key, seats_key = jax.random.split(key, 4)
    cells = spec.height * spec.width * len(spec.planes)
    inputs = cells + spec.num_agents * (spec.num_actions + 1) + 1
    return RegressionWorld(
        first=init_dense(inputs, config.hidden, 2**0.5, key=first_key),
        second=init_dense(config.hidden, config.hidden, 2**0.5, key=second_key),
        planes=init_dense(config.hidden, cells, 0.1, key=planes_key),
        seats=init_dense(config.hidden, 2 * spec.num_agents, 0.1, key=seats_key),
    )


def apply(
    params: RegressionWorld, spec: GameSpec, now: Situation
) -> tuple[Float32[Array, "height width planes"], Float32[Array, " agents"], Float32[Array, " agents"]]:
    """The next planes, the rewards, and the logits of the ends."""
    did = jax.nn.one_hot(now.actions, spec.num_actions).reshape(-1)
    time = (now.time / spec.horizon)[None].astype(jnp.float32)
    board = now.board.reshape(-1).astype(jnp.float32)
    inputs = jnp.concatenate([board, did, now.ended.astype(jnp.float32), time])
    hidden = jax.nn.relu(params.second(jax.nn.relu(params.first(inputs))))
    rewards, ended = jnp.split(params.seats(hidden), 2)
    return params.planes(hidden).reshape(now.board.shape), rewards, ended


def rounded(planes: Float32[Array, "height width planes"], rewards: Array, ended: Array) -> Outcome:
    """The regressed planes rounded to a board."""
    return Outcome((planes > 0.5).astype(jnp.uint8), rewards, ended > 0)


def loss(
    config: RegressionConfig, params: RegressionWorld, spec: GameSpec, transition: Transition
) -> tuple[Float32[Array, ""], Metrics]:
    """The loss of one transition, and its parts by name."""
    planes, rewards, ended = apply(params, spec, transition.now)
    weights = jnp.array([config.walker_weight if plane.kind == "walker" else 1.0 for plane in spec.planes], jnp.float32)
    misses = jnp.mean(jnp.square(planes - transition.after.board), axis=(0, 1))
    ends = transition.after.ended.astype(jnp.float32)
    parts = {
        "planes": jnp.sum(weights * misses),
        "reward": jnp.mean(jnp.square(rewards - transition.after.rewards)),
        "ended": jnp.mean(jax.nn.softplus(ended) - ends * ended),
    }
    return sum(parts.values(), jnp.float32(0)), parts
