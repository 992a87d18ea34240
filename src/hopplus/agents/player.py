"""A trained agent as a player: a pure function of its seat's view and state."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.goals import BeliefState, GoalModel, goal_model, policy_inputs
from hopplus.agents.opponents import OpponentModels
from hopplus.games.coplayers import Policy, PolicyState
from hopplus.games.fields import Observation
from hopplus.games.game import Game
from hopplus.models.actor_critic import PolicyNetwork


class Player(Policy):
    """The policy of one trained seat; it plays in any seat."""

    params: PolicyNetwork
    opponents: OpponentModels
    game: Game
    config: OpponentsConfig = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)
    """Whether it always takes its most likely action."""

    @property
    def goals(self) -> GoalModel:
        """How it infers goals."""
        return goal_model(self.config, self.game)

    def init(self) -> PolicyState:
        return replace(self.goals.start(), hidden=self.params.start())

    def next_episode(self, state: PolicyState) -> PolicyState:
        return replace(self.goals.next_episode(state), hidden=self.params.start())

    def update_beliefs(self, observation: Observation, state: BeliefState) -> BeliefState:
        """The beliefs after the co-players' last actions."""
        return replace(self.goals.update(self.opponents, observation, state), hidden=state.hidden)

    def policy_inputs(
        self, observation: Observation, goals: Float32[Array, "others goal"]
    ) -> Float32[Array, "others inputs"]:
        """What its policy reads about co-players with these goals."""
        return policy_inputs(self.config, self.game, self.opponents, observation, goals)

    def __call__(self, observation, legal, state):
        state = self.update_beliefs(observation, state)
        inputs = self.policy_inputs(observation, state.goals)
        log_probabilities, _, hidden = self.params.step(state.hidden, observation, legal, inputs)
        state = replace(state, hidden=hidden)
        if self.greedy:
            return jax.nn.one_hot(jnp.argmax(log_probabilities), legal.shape[0]), state
        return jnp.exp(log_probabilities), state
