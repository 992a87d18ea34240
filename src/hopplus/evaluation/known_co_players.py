"""A planner that knows its co-players, or their goals: how much of its regret comes from its beliefs and models?

The true goals replace the planner's beliefs, or the true co-players replace its opponent models. Nothing else changes,
so the difference in return is the cost of the beliefs, or of the models.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from hopplus.agents.planner import Planner
from hopplus.games.coplayers import Policy, PolicyState
from hopplus.games.fields import Observation
from hopplus.games.game import GameSpec, views_of_others
from hopplus.models.goals import goal_names
from hopplus.planning.model import Model

GOALS = {"nearest_stag": "stag", "patient_stag(3)": "stag", "nearest_hare": "hare", "random": "other"}
"""The goal of each kind of co-player, at least at the start of an episode."""


def goals_of(spec: GameSpec, lineup: Sequence[str]) -> Float32[np.ndarray, "others goals"]:
    """The goals of the scripts of a line-up, one-hot."""
    names = goal_names(spec)
    return np.eye(len(names), dtype=np.float32)[[names.index(GOALS[kind]) for kind in lineup]]


class KnownCoPlayers(Policy):
    """A planner with the truth about its co-players."""

    planner: Planner
    goals: Float32[Array, "*rows others goals"] | None
    """Their goals; None for a planner without such goals."""
    others: tuple[Policy, ...]
    """The co-players in seat order after the planner; empty if the planner predicts them itself."""

    def init(self) -> PolicyState:
        return self.planner.init(), self._init_others()

    def next_episode(self, state: PolicyState) -> PolicyState:
        beliefs, _ = state
        return self.planner.next_episode(beliefs), self._init_others()

    def __call__(self, observation, legal, policy_state):
        beliefs, states = policy_state
        beliefs = self.planner.player.update_beliefs(observation, beliefs)
        known = beliefs if self.goals is None else replace(beliefs, goals=self.goals)
        if not self.others:
            return self.planner.decide(self.planner.plan(observation, known), observation, legal, known), (beliefs, ())
        model = Model(self.planner.game, self._evaluate, self._predict_others, self.planner.discount)
        plan = self.planner.plan_in(model, observation, known, lambda goals: (goals, states))
        views = views_of_others(self.planner.game.spec, observation)
        others_legal = jax.vmap(self.planner.game.legal_in_view)(views)
        _, (_, new_states) = self._predict_others(views, others_legal, (known.goals, states))
        return self.planner.decide(plan, observation, legal, known), (beliefs, new_states)

    def _init_others(self) -> tuple[PolicyState, ...]:
        return tuple(policy.init() for policy in self.others)

    def _evaluate(self, view: Observation, legal: Array, others_state: PolicyState):
        goals, _ = others_state
        return self.planner.evaluate(view, legal, goals)

    def _predict_others(self, views: Observation, legal: Array, others_state: PolicyState):
        """The action distributions of the co-players themselves."""
        goals, states = others_state
        views_by_seat = [
            jax.tree.map(lambda leaf, index=index: leaf[index], views) for index in range(len(self.others))
        ]
        answers = [
            policy(views_by_seat[index], legal[index], own)
            for index, (policy, own) in enumerate(zip(self.others, states, strict=True))
        ]
        return jnp.stack([distribution for distribution, _ in answers]), (goals, tuple(own for _, own in answers))


def inform(
    player: Policy, goals: Float32[Array, "*rows others goals"] | None, others: tuple[Policy, ...]
) -> KnownCoPlayers:
    """A planner with the true goals of its co-players, and with the co-players themselves if `others` names them."""
    if not isinstance(player, Planner):
        raise ValueError("--known-co-players needs an agent that plans; give --planning.kind search or one_step")
    has_goals = player.player.config.goals.has_labels
    if not has_goals and not others:
        raise ValueError("--known-co-players goals needs an agent with hindsight goals; give --known-co-players others")
    return KnownCoPlayers(player, goals if has_goals else None, others)
