"""A goal model of your own: how often each co-player took each action so far, as numbers that the policy reads.

    hopplus train direct_om --goals.kind own_goals:Frequencies --game matrix-chicken --steps 20000 --out runs/counting
    hopplus train omg --goals.kind own_goals:Frequencies --game stag-hunt-4x4 --out runs/counting-hunt

`Goals` holds what goal models share; override what a belief is, how it starts, and how it changes. Opponent models and
the policy get `BeliefState.goals`; `memory` is yours.
"""

import jax
import jax.numpy as jnp

from hopplus.agents import BeliefState, Goals


class Frequencies(Goals):
    """The goal of a co-player is a vector: the share of each action in what it did, over all episodes with it."""

    @property
    def size(self) -> int:
        return self.game.spec.num_actions

    def start(self) -> BeliefState:
        """About co-players that were never seen. Axes: others, actions."""
        counts = self._zeros(self.size) + 1.0
        return BeliefState(counts / self.size, counts)

    def next_episode(self, state: BeliefState) -> BeliefState:
        return state

    def update(self, models, observation, state: BeliefState) -> BeliefState:
        """After the co-players' last actions; an action that was not taken (-1) is all zeros."""
        took = jax.nn.one_hot(observation["last_actions"][1:], self.size)
        counts = state.memory + took
        return BeliefState(counts / jnp.sum(counts, axis=-1, keepdims=True), counts)

    def draw_unseen(self, shape, seen=None, *, key):
        """Goals of co-players that were never seen, for counterfactual imagination."""
        return jax.random.dirichlet(key, jnp.ones(self.size), shape), shape[-1]
