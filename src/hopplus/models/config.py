"""The settings of the models. No JAX here."""

from dataclasses import dataclass
from typing import Literal

from hopplus.core.checks import check_least
from hopplus.core.extensions import check_kind

GoalKind = Literal["none", "continuous", "discrete", "hindsight"] | str
GOAL_KINDS = ("none", "continuous", "discrete", "hindsight")
WORLD_KINDS = ("cells", "fields", "regression")


@dataclass(frozen=True)
class ActorCriticConfig:
    """The network of one seat."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the layers that the policy and the critic share."""
    memory: Literal["none", "gru"] = "none"
    """gru: a recurrent unit after these layers, for games in which a view does not show everything."""
    memory_size: int = 64
    """Width of its state."""
    reconstruct: bool = False
    """Whether that state is trained to tell the views and the actions of the others, and only that (LIAM)."""
    destinations: int = 0
    """On a board with the four moves, the policy can also point at cells and walk there on shortest paths: the width of
    what is compared at every cell. 0: a plain network."""
    critic: Literal["own", "central"] = "own"
    """central: the critic is a network of its own, and reads the views of all seats while training (MAPPO)."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"--network.hidden is {self.hidden}; give one width or more, each at least 1")
        check_least("network", self, 1, "memory_size")
        if self.reconstruct and (self.memory == "none" or self.destinations or self.critic == "central"):
            raise ValueError(
                "--network.reconstruct is for a recurrent policy without destinations and central critic: give "
                "--network.memory gru, or train liam"
            )
        check_least("network", self, 0, "destinations")


@dataclass(frozen=True)
class GoalsConfig:
    """What a co-player may be after, and the networks that infer it."""

    kind: GoalKind = "none"
    """none; continuous: a vector; discrete: one of a few symbols that are learned; hindsight: the next event of the
    co-player, such as the prey that it catches, or other; MODULE:FACTORY: a goal model of your own."""
    size: int = 16
    """Dimensions of a continuous goal, or the number of symbols; the game's events give the number of hindsight
    goals."""
    hidden: int = 32
    """Width of the networks."""
    evidence: int = 16
    """Width of what the posterior sums over an episode."""
    posterior: Literal["additive", "conditional"] = "additive"
    """How goals are inferred: the summed evidence gives the goal; or a conditional VAE, whose decoder makes the goal of
    the evidence and of noise, so that a co-player may have one of several goals that look alike so far."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_kind("--goals.kind", self.kind, GOAL_KINDS)
        check_least("goals", self, 1, "size", "hidden", "evidence")

    @property
    def has_labels(self) -> bool:
        """Whether hindsight tells what a co-player's goal was."""
        return self.kind == "hindsight"

    @property
    def is_latent(self) -> bool:
        """Whether goals are learned by a prior and a posterior."""
        return self.kind in ("continuous", "discrete")

    @property
    def num_outputs(self) -> int:
        """Mean and log standard deviation of a Gaussian, or a logit for each symbol."""
        return 2 * self.size if self.kind == "continuous" else self.size


@dataclass(frozen=True)
class OthersConfig:
    """The opponent model of one co-player, or of all."""

    models: Literal["none", "each", "shared"] = "none"
    """Whether a seat predicts its co-players: not at all, each with its own parameters, or all with one set."""
    network: Literal["mixture"] | str = "mixture"
    """mixture: destinations and a plain network; MODULE:FACTORY: an opponent model of your own."""
    marginal: bool = False
    """Whether the model only learns how often each action is taken, whatever the view and the goal: a baseline."""
    destinations: bool = True
    """Whether the model reads shortest paths to every cell; otherwise it is a plain network over the view."""
    learned_paths: bool = False
    """Whether the model learns paths instead, from what is on the cells; without --others.destinations only."""
    hidden: int = 64
    """Width of the two layers that read the whole view."""
    keys: int = 8
    """Width of what is compared with the goal at every cell."""
    as_input: bool = False
    """Whether the policy and the critic also read the predicted action probabilities of every co-player."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_kind("--others.network", self.network, ("mixture",))
        check_least("others", self, 1, "hidden", "keys")


@dataclass(frozen=True)
class WorldConfig:
    """The learned model of the game."""

    members: int = 0
    """Models in the ensemble, each trained on its own samples; they disagree about what is unknown. 0: no world."""
    kind: Literal["cells", "fields", "regression"] | str = "cells"
    """cells: every cell of a board reads its neighbourhood; fields: a plain network over all fields of an observation,
    for any game (give --world.hidden 512); regression: a plain network over the whole board that regresses every plane,
    a baseline; MODULE:FACTORY: a world of your own."""
    hidden: int = 64
    """Width of the layers that read a cell and a seat, the whole board, or all fields."""
    pooled: int = 16
    """How many sums over the whole board a seat reads, in a world of cells."""
    walker_weight: float = 2.0
    """The weight of a player's plane in the loss of a regression; other planes have weight 1."""

    @property
    def is_used(self) -> bool:
        """Whether there is a world."""
        return self.members > 0

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_kind("--world.kind", self.kind, WORLD_KINDS)
        check_least("world", self, 0, "members", "walker_weight")
        check_least("world", self, 1, "hidden", "pooled")
