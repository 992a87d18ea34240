"""A game of your own: a common pool that everybody may draw from.

    hopplus check own_game:Commons
    hopplus train ppo --game own_game:Commons --steps 200000 --out runs/commons
    hopplus evaluate runs/commons

Each step every player takes 0, 1 or 2 from the pool. What is left grows by a half, up to the pool's size. If players
ask for more, each gets the same part of what it asked for. A player sees the pool and what everybody took before.
"""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32

from hopplus.games import TIME, Event, Field, Game, GameSpec, last_actions_field

NO_ACTION = -1


class State(eqx.Module):
    pool: Float32[Array, ""]
    last_actions: Int32[Array, " agents"]
    time: Int32[Array, ""]


class Commons(Game[State]):
    num_players: int = eqx.field(static=True, default=3)
    size: float = eqx.field(static=True, default=12.0)
    horizon: int = eqx.field(static=True, default=20)

    @property
    def spec(self) -> GameSpec:
        actions = ("take nothing", "take 1", "take 2")
        pool = Field("pool", "vector", (), layout="shared")  # every player sees the same
        return GameSpec(
            name="commons",
            version=1,
            num_agents=self.num_players,
            action_names=actions,
            observation=(pool, TIME, last_actions_field(self.num_players, len(actions))),
            horizon=self.horizon,
            events=(Event("greedy_rate", "take 2"),),
        )

    def reset(self, *, key):
        nobody = jnp.full(self.num_players, NO_ACTION, jnp.int32)
        return State(jnp.float32(self.size), nobody, jnp.int32(0))

    def step(self, state, actions, *, key):
        asked = jnp.sum(actions)  # a sum of whole numbers: the same in every order of the seats
        share = jnp.minimum(state.pool / jnp.maximum(asked, 1), 1.0)
        rewards = jnp.where(self.terminated(state), 0.0, actions * share)
        left = state.pool - asked * share
        pool = jnp.minimum(left * 1.5, self.size)
        return State(pool, actions, state.time + 1), rewards

    def observe(self, state):
        seats = jnp.arange(self.num_players)
        order = (seats[:, None] + seats) % self.num_players  # the viewer first, then the others in seat order
        everybody = jnp.ones(self.num_players, jnp.float32)
        return {
            "pool": everybody * state.pool / self.size,
            "time": everybody * state.time / self.horizon,
            "last_actions": state.last_actions[order],
        }

    def terminated(self, state):
        return jnp.broadcast_to(state.time >= self.horizon, (self.num_players,))

    def permute(self, state, order):
        """Opens the exact checks that all seats are treated alike."""
        return replace(state, last_actions=state.last_actions[order])

    def from_view(self, observation):
        """Opens planning in the true game, so that hop and direct_om can learn it."""
        time = jnp.round(observation["time"] * self.horizon).astype(jnp.int32)
        return State(observation["pool"] * self.size, observation["last_actions"], time)
