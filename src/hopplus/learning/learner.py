"""The training step: the only file that knows every part of an agent.

All seats learn at once, or some against fixed co-players. `train_step` is for one seed; `train_block` maps it over
seeds and runs many steps in one compiled program.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game
from hopplus.games.rollout import Table, open_table
from hopplus.learning import episodes, minds, modelling, ppo
from hopplus.learning.devices import in_parts
from hopplus.learning.episodes import Running
from hopplus.learning.minds import Mind, MindConfig
from hopplus.learning.modelling import Lesson
from hopplus.learning.modelling_config import ModellingConfig
from hopplus.learning.ppo import Batch, Metrics, PPOConfig
from hopplus.learning.record import record
from hopplus.learning.returns import advantages
from hopplus.learning.rollout import Seats, Trajectory, collect
from hopplus.learning.streams import at, stream
from hopplus.learning.study import Study, first_tables, give_selected, look_at_all, prepare, study
from hopplus.models import actor_critic
from hopplus.models.actor_critic import ActorCritic, ActorCriticConfig
from hopplus.models.goals import goal_size


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
    mind: Annotated[MindConfig, tyro.conf.arg(name="")] = field(default_factory=MindConfig)
    """What a seat knows of the others."""
    modelling: ModellingConfig = field(default_factory=ModellingConfig)
    """How it learns that."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The objective."""
    devices: int = 1
    """Devices, on a CPU: cores, that share the work of each seed. The same bits need the same number of them."""

    def check(self) -> None:
        """Raise where a setting makes no sense. A run does so: raised on creation, tyro would wrap the reason."""
        self.network.check()
        self.mind.check()
        self.modelling.check()
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
    keep_prior: bool = eqx.field(static=True, default=False)
    """Whether the prior over goals was pretrained, and is left as it is."""

    @property
    def num_learning(self) -> int:
        return self.game.spec.num_agents - len(self.co_players.policies)


class LearnerState(eqx.Module):
    """Everything that a run of one seed holds between two updates; seeds are one more leading axis."""

    params: ActorCritic
    """One set for each learner, stacked."""
    optimizer: PyTree[Array]
    minds: Mind
    """What each learner knows of its co-players, stacked."""
    mind_optimizer: PyTree[Array]
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
    spec = task.game.spec
    size = goal_size(config.mind.goals, spec)
    init_one = lambda key: actor_critic.init(config.network, spec, size, key=stream(key, "network"))  # noqa: E731
    init_mind = lambda key: minds.init(config.mind, spec, key=stream(key, "mind"))  # noqa: E731
    params, learner_minds = jax.vmap(init_one)(learner_keys), jax.vmap(init_mind)(learner_keys)
    seats = seats_of(config, task, params, learner_minds)
    open_one = lambda key: open_table(task.game, seats, key=key)  # noqa: E731
    return LearnerState(
        params=params,
        optimizer=jax.vmap(lambda params: ppo.optimizer_state(config.ppo, params))(params),
        minds=learner_minds,
        mind_optimizer=jax.vmap(modelling.optimizer_state, axis_size=num_learners)(learner_minds),
        tables=jax.vmap(open_one)(jax.random.split(stream(key, "first tables"), config.envs)),
        running=episodes.start(task.game, config.envs),
        key=key,
        seat_keys=jax.random.split(stream(key, "seats"), spec.num_agents),
        learner_keys=learner_keys,
        num_updates=jnp.int32(0),
    )


def seats_of(config: LearnerConfig, task: Task, params: ActorCritic, learner_minds: Mind) -> Seats:
    """The players of a table: each learning seat with the parameters of its learner."""
    by_seat = lambda leaf: jnp.broadcast_to(leaf, (task.num_learning, *leaf.shape[1:]))  # noqa: E731
    params, seat_minds = jax.tree.map(by_seat, (params, learner_minds))
    return Seats(params, seat_minds, task.game, config.mind, task.co_players, task.num_learning)


