"""The training step: the only file that knows every part of an agent.

All seats learn at once, or some against fixed co-players. `train_step` is for one seed; `train_block` maps it over
seeds and runs many steps in one compiled program.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jaxtyping import Array, Bool, Float32, Int32, PyTree

from hopplus.agents.opponents import OpponentModels
from hopplus.core.devices import by_seeds, on_seeds, over_devices
from hopplus.core.numerics import Metrics, map_rows
from hopplus.core.streams import at, at_each, with_keys, without_keys
from hopplus.games.game import Game, ego_order
from hopplus.games.rollout import EnvState
from hopplus.learning import episodes, opponents, replay, utilities, worlds
from hopplus.learning.config import LearnerConfig
from hopplus.learning.episodes import EpisodeStats
from hopplus.learning.imagination import ImaginedPlayers, branches, branches_from_buffer, imagined_batch
from hopplus.learning.initial import init as init
from hopplus.learning.initial import seats_of
from hopplus.learning.opponent_data import (
    ActionExamples,
    first_envs,
    goal_targets,
    opponent_data,
    with_selected_goals,
)
from hopplus.learning.opponents import OpponentBatch
from hopplus.learning.optim import Trained
from hopplus.learning.ppo import Batch, make_batch
from hopplus.learning.record import record
from hopplus.learning.rollout import Trajectory, collect, with_times
from hopplus.learning.state import Experience, Learner, LearnerData, LearnerState, Task, UpdateContext
from hopplus.learning.trust import trust_of
from hopplus.models.goals import encode as encode_goal
from hopplus.models.goals import mean_goal

PURPOSES = ("shuffle", "world")
SEAT_PURPOSES = ("selected goals", "examples", "past", "models", "imagination", "branches")
"""What a learner draws random numbers for in an update, and its seats."""


def train_step(config: LearnerConfig, task: Task, state: LearnerState) -> tuple[LearnerState, Metrics]:
    """One update of one seed: play, then learn."""
    experience = play(config, task, state)
    learners, metrics = learn_all(config, task, state, experience)
    after = LearnerState(
        learners=learners,
        envs=experience.envs,
        episodes=experience.episodes,
        replay=experience.replay,
        keys=state.keys,
        num_updates=state.num_updates + 1,
        population=state.population,
    )
    if experience.replay is not None:
        metrics["buffer/size/world"] = replay.num_kept(experience.replay).astype(jnp.float32)
    if experience.steps.kinds is not None:
        metrics |= utilities.reached(task.game.spec, experience.steps)
    return after, record(task.game.spec, experience, metrics)


def play(config: LearnerConfig, task: Task, state: LearnerState) -> Experience:
    """The first half of an update: step all environments, and prepare what each seat learns from."""
    seats = seats_of(config, task, state.learners, state.population)
    if config.planning.is_used:
        plan_keys = jax.vmap(lambda key: at(key, "plan", state.num_updates))(state.keys.seats[: task.num_learning])
        seats = replace(seats, plan_keys=jax.random.key_data(plan_keys))
    envs, steps, last_values = collect(
        task.game,
        seats,
        with_next_kinds(config, task, state),
        config.rollout_steps,
        seat_keys=jax.vmap(lambda key: at(key, "act", state.num_updates))(state.keys.seats),
        env_key=at(state.keys.run, "tables", state.num_updates),
        num_devices=config.mesh.envs,
        with_transitions=config.world.is_used,
        with_plans=config.planning.is_used,
    )
    steps = with_times(task.game.spec, steps, state.episodes.lengths)
    output, others_state = envs.policy_state
    output = replace(output, beliefs=seats.goals.reset_counts(output.beliefs))
    envs = replace(envs, policy_state=(output, others_state))
    running, ended, num_ended = episodes.add_steps(state.episodes, steps)
    learned_steps = with_learned_rewards(config, task, state.episodes, steps)
    batch = policy_batch(config, task, learned_steps, last_values)
    data = opponent_data(config, task.game, seats.opponents, state.envs, steps) if config.opponents.is_used else None
    buffer, transitions = replay.add_steps(config.replay, state.replay, steps)
    return Experience(
        envs=envs,
        episodes=running,
        steps=steps,
        last_values=last_values,
        ended=ended,
        num_ended=num_ended,
        rewards=learned_steps.rewards,
        batch=batch,
        opponent_data=data,
        goal_data=first_envs(data, config.modelling.goal_envs) if config.opponents.goals.is_latent else None,
        branches=branches(config, task.game, envs, steps),
        replay=buffer,
        transitions=transitions,
    )


def with_next_kinds(config: LearnerConfig, task: Task, state: LearnerState) -> EnvState:
    """The environments with what their seats are after from their next episodes on, if that may differ."""
    output, others_state = state.envs.policy_state
    if output.kinds is None:
        return state.envs
    keys = jax.vmap(lambda key: at(key, "kinds", state.num_updates))(state.keys.seats[: task.num_learning])
    env_key = at(state.keys.run, "chances of kinds", state.num_updates)
    kinds = utilities.draw_kinds(config.utilities, task.game.spec, config.envs, seat_keys=keys, env_key=env_key)
    return replace(state.envs, policy_state=(replace(output, next_kinds=kinds), others_state))


def with_learned_rewards(config: LearnerConfig, task: Task, running: EpisodeStats, steps: Trajectory) -> Trajectory:
    """The steps with the rewards that policies learn from: the game's, ranks, or those of a hidden utility."""
    if config.ppo.ranked_reward:
        steps = episodes.ranked(running, steps, config.ppo.ranked_reward)
    if steps.kinds is None:
        return steps
    return utilities.paid(task.game.spec, steps, config.utilities.reward * value_scale(task))


