"""Search: several trees, in each of which the co-players want something else and roll other dice (mctx).

Only own actions branch. A tree draws what the co-players do once for each edge and keeps it, so a single tree would
plan against dice that it has already seen: values are averaged over trees. At the root every legal action is tried
equally often, because their values are what is asked for; below, the policy is the prior and the critic values the
leaves, as in pUCT:

    argmax over a of  q(a) + c sqrt(N) p(a) / (1 + n(a)),   q scaled to 0..1 among the actions of the node
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx as typed_mctx
from jaxtyping import Array, Float32, Int32, Key, PyTree

from hopplus.games.coplayers import Memory
from hopplus.planning.model import Edge, Model, Node, Outlook, Plan, average, follow, look, play_out

ILLEGAL = -1e9
mctx: Any = typed_mctx
"""Its records have no constructors and its arrays no indices, as far as a type checker can see."""
Tree = Any
"""mctx's."""


@dataclass(frozen=True)
class SearchConfig:
    """How much is searched."""

    trees: int = 5
    """Trees whose values are averaged: each has other goals and other dice."""
    simulations: int = 200
    """Nodes of each tree."""
    depth: int = 12
    """The most steps that a tree looks ahead; beyond, the critic answers."""
    exploration: float = 1.25
    """How much the policy's opinion counts beside what was found."""
    playout: int = 0
    """Steps that the policy goes on from a new node before the critic is asked: for critics that know no better."""


def search(config: SearchConfig, model: Model, state: PyTree[Array], companies: Memory, *, key: Key[Array, ""]) -> Plan:
    """From one state, with a company for each tree, stacked."""
    nodes, outlook = jax.vmap(partial(look, model, state), axis_size=config.trees)(companies)
    tree = grow(config, model, nodes, outlook, key=key)
    found = tree.summary()
    return average(found.qvalues, found.visit_counts, outlook.legal[0])


def grow(config: SearchConfig, model: Model, nodes: Node, outlook: Outlook, *, key: Key[Array, ""]) -> Tree:
    """The trees themselves. mctx is given plain numbers for a key: JAX's checker takes its loops for reuse of keys."""

    def expand(_: Any, numbers: Array, actions: Int32[Array, " trees"], nodes: Node) -> tuple[Any, Node]:
        keys = jax.random.split(jax.random.wrap_key_data(numbers), len(actions))
        after, outlook, edge, value = jax.vmap(partial(_expand, config.playout, model))(nodes, actions, keys)
        found = mctx.RecurrentFnOutput(
            reward=edge.reward,
            discount=edge.discount,
            prior_logits=_logits(outlook),
            value=value,
        )
        return found, after

    root = mctx.RootFnOutput(prior_logits=_logits(outlook), value=outlook.value, embedding=nodes)
    return mctx.search(
        None,
        jax.random.key_data(key),
        root=root,
        recurrent_fn=expand,
        root_action_selection_fn=_in_turn,
        interior_action_selection_fn=partial(_promising, config.exploration),
        num_simulations=config.simulations,
        max_depth=config.depth,
    )


def _expand(
    playout: int, model: Model, node: Node, action: Int32[Array, ""], key: Key[Array, ""]
) -> tuple[Node, Outlook, Edge, Float32[Array, ""]]:
    """A new node, and what it is worth. What comes after the end is worth nothing: such an edge has discount 0."""
    if not playout:
        after, outlook, edge = follow(model, node, action, key=key)
        return after, outlook, edge, outlook.value
    follow_key, playout_key = jax.random.split(key)
    after, outlook, edge = follow(model, node, action, key=follow_key)
    return after, outlook, edge, play_out(model, after, outlook, playout, key=playout_key)


def _logits(outlook: Outlook) -> Float32[Array, "trees actions"]:
    return jnp.where(outlook.legal, outlook.log_probabilities, ILLEGAL)


def _in_turn(key: Any, tree: Tree, node: Any) -> Int32[Array, ""]:
    """The legal action that was tried least; of several, the one that the policy likes best."""
    del key
    logits = tree.children_prior_logits[node]
    score = jax.nn.softmax(logits) / 2 - tree.children_visits[node]
    return _best_legal(score, logits)


def _promising(exploration: float, key: Any, tree: Tree, node: Any, depth: Any) -> Int32[Array, ""]:
    """pUCT without the noise that breaks ties: a third of mctx's own time, and a tie is as good as another."""
    del key, depth
    logits = tree.children_prior_logits[node]
    visits = tree.children_visits[node]
    curious = exploration * jnp.sqrt(tree.node_visits[node]) * jax.nn.softmax(logits) / (1 + visits)
    score = mctx.qtransform_by_parent_and_siblings(tree, node) + curious
    return _best_legal(score, logits)


def _best_legal(score: Float32[Array, " actions"], logits: Float32[Array, " actions"]) -> Int32[Array, ""]:
    return jnp.argmax(jnp.where(logits <= ILLEGAL / 2, -jnp.inf, score)).astype(jnp.int32)
