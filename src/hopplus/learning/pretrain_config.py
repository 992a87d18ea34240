"""The settings of pretraining. No JAX here."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from hopplus.agents.config import OpponentsConfig
from hopplus.core.extensions import named
from hopplus.core.names import TEXT
from hopplus.learning.config import LearnerConfig, ModellingConfig
from hopplus.models.config import GoalsConfig, OthersConfig, WorldConfig

if TYPE_CHECKING:
    from typing import TypeAlias

    from hopplus.games.coplayers import Policy
    from hopplus.games.game import Game

    GameName: TypeAlias = str | Game
    Script: TypeAlias = str | Policy
else:  # the command line and config.json hold names
    GameName = Script = Annotated[object, TEXT]

REFERENCE_SAMPLES = 107_010
"""The size of the notes' data set."""


@dataclass(frozen=True)
class Recipe:
    """What a data set is made of."""

    game: GameName = "stag-hunt-8x8-obstacles"
    """A name from `hopplus games`, or MODULE:FACTORY."""
    types: tuple[Script, ...] = ("nearest_stag", "nearest_hare")
    """The scripts that each seat of each episode is drawn from, uniformly. In Python also players."""
    samples: int = REFERENCE_SAMPLES
    """How many actions of players in the game; the last episode is played to its end."""
    seed: int = 0
    """The random seed."""

    def __post_init__(self):
        object.__setattr__(self, "game", named(self.game))
        object.__setattr__(self, "types", tuple(map(named, self.types)))

    def check(self) -> None:
        """Raise if a setting is out of range."""
        if self.samples < 1:
            raise ValueError(f"--data.samples is {self.samples}; give 1 or more")
        if not self.types:
            raise ValueError("--data.types is empty; name one script or more, as in nearest_stag nearest_hare")


@dataclass(frozen=True)
class PretrainConfig:
    """Data, models and how long."""

    data: Recipe = field(default_factory=Recipe)
    """The episodes to learn from."""
    opponents: Annotated[OpponentsConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: OpponentsConfig(GoalsConfig(kind="continuous"), OthersConfig(models="shared"))
    )
    """The opponent models. A seat of a run gets a copy of them for each co-player."""
    modelling: ModellingConfig = field(default_factory=ModellingConfig)
    """How they learn; its environments and minibatches are those of a run."""
    labels: Literal["hindsight", "types"] = "hindsight"
    """What a goal of kind `hindsight` means: the next event of a player, or the script that it is."""
    epochs: int = 10
    """Passes over the data."""
    held_out: float = 0.1
    """The share of episodes that the models are tested on and never see."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        self.data.check()
        self.opponents.check()
        self.modelling.check()
        if self.opponents.others.models != "shared":
            raise ValueError("--others.models must be shared for pretraining: a run makes a copy for each co-player")
        if self.epochs < 1:
            raise ValueError(f"--epochs is {self.epochs}; give 1 or more")
        if not 0 < self.held_out < 1:
            raise ValueError(f"--held-out is {self.held_out}; give a share between 0 and 1")

    @property
    def learner(self) -> LearnerConfig:
        """The same settings as those of a learner."""
        return LearnerConfig(opponents=self.opponents, modelling=self.modelling)


@dataclass(frozen=True)
class WorldPretrainConfig:
    """Data, a world and how long."""

    data: Recipe = field(default_factory=Recipe)
    """The episodes to learn from."""
    world: WorldConfig = field(default_factory=lambda: WorldConfig(members=1))
    """The learned model of the game."""
    epochs: int = 10
    """Passes over the data."""
    held_out: float = 0.1
    """The share of episodes that the world is tested on and never sees."""

    def check(self) -> None:
        """Raise if a setting is out of range."""
        self.data.check()
        self.world.check()
        if not self.world.is_used:
            raise ValueError("--world.members is 0; give 1 or more for --world")
        if self.epochs < 1:
            raise ValueError(f"--epochs is {self.epochs}; give 1 or more")
        if not 0 < self.held_out < 1:
            raise ValueError(f"--held-out is {self.held_out}; give a share between 0 and 1")