def policy_batch(config: LearnerConfig, task: Task, steps: Trajectory, last_values: Array) -> Batch:
    """What the policies learn from, [seats, envs, time]; the steps have the rewards that they learn from."""
    batch = make_batch(config.ppo, steps, last_values)
    return batch if steps.kinds is None else utilities.with_kinds(task.game.spec, batch, steps.kinds)


def learn_all(
    config: LearnerConfig, task: Task, state: LearnerState, experience: Experience
) -> tuple[Learner, Metrics]:
    """The second half of an update: every learner learns from its own data, one after the other."""
    num_learners = len(state.keys.learners)
    orders = jnp.asarray(ego_order(task.game.spec.num_agents)[: task.num_learning], jnp.int32)
    seat_keys = state.keys.seats[: task.num_learning] if config.sharing == "shared" else state.keys.learners
    data = LearnerData(
        batch=_by_learner(experience.batch, num_learners, config.steps_per_update),
        opponent_data=_seats_by_learner(experience.opponent_data, num_learners),
        goal_data=_seats_by_learner(experience.goal_data, num_learners),
        branches=_seats_by_learner(experience.branches, num_learners),
        orders=_seats_by_learner(orders, num_learners),
        keys=at_each(PURPOSES, state.keys.learners, state.num_updates),
        seat_keys=at_each(SEAT_PURPOSES, _seats_by_learner(seat_keys, num_learners), state.num_updates),
    )
    remaining = jnp.maximum(1.0 - state.num_updates / task.schedule, 0.0)
    kept, has_seen_all = None, jnp.bool_(True)
    if experience.replay is not None:
        kept = replay.some_entries(experience.replay, key=at(state.keys.run, "replay", state.num_updates))
        if config.imagination.explore > 1:
            has_seen_all = replay.all_events_seen(task.game.spec, experience.replay, kept)
    context = UpdateContext(remaining, kept, experience.transitions, has_seen_all)

    def learn_some(context: UpdateContext, parts: tuple[Learner, LearnerData]) -> tuple[Learner, Metrics]:
        return map_rows(lambda part: learn(config, task, context, *part), parts)

    return over_devices(learn_some, config.mesh.envs, num_learners)(context, (state.learners, data))


