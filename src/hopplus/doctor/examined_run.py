"""A run under examination: its metrics, its parameters, and one more update, in parts.

The parts are the functions of the training step itself, so the doctor examines the code that trains.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import jax

from hopplus.agents.opponents import OpponentModels
from hopplus.core.mesh import MeshConfig
from hopplus.games.game import Game
from hopplus.learning import learner
from hopplus.learning.config import LearnerConfig
from hopplus.learning.state import Experience, LearnerState, Task
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.world import WorldModel
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import read_config
from hopplus.runs.records import Recorded, read_run
from hopplus.runs.run import Run, last_state, run_of


@dataclass(frozen=True, eq=False)
class ExaminedRun:
    """One run folder. Costly values are computed on first use and kept."""

    folder: Path
    config: RunConfig

    @cached_property
    def recorded(self) -> Recorded:
        return read_run(self.folder)

    @cached_property
    def _last(self) -> tuple[int, LearnerState]:
        return last_state(self.folder, self.config)

    @cached_property
    def run(self) -> Run:
        done, state = self._last
        return run_of(self.folder, self.config, done, state.learners, state.population)

    @property
    def states(self) -> LearnerState:
        """The learners at the last checkpoint; leading axis: seeds."""
        return self._last[1]

    def state(self, seed: int) -> LearnerState:
        return jax.tree.map(lambda leaf: leaf[seed], self.states)

    @property
    def seeds(self) -> range:
        return range(self.config.seeds)

    @cached_property
    def learner(self) -> LearnerConfig:
        """The learner's settings, on one device."""
        return replace(self.config.learner, mesh=MeshConfig())

    @property
    def task(self) -> Task:
        return self.config.task

    @property
    def game(self) -> Game:
        return self.task.game

    @property
    def seats(self) -> tuple[str, ...]:
        """The names of the seats that learn."""
        return tuple(f"player_{seat + 1}" for seat in range(self.task.num_learning))

    @property
    def is_symmetric(self) -> bool:
        """Whether every seat learns. Then training must treat all seats alike."""
        return self.task.num_learning == self.game.spec.num_agents

    @property
    def has_board(self) -> bool:
        return self.game.spec.num_walkers == self.game.spec.num_agents

    @cached_property
    def play(self):
        """The first half of a training step, compiled: state -> experience."""
        return jax.jit(partial(learner.play, self.learner, self.task))

    @cached_property
    def learn(self):
        """The second half of a training step, compiled: state and experience -> learners and metrics."""
        return jax.jit(partial(learner.learn_all, self.learner, self.task))

    @cached_property
    def experience(self) -> list[Experience]:
        """For each seed, the experience of its next update."""
        return [self.play(self.state(seed)) for seed in self.seeds]


def learned_params(state: LearnerState) -> tuple[PolicyNetwork, OpponentModels, WorldModel | None]:
    """The parameters of the policies, of the opponent models and of the worlds; leading axis: learners."""
    learners = state.learners
    return learners.policy.params, learners.opponents.params, learners.world.params if learners.world else None


def open_run(folder: Path | str) -> ExaminedRun:
    """Open a run folder for examination."""
    folder = Path(folder)
    return ExaminedRun(folder, read_config(folder))
