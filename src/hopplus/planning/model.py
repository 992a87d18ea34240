"""What planning works with: a game, the own policy and critic, and predicted co-players.

A node is the state that an own action leads to. The co-players' actions there are predicted when the node is made. An
own action taken from the node then samples from that prediction, so every network runs once for each node. Planning
imports no model: the caller passes functions.
"""

from dataclasses import replace
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree, UInt32

from hopplus.games.coplayers import PolicyState
from hopplus.games.fields import Observation
from hopplus.games.game import Game
from hopplus.games.rollout import random_uniforms, sample_actions


@runtime_checkable
class Evaluate(Protocol):
    """The own policy and critic: log-probabilities of the own actions, and the value, among these co-players."""

    def __call__(
        self, view: Observation, legal: Bool[Array, " actions"], others_state: PolicyState
    ) -> tuple[Float32[Array, " actions"], Float32[Array, ""]]: ...


@runtime_checkable
class PredictOthers(Protocol):
    """The co-players' action probabilities, in seat order after the planner, and their next state."""

    def __call__(
        self, views: Observation, legal: Bool[Array, "others actions"], others_state: PolicyState
    ) -> tuple[Float32[Array, "others actions"], PolicyState]: ...


class Model(eqx.Module):
    """Everything that a planner uses. States are in the planner's own seat order: it has the first seat."""

    game: Game
    """The true game, or a learned world."""
    evaluate: Evaluate
    predict_others: PredictOthers
    discount: float = eqx.field(static=True, default=0.99)


class Node(eqx.Module):
    """A state of the game with the prediction for its co-players."""

    state: PyTree[Array]
    others_state: PolicyState
    """The goals of the co-players, or their policy states."""
    predicted: Float32[Array, "*batch others actions"]
    """The co-players' action probabilities here."""


class Evaluation(eqx.Module):
    """The own policy and critic at a node."""

    log_probabilities: Float32[Array, "*batch actions"]
    value: Float32[Array, "*batch"]
    legal: Bool[Array, "*batch actions"]


class Edge(eqx.Module):
    """The result of an own action."""

    reward: Float32[Array, "*batch"]
    discount: Float32[Array, "*batch"]
    """0 where the planner is out of the game."""


def make_node(model: Model, state: PyTree[Array], others_state: PolicyState) -> tuple[Node, Evaluation]:
    """A state as a node, and its evaluation."""
    views, legal = model.game.observe(state), model.game.legal(state)
    log_probabilities, value = model.evaluate(jax.tree.map(lambda leaf: leaf[0], views), legal[0], others_state)
    of_others = jax.tree.map(lambda leaf: leaf[1:], views)
    predicted, others_state = model.predict_others(of_others, legal[1:], others_state)
    return Node(state, others_state, predicted), Evaluation(log_probabilities, value, legal[0])


def step(model: Model, node: Node, action: Int32[Array, ""], *, key: Key[Array, ""]) -> tuple[Node, Evaluation, Edge]:
    """Take an own action, sample the co-players' actions, and return the next node."""
    act_key, step_key = jax.random.split(key)
    uniforms = random_uniforms(1, node.predicted.shape[0], key=act_key)[0]
    actions = jnp.concatenate([action[None], sample_actions(node.predicted, uniforms=uniforms)])
    state, rewards = model.game.step(node.state, actions, key=step_key)
    over = model.game.terminated(state)[0]
    after, evaluation = make_node(model, state, node.others_state)
    evaluation = replace(evaluation, value=jnp.where(over, 0.0, evaluation.value))
    return after, evaluation, Edge(rewards[0], jnp.where(over, 0.0, jnp.float32(model.discount)))


def rollout_value(
    model: Model, node: Node, evaluation: Evaluation, num_steps: int, *, key: Key[Array, ""]
) -> Float32[Array, ""]:
    """The value of a node if the own policy plays on for some steps before the critic is asked."""

    def one_step(carry, numbers):
        node, evaluation, total, worth = carry
        act_key, step_key = jax.random.split(jax.random.wrap_key_data(numbers))
        uniforms = random_uniforms(1, 1, key=act_key)[0]
        (action,) = sample_actions(jnp.exp(evaluation.log_probabilities)[None], uniforms=uniforms)
        node, evaluation, edge = step(model, node, action, key=step_key)
        return (node, evaluation, total + worth * edge.reward, worth * edge.discount), None

    first = (node, evaluation, jnp.float32(0), jnp.float32(1))
    numbers = jax.random.key_data(jax.random.split(key, num_steps))
    (_, evaluation, total, worth), _ = jax.lax.scan(one_step, first, numbers)
    return total + worth * evaluation.value


class Plan(eqx.Module):
    """The result of planning: the value of each own action."""

    values: Float32[Array, "*batch actions"]
    """Of legal actions; an action that was never tried gets the worst value of those that were."""
    visits: Float32[Array, "*batch actions"]
    """How often each was tried, over all trees."""
    by_tree: Float32[Array, "*batch trees actions"]
    """The values in each tree, nan where it never tried."""
    legal: Bool[Array, "*batch actions"]


def average(
    by_tree: Float32[Array, "trees actions"], visits: Float32[Array, "trees actions"], legal: Bool[Array, " actions"]
) -> Plan:
    """The plan whose values are means over the trees that tried an action."""
    tried = visits > 0
    count = jnp.sum(tried, axis=0)
    mean = jnp.sum(jnp.where(tried, by_tree, 0.0), axis=0) / jnp.maximum(count, 1)
    known = legal & (count > 0)
    worst = jnp.min(jnp.where(known, mean, jnp.inf))
    values = jnp.where(known, mean, jnp.where(jnp.isfinite(worst), worst, 0.0))
    return Plan(values, jnp.sum(visits, axis=0), jnp.where(tried, by_tree, jnp.nan), legal)


def best(plan: Plan) -> Float32[Array, " actions"]:
    """Probability 1 for the legal action of the highest value."""
    chosen = jnp.argmax(jnp.where(plan.legal, plan.values, -jnp.inf))
    return jax.nn.one_hot(chosen, plan.legal.shape[-1])


def soft(plan: Plan, beta: float, prior: Float32[Array, " actions"] | float = 0.0) -> Float32[Array, " actions"]:
    """softmax(beta values + prior) over the legal actions: for exploration, and as the policy's target (HOP)."""
    return jax.nn.softmax(jnp.where(plan.legal, beta * plan.values + prior, -jnp.inf))


def key_of(key: Key[Array, ""], view: Observation) -> Key[Array, ""]:
    """A key that depends on the view: a plan is a pure function of the view, yet different views draw differently."""
    parts = [array for _, array in sorted(view.items(), key=lambda item: (-item[1].ndim, item[0]))]
    words = jnp.concatenate([_words(part).reshape(-1) for part in parts])
    mixed = words * (jnp.arange(1, len(words) + 1, dtype=jnp.uint32) * jnp.uint32(2654435761))
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x2C1B3C6D)
    return jax.random.fold_in(key, jnp.sum(mixed ^ (mixed >> 12), dtype=jnp.uint32))


def _words(numbers: Array) -> UInt32[Array, "..."]:
    if jnp.issubdtype(numbers.dtype, jnp.floating):
        numbers = jnp.round(numbers * 2**16).astype(jnp.int32)
    return numbers.astype(jnp.uint32)
