"""A trained agent as a player: a pure function of its seat's view and state."""

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.goals import BeliefState, GoalModel, goal_model
from hopplus.agents.opponents import OpponentModels
from hopplus.games.coplayers import Policy, PolicyState
from hopplus.games.game import Game, Observation
from hopplus.models import actor_critic
from hopplus.models.actor_critic import ActorCritic


class Player(Policy):
    """The policy of one trained seat; it plays in any seat."""

    params: ActorCritic
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
        return self.goals.start()

    def next_episode(self, state: PolicyState) -> PolicyState:
        return self.goals.next_episode(state)

    def update_beliefs(self, observation: Observation, state: BeliefState) -> BeliefState:
        """The beliefs after the co-players' last actions."""
        return self.goals.update(self.opponents, observation, state)

    def __call__(self, observation, legal, state):
        state = self.update_beliefs(observation, state)
        log_probabilities, _ = actor_critic.apply(self.params, observation, legal, state.goals)
        if self.greedy:
            return jax.nn.one_hot(jnp.argmax(log_probabilities), legal.shape[0]), state
        return jnp.exp(log_probabilities), state
