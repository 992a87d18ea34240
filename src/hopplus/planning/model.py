"""What planning works with: a game, an own policy and critic, and co-players who act as foretold.

A node is what an own action leads to. What the co-players will do there is foretold when the node is made: an own
action taken from it then draws from that and asks nobody again, so that every network is run once for each node.
Planning imports no model: who plans hands in functions.
"""

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.coplayers import Memory
from hopplus.games.game import Game, Observation
from hopplus.games.rollout import random_levels, sample_actions


@runtime_checkable
class Judge(Protocol):
    """The own policy and critic: log-probabilities of the own actions and the value, at a table of such company."""

    def __call__(
        self, view: Observation, legal: Bool[Array, " actions"], company: Memory
    ) -> tuple[Float32[Array, " actions"], Float32[Array, ""]]: ...


@runtime_checkable
class Foresee(Protocol):
    """What the co-players will do, in seat order after the planner, and what they will remember."""

    def __call__(
        self, views: Observation, legal: Bool[Array, "others actions"], company: Memory
    ) -> tuple[Float32[Array, "others actions"], Memory]: ...


class Model(eqx.Module):
    """All that a planner knows. States are in its own order of seats: it sits in the first."""

    game: Game
    """The true one, or a learned world."""
    judge: Judge
    foresee: Foresee
    discount: float = eqx.field(static=True, default=0.99)


class Node(eqx.Module):
    """A state of the game with all that is known of it."""

    state: PyTree[Array]
    company: Memory
    """What the co-players are after, or remember."""
    foretold: Float32[Array, "*batch others actions"]
    """What they will do here."""


class Outlook(eqx.Module):
    """How the planner sees a node."""

    log_probabilities: Float32[Array, "*batch actions"]
    value: Float32[Array, "*batch"]
    legal: Bool[Array, "*batch actions"]


class Edge(eqx.Module):
    """What came of an own action."""

    reward: Float32[Array, "*batch"]
    discount: Float32[Array, "*batch"]
    """0 where the planner is out of the game."""


def look(model: Model, state: PyTree[Array], company: Memory) -> tuple[Node, Outlook]:
    """A state as a node."""
    views, legal = model.game.observe(state), model.game.legal(state)
    log_probabilities, value = model.judge(jax.tree.map(lambda leaf: leaf[0], views), legal[0], company)
    of_others = jax.tree.map(lambda leaf: leaf[1:], views)
    foretold, company = model.foresee(of_others, legal[1:], company)
    return Node(state, company, foretold), Outlook(log_probabilities, value, legal[0])


def follow(model: Model, node: Node, action: Int32[Array, ""], *, key: Key[Array, ""]) -> tuple[Node, Outlook, Edge]:
    """Take an own action, draw the co-players', and see where that leads."""
    act_key, step_key = jax.random.split(key)
    levels = random_levels(1, node.foretold.shape[0], key=act_key)[0]
    actions = jnp.concatenate([action[None], sample_actions(node.foretold, levels=levels)])
    state, rewards = model.game.step(node.state, actions, key=step_key)
    over = model.game.terminated(state)[0]
    after, outlook = look(model, state, node.company)
    outlook = replace(outlook, value=jnp.where(over, 0.0, outlook.value))
    return after, outlook, Edge(rewards[0], jnp.where(over, 0.0, jnp.float32(model.discount)))


def play_out(model: Model, node: Node, outlook: Outlook, num_steps: int, *, key: Key[Array, ""]) -> Float32[Array, ""]:
    """What a node is worth if the own policy goes on from it for some steps, and the critic is asked only then."""

    def one_step(carry, numbers):
        node, outlook, total, worth = carry
        act_key, step_key = jax.random.split(jax.random.wrap_key_data(numbers))
        levels = random_levels(1, 1, key=act_key)[0]
        (action,) = sample_actions(jnp.exp(outlook.log_probabilities)[None], levels=levels)
        node, outlook, edge = follow(model, node, action, key=step_key)
        return (node, outlook, total + worth * edge.reward, worth * edge.discount), None

    begin = (node, outlook, jnp.float32(0), jnp.float32(1))
    numbers = jax.random.key_data(jax.random.split(key, num_steps))
    (_, outlook, total, worth), _ = jax.lax.scan(one_step, begin, numbers)
    return total + worth * outlook.value


class Plan(eqx.Module):
    """What planning found out about the own actions."""

    values: Float32[Array, "*batch actions"]
    """Of legal actions; what was never tried is worth no more than the worst that was."""
    visits: Float32[Array, "*batch actions"]
    """How often each was tried, over all trees."""
    by_tree: Float32[Array, "*batch trees actions"]
    """The values in each tree, nan where it never tried."""
    legal: Bool[Array, "*batch actions"]


def average(
    by_tree: Float32[Array, "trees actions"], visits: Float32[Array, "trees actions"], legal: Bool[Array, " actions"]
) -> Plan:
    """The mean over the trees that tried an action."""
    tried = visits > 0
    count = jnp.sum(tried, axis=0)
    mean = jnp.sum(jnp.where(tried, by_tree, 0.0), axis=0) / jnp.maximum(count, 1)
    known = legal & (count > 0)
    worst = jnp.min(jnp.where(known, mean, jnp.inf))
    values = jnp.where(known, mean, jnp.where(jnp.isfinite(worst), worst, 0.0))
    return Plan(values, jnp.sum(visits, axis=0), jnp.where(tried, by_tree, jnp.nan), legal)


def best(plan: Plan) -> Float32[Array, " actions"]:
    """All on the legal action of the highest value."""
    chosen = jnp.argmax(jnp.where(plan.legal, plan.values, -jnp.inf))
    return jax.nn.one_hot(chosen, plan.legal.shape[-1])


def soft(plan: Plan, beta: float, habit: Float32[Array, " actions"] | float = 0.0) -> Float32[Array, " actions"]:
    """softmax(beta values + habit) over the legal actions: to explore with, and for a policy to learn (HOP)."""
    return jax.nn.softmax(jnp.where(plan.legal, beta * plan.values + habit, -jnp.inf))


def key_of(key: Key[Array, ""], view: Observation) -> Key[Array, ""]:
    """Another key in every situation: a plan is a pure function of what its seat sees, yet no two tables draw alike."""
    parts: list[Any] = [view.planes, view.last_actions, jnp.round(view.time * 2**16)]
    words = jnp.concatenate([part.reshape(-1).astype(jnp.uint32) for part in parts])
    mixed = words * (jnp.arange(1, len(words) + 1, dtype=jnp.uint32) * jnp.uint32(2654435761))
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x2C1B3C6D)
    return jax.random.fold_in(key, jnp.sum(mixed ^ (mixed >> 12), dtype=jnp.uint32))