def learn(
    config: LearnerConfig, task: Task, context: UpdateContext, learner: Learner, data: LearnerData
) -> tuple[Learner, Metrics]:
    """One learner's update: its opponent models, its world, then its policy on real and imagined data."""
    batch, models, members, metrics = data.batch, learner.opponents, learner.world, {}
    if data.opponent_data is not None:
        batch, models, metrics = learn_opponents(config, task, context, learner, data)
    if members is not None:
        members, learned = learn_world(config, task, context, members, data)
        metrics |= learned
    if data.branches is not None and members is not None:
        metrics |= trust_of(config.imagination, metrics, context.has_seen_all)
        players = ImaginedPlayers(learner.policy.params, models.params, task.game, config.opponents)
        imagine = partial(imagined_batch, config, players, members.params, trust=metrics)
        begin = data.branches
        if config.imagination.branch == "buffer":
            assert context.replay is not None
            from_buffer = jax.vmap(partial(branches_from_buffer, config.opponents, task.game, context.replay))
            begin = from_buffer(begin, data.orders, data.seat_keys["branches"])
        batch, learned = imagine(real=batch, begin=begin, keys=data.seat_keys["imagination"])
        metrics |= learned
    policy, learned = task.agent.update(
        config,
        learner.policy,
        batch,
        value_scale=value_scale(task),
        remaining=bonus_left(config, context),
        key=data.keys["shuffle"],
    )
    after = Learner(policy, models, members)
    learned["finite"] = all_finite([part.params for part in (policy, models, members) if part]).astype(jnp.float32)
    return after, {f"policy/{name}": value for name, value in learned.items()} | metrics


def bonus_left(config: LearnerConfig, context: UpdateContext) -> Float32[Array, ""]:
    """The share of the entropy bonus that is left; more than 1 while events of the game are still to be found."""
    return context.remaining * jnp.where(context.has_seen_all, 1.0, config.imagination.explore)


def learn_world(
    config: LearnerConfig, task: Task, context: UpdateContext, members: Trained, data: LearnerData
) -> tuple[Trained, Metrics]:
    """The world after one update; it is scored on the new transitions first."""
    assert context.transitions is not None and context.replay is not None
    spec = task.game.spec
    seen = worlds.seen_by_seats(spec, members.params, context.transitions, data.orders)
    errors = worlds.score(spec, members.params, seen)
    members, learned = worlds.update(
        config.world_training,
        spec,
        members,
        context.replay,
        is_known=worlds.is_known(errors),
        orders=data.orders,
        remaining=context.remaining,
        key=data.keys["world"],
    )
    return members, errors | learned


def learn_opponents(
    config: LearnerConfig, task: Task, context: UpdateContext, learner: Learner, data: LearnerData
) -> tuple[Batch, Trained, Metrics]:
    """The policy's batch with some of its goals replaced, and the opponent models after one update."""
    config = replace(config, modelling=config.modelling.for_seats(len(data.orders)))
    batch, seen, targets = data.batch, data.opponent_data, None
    assert seen is not None
    game, models = task.game, learner.opponents.params
    keys = data.seat_keys
    if data.goal_data is not None:
        targets = jax.vmap(partial(goal_targets, config, game, learner.policy.params, models))(data.goal_data)
        share = config.modelling.epsilon * context.remaining
        replace_goals = partial(with_selected_goals, config.opponents.goals, learner.policy.params, batch)
        batch = replace_goals(data=data.goal_data, targets=targets, share=share, keys=keys["selected goals"])
    metrics = opponents.score(config.opponents, game, models, seen)
    pick = partial(opponents.pick_examples, config, game)
    examples = [jax.vmap(lambda seen, key: pick(seen, key=key))(seen, keys["examples"])]
    if context.replay is not None and (draw := past_examples(config, game, models, context.replay)):
        examples.append(jax.vmap(lambda order, key: draw(order, key=key))(data.orders, keys["past"]))
    trained, learned = opponents.update(
        config,
        learner.opponents,
        OpponentBatch(tuple(examples), seen.valid.size, data.goal_data, targets),
        train_prior=not task.keep_prior,
        remaining=context.remaining,
        keys=keys["models"],
    )
    return batch, trained, metrics | learned


def past_examples(
    config: LearnerConfig, game: Game, models: OpponentModels, kept: replay.Kept
) -> Callable[..., ActionExamples] | None:
    """How examples of a seat's co-players are drawn from the replay buffer; None for a goal model of a user's own."""
    goals, sizes = config.opponents.goals, {"num_samples": config.modelling.num_examples}
    if goals.has_labels:
        return partial(replay.draw_examples, game, kept, **sizes)
    if not goals.is_latent and goals.kind != "none":
        return None
    prior = models.prior
    encode = lambda view: mean_goal(goals, encode_goal(prior, view)) if prior else jnp.zeros(0, jnp.float32)  # noqa: E731
    ahead = config.modelling.lookahead > 0
    return partial(replay.draw_any_examples, game, kept, encode=encode, ahead=ahead, **sizes)


