"""How an agent learns: every setting of the learner. No JAX here."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import tyro

from hopplus.agents.config import OpponentsConfig, PlanningConfig
from hopplus.core.checks import check_counts, check_least, check_number
from hopplus.core.mesh import MeshConfig
from hopplus.models.config import ActorCriticConfig, WorldConfig

OF_MEMBER = ("start", "half", "end")
"""The policies of each member of a population: before training, when its return was halfway, and after training."""
PriorLoss = Literal["reconstruction", "action", "both"]


@dataclass(frozen=True)
class PPOConfig:
    """The objective and how it is optimised."""

    discount: float = 0.99
    """Worth of a reward one step later."""
    gae_lambda: float = 0.95
    """1 is the plain Monte-Carlo return, 0 the one-step return."""
    clip: float = 0.2
    """How far the probability ratio may move before the gain is cut off."""
    value_clip: float = 0.2
    """How far a value may move in one update, in units of the game's largest reward; 0 turns clipping off."""
    value_coefficient: float = 0.5
    """Weight of the value loss."""
    entropy_coefficient: float = 0.06
    """Weight of the entropy bonus at the start of a run: enough to find that stags pay before hares dominate."""
    final_entropy_coefficient: float = 0.003
    """Its weight at the end of the run; in between it changes linearly."""
    learning_rate: float = 5e-4
    """Of Adam."""
    max_gradient_norm: float = 0.5
    """Each learner's gradient is scaled down to this norm."""
    epochs: int = 4
    """How many times each update goes over its data."""
    imagined_epochs: int = 0
    """In how many of these passes each imagined sample is used. 0: in all of them."""
    ranked_reward: float = 0.0
    """Pay +1 at the end of an episode that is among the best of its update, -1 otherwise, and nothing before. The best
    are those at or above this percentile of the returns, as in 0.75. 0: pay what the game pays."""
    minibatch_size: int = 512
    """The most samples of a seat in one gradient step; steps after a seat has left are not samples and cost nothing."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        for name in ("discount", "gae_lambda"):
            check_number("ppo", name, getattr(self, name), 0 <= getattr(self, name) <= 1, "between 0 and 1")
        for name in ("clip", "learning_rate", "max_gradient_norm"):
            check_number("ppo", name, getattr(self, name), getattr(self, name) > 0, "above 0")
        for name in ("value_clip", "value_coefficient", "entropy_coefficient", "final_entropy_coefficient"):
            check_number("ppo", name, getattr(self, name), getattr(self, name) >= 0, "of 0 or more")
        check_number("ppo", "ranked_reward", self.ranked_reward, 0 <= self.ranked_reward < 1, "from 0 to below 1")
        check_counts("ppo", self, "epochs", "minibatch_size")
        is_part = 0 <= self.imagined_epochs <= self.epochs
        check_number("ppo", "imagined_epochs", self.imagined_epochs, is_part, f"from 0 to {self.epochs}, --ppo.epochs")


@dataclass(frozen=True)
class ModellingConfig:
    """How the opponent models are trained."""

    envs: int = 64
    """How many of the environments of an update they learn from."""
    minibatches: int = 4
    """Gradient steps in each update."""
    minibatch_size: int = 256
    """Samples of every co-player in each gradient step of the model of its actions."""
    rewarded_only: bool = False
    """Learn a co-player's actions only from steps before an event that pays it; hindsight goals need that anyway."""
    goal_envs: int = 32
    """Environments in which goals are selected: the posterior, the prior and, with epsilon, the policy learn there."""
    minibatch_envs: int = 4
    """Environments of a gradient step of the posterior, which reads whole episodes."""
    goal_minibatch_size: int = 64
    """Samples of every co-player in each gradient step of posterior and prior."""
    learning_rate: float = 2e-3
    """Of Adam; a run ends with a fifth of it. 0 keeps pretrained models as they are."""
    lookahead: int = 5
    """A co-player's goal is among the states that it reaches in this many steps; 0: it is the current state."""
    selector: Literal["optimistic", "conservative"] = "optimistic"
    """Which of them: the best for the seat's own value, or the worst."""
    epsilon: float = 0.5
    """How often the policy learns with the selected goal instead of the inferred one at the start of a run; 0 at its
    end."""
    posterior_kl: float = 1e-3
    """Weight of the posterior's KL."""
    prior_loss: PriorLoss = "both"
    """What the encoding of a state must predict: the state, the action that the co-player took on the way, or both."""
    prior_kl: float = 1e-3
    """Weight of the prior's KL."""
    temperature: float = 1.0
    """Of Gumbel-softmax, for symbols, at the start of a run."""
    final_temperature: float = 1.0
    """The same at its end, or in the last epoch of a pretraining; in between it falls evenly."""
    max_grad_norm: float = 0.0
    """A larger gradient of the model of actions, of the posterior or of the prior is scaled down to this norm, for each
    learner; 0: never."""

    @property
    def num_examples(self) -> int:
        """Samples of every co-player in an update, for the model of its actions."""
        return self.minibatches * self.minibatch_size

    def for_seats(self, num_seats: int) -> "ModellingConfig":
        """The part of each of the seats that share a learner: sizes of minibatches are divided, and rounded up."""
        names = ("minibatch_size", "minibatch_envs", "goal_minibatch_size")
        return replace(self, **{name: -(-getattr(self, name) // num_seats) for name in names})

    def check(self) -> None:
        """Raise if a setting is out of range."""
        whole = ("envs", "minibatches", "minibatch_size", "goal_envs", "minibatch_envs", "goal_minibatch_size")
        check_counts("modelling", self, *whole)
        check_least("modelling", self, 0, "lookahead", "max_grad_norm")
        for name in ("temperature", "final_temperature"):
            check_number("modelling", name, getattr(self, name), getattr(self, name) > 0, "above 0")
        check_number("modelling", "epsilon", self.epsilon, 0 <= self.epsilon <= 1, "between 0 and 1")
        for name in ("learning_rate", "posterior_kl", "prior_kl"):
            check_number("modelling", name, getattr(self, name), getattr(self, name) >= 0, "of 0 or more")


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer."""

    size: int = 131_072
    """Transitions that are kept, for each seed."""
    envs: int = 32
    """How many of the environments of an update are added."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_counts("replay", self, "size", "envs")


@dataclass(frozen=True)
class WorldTrainingConfig:
    """How a world is trained."""

    minibatches: int = 8
    """Gradient steps in each update."""
    minibatch_size: int = 256
    """Transitions in each of them, for every member."""
    learning_rate: float = 3e-3
    """Of Adam; a run ends with a tenth of it."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_counts("world-training", self, "minibatches", "minibatch_size")
        check_number("world-training", "learning_rate", self.learning_rate, self.learning_rate > 0, "above 0")


@dataclass(frozen=True)
class ImaginationConfig:
    """What is imagined, and how much it counts."""

    real_ratio: float = 1.0
    """The share of real data in what the policy learns from; 1 imagines nothing."""
    length: int = 36
    """Steps of an imagined rollout from each real state."""
    branch: Literal["last", "buffer"] = "last"
    """Where imagined rollouts start: where the environments are after the update's real steps, with what the seat
    believes there; or at random states of the replay buffer, with co-players that are met for the first time."""
    critic: Literal["all", "real", "weighted"] = "weighted"
    """What the critic learns from: all data alike, real data only, or imagined data weighted by trust."""
    reward: Literal["predicted", "zero"] = "predicted"
    """What imagined steps pay; zero is for experiments."""
    counterfactual: float = 0.0
    """The share of imagined environments whose co-players get goals that were not seen; the others act by belief."""
    held_out: float = 0.0
    """The share of imagined environments with line-ups of goals that no other environment gets, and from which nothing
    is learned: `held_out/return` says when a run may end."""
    trust: bool = True
    """Whether imagined data counts less the worse the models predict real play."""
    explore: float = 1.0
    """The factor on the entropy bonus until every event of the game was seen in two real steps; until then nothing is
    imagined. A world that never saw a stag caught would teach to do without stags. 1 turns this off."""

    @property
    def is_used(self) -> bool:
        """Whether anything is imagined."""
        return self.real_ratio < 1

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_number("imagination", "real_ratio", self.real_ratio, 0 < self.real_ratio <= 1, "above 0, and 1 at most")
        check_counts("imagination", self, "length")
        check_number("imagination", "explore", self.explore, self.explore >= 1, "of 1 or more")
        for name in ("counterfactual", "held_out"):
            check_number("imagination", name, getattr(self, name), 0 <= getattr(self, name) <= 1, "between 0 and 1")

    def num_envs(self, real_steps: int, num_members: int) -> int:
        """Imagined environments of each seat for that many real steps: equally many for each member of the world."""
        wanted = round(real_steps * (1 / self.real_ratio - 1) / self.length)
        return max(wanted // num_members, 1) * num_members


@dataclass(frozen=True)
class UtilitiesConfig:
    """Self-play in which some seats are after something else than the game's reward."""

    share: float = 0.0
    """The share of environments in which a seat may be paid for one kind of event only, or act at random."""
    own: float = 0.25
    """There, how often a seat keeps the game's reward."""
    reward: float = 1.0
    """What such an event pays, in units of the game's largest reward."""

    @property
    def is_used(self) -> bool:
        """Whether there are such environments."""
        return self.share > 0

    def check(self) -> None:
        """Raise if a setting is out of range."""
        for name in ("share", "own"):
            check_number("utilities", name, getattr(self, name), 0 <= getattr(self, name) < 1, "from 0 to below 1")
        check_number("utilities", "reward", self.reward, self.reward > 0, "above 0")


@dataclass(frozen=True)
class PopulationConfig:
    """The co-players of a best response: a population of frozen policies (fictitious co-play)."""

    members: int = 0
    """How many runs of self-play are its members, as seeds of one program. 0: no population, and all seats learn."""
    steps: int = 1_000_000
    """Environment steps of each member, cut to whole updates. They count as real steps of the agent."""
    run: str | None = None
    """A run of fcp whose population is used again, or the folder of a population. None: it is trained first."""

    @property
    def is_used(self) -> bool:
        """Whether there is a population."""
        return self.members > 0

    @property
    def num_policies(self) -> int:
        """How many policies co-players are drawn from."""
        return self.members * len(OF_MEMBER)

    def check(self) -> None:
        """Raise if a setting is out of range."""
        check_least("population", self, 0, "members")
        if self.run is not None and not self.is_used:
            raise ValueError("--population.run is for a best response to a population; train fcp")


@dataclass(frozen=True)
class LearnerConfig:
    """How an agent learns."""

    envs: int = 256
    """Parallel environments, for each seed."""
    rollout_steps: int = 36
    """Steps of every environment between two updates."""
    schedule: int | None = None
    """Environment steps over which the entropy bonus and the learning rates of models fall to their final values, where
    they stay; None: the whole run. With a number, the result does not depend on when the run ends."""
    sharing: Literal["independent", "shared"] = "independent"
    """Whether each learning seat has its own parameters, or all share one set."""
    network: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    """The network of a seat."""
    opponents: Annotated[OpponentsConfig, tyro.conf.arg(name="")] = field(default_factory=OpponentsConfig)
    """The opponent models."""
    modelling: ModellingConfig = field(default_factory=ModellingConfig)
    """How the opponent models are trained."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """The replay buffer of an agent with a world."""
    world: WorldConfig = field(default_factory=WorldConfig)
    """The learned model of the game."""
    world_training: WorldTrainingConfig = field(default_factory=WorldTrainingConfig)
    """How the world is trained."""
    imagination: ImaginationConfig = field(default_factory=ImaginationConfig)
    """What is imagined with these models."""
    planning: PlanningConfig = field(default_factory=PlanningConfig)
    """Whether the agent plans in training: its policy then learns what planning found, instead of PPO's objective."""
    utilities: UtilitiesConfig = field(default_factory=UtilitiesConfig)
    """Self-play with seats that are after something else."""
    population: PopulationConfig = field(default_factory=PopulationConfig)
    """The co-players of a best response."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The objective."""
    mesh: MeshConfig = field(default_factory=MeshConfig)
    """The devices that the run uses."""

    def check(self) -> None:
        """Raise if settings are out of range or contradict each other.

        A run calls this; raised on creation, tyro would wrap the reason.
        """
        parts = (self.network, self.opponents, self.modelling, self.replay, self.world, self.world_training)
        for part in (*parts, self.imagination, self.planning, self.utilities, self.population, self.ppo, self.mesh):
            part.check()
        if self.imagination.held_out and not self.opponents.goals.has_labels:
            raise ValueError("--imagination.held-out needs the game's events as goals; give --goals.kind hindsight")
        if self.utilities.is_used and not self.opponents.goals.has_labels:
            raise ValueError("--utilities.share needs the game's events as goals; give --goals.kind hindsight")
        if self.utilities.is_used and self.planning.is_used:
            raise ValueError("seats that plan in training have no hidden utilities; leave out --utilities.share")
        if self.planning.is_used:
            if not self.opponents.is_used:
                raise ValueError("--planning.kind needs opponent models; give --others.models each or shared")
            if self.imagination.is_used:
                raise ValueError(
                    "an agent that plans in training imagines no rollouts; leave out --imagination.real-ratio. After "
                    "training every agent with a world can plan in it: see `hopplus evaluate --help`"
                )
            if self.planning.model == "world" and not self.world.is_used:
                raise ValueError("--planning.model world needs a world; give --world.members 1, or leave it out")
        if self.network.memory != "none" and (self.opponents.is_used or self.world.is_used):
            raise ValueError(
                "--network.memory is for an agent without opponent models and world: train ppo, or leave it out"
            )
        if self.population.is_used and not self.population_steps:
            raise ValueError(
                f"--population.steps is {self.population.steps}; give {self.steps_per_update}, one update, or more"
            )
        if self.network.critic == "central":
            has_more = self.opponents.is_used or self.world.is_used or self.network.memory != "none"
            if has_more or self.network.destinations:
                raise ValueError(
                    "--network.critic central is for an agent without opponent models, world, memory and destinations: "
                    "train mappo, or leave it out"
                )
        if self.ppo.ranked_reward and (self.planning.is_used or self.imagination.is_used):
            raise ValueError(
                "--ppo.ranked-reward pays in ranks, while planning and imagination add the game's own rewards; leave "
                "it out, or train ppo or omg"
            )
        if self.imagination.is_used and not (self.world.is_used and self.opponents.is_used):
            raise ValueError(
                f"--imagination.real-ratio is {self.imagination.real_ratio}, but there is no world or no opponent "
                "model to imagine with; give --world.members 1 or more and --others.models each, or train hop_plus"
            )
        for name, value in (("envs", self.envs), ("rollout-steps", self.rollout_steps)):
            if value < 1:
                raise ValueError(f"--{name} is {value}; give 1 or more")
        if self.schedule is not None and self.schedule < self.steps_per_update:
            raise ValueError(f"--schedule is {self.schedule}; give {self.steps_per_update} steps, one update, or more")

    @property
    def population_steps(self) -> int:
        """Environment steps of all members of the population together."""
        left_out = 0 if self.population.run else self.population.steps % self.steps_per_update
        return self.population.members * (self.population.steps - left_out)

    @property
    def steps_per_update(self) -> int:
        """Environment steps of each seed between two updates."""
        return self.envs * self.rollout_steps
