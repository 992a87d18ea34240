"""A trained run: its settings, and its policies as pure functions."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from hopplus.agents.config import NO_PLANNING, PlanningConfig
from hopplus.agents.opponents import OpponentModels
from hopplus.agents.planner import Planner
from hopplus.agents.player import Player
from hopplus.agents.population import Population, filled
from hopplus.games.coplayers import Lineup, Policy
from hopplus.games.game import Game, overrides
from hopplus.learning.initial import init, seats_of
from hopplus.learning.state import Learner, LearnerState
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.learned_game import LearnedGame, from_view
from hopplus.models.world import WorldModel
from hopplus.runs.checkpoints import Checkpoints
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CHECKPOINTS, CONFIG, read_config, read_written
from hopplus.runs.formats import migrated_arrays


@dataclass(frozen=True)
class Run:
    """The settings of a run and the parameters of its last checkpoint."""

    folder: Path
    config: RunConfig
    num_updates: int
    params: PolicyNetwork
    """Leading axes: seeds, learning seats."""
    opponents: OpponentModels
    """The opponent models of each seat; leading axes as for `params`."""
    worlds: WorldModel | None
    """Leading axes: seeds, learners, members; None for an agent without a world."""
    population: Population | None = None
    """The frozen co-players of a best response; leading axes: seeds, policies."""

    @property
    def game(self) -> Game:
        """The game of evaluation: the whole board, without a curriculum."""
        return self.config.evaluation_game

    @property
    def num_learning(self) -> int:
        """The number of seats that learned."""
        return self.config.task.num_learning

    def policy(
        self, *, seed: int = 0, seat: int = 0, greedy: bool = False, planning: PlanningConfig = NO_PLANNING
    ) -> Player | Planner:
        """One trained policy: `probabilities, state = policy(observation, legal, policy.init())`."""
        if not 0 <= seed < self.config.seeds:
            raise ValueError(f"{self.folder} has no seed {seed}; its seeds are 0 to {self.config.seeds - 1}")
        if not 0 <= seat < self.num_learning:
            raise ValueError(f"{self.folder} trained no seat {seat}; its seats are 0 to {self.num_learning - 1}")
        return _at(self.players(greedy=greedy, planning=planning)[seat], seed)

    def players(
        self, *, greedy: bool = False, planning: PlanningConfig = NO_PLANNING
    ) -> tuple[Player, ...] | tuple[Planner, ...]:
        """The trained policies, seat by seat; their arrays have a leading axis of seeds."""
        planning.check()
        settings = self.config.learner.opponents

        def player(seat: int) -> Player:
            params, models = jax.tree.map(lambda leaf: leaf[:, seat], (self.params, self.opponents))
            return Player(params, models, self.game, settings, greedy)

        players = tuple(player(seat) for seat in range(self.num_learning))
        if not planning.is_used:
            return players
        if not settings.is_used:
            raise ValueError(f"{self.folder} has no opponent models to plan with; train hop or hop_plus")
        discount = self.config.learner.ppo.discount
        return tuple(
            Planner(player, self._game_of(seat, planning), planning, discount) for seat, player in enumerate(players)
        )

    def lineup(self, *, greedy: bool = False, planning: PlanningConfig = NO_PLANNING) -> Lineup:
        """All seats as in training: the trained policies, then the fixed co-players, if any."""
        others = self.config.task.co_players
        if self.population is not None:
            others = filled(others, self.population, self.game, self.config.learner.opponents)
        else:
            others = Lineup(tuple(for_seeds(policy, self.config.seeds) for policy in others.policies))
        return Lineup((*self.players(greedy=greedy, planning=planning), *others.policies))

    @property
    def every_world(self) -> WorldModel:
        """The worlds of all seeds, learners and members in one leading axis."""
        if self.worlds is None:
            raise ValueError(f"{self.folder} is a run of {self.config.agent}, which learns no world; train hop_plus")
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), self.worlds)

    def _game_of(self, seat: int, planning: PlanningConfig) -> Game:
        """The game that a seat plans in: the true game, or the first member of its learner's worlds."""
        if planning.model == "game":
            if not overrides(self.game, "from_view"):
                raise ValueError(
                    f"{self.config.game} cannot be planned in: write `from_view` in {type(self.game).__name__}, or "
                    "plan in a world that the run learned, with --planning.model world"
                )
            return self.game
        if self.worlds is None:
            raise ValueError(
                f"{self.folder} learned no world to plan in; train hop_plus, or give --planning.model game"
            )
        num_learners = jax.tree.leaves(self.worlds)[0].shape[1]
        world = jax.tree.map(lambda leaf: leaf[:, seat % num_learners, 0], self.worlds)
        first = jax.tree.map(lambda leaf: leaf[:1], self.game.observe(self.game.reset(key=jax.random.key(0))))
        starts = jax.vmap(partial(from_view, self.game.spec))(first)
        return LearnedGame(world, self.game, _repeat(starts, self.config.seeds))


def load(folder: Path | str, *, agent: Any = None, game: Any = None, co_players: Any = None) -> Run:
    """Read a run folder. Agent, game and co-players are needed if they were Python objects without a name."""
    folder = Path(folder)
    config = read_config(folder, agent=agent, game=game, co_players=co_players)
    done, state = last_state(folder, config)
    return run_of(folder, config, done, state.learners, state.population)


def run_of(folder: Path, config: RunConfig, done: int, learners: Learner, population: Population | None = None) -> Run:
    """The run with the parameters of these learners."""
    seated = jax.vmap(partial(seats_of, config.learner, config.task))(learners)
    worlds = learners.world
    return Run(folder, config, done, seated.params, seated.opponents, worlds.params if worlds else None, population)


def last_state(folder: Path, config: RunConfig) -> tuple[int, LearnerState]:
    """The number of updates of a run, and its last checkpoint."""
    untrained = f"{folder} has no checkpoint yet; train it first, with the command that started it"
    if not (folder / CHECKPOINTS).is_dir():
        raise ValueError(untrained)
    checkpoints = Checkpoints(folder / CHECKPOINTS, read_only=True)
    try:
        if checkpoints.latest is None:
            raise ValueError(untrained)
        migrate = partial(migrated_arrays, read_written(folder), folder / CONFIG)
        return checkpoints.latest, checkpoints.restore(checkpoints.latest, state_shapes(config), migrate)
    finally:
        checkpoints.close()


def state_shapes(config: RunConfig) -> PyTree[jax.ShapeDtypeStruct]:
    """The shapes of a checkpoint of a run with these settings."""
    task = config.task  # made here, because players of your own are checked when it is made
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), config.seeds))
    return jax.eval_shape(jax.vmap(lambda key: init(config.learner, task, key=key)), keys)


def for_seeds(policy: Policy, num_seeds: int) -> Policy:
    """A player for every seed: its arrays and numbers get a leading axis of seeds."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_seeds, *jnp.shape(leaf))), policy)


def _at(tree: PyTree[Array], index: int) -> PyTree[Array]:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _repeat(tree: PyTree[Array], count: int) -> PyTree[Array]:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), tree)
