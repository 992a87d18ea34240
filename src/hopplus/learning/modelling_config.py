"""The settings of `modelling` and `study`."""

from dataclasses import dataclass
from typing import Literal

from hopplus.learning.ppo import check_counts, check_number

PriorLoss = Literal["reconstruction", "action", "both"]


@dataclass(frozen=True)
class ModellingConfig:
    """How the models of co-players are trained."""

    tables: int = 64
    """How many of the tables of an update are studied."""
    minibatches: int = 4
    """Gradient steps in each update."""
    minibatch_size: int = 256
    """Samples of every co-player in each of them, for the model of its actions."""
    rewarded_only: bool = False
    """Learn what a co-player does only from steps after which it came to something that pays; goals that are told in
    hindsight need that anyway."""
    goal_tables: int = 32
    """Tables at which goals are selected: posterior, prior and, with epsilon, the policy learn from them."""
    minibatch_tables: int = 4
    """Tables of a gradient step: the posterior reads all that happened there."""
    goal_minibatch_size: int = 64
    """Samples of every co-player in each gradient step of posterior and prior."""
    learning_rate: float = 2e-3
    """Of Adam; a run ends with a fifth of it. 0 keeps models as they were pretrained."""
    lookahead: int = 5
    """A co-player's goal is among the states it comes to in so many steps."""
    selector: Literal["optimistic", "conservative"] = "optimistic"
    """Which of them: the one that is best for the seat's own value, or the worst."""
    epsilon: float = 0.5
    """How often the policy learns with the selected goal, not the inferred one, when a run begins; 0 at its end."""
    posterior_kl: float = 1e-3
    """Weight of the posterior's KL."""
    prior_loss: PriorLoss = "both"
    """What the encoding of a state must tell: the state, what the co-player did on the way there, or both."""
    prior_kl: float = 1e-3
    """Weight of the prior's KL."""

    @property
    def num_examples(self) -> int:
        """Samples of every co-player in an update, for the model of its actions."""
        return self.minibatches * self.minibatch_size

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        whole = ("tables", "minibatches", "minibatch_size", "goal_tables", "minibatch_tables", "goal_minibatch_size")
        check_counts("modelling", self, *whole, "lookahead")
        check_number("modelling", "epsilon", self.epsilon, 0 <= self.epsilon <= 1, "between 0 and 1")
        for name in ("learning_rate", "posterior_kl", "prior_kl"):
            check_number("modelling", name, getattr(self, name), getattr(self, name) >= 0, "of 0 or more")
