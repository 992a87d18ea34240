"""A run on the examination table: what it recorded, what it learned, and one more update of it, in parts.

The parts are those of the training step itself, so what is examined is what trains.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import jax

from hopplus.games.game import Game
from hopplus.learning import learner
from hopplus.learning.devices import MeshConfig
from hopplus.learning.learner import Experience, LearnerConfig, LearnerState, Task
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import read_config
from hopplus.runs.records import Recorded, read_run
from hopplus.runs.run import Run, last_state, run_of


@dataclass(frozen=True, eq=False)
class Case:
    """One run folder; what is costly is computed when it is asked for, and once."""

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
        return run_of(self.folder, self.config, *self._last)

    @property
    def states(self) -> LearnerState:
        """As of the last checkpoint; leading axis: seeds."""
        return self._last[1]

    def state(self, seed: int) -> LearnerState:
        return jax.tree.map(lambda leaf: leaf[seed], self.states)

    @property
    def seeds(self) -> range:
        return range(self.config.seeds)

    @cached_property
    def learner(self) -> LearnerConfig:
        """As it was trained, on one device."""
        return replace(self.config.learner, mesh=MeshConfig())

    @property
    def task(self) -> Task:
        return self.config.task

    @property
    def game(self) -> Game:
        return self.task.game

    @property
    def seats(self) -> tuple[str, ...]:
        """The names of those that learn."""
        return tuple(f"player_{seat + 1}" for seat in range(self.task.num_learning))

    @property
    def is_symmetric(self) -> bool:
        """Whether every seat learns, so that no seat should be told from another."""
        return self.task.num_learning == self.game.spec.num_agents

    @property
    def has_board(self) -> bool:
        return self.game.spec.num_walkers == self.game.spec.num_agents

    @cached_property
    def play(self):
        """The first half of a training step, compiled."""
        return jax.jit(partial(learner.play, self.learner, self.task))

    @cached_property
    def learn(self):
        """The second half, compiled."""
        return jax.jit(partial(learner.learn_from, self.learner, self.task))

    @cached_property
    def lived(self) -> list[Experience]:
        """What each seed would learn from next."""
        return [self.play(self.state(seed)) for seed in self.seeds]


def open_case(folder: Path | str) -> Case:
    """A run folder that was trained."""
    folder = Path(folder)
    return Case(folder, read_config(folder))
