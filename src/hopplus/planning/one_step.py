"""One-step lookahead: try each own action, let the co-players act as foretold, and ask the critic what came of it.

value(a) = mean over draws of  reward + discount V(what came of a)

In one draw the co-players and the game roll the same dice whatever the own action is: what differs is its doing.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PyTree

from hopplus.games.coplayers import Memory
from hopplus.planning.model import Model, Plan, average, follow, look


def one_step(model: Model, state: PyTree[Array], companies: Memory, *, key: Key[Array, ""]) -> Plan:
    """From one state, with a company for each draw, stacked."""
    num_trees = jax.tree.leaves(companies)[0].shape[0]
    nodes, outlook = jax.vmap(partial(look, model, state))(companies)
    num_actions = outlook.legal.shape[-1]
    keys = jax.random.key_data(jax.random.split(key, num_trees))

    def try_one(node, action, numbers):
        _, after, edge = follow(model, node, action, key=jax.random.wrap_key_data(numbers))
        return edge.reward + edge.discount * after.value

    each_action = jax.vmap(try_one, in_axes=(None, 0, None))
    values = jax.vmap(each_action, in_axes=(0, None, 0))(nodes, jnp.arange(num_actions, dtype=jnp.int32), keys)
    legal = outlook.legal[0]
    return average(values, jnp.broadcast_to(legal.astype(jnp.float32), values.shape), legal)
