"""The training step: the only file that knows every part of an agent.

All seats learn at once, or some against fixed co-players. `train_step` is for one seed; `train_block` maps it over
seeds and runs many steps in one compiled program.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game
from hopplus.games.rollout import Table, open_table
from hopplus.learning import episodes, ppo
from hopplus.learning.devices import in_parts
from hopplus.learning.episodes import Running
from hopplus.learning.ppo import Batch, Metrics, PPOConfig
from hopplus.learning.record import record
from hopplus.learning.returns import advantages
from hopplus.learning.rollout import Seats, Trajectory, collect
from hopplus.learning.streams import at, stream
from hopplus.models import actor_critic
from hopplus.models.actor_critic import ActorCritic, ActorCriticConfig


@dataclass(frozen=True)
class LearnerConfig:
    """How an agent learns."""

    envs: int = 256
    """Tables that are played side by side, for each seed."""
    rollout_steps: int = 36
    """Steps that every table plays between two updates."""
    sharing: Literal["independent", "shared"] = "independent"
    """Whether each learning seat has parameters of its own, or all share one set."""
    network: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    """The network of a seat."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The objective."""
    devices: int = 1
    """Devices, on a CPU: cores, that share the work of each seed. The same bits need the same number of them."""

    def check(self) -> None:
        """Raise where a setting makes no sense. A run does so: raised on creation, tyro would wrap the reason."""
        self.network.check()
        self.ppo.check()
        for name, value in (("envs", self.envs), ("rollout-steps", self.rollout_steps), ("devices", self.devices)):
            if value < 1:
                raise ValueError(f"--{name} is {value}; give 1 or more")

    @property
    def steps_per_update(self) -> int:
        return self.envs * self.rollout_steps


class Task(eqx.Module):
    """What is learned: a game, who else sits at the table, and for how long. Without arrays, so it is static."""

    game: Game
    co_players: Lineup
    """They take the last seats; nobody, for self-play."""
    num_updates: int = eqx.field(static=True)
    """The length of the whole run: what is annealed ends there."""

    @property
    def num_learning(self) -> int:
        return self.game.spec.num_agents - len(self.co_players.policies)


class LearnerState(eqx.Module):
    """Everything that a run of one seed holds between two updates; seeds are one more leading axis."""

    params: ActorCritic
    """One set for each learner, stacked."""
    optimizer: PyTree[Array]
    tables: Table
    running: Running
    key: Key[Array, "*seeds"]
    seat_keys: Key[Array, "*seeds agents"]
    """Each seat acts with a random stream of its own."""
    learner_keys: Key[Array, "*seeds learners"]
    num_updates: Int32[Array, "*seeds"]


def init(config: LearnerConfig, task: Task, *, key: Key[Array, ""]) -> LearnerState:
    """The state of one seed before its first update."""
    num_learners = task.num_learning if config.sharing == "independent" else 1
    learner_keys = jax.random.split(stream(key, "learners"), num_learners)
    init_one = lambda key: actor_critic.init(config.network, task.game.spec, key=stream(key, "network"))  # noqa: E731
    params = jax.vmap(init_one)(learner_keys)
    seats = seats_of(task, params)
    open_one = lambda key: open_table(task.game, seats, key=key)  # noqa: E731
    return LearnerState(
        params=params,
        optimizer=jax.vmap(lambda params: ppo.optimizer_state(config.ppo, params))(params),
        tables=jax.vmap(open_one)(jax.random.split(stream(key, "first tables"), config.envs)),
        running=episodes.start(task.game, config.envs),
        key=key,
        seat_keys=jax.random.split(stream(key, "seats"), task.game.spec.num_agents),
        learner_keys=learner_keys,
        num_updates=jnp.int32(0),
    )


def seats_of(task: Task, params: ActorCritic) -> Seats:
    """The players of a table: each learning seat with the parameters of its learner."""
    by_seat = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (task.num_learning, *leaf.shape[1:])), params)
    return Seats(by_seat, task.co_players, task.num_learning)


