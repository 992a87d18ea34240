"""A trained agent that plans before it acts: its beliefs, its model of the others and its critic, handed to a planner.

Every tree has a company of its own, with goals drawn from what the seat believes. The plan is a pure function of what
the seat sees and remembers, so a planner sits at any table where another player can.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array, Bool, Float32, Key

from hopplus.games.coplayers import Memory, Policy
from hopplus.games.game import Game, Observation
from hopplus.learning import minds
from hopplus.learning.minds import Filter, Impression, Player
from hopplus.models import actor_critic
from hopplus.models.networks import check_least
from hopplus.planning import beliefs
from hopplus.planning.model import Model, Plan, best, key_of, soft
from hopplus.planning.one_step import one_step
from hopplus.planning.search import SearchConfig, search


@dataclass(frozen=True)
class PlanningConfig:
    """How a seat plans before it acts."""

    kind: Literal["none", "one_step", "search"] = "none"
    """none: the policy decides; one_step: try each action and ask the critic; search: trees (MCTS)."""
    model: Literal["game", "world"] = "game"
    """What it plans in: the true game, or the world that it learned."""
    beta: float = 2.0
    """While it learns, an action is drawn from softmax(beta values), and that is what its policy is taught."""
    habit: float = 0.0
    """While it learns, this times the policy's log-probabilities is added to beta times the values. 0, as in HOP: the
    policy is what the last searches said, and as soft as their noise; 1: each search moves the policy that there is."""
    opinion: float = 0.1
    """At the table it takes the best action, and its policy is heard: this times the log-probabilities is added to the
    values. Critics err by more than a step in the right direction is worth: without an opinion nobody arrives."""
    search: Annotated[SearchConfig, tyro.conf.arg(name="")] = field(default_factory=SearchConfig)
    """How much is tried; one_step has only the trees, its draws."""

    @property
    def is_used(self) -> bool:
        return self.kind != "none"

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        check_least("planning", self, 0, "beta", "habit", "opinion")
        check_least("planning", self.search, 1, "trees", "simulations", "depth")
        check_least("planning", self.search, 0, "playout")
        if self.search.exploration <= 0:
            raise ValueError(f"--planning.exploration is {self.search.exploration}; give a number above 0")


class Planner(Policy):
    """A player that asks a planner what to do; its own policy is the prior, its critic values what was not tried."""

    player: Player
    game: Game
    """What it plans in: the true game, or a learned one."""
    planning: PlanningConfig = eqx.field(static=True)
    discount: float = eqx.field(static=True)

    def start(self) -> Memory:
        return self.player.start()

    def again(self, memory: Memory) -> Memory:
        return self.player.again(memory)

    def __call__(self, observation, legal, memory):
        impression = self.player.perceive(observation, memory)
        return self.decide(self.plan(observation, impression), observation, legal, impression), impression

    def plan(self, observation: Observation, impression: Impression) -> Plan:
        """What each own action is worth, as far as the seat knows."""
        model = Model(self.game, self.judge, self.foresee, self.discount)
        return self.plan_in(model, observation, impression, lambda goals: goals)

    def plan_in(
        self,
        model: Model,
        observation: Observation,
        impression: Impression,
        company_of: Callable[[Float32[Array, "others goal"]], Memory],
    ) -> Plan:
        """The same in a model that somebody else made, which knows the co-players of a tree by their `company_of`."""
        goal_key, key = jax.random.split(key_of(jax.random.key(0), observation))
        companies = jax.vmap(company_of)(draw_goals(impression, self.planning.search.trees, key=goal_key))
        state = model.game.from_view(observation)
        if self.planning.kind == "one_step":
            return one_step(model, state, companies, key=key)
        return search(self.planning.search, model, state, companies, key=key)

    def decide(
        self, found: Plan, observation: Observation, legal: Bool[Array, " actions"], impression: Impression
    ) -> Float32[Array, " actions"]:
        """How to act on a plan."""
        log_probabilities, _ = self.judge(observation, legal, impression.goals)
        if not self.player.greedy:
            return self.explore(found, log_probabilities)
        return best(replace(found, values=found.values + self.planning.opinion * log_probabilities))

    def explore(self, found: Plan, log_probabilities: Float32[Array, " actions"]) -> Float32[Array, " actions"]:
        """How to act on a plan while learning, and what the policy is to learn."""
        return soft(found, self.planning.beta, self.planning.habit * log_probabilities)

    def judge(self, view: Observation, legal: Bool[Array, " actions"], company: Memory):
        """The own policy and critic, for `planning.model`."""
        return actor_critic.apply(self.player.params, view, legal, company)

    def foresee(self, views: Observation, legal: Bool[Array, "others actions"], company: Memory):
        """What co-players with these goals will do, for `planning.model`."""
        player = self.player
        predicted = minds.predict(player.mind, minds.look_at(player.game, views), company)
        if player.config.goals.kind == "hindsight":  # the last goal is `other`: nobody knows what such a player does
            predicted = jnp.where(company[:, -1:] > 0, jax.vmap(beliefs.uniform)(legal), predicted)
        return predicted, company


def draw_goals(impression: Impression, num_trees: int, *, key: Key[Array, ""]) -> Float32[Array, "trees others goal"]:
    """A company for each tree: hindsight goals as likely as they are believed; other goals, if any, as inferred."""
    goals = impression.goals
    if not isinstance(impression.kept, Filter):
        return jnp.broadcast_to(goals, (num_trees, *goals.shape))
    chosen = jax.random.categorical(key, jnp.log(goals), shape=(num_trees, goals.shape[0]))
    return jax.nn.one_hot(chosen, goals.shape[-1])