def train_step(config: LearnerConfig, task: Task, state: LearnerState) -> tuple[LearnerState, Metrics]:
    """Play, look back, learn. For one seed."""
    now = lambda keys, name: jax.vmap(lambda key: at(key, name, state.num_updates))(keys)  # noqa: E731
    seats = seats_of(config, task, state.params, state.minds)
    tables, steps, last_values = collect(
        task.game,
        seats,
        state.tables,
        config.rollout_steps,
        seat_keys=now(state.seat_keys, "act"),
        table_key=at(state.key, "tables", state.num_updates),
        num_devices=config.devices,
    )
    running, ended, num_ended = episodes.follow(state.running, steps)
    batch = look_back(config, task, steps, last_values)
    seen = study(config.modelling, task.game, seats.minds, state.tables, steps) if seats.minds.others else None
    goals_seen = first_tables(seen, config.modelling.goal_tables) if config.mind.goals.is_latent else None
    num_learners = len(state.learner_keys)
    learners = Learner(state.params, state.optimizer, state.minds, state.mind_optimizer, state.learner_keys)
    by_learner = _by_learner(batch, num_learners, config.steps_per_update)
    data = (learners, by_learner, *(_rows_by_learner(each, num_learners) for each in (seen, goals_seen)))
    remaining = 1.0 - state.num_updates / task.num_updates
    learn_all = lambda same, data: jax.lax.map(partial(learn, config, task, *same), data)  # noqa: E731
    learners, learned = in_parts(learn_all, config.devices, num_learners)((remaining, state.num_updates), data)
    after = LearnerState(
        params=learners.params,
        optimizer=learners.optimizer,
        minds=learners.mind,
        mind_optimizer=learners.mind_optimizer,
        tables=tables,
        running=running,
        key=state.key,
        seat_keys=state.seat_keys,
        learner_keys=state.learner_keys,
        num_updates=state.num_updates + 1,
    )
    return after, record(task.game.spec, steps, batch, ended, num_ended, learned)


class Learner(eqx.Module):
    """One set of parameters: a policy, and models of the co-players."""

    params: ActorCritic
    optimizer: PyTree[Array]
    mind: Mind
    mind_optimizer: PyTree[Array]
    key: Key[Array, "*learners"]


def learn(
    config: LearnerConfig,
    task: Task,
    remaining: Float32[Array, ""],
    update: Int32[Array, ""],
    data: tuple[Learner, Batch, Study | None, Study | None],
) -> tuple[Learner, Metrics]:
    """What one learner does with what it saw: its policy first, then its models."""
    learner, batch, seen, goals_seen = data
    params, mind, mind_optimizer, models, prepared = learner.params, learner.mind, learner.mind_optimizer, {}, None
    if goals_seen is not None:
        prepared = prepare(config.modelling, config.mind, task.game, params, mind, goals_seen)
        share, key = config.modelling.epsilon * remaining, at(learner.key, "selected goals", update)
        batch = give_selected(config.mind.goals, params, batch, goals_seen, prepared, share, key=key)
    policy = (params, learner.optimizer, batch, at(learner.key, "shuffle", update))
    params, optimizer, learned = ppo.update(config.ppo, value_scale(task), remaining, policy)
    if seen is not None:
        lesson = Lesson(seen, look_at_all(task.game, seen), goals_seen, prepared)
        models = modelling.score(config.mind, mind, seen, lesson.seen)
        studied = (mind, mind_optimizer, lesson, at(learner.key, "models", update))
        train = partial(modelling.update, config.modelling, config.mind, not task.keep_prior)
        mind, mind_optimizer, found = train(remaining, studied)
        models |= found
    learned["finite"] = all_finite((params, mind)).astype(jnp.float32)
    after = Learner(params, optimizer, mind, mind_optimizer, learner.key)
    return after, {f"policy/{name}": value for name, value in learned.items()} | models


def _by_learner(batch: Batch, num_learners: int, num_samples: int) -> Batch:
    """[seats, envs, time] -> [learners, seats of the learner, samples]"""
    shared_by = batch.actions.shape[0] // num_learners
    return jax.tree.map(lambda leaf: leaf.reshape(num_learners, shared_by, num_samples, *leaf.shape[3:]), batch)


def _rows_by_learner(seen: Study | None, num_learners: int) -> Study | None:
    """[seats, tables] -> [learners, tables of all seats of the learner]"""
    rows = lambda leaf: leaf.shape[0] * leaf.shape[1] // num_learners  # noqa: E731
    return jax.tree.map(lambda leaf: leaf.reshape(num_learners, rows(leaf), *leaf.shape[2:]), seen)


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
        goals=by_seat(steps.goals),
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
