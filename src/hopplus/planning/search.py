"""Search (MCTS on mctx): several trees, each with its own goals of the co-players and its own random draws.

Only own actions branch. A tree samples the co-players' actions once for each edge and keeps them, so a single tree
would plan against random draws that it already knows: values are averaged over trees. At the root every legal action is
tried equally often, because the result is the values of all of them. Below the root the policy is the prior and the
critic values the leaves, as in pUCT:

    argmax over a of  q(a) + c sqrt(N) p(a) / (1 + n(a)),   q scaled to 0..1 among the actions of the node
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx as typed_mctx
from jaxtyping import Array, Float32, Int32, Key, PyTree

from hopplus.core.numerics import MASKED
from hopplus.games.coplayers import PolicyState
from hopplus.planning.config import SearchConfig
from hopplus.planning.model import Edge, Evaluation, Model, Node, Plan, average, make_node, rollout_value, step

mctx: Any = typed_mctx
"""Its records have no constructors and its arrays no indices, as far as a type checker can see."""
Tree = Any
"""mctx's."""


def search(
    config: SearchConfig, model: Model, state: PyTree[Array], others_states: PolicyState, *, key: Key[Array, ""]
) -> Plan:
    """The plan from one state; `others_states` has the co-players of each tree, stacked."""
    nodes, evaluation = jax.vmap(partial(make_node, model, state), axis_size=config.trees)(others_states)
    tree = grow(config, model, nodes, evaluation, key=key)
    summary = tree.summary()
    return average(summary.qvalues, summary.visit_counts, evaluation.legal[0])


def grow(config: SearchConfig, model: Model, nodes: Node, evaluation: Evaluation, *, key: Key[Array, ""]) -> Tree:
    """The trees. mctx gets plain numbers as a key: JAX's key checker takes its loops for reuse of keys."""

    def expand(_: Any, numbers: Array, actions: Int32[Array, " trees"], nodes: Node) -> tuple[Any, Node]:
        keys = jax.random.split(jax.random.wrap_key_data(numbers), len(actions))
        after, evaluation, edge, value = jax.vmap(partial(_expand, config.playout, model))(nodes, actions, keys)
        output = mctx.RecurrentFnOutput(
            reward=edge.reward,
            discount=edge.discount,
            prior_logits=_logits(evaluation),
            value=value,
        )
        return output, after

    root = mctx.RootFnOutput(prior_logits=_logits(evaluation), value=evaluation.value, embedding=nodes)
    return mctx.search(
        None,
        jax.random.key_data(key),
        root=root,
        recurrent_fn=expand,
        root_action_selection_fn=_least_visited,
        interior_action_selection_fn=partial(_puct, config.exploration),
        num_simulations=config.simulations,
        max_depth=config.depth,
    )


def _expand(
    playout: int, model: Model, node: Node, action: Int32[Array, ""], key: Key[Array, ""]
) -> tuple[Node, Evaluation, Edge, Float32[Array, ""]]:
    """A new node and its value. An edge to the end of the game has discount 0, so what follows counts nothing."""
    if not playout:
        after, evaluation, edge = step(model, node, action, key=key)
        return after, evaluation, edge, evaluation.value
    step_key, playout_key = jax.random.split(key)
    after, evaluation, edge = step(model, node, action, key=step_key)
    return after, evaluation, edge, rollout_value(model, after, evaluation, playout, key=playout_key)


def _logits(evaluation: Evaluation) -> Float32[Array, "trees actions"]:
    return jnp.where(evaluation.legal, evaluation.log_probabilities, MASKED)


def _least_visited(key: Any, tree: Tree, node: Any) -> Int32[Array, ""]:
    """The legal action with the fewest visits; among several, the one with the highest policy probability."""
    del key
    logits = tree.children_prior_logits[node]
    score = jax.nn.softmax(logits) / 2 - tree.children_visits[node]
    return _best_legal(score, logits)


def _puct(exploration: float, key: Any, tree: Tree, node: Any, depth: Any) -> Int32[Array, ""]:
    """pUCT without the noise that breaks ties, which takes a third of mctx's own time."""
    del key, depth
    logits = tree.children_prior_logits[node]
    visits = tree.children_visits[node]
    bonus = exploration * jnp.sqrt(tree.node_visits[node]) * jax.nn.softmax(logits) / (1 + visits)
    score = mctx.qtransform_by_parent_and_siblings(tree, node) + bonus
    return _best_legal(score, logits)


def _best_legal(score: Float32[Array, " actions"], logits: Float32[Array, " actions"]) -> Int32[Array, ""]:
    return jnp.argmax(jnp.where(logits <= MASKED / 2, -jnp.inf, score)).astype(jnp.int32)
