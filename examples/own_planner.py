"""A planner of your own: play each action and then the own policy for a few steps, and compare the mean returns.

    hopplus evaluate runs/hop --planning.kind own_planner:Rollouts
    hopplus train direct_om --planning.kind own_planner:Rollouts --game matrix-stag-hunt --out runs/rollouts

The factory gets the budget (`SearchConfig`, the flags --planning.trees, --planning.depth ...). A planner gets a model:
a game, the own policy and critic, and the predicted co-players. It works in the true game and in a learned world.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from hopplus.planning.config import SearchConfig
from hopplus.planning.model import Model, Plan, average, make_node, rollout_value, step


@dataclass(frozen=True)
class Rollouts:
    """One rollout for each action and each draw of the co-players' goals."""

    budget: SearchConfig

    def __call__(self, model: Model, state, others_states, *, key) -> Plan:
        num_draws = jax.tree.leaves(others_states)[0].shape[0]
        nodes, evaluation = jax.vmap(partial(make_node, model, state))(others_states)
        num_actions = evaluation.legal.shape[-1]
        depth = min(self.budget.depth, 8)

        def try_action(node, action, numbers):
            step_key, play_key = jax.random.split(jax.random.wrap_key_data(numbers))
            after, there, edge = step(model, node, action, key=step_key)
            return edge.reward + edge.discount * rollout_value(model, after, there, depth, key=play_key)

        each_action = jax.vmap(try_action, in_axes=(None, 0, None))  # the same random numbers for every action
        keys = jax.random.key_data(jax.random.split(key, num_draws))
        values = jax.vmap(each_action, in_axes=(0, None, 0))(nodes, jnp.arange(num_actions, dtype=jnp.int32), keys)
        legal = evaluation.legal[0]
        return average(values, jnp.broadcast_to(legal.astype(jnp.float32), values.shape), legal)
