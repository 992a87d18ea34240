"""One-step lookahead: try each own action, let the predicted co-players act, and ask the critic about the result.

value(a) = mean over draws of  reward + discount V(next state after a)

In one draw the co-players and the game use the same random numbers for every own action, so differences between values
come from the own action alone.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PyTree

from hopplus.games.coplayers import PolicyState
from hopplus.planning.model import Model, Plan, average, make_node, step


def one_step(model: Model, state: PyTree[Array], others_states: PolicyState, *, key: Key[Array, ""]) -> Plan:
    """The plan from one state; `others_states` has the co-players of each draw, stacked."""
    num_trees = jax.tree.leaves(others_states)[0].shape[0]
    nodes, evaluation = jax.vmap(partial(make_node, model, state))(others_states)
    num_actions = evaluation.legal.shape[-1]
    keys = jax.random.key_data(jax.random.split(key, num_trees))

    def try_one(node, action, numbers):
        _, after, edge = step(model, node, action, key=jax.random.wrap_key_data(numbers))
        return edge.reward + edge.discount * after.value

    each_action = jax.vmap(try_one, in_axes=(None, 0, None))
    values = jax.vmap(each_action, in_axes=(0, None, 0))(nodes, jnp.arange(num_actions, dtype=jnp.int32), keys)
    legal = evaluation.legal[0]
    return average(values, jnp.broadcast_to(legal.astype(jnp.float32), values.shape), legal)