def train_step(config: LearnerConfig, task: Task, state: LearnerState) -> tuple[LearnerState, Metrics]:
    """Play, look back, learn. For one seed."""
    now = lambda keys, name: jax.vmap(lambda key: at(key, name, state.num_updates))(keys)  # noqa: E731
    tables, steps, last_values = collect(
        task.game,
        seats_of(task, state.params),
        state.tables,
        config.rollout_steps,
        seat_keys=now(state.seat_keys, "act"),
        table_key=at(state.key, "tables", state.num_updates),
        num_devices=config.devices,
    )
    running, ended, num_ended = episodes.follow(state.running, steps)
    batch = look_back(config, task, steps, last_values)
    num_learners = state.learner_keys.shape[0]
    shared_by = task.num_learning // num_learners
    samples = config.steps_per_update
    by_learner = jax.tree.map(lambda leaf: leaf.reshape(num_learners, shared_by, samples, *leaf.shape[3:]), batch)
    remaining = 1.0 - state.num_updates / task.num_updates
    learn = lambda remaining, data: jax.lax.map(  # noqa: E731
        partial(ppo.update, config.ppo, value_scale(task), remaining), data
    )
    data = (state.params, state.optimizer, by_learner, now(state.learner_keys, "shuffle"))
    params, optimizer, learned = in_parts(learn, config.devices, num_learners)(remaining, data)
    after = LearnerState(
        params=params,
        optimizer=optimizer,
        tables=tables,
        running=running,
        key=state.key,
        seat_keys=state.seat_keys,
        learner_keys=state.learner_keys,
        num_updates=state.num_updates + 1,
    )
    learned["finite"] = jax.vmap(all_finite)(params).astype(jnp.float32)
    return after, record(task.game.spec, steps, batch, ended, num_ended, learned)


def look_back(config: LearnerConfig, task: Task, steps: Trajectory, last_values: Float32[Array, "envs seats"]) -> Batch:
    """What each learning seat can learn from the steps; a seat's targets are made of its own rewards."""
    by_seat = lambda leaf: jnp.moveaxis(leaf[:, :, : task.num_learning], 2, 0)  # noqa: E731
    over_seats_and_envs = lambda fn: jax.vmap(jax.vmap(fn))  # noqa: E731
    values = by_seat(steps.values)
    advantage = over_seats_and_envs(
        lambda rewards, values, last_value, terminated_after: advantages(
            rewards,
            values,
            last_value,
            terminated_after,
            discount=config.ppo.discount,
            gae_lambda=config.ppo.gae_lambda,
        )
    )(by_seat(steps.rewards), values, last_values.T, by_seat(steps.terminated_after))
    return Batch(
        observation=jax.tree.map(by_seat, steps.observation),
        legal=by_seat(steps.legal),
        actions=by_seat(steps.actions),
        log_probabilities=by_seat(steps.log_probabilities),
        values=values,
        advantages=advantage,
        active=by_seat(steps.in_game),
    )


def all_finite(tree: PyTree[Array]) -> Bool[Array, ""]:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]).all()


def value_scale(task: Task) -> float:
    """The largest reward of the game: the critic's losses are in this unit, so that one setting serves every game."""
    return max(abs(reward) for reward in task.game.spec.reward_support) or 1.0


def train_block(
    config: LearnerConfig, task: Task, states: LearnerState, num_updates: Int32[Array, ""], most: int
) -> tuple[LearnerState, Metrics]:
    """Up to `most` updates of all seeds; the metrics of the first `num_updates` are filled in."""
    step = partial(jax.lax.map, partial(train_step, config, task))  # one after the other: smaller arrays stay in caches
    shapes = jax.eval_shape(lambda states: step(states)[1], states)
    empty = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), shapes)

    def one_update(index, carry):
        states, metrics = carry
        states, now = step(states)
        return states, jax.tree.map(lambda all_, leaf: all_.at[index].set(leaf), metrics, now)

    return jax.lax.fori_loop(0, num_updates, one_update, (states, empty))
