"""The settings of a run: every field is a flag of `hopplus train` and a line of the run's `config.json`."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, cast

import tyro

from hopplus.games.coplayers import Lineup, read_policies
from hopplus.games.game import NUM_SEEDS, Game
from hopplus.games.presets import PRESETS, make
from hopplus.learning.learner import LearnerConfig, Task
from hopplus.runs.agents import learner_of, parts_of


def check_seed(seed: int) -> None:
    if not 0 <= seed < NUM_SEEDS:
        raise ValueError(f"--seed is {seed}; give a whole number from 0 to {NUM_SEEDS - 1}")


@dataclass(frozen=True)
class RunConfig:
    """One training: an agent, a game, several seeds side by side."""

    agent: tyro.conf.Suppress[Literal["ppo", "omg", "direct_om", "hop", "hop_plus"]] = "ppo"
    """The kind of agent."""
    game: str = "stag-hunt-4x4"
    """A name from `hopplus games`, or MODULE:FACTORY for a game of your own."""
    arenas: Literal["default", "off"] | tuple[int, int] = "default"
    """Train in squares of the board with sides in this range, as in --arenas 3 8. `default` is the game's own
    curriculum: stag hunts have one. Evaluation is always on the whole board."""
    co_players: str | None = None
    """Fixed co-players for the last seats, as in nearest_stag,nearest_stag,random; the seats before them learn. None:
    all seats learn."""
    pretrained: str | None = None
    """A folder of `hopplus pretrain`: every seat begins with its models, and keeps its prior over goals."""
    begin_with: str | None = None
    """A run folder: every seed begins with the policy, the critic, the models of the others and the world that one of
    its seeds has learned. --pretrained models count instead of those."""
    seeds: int = 5
    """How many trainings run side by side, in one program."""
    steps: int = 2_000_000
    """Environment steps of each seed; a step of all seats of one table is one. Cut to whole updates."""
    seed: int = 0
    """Where the random streams of all seeds begin."""
    checkpoint_every: int = 10
    """Updates between two checkpoints: the most that a killed run loses."""
    wandb: str | None = None
    """The Weights & Biases project to log to as well."""
    learner: Annotated[LearnerConfig, tyro.conf.arg(name="")] = field(default=cast(LearnerConfig, None))
    """How the agent learns; the agent's own settings unless said otherwise."""

    @staticmethod
    def for_agent(agent: str, *, learner: dict[str, Any] | None = None, **settings: Any) -> "RunConfig":
        """The settings of an agent by its name, with changes.

        `RunConfig.for_agent("hop_plus", game="stag-hunt-4x4", seeds=3, learner={"envs": 8})`
        """
        return RunConfig(agent=cast(Any, agent), learner=replace(learner_of(agent), **(learner or {})), **settings)

    def __post_init__(self):
        if self.learner is None:
            object.__setattr__(self, "learner", learner_of(self.agent))
        self.learner.check()
        if not parts_of(self.learner) and (named := parts_of(learner_of(self.agent))):
            raise ValueError(
                f"the agent is {self.agent}, which has {' and '.join(named)}, but these learner settings are plain "
                f"PPO's; start from RunConfig.for_agent({self.agent!r}), or name the agent ppo"
            )
        for name, value in (("seeds", self.seeds), ("checkpoint-every", self.checkpoint_every)):
            if value < 1:
                raise ValueError(f"--{name} is {value}; give 1 or more")
        check_seed(self.seed)
        if self.seeds % self.learner.mesh.seeds:
            raise ValueError(
                f"--mesh.seeds is {self.learner.mesh.seeds}, but --seeds is {self.seeds}; give a number that divides it"
            )
        if self.pretrained is not None and self.learner.mind.others.models == "none":
            raise ValueError(f"--pretrained: {self.agent} has no models of the others; train omg or hop")
        if self.steps < self.learner.steps_per_update:
            raise ValueError(
                f"--steps is {self.steps}, less than one update of {self.learner.steps_per_update} "
                "(--envs x --rollout-steps); give more steps, or fewer environments"
            )

    @property
    def num_updates(self) -> int:
        return self.steps // self.learner.steps_per_update

    @cached_property
    def evaluation_game(self) -> Game:
        """The game itself, without a curriculum."""
        return make(self.game)

    @cached_property
    def task(self) -> Task:
        """What is learned; raises where the settings make no sense together."""
        game = self._training_game()
        seats = game.spec.num_agents
        others = read_policies(self.co_players, game.spec) if self.co_players is not None else ()
        if len(others) >= seats:
            raise ValueError(
                f"--co-players names {len(others)} players for the {seats} seats of {self.game}; "
                f"name {seats - 1} at most, so that a seat is left to learn"
            )
        if self.learner.world.is_used and game.spec.num_walkers != seats:
            raise ValueError(
                f"--world.members: {self.game} has no board to learn; leave the world out, or take a grid game"
            )
        return Task(game, Lineup(others), self.num_updates, keep_prior=self.pretrained is not None)

    def _training_game(self) -> Game:
        game = self.evaluation_game
        sides = self.arenas
        if sides == "default":
            sides = PRESETS[self.game].arena_sides if self.game in PRESETS else None
        if sides is None or sides == "off":
            return game
        grid = getattr(game, "grid", None)
        if grid is None:
            raise ValueError(f"--arenas {sides[0]} {sides[1]}: {self.game} has no board; leave --arenas out")
        try:
            return replace(game, grid=replace(grid, arena_sides=tuple(sides)))
        except ValueError as error:
            raise ValueError(f"--arenas {sides[0]} {sides[1]}: {error}") from None
