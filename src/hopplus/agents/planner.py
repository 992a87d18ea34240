"""A trained agent that plans before it acts: it passes its beliefs, opponent models and critic to a planner.

Every tree has its own co-players, whose goals are drawn from the belief. After training a plan is a pure function of
the seat's view and state, so a planner can take any seat.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float32, Key, PyTree

from hopplus.agents.config import PlanningConfig
from hopplus.agents.goals import BeliefState
from hopplus.agents.opponents import opponent_inputs
from hopplus.agents.player import Player
from hopplus.core.extensions import load_factory
from hopplus.games.coplayers import Policy, PolicyState
from hopplus.games.fields import Observation
from hopplus.games.game import Game
from hopplus.models import actor_critic
from hopplus.planning.model import Model, Plan, best, key_of, soft
from hopplus.planning.one_step import one_step
from hopplus.planning.search import search


@runtime_checkable
class PlanFn(Protocol):
    """A planner: the value of each own action, from one state; `others_states` has the co-players of each draw."""

    def __call__(
        self, model: Model, state: PyTree[Array], others_states: PolicyState, *, key: Key[Array, ""]
    ) -> Plan: ...


def planner_of(planning: PlanningConfig) -> PlanFn:
    """The planner that the settings name. The factory of your own gets the budget, a SearchConfig."""
    if planning.kind == "one_step":
        return one_step
    if planning.kind == "search":
        return partial(search, planning.search)
    return load_factory(planning.kind, "planner")(planning.search)


class Planner(Policy):
    """A player that plans; its own policy is the prior, and its critic values the leaves."""

    player: Player
    game: Game
    """What it plans in: the true game, or a learned world."""
    planning: PlanningConfig = eqx.field(static=True)
    discount: float = eqx.field(static=True)

    def init(self) -> PolicyState:
        return self.player.init()

    def next_episode(self, state: PolicyState) -> PolicyState:
        return self.player.next_episode(state)

    def __call__(self, observation, legal, state):
        beliefs = self.player.update_beliefs(observation, state)
        return self.decide(self.plan(observation, beliefs), observation, legal, beliefs), beliefs

    def plan(self, observation: Observation, beliefs: BeliefState, key: Key[Array, ""] | None = None) -> Plan:
        """The value of each own action; see `plan_in`."""
        model = Model(self.game, self.evaluate, self.predict_others, self.discount)
        return self.plan_in(model, observation, beliefs, lambda goals: goals, key)

    def plan_in(
        self,
        model: Model,
        observation: Observation,
        beliefs: BeliefState,
        others_state: Callable[[Float32[Array, "others goal"]], PolicyState],
        key: Key[Array, ""] | None = None,
    ) -> Plan:
        """The plan in a given model; `others_state` gives its state of co-players that have these goals.

        Without a key it is a pure function of the view. A learner gives a key, since the noise of a view that recurs
        would otherwise be the same in every update and never average out.
        """
        goal_key, plan_key = jax.random.split(key_of(jax.random.key(0) if key is None else key, observation))
        goals = self.player.goals.draw(self.player.opponents, beliefs, self.planning.search.trees, key=goal_key)
        others_states = jax.vmap(others_state)(goals)
        state = model.game.from_view(observation)
        return planner_of(self.planning)(model, state, others_states, key=plan_key)

    def decide(
        self, plan: Plan, observation: Observation, legal: Bool[Array, " actions"], beliefs: BeliefState
    ) -> Float32[Array, " actions"]:
        """Action probabilities that follow a plan."""
        log_probabilities, _ = self.evaluate(observation, legal, beliefs.goals)
        if not self.player.greedy:
            return self.explore(plan, log_probabilities)
        return best(replace(plan, values=plan.values + self.planning.policy_weight * log_probabilities))

    def explore(self, plan: Plan, log_probabilities: Float32[Array, " actions"]) -> Float32[Array, " actions"]:
        """Action probabilities in training, which are also the policy's target."""
        return soft(plan, self.planning.beta, self.planning.prior_weight * log_probabilities)

    def evaluate(self, view: Observation, legal: Bool[Array, " actions"], others_state: PolicyState):
        """The own policy and critic, for `planning.model`."""
        inputs = self.player.policy_inputs(view, others_state)
        return actor_critic.apply(self.player.params, view, legal, inputs)

    def predict_others(self, views: Observation, legal: Bool[Array, "others actions"], others_state: PolicyState):
        """The action probabilities of co-players with these goals, for `planning.model`."""
        player = self.player
        inputs = opponent_inputs(player.game, views)
        return player.goals.given(player.opponents, inputs, legal, others_state), others_state
