"""The state of one seed before its first update, and the players that its parameters make."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PyTree

from hopplus.agents import opponents as opponent_models
from hopplus.agents.goals import goal_model, num_policy_inputs
from hopplus.agents.population import Population, filled
from hopplus.core.streams import stream
from hopplus.games.rollout import init_env
from hopplus.learning import episodes, opponents, replay, worlds
from hopplus.learning.config import LearnerConfig
from hopplus.learning.optim import init_trained
from hopplus.learning.rollout import Seats
from hopplus.learning.state import Keys, Learner, LearnerState, Task
from hopplus.models.world_kinds import init_world


def init(config: LearnerConfig, task: Task, *, key: Key[Array, ""]) -> LearnerState:
    """The state of one seed before its first update."""
    num_learners = task.num_learning if config.sharing == "independent" else 1
    spec = task.game.spec
    keys = Keys(
        run=key,
        seats=jax.random.split(stream(key, "seats"), spec.num_agents),
        learners=jax.random.split(stream(key, "learners"), num_learners),
    )
    learners = jax.vmap(partial(init_learner, config, task), axis_size=num_learners)(keys.learners)
    population = init_population(config, task, key) if config.population.is_used else None
    seats = seats_of(config, task, learners, population)
    env_keys = jax.random.split(stream(key, "first tables"), config.envs)
    return LearnerState(
        learners=learners,
        envs=jax.vmap(lambda key: init_env(task.game, seats, key=key))(env_keys),
        episodes=episodes.start(task.game, config.envs),
        replay=replay.empty(config.replay, spec, replay.views_like(task.game)) if config.world.is_used else None,
        keys=keys,
        num_updates=jnp.int32(0),
        population=population,
    )


def init_population(config: LearnerConfig, task: Task, key: Key[Array, ""]) -> Population:
    """Untrained policies in the shapes of the population, which a run puts in their place before it trains."""
    keys = jax.random.split(stream(key, "population"), config.population.num_policies)
    policies = jax.vmap(partial(init_learner, config, task))(keys)
    return Population(policies.policy.params, policies.opponents.params)


def init_learner(config: LearnerConfig, task: Task, key: Key[Array, ""]) -> Learner:
    """One learner before its first update."""
    spec, size = task.game.spec, goal_model(config.opponents, task.game).size
    models = opponent_models.init(config.opponents, spec, size, key=stream(key, "mind"))
    members = None
    if config.world.is_used:
        member_keys = jax.random.split(stream(key, "world parameters"), config.world.members)
        init_member = partial(init_world, config.world, spec)
        members = jax.vmap(lambda key: init_trained(worlds.optimizer(), init_member(key=key)))(member_keys)
    num_inputs = num_policy_inputs(config.opponents, task.game)
    return Learner(
        policy=task.agent.init(config, spec, num_inputs, key=stream(key, "network")),
        opponents=init_trained(opponents.optimizer(), models),
        world=members,
    )


def seats_of(config: LearnerConfig, task: Task, learners: Learner, population: Population | None = None) -> Seats:
    """The players of an environment: each learning seat with the parameters of its learner."""
    co_players = task.co_players
    if population is not None:
        co_players = filled(co_players, population, task.game, config.opponents)
    params, models = by_seat(task, (learners.policy.params, learners.opponents.params))
    worlds = None
    if config.planning.is_used and config.planning.model == "world":
        assert learners.world is not None
        worlds = by_seat(task, jax.tree.map(lambda leaf: leaf[:, 0], learners.world.params))
    return Seats(
        params=params,
        opponents=models,
        game=task.game,
        config=config.opponents,
        co_players=co_players,
        num_learning=task.num_learning,
        planning=config.planning,
        discount=config.ppo.discount,
        has_kinds=config.utilities.is_used,
        worlds=worlds,
    )


def by_seat(task: Task, of_learners: PyTree[Array]) -> PyTree[Array]:
    """[learners, ...] -> [learning seats, ...]: seats that share a learner get the same."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (task.num_learning, *leaf.shape[1:])), of_learners)
