"""The training step: the only file that knows every part of an agent.

All seats learn at once, or some against fixed co-players. `train_step` is for one seed; `train_block` maps it over
seeds and runs many steps in one compiled program.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro
from jax.sharding import NamedSharding
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game, GameSpec, ego_order
from hopplus.games.rollout import Table, open_table
from hopplus.learning import episodes, minds, modelling, ppo, replay, worlds
from hopplus.learning.devices import MeshConfig, by_seeds, in_parts, on_seeds
from hopplus.learning.episodes import Running
from hopplus.learning.imagination import Branches, ImaginationConfig, branches, imagined_batch, trust_of
from hopplus.learning.minds import Mind, MindConfig
from hopplus.learning.modelling import Lesson
from hopplus.learning.modelling_config import ModellingConfig
from hopplus.learning.planner import PlanningConfig
from hopplus.learning.ppo import Batch, Metrics, PPOConfig, look_back
from hopplus.learning.record import record
from hopplus.learning.replay import ReplayConfig
from hopplus.learning.rollout import Seats, Trajectory, collect
from hopplus.learning.streams import at, stream, with_keys, without_keys
from hopplus.learning.study import Study, first_tables, give_selected, look_at_some, prepare, study
from hopplus.learning.worlds import WorldTrainingConfig
from hopplus.models import actor_critic, world
from hopplus.models.actor_critic import ActorCritic, ActorCriticConfig
from hopplus.models.goals import goal_size
from hopplus.models.world import Transition, World, WorldConfig


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
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """What it remembers, if it has a world."""
    world: WorldConfig = field(default_factory=WorldConfig)
    """Its model of the game."""
    world_training: WorldTrainingConfig = field(default_factory=WorldTrainingConfig)
    """How it learns that."""
    imagination: ImaginationConfig = field(default_factory=ImaginationConfig)
    """What it does with all these models."""
    planning: PlanningConfig = field(default_factory=PlanningConfig)
    """Whether it plans while it learns: its policy then learns what it planned, instead of PPO's objective."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The objective."""
    mesh: MeshConfig = field(default_factory=MeshConfig)
    """What it is laid out over."""

    def check(self) -> None:
        """Raise where a setting makes no sense. A run does so: raised on creation, tyro would wrap the reason."""
        self.network.check()
        self.mind.check()
        self.modelling.check()
        self.replay.check()
        self.world.check()
        self.world_training.check()
        self.imagination.check()
        self.planning.check()
        self.ppo.check()
        self.mesh.check()
        if self.planning.is_used:
            if self.mind.others.models == "none":
                raise ValueError("--planning.kind needs a model of the others; give --others.models each or shared")
            if self.planning.model == "world" or self.imagination.is_used:
                raise ValueError(
                    "an agent plans in the true game while it learns, and imagines nothing; leave --planning.model and "
                    "--imagination.real-ratio out. What it learned in any way can plan in its world: see evaluate"
                )
        if self.ppo.ranked_reward and (self.planning.is_used or self.imagination.is_used):
            raise ValueError(
                "--ppo.ranked-reward pays in ranks, while trees and imagined play add the game's own rewards; leave it "
                "out, or train ppo or omg"
            )
        if self.imagination.is_used and not (self.world.is_used and self.mind.others.models != "none"):
            raise ValueError(
                f"--imagination.real-ratio is {self.imagination.real_ratio}, but there is no world, or no model of the "
                "others, to imagine with; give --world.members 1 or more and --others.models each, or train hop_plus"
            )
        for name, value in (("envs", self.envs), ("rollout-steps", self.rollout_steps)):
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
    worlds: World | None
    """Each learner's members, stacked twice; None where there is no world."""
    world_optimizer: PyTree[Array] | None
    replay: PyTree[Array] | None
    """What worlds, and models of the others, learn from again."""
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
    learner_worlds, world_optimizer, nothing_yet = init_worlds(config, spec, learner_keys)
    open_one = lambda key: open_table(task.game, seats, key=key)  # noqa: E731
    return LearnerState(
        params=params,
        optimizer=jax.vmap(lambda params: ppo.optimizer_state(config.ppo, params))(params),
        minds=learner_minds,
        mind_optimizer=jax.vmap(modelling.optimizer_state, axis_size=num_learners)(learner_minds),
        worlds=learner_worlds,
        world_optimizer=world_optimizer,
        replay=nothing_yet,
        tables=jax.vmap(open_one)(jax.random.split(stream(key, "first tables"), config.envs)),
        running=episodes.start(task.game, config.envs),
        key=key,
        seat_keys=jax.random.split(stream(key, "seats"), spec.num_agents),
        learner_keys=learner_keys,
        num_updates=jnp.int32(0),
    )


