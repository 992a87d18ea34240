"""The records of training: what is learned, what a seed holds between two updates, and what an update learns from."""

import equinox as eqx
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.agents.population import Population
from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game
from hopplus.games.rollout import EnvState
from hopplus.learning.agent import Agent
from hopplus.learning.episodes import EpisodeStats
from hopplus.learning.imagination import Branches
from hopplus.learning.opponent_data import OpponentData
from hopplus.learning.optim import Trained
from hopplus.learning.ppo import Batch
from hopplus.learning.replay import Kept
from hopplus.learning.rollout import Trajectory
from hopplus.models.world import Transition


class Task(eqx.Module):
    """What is learned: a game, the fixed co-players, and the length of schedules."""

    game: Game
    co_players: Lineup
    """They take the last seats; empty for self-play."""
    schedule: int | Int32[Array, ""]
    """The number of updates over which schedules run. A number that a program gets when it runs, so that one program
    serves schedules of every length."""
    agent: Agent = Agent()
    """How the policies start and learn."""
    keep_prior: bool = eqx.field(static=True, default=False)
    """Whether the prior over goals was pretrained and is not trained further."""

    @property
    def num_learning(self) -> int:
        """How many seats learn."""
        return self.game.spec.num_agents - len(self.co_players.policies)


class Learner(eqx.Module):
    """One set of parameters: a policy, opponent models, a world."""

    policy: Trained
    opponents: Trained
    world: Trained | None
    """The members of the ensemble, stacked; None without a world."""


class Keys(eqx.Module):
    """The random streams of one seed."""

    run: Key[Array, "*seeds"]
    seats: Key[Array, "*seeds agents"]
    """Each seat acts with its own stream."""
    learners: Key[Array, "*seeds learners"]


class LearnerState(eqx.Module):
    """Everything that one seed holds between two updates; seeds are one more leading axis."""

    learners: Learner
    """One for each learning seat, or one for all, stacked."""
    envs: EnvState
    episodes: EpisodeStats
    replay: PyTree[Array] | None
    """The buffer of worlds and opponent models; None without a world."""
    keys: Keys
    num_updates: Int32[Array, "*seeds"]
    population: Population | None = None
    """The frozen policies that co-players are drawn from; None without a population."""


class Experience(eqx.Module):
    """What one update learns from; leading axes of what seats saw: seats, envs, time."""

    envs: EnvState
    """After the rollout."""
    episodes: EpisodeStats
    steps: Trajectory
    last_values: Float32[Array, "envs seats"]
    """Of the states that the rollout stopped at."""
    ended: EpisodeStats
    """The mean over the episodes that ended."""
    num_ended: Float32[Array, ""]
    rewards: Float32[Array, "envs time agents"]
    """What the policies learn from: the game's rewards, ranks, or those of a hidden utility."""
    batch: Batch
    """For the policies."""
    opponent_data: OpponentData | None
    """For the opponent models."""
    goal_data: OpponentData | None
    """For latent goals: the data of fewer environments."""
    branches: Branches | None
    """Where imagined rollouts start."""
    replay: PyTree[Array] | None
    transitions: Transition | None
    """The new transitions, on which worlds are scored."""


class UpdateContext(eqx.Module):
    """What all learners of one update share."""

    remaining: Float32[Array, ""]
    """The share of the schedule that is left."""
    replay: Kept | None
    """The entries of the replay buffer that models learn from."""
    transitions: Transition | None
    """New in this update, on which worlds are scored."""
    has_seen_all: Bool[Array, ""]
    """Whether every event of the game was seen, as `imagination.explore` asks for."""


class LearnerData(eqx.Module):
    """What one learner learns from in one update; learners are one more leading axis."""

    batch: Batch
    opponent_data: OpponentData | None
    goal_data: OpponentData | None
    branches: Branches | None
    orders: Int32[Array, "*learners seats agents"]
    """All seats in the order of each of the learner's own."""
    keys: dict[str, Key[Array, "*learners"]]
    """What the learner draws with in this update, by purpose."""
    seat_keys: dict[str, Key[Array, "*learners seats"]]
    """What each seat draws with for its learner, by purpose; the same for each learner where it has one seat."""
