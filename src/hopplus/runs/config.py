"""The settings of a run: every field is a flag of `hopplus train` and a line of the run's `config.json`."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import tyro

from hopplus.core.checks import check_seed
from hopplus.core.extensions import named
from hopplus.core.names import TEXT
from hopplus.learning.config import LearnerConfig
from hopplus.runs.agents import learner_of, own_agent, parts_of
from hopplus.runs.defaults import GAME, defaults_of, with_setting

if TYPE_CHECKING:  # settings are read without JAX; games and learners need it
    from collections.abc import Sequence
    from typing import TypeAlias

    from hopplus.games.coplayers import Policy
    from hopplus.games.game import Game
    from hopplus.learning.agent import Agent
    from hopplus.learning.state import Task

    AgentName: TypeAlias = str | Agent
    GameName: TypeAlias = str | Game
    CoPlayers: TypeAlias = str | Sequence[str | Policy]
else:  # the command line and config.json hold names
    AgentName = GameName = CoPlayers = Annotated[object, TEXT]


@dataclass(frozen=True)
class RunConfig:
    """One training: an agent, a game, and several seeds in one program."""

    agent: tyro.conf.Suppress[AgentName] = "ppo"
    """The kind of agent: a name, or MODULE:FACTORY for an agent of your own."""
    game: GameName = GAME
    """A name from `hopplus games`; jaxmarl:NAME, jumanji:NAME or pettingzoo:MODULE.FACTORY for an environment of these
    libraries; or MODULE:FACTORY for a game of your own."""
    arenas: Literal["default", "off"] | tuple[int, int] = cast(Literal["default", "off"], None)
    """Train in squares of the board with sides in this range, as in --arenas 3 8. `default` is the game's own
    curriculum, which stag hunts have; only hop_plus_notes does without. Evaluation uses the whole board."""
    co_players: CoPlayers | None = None
    """Fixed co-players for the last seats, as in nearest_stag,nearest_stag,random; the seats before them learn. A
    script of your own is MODULE:FACTORY. None: all seats learn."""
    pretrained: str | None = None
    """A folder of `hopplus pretrain`: every seat starts from its opponent models and keeps its prior over goals."""
    pretrained_world: str | None = None
    """A folder of `hopplus pretrain --world`: every learner starts from its world."""
    init_from: str | None = None
    """A run folder: every seed is initialised from the policy, critic, opponent models and world of one of its seeds.
    --pretrained opponent models replace those of the run."""
    seeds: int = 5
    """How many seeds are trained in parallel, in one program."""
    steps: int = cast(int, None)
    """Environment steps of each seed, cut to whole updates. All seats of one environment act in one step. The default
    depends on the agent and the game."""
    early_stop: int = cast(int, None)
    """All seeds end together when `held_out/return`, the mean over seeds, gained less than 3% in this many environment
    steps, after the schedule. --steps is then the most that a run has. 0: a run has all its steps."""
    seed: int = 0
    """The seed of all random streams."""
    checkpoint_every: int = 10
    """Updates between two checkpoints. A killed run loses at most this many."""
    wandb: str | None = None
    """A Weights & Biases project that also gets the metrics."""
    learner: Annotated[LearnerConfig, tyro.conf.arg(name="")] = field(default=cast(LearnerConfig, None))
    """How the agent learns. The default is the settings of the named agent on this game."""

    @staticmethod
    def for_agent(agent: AgentName, *, learner: dict[str, Any] | None = None, **settings: Any) -> "RunConfig":
        """The settings of a named agent, with changes; those of the learner by field, as in its flags.

        `RunConfig.for_agent("hop_plus", seeds=3, learner={"envs": 8, "imagination.real_ratio": 0.5})`
        """
        changed = learner_of(agent, game=settings.get("game", GAME))
        for name, value in (learner or {}).items():
            changed = with_setting(changed, name, value)
        return RunConfig(agent=agent, learner=changed, **settings)

    def __post_init__(self):
        for name in ("agent", "game", "co_players"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, named(value))
        if self.learner is None:
            object.__setattr__(self, "learner", learner_of(self.agent, game=self.game))
        for name in ("steps", "early_stop", "arenas"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(defaults_of(self.agent, self.game), name))
        self.learner.check()
        if not parts_of(self.learner) and (parts := parts_of(learner_of(self.agent))):
            raise ValueError(
                f"the agent is {self.agent}, which has {' and '.join(parts)}, but these learner settings are plain "
                f"PPO's; start from RunConfig.for_agent({self.agent!r}), or name the agent ppo"
            )
        if self.learner.population.is_used and self.co_players is not None:
            raise ValueError(
                "--co-players: the population plays all seats but the first in training; leave it out, or train ppo"
            )
        for name, value in (("seeds", self.seeds), ("checkpoint-every", self.checkpoint_every)):
            if value < 1:
                raise ValueError(f"--{name} is {value}; give 1 or more")
        check_seed(self.seed)
        if self.early_stop and self.early_stop < self.learner.steps_per_update:
            raise ValueError(f"--early-stop is {self.early_stop}; give {self.learner.steps_per_update} steps or more")
        if self.early_stop and not (self.learner.imagination.is_used and self.learner.imagination.held_out):
            raise ValueError("--early-stop needs held-out returns; give --imagination.held-out 0.1, or --early-stop 0")
        if self.seeds < self.learner.mesh.seeds:
            raise ValueError(
                f"--mesh.seeds is {self.learner.mesh.seeds}, but --seeds is {self.seeds}; give that many seeds at most"
            )
        if self.pretrained_world is not None and not self.learner.world.is_used:
            raise ValueError(f"--pretrained-world: {self.agent} has no world; train hop_plus")
        if self.pretrained is not None and not self.learner.opponents.is_used:
            raise ValueError(f"--pretrained: {self.agent} has no opponent models; train omg or hop")
        if self.steps < self.learner.steps_per_update:
            raise ValueError(
                f"--steps is {self.steps}, less than one update of {self.learner.steps_per_update} "
                "(--envs x --rollout-steps); give more steps, or fewer environments"
            )

    @property
    def num_updates(self) -> int:
        return self.steps // self.learner.steps_per_update

    @property
    def schedule_updates(self) -> int:
        """The number of updates over which schedules run."""
        return (self.learner.schedule or self.steps) // self.learner.steps_per_update

    @cached_property
    def evaluation_game(self) -> "Game":
        """The game on its whole board, without a curriculum."""
        from hopplus.games.presets import make

        return make(self.game)

    @cached_property
    def task(self) -> "Task":
        """The game, the fixed co-players and the length of schedules; raises if the settings contradict each other."""
        from hopplus.agents.population import FromPopulation
        from hopplus.games.coplayers import Lineup
        from hopplus.games.lineups import read_policies
        from hopplus.learning.agent import Agent
        from hopplus.learning.state import Task

        game = self._training_game()
        seats = game.spec.num_agents
        others = read_policies(self.co_players, game) if self.co_players is not None else ()
        if self.learner.population.is_used:
            others = (FromPopulation(None, self.learner.population.num_policies),) * (seats - 1)
        if len(others) >= seats:
            raise ValueError(
                f"--co-players names {len(others)} players for the {seats} seats of {self.game}; "
                f"name {seats - 1} at most, so that a seat is left to learn"
            )
        agent = own_agent(self.agent) or Agent()
        return Task(game, Lineup(others), self.schedule_updates, agent, keep_prior=self.pretrained is not None)

    def _training_game(self) -> "Game":
        from hopplus.games.presets import PRESETS

        game = self.evaluation_game
        sides = self.arenas
        if sides == "default":
            sides = PRESETS[str(self.game)].arena_sides if self.game in PRESETS else None
        if sides is None or sides == "off":
            return game
        grid = getattr(game, "grid", None)
        if grid is None:
            raise ValueError(f"--arenas {sides[0]} {sides[1]}: {self.game} has no board; leave --arenas out")
        try:
            return replace(game, grid=replace(grid, arena_sides=tuple(sides)))
        except ValueError as error:
            raise ValueError(f"--arenas {sides[0]} {sides[1]}: {error}") from None
