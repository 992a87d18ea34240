"""The older kind of world model: a plain network over the whole board, every plane regressed cell by cell.

    loss = sum over planes of weight * squared error + squared error of rewards + cross-entropy of ends

Weights such as 2,2,2,2,1,1,1 count the players' planes double; such a loss cannot be compared with an unweighted one.
Nothing prevents a predicted player from being in two cells or in none, or a reward from being one that the game never
pays: the planes are rounded to a board, rewards are used as they are. A player that is in no cell has left the game.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from hopplus.core.numerics import flag_cross_entropy
from hopplus.games.game import GameSpec
from hopplus.models.config import WorldConfig
from hopplus.models.networks import Dense, init_dense
from hopplus.models.world import Outcome, Situation, WorldModel, WorldPrediction, on_board


class Regressed(WorldPrediction):
    """Planes and rewards as numbers, ends as logits. There is nothing to sample."""

    planes: Float32[Array, "height width planes"]
    rewards: Float32[Array, " agents"]
    ended: Float32[Array, " agents"]
    walker_weight: float = eqx.field(static=True)

    def draw(self, spec, now, *, key):
        board = (self.planes > 0.5).astype(jnp.uint8)
        ended = now.ended | (self.ended > 0) | ~on_board(board[..., : spec.num_walkers])
        return Outcome(board, jnp.where(now.ended, 0.0, self.rewards), ended)

    def expected_board(self, spec, now):
        return self.planes

    def losses(self, spec, transition):
        after = transition.after
        weights = [self.walker_weight if plane.kind == "walker" else 1.0 for plane in spec.planes]
        misses = jnp.mean(jnp.square(self.planes - after.board), axis=(0, 1))
        ends = after.ended.astype(jnp.float32)
        return {
            "planes": jnp.sum(jnp.array(weights, jnp.float32) * misses),
            "reward": jnp.mean(jnp.square(self.rewards - after.rewards)),
            "ended": jnp.mean(flag_cross_entropy(self.ended, ends)),
        }


class RegressionWorld(WorldModel):
    """The parameters."""

    parts: ClassVar[tuple[str, ...]] = ("planes", "reward", "ended")

    first: Dense
    second: Dense
    planes: Dense
    seats: Dense
    """Reward and end of each seat."""
    walker_weight: float = eqx.field(static=True)

    def __call__(self, spec: GameSpec, now: Situation) -> Regressed:
        did = jax.nn.one_hot(now.actions, spec.num_actions).reshape(-1)
        time = (now.time / spec.horizon)[None].astype(jnp.float32)
        board = now.board.reshape(-1).astype(jnp.float32)
        inputs = jnp.concatenate([board, did, now.ended.astype(jnp.float32), time])
        hidden = jax.nn.relu(self.second(jax.nn.relu(self.first(inputs))))
        rewards, ended = jnp.split(self.seats(hidden), 2)
        return Regressed(self.planes(hidden).reshape(now.board.shape), rewards, ended, self.walker_weight)


def init(config: WorldConfig, spec: GameSpec, *, key: Key[Array, ""]) -> RegressionWorld:
    first_key, second_key, planes_key, seats_key = jax.random.split(key, 4)
    cells = spec.height * spec.width * len(spec.planes)
    inputs = cells + spec.num_agents * (spec.num_actions + 1) + 1
    return RegressionWorld(
        first=init_dense(inputs, config.hidden, 2**0.5, key=first_key),
        second=init_dense(config.hidden, config.hidden, 2**0.5, key=second_key),
        planes=init_dense(config.hidden, cells, 0.1, key=planes_key),
        seats=init_dense(config.hidden, 2 * spec.num_agents, 0.1, key=seats_key),
        walker_weight=config.walker_weight,
    )
