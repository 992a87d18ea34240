"""An untrained planner in many environments, and the parts of its search as programs of their own.

A phase is run as often as a search has nodes, each time on what came of the time before, so that nothing is left out or
done once for all. What remains of a search's time is the tree: choosing where to go, keeping nodes, and taking values
back to the root.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from hopplus.agents import opponents
from hopplus.agents.planner import Planner
from hopplus.agents.player import Player
from hopplus.core.devices import over_devices
from hopplus.games.fields import Observation
from hopplus.games.game import Game
from hopplus.models import actor_critic
from hopplus.models.goals import goal_size
from hopplus.planning.config import SearchConfig
from hopplus.planning.model import Model
from hopplus.runs.agents import learner_of
from measure import Program

ENVS, TREES, SIMULATIONS, DEPTH = 32, 4, 200, 12


def planner_of(agent: str, game: Game, search: SearchConfig) -> Planner:
    """An untrained planner: what it costs does not depend on what it learned."""
    config = learner_of(agent)
    size = goal_size(config.opponents.goals, game.spec)
    params = actor_critic.init(config.network, game.spec, size, key=jax.random.key(0))
    player = Player(
        params,
        opponents.init(config.opponents, game.spec, size, key=jax.random.key(1)),
        game,
        config.opponents,
        greedy=True,
    )
    return Planner(player, game, replace(config.planning, search=search), config.ppo.discount)


def situations(planner: Planner) -> tuple[Any, Any, Any]:
    """Random first states in the planner's order, its views, and its beliefs."""
    game = planner.player.game
    states = jax.vmap(lambda key: game.reset(key=key))(jax.random.split(jax.random.key(2), ENVS))
    views = jax.vmap(lambda state: jax.tree.map(lambda leaf: leaf[0], game.observe(state)))(states)
    start = planner.init()
    beliefs = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (ENVS, *leaf.shape)), start)
    return states, views, beliefs


def on_cores(plan: Any, planner: Planner) -> Any:
    """plan(planner, parts), compiled; the environments are distributed over the cores, as the product does."""
    arrays, static = eqx.partition(planner, eqx.is_array)
    shared = over_devices(lambda arrays, parts: plan(eqx.combine(arrays, static), parts), len(jax.devices()), ENVS)
    compiled = jax.jit(shared)
    return lambda parts: jax.block_until_ready(compiled(arrays, parts))


def given_trees(planner: Planner) -> tuple[Any, Any]:
    """States and goals for each tree of each environment."""
    states, _, beliefs = situations(planner)
    trees = planner.planning.search.trees
    draw = lambda beliefs, key: planner.player.goals.draw(planner.player.opponents, beliefs, trees, key=key)  # noqa: E731
    goals = jax.vmap(draw)(beliefs, jax.random.split(jax.random.key(3), ENVS))
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf, trees, axis=0), states)
    return states, goals.reshape(goals.shape[0] * goals.shape[1], *goals.shape[2:])


def model_of(planner: Planner) -> Model:
    return Model(planner.game, planner.evaluate, planner.predict_others, planner.discount)


Work = Callable[[Planner, Any, Array, Array, Array], tuple[Any, Array]]
"""(planner, state, goals, what was found the time before, key) -> (state, what is found), for one tree."""


def parts_of(planner: Planner) -> list[Program]:
    """The rules of the game, the own networks, the models of the others, and what the last two have in common."""
    return [_repeated(planner, work) for work in (_rules, _own, _others, _seeing)]


def shares(whole: float, rules: float, own: float, others: float, seeing: float) -> dict[str, float]:
    """Of the time of a node, each given in seconds."""
    found = {
        "rules": rules / whole,
        "own networks": max(own - seeing, 0.0) / whole,
        "models of others": max(others - seeing, 0.0) / whole,
    }
    return {**found, "tree": max(1 - sum(found.values()), 0.0)}


def _repeated(planner: Planner, work: Work) -> Program:
    states, goals = given_trees(planner)

    def plan(planner: Planner, parts: Any) -> Array:
        def turn(carry, step):
            states, found = carry
            keys = jax.vmap(lambda numbers: jax.random.wrap_key_data(numbers + step))(parts[2])
            each = jax.vmap(lambda state, goal, before, key: work(planner, state, goal, before, key))
            return each(states, parts[1], found, keys), None

        begin = (parts[0], jnp.zeros(len(parts[1]), jnp.float32))
        (states, found), _ = jax.lax.scan(turn, begin, jnp.arange(SIMULATIONS, dtype=jnp.uint32))
        return found + jax.tree.leaves(states)[0].reshape(len(found), -1)[:, 0]

    compiled = on_cores(plan, planner)
    keys = jax.random.key_data(jax.random.split(jax.random.key(5), len(goals)))
    return Program(work.__name__, lambda: compiled((states, goals, keys)), len(goals) * SIMULATIONS)


def _rules(planner: Planner, state: Any, goals: Array, before: Array, key: Array) -> tuple[Any, Array]:
    """The game's step, and what everybody sees then."""
    del goals
    game = planner.game
    actions = jax.random.randint(key, (game.spec.num_agents,), 0, game.spec.num_actions)
    after, rewards = game.step(state, actions, key=key)
    return after, rewards[0] + _sum(_views(game, after, before))


def _own(planner: Planner, state: Any, goals: Array, before: Array, key: Array) -> tuple[Any, Array]:
    """The policy and the critic."""
    del key
    views, legal = _views(planner.game, state, before)
    _, value = planner.evaluate(jax.tree.map(lambda leaf: leaf[0], views), legal[0], goals)
    return state, value


def _others(planner: Planner, state: Any, goals: Array, before: Array, key: Array) -> tuple[Any, Array]:
    """The models of the co-players."""
    del key
    views, legal = _views(planner.game, state, before)
    predicted, _ = planner.predict_others(jax.tree.map(lambda leaf: leaf[1:], views), legal[1:], goals)
    return state, jnp.sum(predicted**2)


def _seeing(planner: Planner, state: Any, goals: Array, before: Array, key: Array) -> tuple[Any, Array]:
    """What everybody sees and may do."""
    del goals, key
    return state, _sum(_views(planner.game, state, before))


def _views(game: Game, state: Any, before: Array) -> tuple[Observation, Array]:
    """They depend, by too little to matter, on what was found before: so the compiler must ask every time."""
    views = game.observe(state)
    return {**views, "time": views["time"] + 1e-9 * before}, game.legal(state)


def _sum(tree: Any) -> Array:
    return sum((jnp.sum(leaf.astype(jnp.float32)) for leaf in jax.tree.leaves(tree)), jnp.float32(0))