def _by_learner(batch: Batch, num_learners: int, num_samples: int) -> Batch:
    """[seats, envs, time] -> [learners, seats of the learner, samples]"""
    shared_by = batch.actions.shape[0] // num_learners
    return jax.tree.map(lambda leaf: leaf.reshape(num_learners, shared_by, num_samples, *leaf.shape[3:]), batch)


def _seats_by_learner(data: Any, num_learners: int) -> Any:
    """[seats, ...] -> [learners, seats of the learner, ...]"""
    return jax.tree.map(lambda leaf: leaf.reshape(num_learners, len(leaf) // num_learners, *leaf.shape[1:]), data)


def all_finite(tree: PyTree[Array]) -> Bool[Array, ""]:
    """Whether every number is finite."""
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]).all()


def value_scale(task: Task) -> float:
    """The largest reward of the game, 1 where it is unknown: the unit of the critic's losses."""
    return max((abs(reward) for reward in task.game.spec.reward_support), default=1.0) or 1.0


def train_block(
    config: LearnerConfig, task: Task, states: LearnerState, counts: Int32[Array, "2"], most: int
) -> tuple[LearnerState, Metrics]:
    """Some updates of all seeds, `most` at most; the metrics of these updates are filled in.

    `counts`: how many updates now, and over how many schedules run. Seeds take turns: smaller arrays stay in caches,
    and the program of a seed does not depend on their number.
    """

    def some_seeds(states: LearnerState, counts: Int32[Array, "2"]) -> tuple[LearnerState, Metrics]:
        num_updates, num_seeds = counts[0], len(states.num_updates)
        numbers = without_keys(states)  # JAX cannot see that the keys of a seed are used once in its turn

        @jax.jit  # traced once, for the shapes and for the loop
        def one_seed(numbers: PyTree[Array], seed: Int32[Array, ""], schedule: Int32[Array, ""]):
            state = with_keys(states, jax.tree.map(lambda leaf: leaf[seed], numbers))
            state, metrics = train_step(config, replace(task, schedule=schedule), state)
            return without_keys(state), metrics

        shapes = jax.eval_shape(one_seed, numbers, jnp.int32(0), counts[1])[1]
        empty = jax.tree.map(lambda leaf: jnp.zeros((most, num_seeds, *leaf.shape), leaf.dtype), shapes)

        def one_turn(turn, carry):
            numbers, metrics = carry
            update, seed = turn // num_seeds, turn % num_seeds
            state, now = one_seed(numbers, seed, counts[1])
            numbers = jax.tree.map(lambda rows, row: _put(rows, row, seed), numbers, state)
            return numbers, jax.tree.map(lambda rows, row: _put(rows, row, update, seed), metrics, now)

        numbers, metrics = jax.lax.fori_loop(jnp.int32(0), num_updates * num_seeds, one_turn, (numbers, empty))
        return with_keys(states, numbers), metrics

    return by_seeds(some_seeds, config.mesh, out_axes=(0, 1))(states, counts)


def _put(rows: Array, row: Array, *place: Int32[Array, ""]) -> Array:
    """The rows with one of them replaced; its place is an index into each leading axis."""
    start = (*place, *(0,) * row.ndim)
    return jax.lax.dynamic_update_slice(rows, row.reshape((1,) * len(place) + row.shape), start)


def layout(config: LearnerConfig, states: PyTree) -> PyTree[NamedSharding]:
    """Which devices hold which arrays of a run between blocks: seeds, and their environments, are distributed."""
    by_seed, by_env = on_seeds(config.mesh), on_seeds(config.mesh, config.envs)
    placed = jax.tree.map(lambda _: by_seed, states)
    envs = jax.tree.map(lambda _: by_env, (states.envs, states.episodes))
    return eqx.tree_at(lambda placed: (placed.envs, placed.episodes), placed, envs)