def init_worlds(
    config: LearnerConfig, spec: GameSpec, learner_keys: Key[Array, " learners"]
) -> tuple[World | None, PyTree[Array] | None, PyTree[Array] | None]:
    """Each learner's members, their optimisers, and an empty memory of what happened."""
    if not config.world.is_used:
        return None, None, None
    keys_of = lambda key: jax.random.split(stream(key, "world parameters"), config.world.members)  # noqa: E731
    over_members = lambda fn: jax.vmap(jax.vmap(fn))  # noqa: E731
    members = over_members(lambda key: world.init(config.world, spec, key=key))(jax.vmap(keys_of)(learner_keys))
    return members, over_members(worlds.optimizer().init)(members), replay.empty(config.replay, spec)


def seats_of(config: LearnerConfig, task: Task, params: ActorCritic, learner_minds: Mind) -> Seats:
    """The players of a table: each learning seat with the parameters of its learner."""
    params, seat_minds = by_seat(task, (params, learner_minds))
    return Seats(
        params,
        seat_minds,
        task.game,
        config.mind,
        task.co_players,
        task.num_learning,
        config.planning,
        config.ppo.discount,
    )


def by_seat(task: Task, of_learners: PyTree[Array]) -> PyTree[Array]:
    """[learners, ...] -> [learning seats, ...]: those who share get the same."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (task.num_learning, *leaf.shape[1:])), of_learners)


def train_step(config: LearnerConfig, task: Task, state: LearnerState) -> tuple[LearnerState, Metrics]:
    """Play, look back, learn. For one seed."""
    lived = play(config, task, state)
    learners, learned = learn_from(config, task, state, lived)
    after = LearnerState(
        params=learners.params,
        optimizer=learners.optimizer,
        minds=learners.mind,
        mind_optimizer=learners.mind_optimizer,
        worlds=learners.worlds,
        world_optimizer=learners.world_optimizer,
        replay=lived.replay,
        tables=lived.tables,
        running=lived.running,
        key=state.key,
        seat_keys=state.seat_keys,
        learner_keys=state.learner_keys,
        num_updates=state.num_updates + 1,
    )
    return after, record(task.game.spec, lived.steps, lived.batch, lived.ended, lived.num_ended, learned)


class Experience(eqx.Module):
    """What one update learns from; leading axes of what seats saw: seats, tables, time."""

    tables: Table
    """After it."""
    running: Running
    steps: Trajectory
    last_values: Float32[Array, "envs seats"]
    """Of the states that play stopped at."""
    ended: Running
    """A mean over the episodes that ended."""
    num_ended: Float32[Array, ""]
    batch: Batch
    """For the policies."""
    seen: Study | None
    """For models of the others."""
    goals_seen: Study | None
    """The same of fewer tables, for goals."""
    begin: Branches | None
    """Where imagined play begins."""
    replay: PyTree[Array] | None
    happened: Transition | None
    """For worlds to be judged by."""


def play(config: LearnerConfig, task: Task, state: LearnerState) -> Experience:
    """The first half of an update: all tables play on, and everybody looks back at what it saw."""
    now = lambda keys, name: jax.vmap(lambda key: at(key, name, state.num_updates))(keys)  # noqa: E731
    seats = seats_of(config, task, state.params, state.minds)
    tables, steps, last_values = collect(
        task.game,
        seats,
        state.tables,
        config.rollout_steps,
        seat_keys=now(state.seat_keys, "act"),
        table_key=at(state.key, "tables", state.num_updates),
        num_devices=config.mesh.envs,
        with_transitions=config.world.is_used,
        with_plans=config.planning.is_used,
    )
    thought, remembered = tables.memory
    thought = replace(thought, impression=minds.met_anew(thought.impression))
    tables = replace(tables, memory=(thought, remembered))
    running, ended, num_ended = episodes.follow(state.running, steps)
    paid = episodes.ranked(state.running, steps, config.ppo.ranked_reward) if config.ppo.ranked_reward else steps
    seen = study(config.modelling, task.game, seats.minds, state.tables, steps) if seats.minds.others else None
    kept, happened = replay.remember(config.replay, state.replay, steps)
    return Experience(
        tables=tables,
        running=running,
        steps=steps,
        last_values=last_values,
        ended=ended,
        num_ended=num_ended,
        batch=look_back(config.ppo, paid, last_values),
        seen=seen,
        goals_seen=first_tables(seen, config.modelling.goal_tables) if config.mind.goals.is_latent else None,
        begin=branches(config.imagination, config.steps_per_update, config.world.members, task.game, tables, steps),
        replay=kept,
        happened=happened,
    )


def learn_from(config: LearnerConfig, task: Task, state: LearnerState, lived: Experience) -> tuple["Learner", Metrics]:
    """The second half: every learner learns from what it saw. They take turns, and none hears of another."""
    num_learners = len(state.learner_keys)
    data = (
        Learner(
            state.params,
            state.optimizer,
            state.minds,
            state.mind_optimizer,
            state.worlds,
            state.world_optimizer,
            jnp.asarray(ego_order(task.game.spec.num_agents)[:num_learners], jnp.int32),
            state.learner_keys,
        ),
        _by_learner(lived.batch, num_learners, config.steps_per_update),
        _rows_by_learner(lived.seen, num_learners),
        _rows_by_learner(lived.goals_seen, num_learners),
        jax.tree.map(lambda leaf: leaf.reshape(num_learners, -1, *leaf.shape[1:]), lived.begin),
    )
    remaining = 1.0 - state.num_updates / task.num_updates
    circumstances = Circumstances(remaining, state.num_updates, lived.replay, lived.happened)
    learn_all = lambda same, data: jax.lax.map(partial(learn, config, task, same), data)  # noqa: E731
    return in_parts(learn_all, config.mesh.envs, num_learners)(circumstances, data)


class Learner(eqx.Module):
    """One set of parameters: a policy, models of the co-players, a model of the world."""

    params: ActorCritic
    optimizer: PyTree[Array]
    mind: Mind
    mind_optimizer: PyTree[Array]
    worlds: World | None
    world_optimizer: PyTree[Array] | None
    order: Int32[Array, "*learners agents"]
    """The seats as its own seat sees them, or the first of its seats."""
    key: Key[Array, "*learners"]


class Circumstances(eqx.Module):
    """What is the same for all learners of one update."""

    remaining: Float32[Array, ""]
    """The share of the run that is left."""
    update: Int32[Array, ""]
    replay: PyTree[Array] | None
    happened: Transition | None
    """Of this update, for the worlds to be judged by."""


def learn(
    config: LearnerConfig,
    task: Task,
    same: Circumstances,
    data: tuple[Learner, Batch, Study | None, Study | None, Branches | None],
) -> tuple[Learner, Metrics]:
    """What one learner does with what it saw: its models first, then its policy, on real and on imagined play."""
    learner, batch, seen, goals_seen, begin = data
    key = lambda name: at(learner.key, name, same.update)  # noqa: E731
    params, found, prepared = learner.params, {}, None
    mind, mind_optimizer = learner.mind, learner.mind_optimizer
    members, world_optimizer = learner.worlds, learner.world_optimizer
    if goals_seen is not None:
        prepared = prepare(config.modelling, config.mind, task.game, params, mind, goals_seen)
        share = config.modelling.epsilon * same.remaining
        batch = give_selected(config.mind.goals, params, batch, goals_seen, prepared, share, key=key("selected goals"))
    if seen is not None:
        found |= modelling.score(config.mind, task.game, mind, seen)
        look = partial(look_at_some, task.game, seen)
        pick = partial(modelling.pick_examples, config.modelling, config.mind, len(task.game.spec.deeds))
        examples = [pick(seen, look, key=key("examples"))]
        if same.replay is not None and config.mind.goals.kind == "hindsight":
            count = config.modelling.num_examples
            examples.append(replay.recall(task.game, same.replay, learner.order, count, key=key("past")))
        lesson = Lesson(tuple(examples), seen.valid.size, goals_seen, prepared)
        train_mind = partial(modelling.update, config.modelling, config.mind, not task.keep_prior)
        mind, mind_optimizer, about = train_mind(same.remaining, (mind, mind_optimizer, lesson, key("models")))
        found |= about
    if members is not None and same.happened is not None:
        spec = task.game.spec
        found |= worlds.score(spec, members, world.seen_by(spec, same.happened, learner.order))
        train_world = partial(worlds.update, config.world_training, spec, same.remaining)
        taught = (members, world_optimizer, same.replay, learner.order, key("world"))
        members, world_optimizer, about = train_world(taught)
        found |= about
    if begin is not None and members is not None:
        trust = trust_of(config.imagination, found)
        agent = (params, mind, members)
        imagine = partial(imagined_batch, config.imagination, config.mind, config.ppo, task.game, agent, trust)
        batch, about = imagine(batch, begin, key=key("imagination"))
        found |= trust | about
    policy = (params, learner.optimizer, batch, key("shuffle"))
    params, optimizer, learned = ppo.update(config.ppo, value_scale(task), same.remaining, policy)
    learned["finite"] = all_finite((params, mind, members)).astype(jnp.float32)
    after = Learner(params, optimizer, mind, mind_optimizer, members, world_optimizer, learner.order, learner.key)
    return after, {f"policy/{name}": value for name, value in learned.items()} | found


def _by_learner(batch: Batch, num_learners: int, num_samples: int) -> Batch:
    """[seats, envs, time] -> [learners, seats of the learner, samples]"""
    shared_by = batch.actions.shape[0] // num_learners
    return jax.tree.map(lambda leaf: leaf.reshape(num_learners, shared_by, num_samples, *leaf.shape[3:]), batch)


def _rows_by_learner(seen: Study | None, num_learners: int) -> Study | None:
    """[seats, tables] -> [learners, tables of all seats of the learner]"""
    rows = lambda leaf: leaf.shape[0] * leaf.shape[1] // num_learners  # noqa: E731
    return jax.tree.map(lambda leaf: leaf.reshape(num_learners, rows(leaf), *leaf.shape[2:]), seen)


def all_finite(tree: PyTree[Array]) -> Bool[Array, ""]:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]).all()


def value_scale(task: Task) -> float:
    """The largest reward of the game: the critic's losses are in this unit, so that one setting serves every game."""
    return max(abs(reward) for reward in task.game.spec.reward_support) or 1.0


