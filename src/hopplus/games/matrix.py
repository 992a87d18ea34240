"""Repeated matrix games: a two-player payoff matrix, played by n players for a number of rounds.

With more than two players a seat's payoff is the mean over its pairs. It is computed from how many co-players chose
each action, so that the order of the seats does not change a bit of it.
"""

from itertools import product

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.games.fields import TIME, Observation, last_actions_field
from hopplus.games.game import NO_ACTION, Game, GameSpec, ego_views, steps_passed

STAG_HUNT = ((4.0, 0.0), (3.0, 3.0))
PRISONERS_DILEMMA = ((3.0, 0.0), (5.0, 1.0))
CHICKEN = ((3.0, 1.0), (5.0, 0.0))


class MatrixState(eqx.Module):
    last_actions: Int32[Array, " agents"]
    time: Int32[Array, ""]


class MatrixGame(Game[MatrixState]):
    """A game without a board: a seat observes the last joint action."""

    payoff: tuple[tuple[float, ...], ...] = eqx.field(static=True, default=STAG_HUNT)
    """payoff[a][b] is the reward of action a against action b."""
    num_players: int = eqx.field(static=True, default=2)
    horizon: int = eqx.field(static=True, default=10)

    def __check_init__(self):
        if any(len(row) != len(self.payoff) for row in self.payoff):
            raise ValueError("the payoff matrix is not square; give as many columns as rows")
        if self.num_players < 2 or self.horizon < 1:
            raise ValueError(
                f"num_players is {self.num_players} and horizon {self.horizon}; give at least two players and one round"
            )

    @property
    def spec(self) -> GameSpec:
        names = ("cooperate", "defect")
        if len(self.payoff) != 2:
            names = tuple(f"action {index}" for index in range(len(self.payoff)))
        return GameSpec(
            name="matrix",
            version=1,
            num_agents=self.num_players,
            action_names=names,
            observation=(TIME, last_actions_field(self.num_players, len(self.payoff))),
            reward_support=self._reward_support(),
            horizon=self.horizon,
        )

    def reset(self, *, key: Key[Array, ""]) -> MatrixState:
        return MatrixState(last_actions=jnp.full(self.num_players, NO_ACTION, jnp.int32), time=jnp.int32(0))

    def step(
        self, state: MatrixState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[MatrixState, Float32[Array, " agents"]]:
        chose = actions[:, None] == jnp.arange(len(self.payoff))
        of_others = jnp.sum(chose, axis=0) - chose
        totals = jnp.sum(jnp.where(chose, self._against(of_others), 0.0), axis=-1)
        # The number of co-players is computed: XLA would multiply by the reciprocal of a constant.
        rewards = jnp.where(self.terminated(state), 0.0, totals / jnp.sum(of_others, axis=-1))
        return MatrixState(last_actions=actions, time=state.time + 1), rewards

    def observe(self, state: MatrixState) -> Observation:
        present = jnp.ones(self.num_players, bool)
        return ego_views(self.spec, self.board(state), present, state.time, state.last_actions)

    def from_view(self, observation: Observation) -> MatrixState:
        return MatrixState(observation["last_actions"], steps_passed(observation["time"], self.horizon))

    def terminated(self, state: MatrixState) -> Bool[Array, " agents"]:
        return jnp.broadcast_to(state.time >= self.horizon, (self.num_players,))

    def permute(self, state: MatrixState, order: Int32[Array, " agents"]) -> MatrixState:
        return MatrixState(last_actions=state.last_actions[order], time=state.time)

    def _against(self, of_others: Int32[Array, "agents actions"]) -> Float32[Array, "agents actions"]:
        """For each own action, the payoff summed over the counted actions of the co-players."""
        payoff = np.asarray(self.payoff, np.float32)
        counts = of_others.astype(jnp.float32)
        return sum(
            (counts[:, action, None] * payoff[:, action] for action in range(len(payoff))), jnp.zeros(counts.shape)
        )

    def _reward_support(self) -> tuple[float, ...]:
        payoff, others = np.asarray(self.payoff, np.float32), self.num_players - 1
        support = {0.0}
        for counts in product(range(others + 1), repeat=len(self.payoff)):
            if sum(counts) == others:
                totals = payoff @ np.asarray(counts, np.float32)
                support |= set((totals / np.float32(others)).tolist())
        return tuple(sorted(support))
