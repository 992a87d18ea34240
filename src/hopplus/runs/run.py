"""A run that was trained: its settings, and its policies as pure functions."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from hopplus.games.coplayers import Lineup, Policy
from hopplus.games.game import Game
from hopplus.learning.learner import LearnerState, init, seats_of
from hopplus.learning.minds import Mind, Player
from hopplus.learning.planner import Planner, PlanningConfig
from hopplus.models.actor_critic import ActorCritic
from hopplus.models.world import LearnedGame, World, from_view
from hopplus.runs.checkpoints import Checkpoints
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CHECKPOINTS, read_config

NO_PLANNING = PlanningConfig()


@dataclass(frozen=True)
class Run:
    """What a run folder holds, as of its last checkpoint."""

    folder: Path
    config: RunConfig
    num_updates: int
    params: ActorCritic
    """Leading axes: seeds, learning seats."""
    minds: Mind
    """What each seat knows of its co-players; the same axes."""
    worlds: World | None
    """Leading axes: seeds, learners, members; None where none was learned."""

    @property
    def game(self) -> Game:
        """The game that the run is judged on: the whole board, without a curriculum."""
        return self.config.evaluation_game

    @property
    def num_learning(self) -> int:
        return self.config.task.num_learning

    def policy(
        self, *, seed: int = 0, seat: int = 0, greedy: bool = False, planning: PlanningConfig = NO_PLANNING
    ) -> Player | Planner:
        """One trained policy: `probabilities, memory = policy(observation, legal, policy.start())`."""
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
        of_seat = lambda seat: jax.tree.map(lambda leaf: leaf[:, seat], (self.params, self.minds))  # noqa: E731
        by_seat = [of_seat(seat) for seat in range(self.num_learning)]
        players = tuple(Player(params, mind, self.game, self.config.learner.mind, greedy) for params, mind in by_seat)
        if not planning.is_used:
            return players
        if self.config.learner.mind.others.models == "none":
            raise ValueError(f"{self.folder} has no model of the others to plan with; train hop or hop_plus")
        discount = self.config.learner.ppo.discount
        return tuple(
            Planner(player, self._game_of(seat, planning), planning, discount) for seat, player in enumerate(players)
        )

    def lineup(self, *, greedy: bool = False, planning: PlanningConfig = NO_PLANNING) -> Lineup:
        """Everybody at the table as in training: the trained policies, then the co-players if there were any."""
        others: tuple[Policy, ...] = self.config.task.co_players.policies
        return Lineup((*self.players(greedy=greedy, planning=planning), *others))

    @property
    def every_world(self) -> World:
        """The worlds of all seeds, learners and members, one after the other."""
        if self.worlds is None:
            raise ValueError(f"{self.folder} is a run of {self.config.agent}, which learns no world; train hop_plus")
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), self.worlds)

    def _game_of(self, seat: int, planning: PlanningConfig) -> Game:
        """What a seat plans in: the true game, or the first member of its learner's worlds."""
        if planning.model == "game":
            return self.game
        if self.worlds is None:
            raise ValueError(
                f"{self.folder} learned no world to plan in; train hop_plus, or give --planning.model game"
            )
        num_learners = self.worlds.cell.bias.shape[1]
        world = jax.tree.map(lambda leaf: leaf[:, seat % num_learners, 0], self.worlds)
        first = jax.tree.map(lambda leaf: leaf[:1], self.game.observe(self.game.reset(key=jax.random.key(0))))
        starts = jax.vmap(partial(from_view, self.game.spec))(first)
        return LearnedGame(world, self.game, _repeat(starts, self.config.seeds))


def load(folder: Path | str) -> Run:
    """Read a run folder."""
    folder = Path(folder)
    config = read_config(folder)
    return run_of(folder, config, *last_state(folder, config))


def run_of(folder: Path, config: RunConfig, done: int, state: LearnerState) -> Run:
    """The run whose last checkpoint this is."""
    seats = jax.vmap(lambda params, minds: seats_of(config.learner, config.task, params, minds))
    seated = seats(state.params, state.minds)
    return Run(folder, config, done, seated.params, seated.minds, state.worlds)


def last_state(folder: Path, config: RunConfig) -> tuple[int, LearnerState]:
    """How many updates a run has done, and its last checkpoint."""
    untrained = f"{folder} has no checkpoint yet; train it first, with the command that began it"
    if not (folder / CHECKPOINTS).is_dir():
        raise ValueError(untrained)
    checkpoints = Checkpoints(folder / CHECKPOINTS, read_only=True)
    try:
        if checkpoints.latest is None:
            raise ValueError(untrained)
        return checkpoints.latest, checkpoints.restore(checkpoints.latest, state_shapes(config))
    finally:
        checkpoints.close()


def state_shapes(config: RunConfig) -> PyTree[jax.ShapeDtypeStruct]:
    """What a checkpoint of such a run holds."""
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), config.seeds))
    return jax.eval_shape(jax.vmap(lambda key: init(config.learner, config.task, key=key)), keys)


def _at(tree: PyTree[Array], index: int) -> PyTree[Array]:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _repeat(tree: PyTree[Array], count: int) -> PyTree[Array]:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), tree)