def train_block(
    config: LearnerConfig, task: Task, states: LearnerState, num_updates: Int32[Array, ""], most: int
) -> tuple[LearnerState, Metrics]:
    """Up to `most` updates of all seeds; the metrics of the first `num_updates` are filled in.

    Seeds take turns: smaller arrays stay in caches, and the program of a seed is the same however many there are.
    """

    def some_seeds(states: LearnerState, num_updates: Int32[Array, ""]) -> tuple[LearnerState, Metrics]:
        num_seeds = len(states.num_updates)
        of_seed = lambda seed, numbers: with_keys(states, jax.tree.map(lambda leaf: leaf[seed], numbers))  # noqa: E731
        numbers = without_keys(states)  # JAX cannot see that the keys of a seed are used once in its turn
        shapes = jax.eval_shape(lambda: train_step(config, task, of_seed(0, numbers))[1])
        empty = jax.tree.map(lambda leaf: jnp.zeros((most, num_seeds, *leaf.shape), leaf.dtype), shapes)

        def one_turn(turn, carry):
            numbers, metrics = carry
            update, seed = turn // num_seeds, turn % num_seeds
            state, now = train_step(config, task, of_seed(seed, numbers))
            numbers = jax.tree.map(lambda all_, leaf: all_.at[seed].set(leaf), numbers, without_keys(state))
            return numbers, jax.tree.map(lambda all_, leaf: all_.at[update, seed].set(leaf), metrics, now)

        numbers, metrics = jax.lax.fori_loop(0, num_updates * num_seeds, one_turn, (numbers, empty))
        return with_keys(states, numbers), metrics

    return by_seeds(some_seeds, config.mesh, out_axes=(0, 1))(states, num_updates)


def layout(config: LearnerConfig, states: PyTree) -> PyTree[NamedSharding]:
    """Which devices hold what of a run between blocks: seeds, and their tables, are dealt out."""
    by_seed, by_table = on_seeds(config.mesh), on_seeds(config.mesh, config.envs)
    placed = jax.tree.map(lambda _: by_seed, states)
    tables = jax.tree.map(lambda _: by_table, (states.tables, states.running))
    return eqx.tree_at(lambda placed: (placed.tables, placed.running), placed, tables)
