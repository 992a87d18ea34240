"""A planner who was told what its co-players are after, or who they are: how much of its regret comes from not knowing?

What is told takes the place of what the planner would believe, or of its model of the others. All else is as before,
so that the difference is what the belief, or the model, costs.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from hopplus.games.coplayers import Memory, Policy
from hopplus.games.game import GameSpec, Observation, views_of_others
from hopplus.learning.planner import Planner
from hopplus.models.goals import goal_names
from hopplus.planning.model import Model

Known = Literal["nothing", "goals", "others"]
GOALS = {"nearest_stag": "stag", "patient_stag(3)": "stag", "nearest_hare": "hare", "random": "other"}
"""What co-players of each kind are after, at least when they begin."""


def goals_of(spec: GameSpec, company: Sequence[str]) -> Float32[np.ndarray, "others goals"]:
    """What the scripts of a company are after, one-hot."""
    names = goal_names(spec)
    return np.eye(len(names), dtype=np.float32)[[names.index(GOALS[kind]) for kind in company]]


class Clairvoyant(Policy):
    """A planner with the truth about its co-players."""

    planner: Planner
    goals: Float32[Array, "*rows others goals"] | None
    """What they are after; None for a planner that has no such goals."""
    others: tuple[Policy, ...]
    """Who they are, in seat order after the planner; nobody where the planner is to predict them itself."""

    def start(self) -> Memory:
        return self.planner.start(), self._strangers()

    def again(self, memory: Memory) -> Memory:
        impression, _ = memory
        return self.planner.again(impression), self._strangers()

    def __call__(self, observation, legal, memory):
        impression, remembered = memory
        impression = self.planner.player.perceive(observation, impression)
        told = impression if self.goals is None else replace(impression, goals=self.goals)
        if not self.others:
            return self.planner.decide(self.planner.plan(observation, told), observation, legal, told), (impression, ())
        model = Model(self.planner.game, self._judge, self._foresee, self.planner.discount)
        plan = self.planner.plan_in(model, observation, told, lambda goals: (goals, remembered))
        views = views_of_others(self.planner.game.spec, observation)
        may_do = jax.vmap(self.planner.game.legal_in_view)(views)
        _, (_, remembered) = self._foresee(views, may_do, (told.goals, remembered))
        return self.planner.decide(plan, observation, legal, told), (impression, remembered)

    def _strangers(self) -> tuple[Memory, ...]:
        return tuple(policy.start() for policy in self.others)

    def _judge(self, view: Observation, legal: Array, company: Memory):
        goals, _ = company
        return self.planner.judge(view, legal, goals)

    def _foresee(self, views: Observation, legal: Array, company: Memory):
        """What the co-players themselves say that they will do."""
        goals, remembered = company
        view_of = lambda index: jax.tree.map(lambda leaf: leaf[index], views)  # noqa: E731
        answers = [
            policy(view_of(index), legal[index], own)
            for index, (policy, own) in enumerate(zip(self.others, remembered, strict=True))
        ]
        return jnp.stack([distribution for distribution, _ in answers]), (goals, tuple(own for _, own in answers))


def inform(player: Policy, goals: Float32[Array, "*rows others goals"], others: tuple[Policy, ...]) -> Clairvoyant:
    """Tell a planner what its co-players are after, and who they are if anybody is named."""
    if not isinstance(player, Planner):
        raise ValueError("--known: only who plans can be told; give --planning.kind search or one_step")
    has_goals = player.player.config.goals.kind == "hindsight"
    if not has_goals and not others:
        raise ValueError("--known goals: the agent has no hindsight goals to be told; give --known others")
    return Clairvoyant(player, goals if has_goals else None, others)
