"""The settings of what acts: opponent models and planning. No JAX here."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from hopplus.core.checks import check_least
from hopplus.core.extensions import check_kind
from hopplus.models.config import GoalsConfig, OthersConfig
from hopplus.planning.config import SearchConfig


@dataclass(frozen=True)
class OpponentsConfig:
    """What a seat infers and predicts about its co-players."""

    goals: GoalsConfig = field(default_factory=GoalsConfig)
    """What co-players may be after."""
    others: OthersConfig = field(default_factory=OthersConfig)
    """How their actions are predicted."""

    @property
    def is_used(self) -> bool:
        """Whether there are opponent models."""
        return self.others.models != "none"

    def check(self) -> None:
        """Raise if a setting is out of range."""
        self.goals.check()
        self.others.check()
        if self.goals.kind != "none" and not self.is_used:
            raise ValueError("--goals.kind needs opponent models; give --others.models each or shared")
        if self.others.as_input and (self.goals.is_latent or not self.is_used):
            raise ValueError(
                "--others.as-input needs opponent models whose goals are not vectors or learned symbols; "
                "give --goals.kind hindsight or none, and --others.models each"
            )


@dataclass(frozen=True)
class PlanningConfig:
    """How a seat plans before it acts."""

    kind: Literal["none", "one_step", "search"] | str = "none"
    """none: the policy decides; one_step: try each action and ask the critic; search: trees (MCTS); MODULE:FACTORY: a
    planner of your own."""
    model: Literal["game", "world"] = "game"
    """What it plans in: the true game, or the learned world."""
    beta: float = 2.0
    """In training, actions are drawn from softmax(beta values), and the policy learns that distribution."""
    prior_weight: float = 0.0
    """In training, this times the policy's log-probabilities is added to beta times the values. 0, as in HOP: the
    policy imitates the last searches, with their noise. 1: each search moves the policy from where it is."""
    policy_weight: float = 0.1
    """When acting, the best action is taken after this times the policy's log-probabilities is added to the values. A
    critic's error exceeds the worth of one step in the right direction: with 0, players fail to arrive."""
    search: Annotated[SearchConfig, tyro.conf.arg(name="")] = field(default_factory=SearchConfig)
    """The budget; one_step uses only the number of trees, its draws."""

    @property
    def is_used(self) -> bool:
        """Whether the seat plans."""
        return self.kind != "none"

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_kind("--planning.kind", self.kind, ("none", "one_step", "search"))
        check_least("planning", self, 0, "beta", "prior_weight", "policy_weight")
        check_least("planning", self.search, 1, "trees", "simulations", "depth")
        check_least("planning", self.search, 0, "playout")
        if self.search.exploration <= 0:
            raise ValueError(f"--planning.exploration is {self.search.exploration}; give a number above 0")


NO_PLANNING = PlanningConfig()
