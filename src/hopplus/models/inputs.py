"""What every network reads of an ego view."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from hopplus.games.game import GameSpec, Observation
from hopplus.models.networks import Dense


def num_features(spec: GameSpec) -> int:
    return spec.height * spec.width * len(spec.planes) + 1 + spec.num_agents * spec.num_actions


def features(observation: Observation, num_actions: int) -> Float32[Array, " features"]:
    """Planes, time, and the last joint action, one-hot; an action that was not taken is all zeros."""
    last_actions = jax.nn.one_hot(observation.last_actions, num_actions)
    planes = observation.planes.reshape(-1).astype(jnp.float32)
    return jnp.concatenate([planes, observation.time[None], last_actions.reshape(-1)])


def read_for_others(
    spec: GameSpec, layer: Dense, seen: Float32[Array, " features"]
) -> Float32[Array, "others outputs"]:
    """The layer applied to every co-player's view, from the seat's own features.

    A co-player's features are the seat's own in another order, so the weights are put in order instead: one product of
    matrices, and no view is ever written down.
    """
    weights = jnp.concatenate([layer.weight[np.argsort(order)] for order in _orders(spec)], axis=-1)
    return (seen @ weights).reshape(-1, *layer.bias.shape) + layer.bias


def _orders(spec: GameSpec) -> list[np.ndarray]:
    """For each co-player, which of the seat's own features its features are."""
    cells = spec.height * spec.width
    planes = np.arange(cells * len(spec.planes)).reshape(cells, len(spec.planes))
    actions = np.arange(spec.num_agents * spec.num_actions).reshape(spec.num_agents, spec.num_actions)
    orders = []
    for offset in range(1, spec.num_agents):
        walkers = np.roll(planes[:, : spec.num_walkers], -offset, axis=1)
        turned = np.concatenate([walkers, planes[:, spec.num_walkers :]], axis=1).reshape(-1)
        last = planes.size + 1 + np.roll(actions, -offset, axis=0).reshape(-1)
        orders.append(np.concatenate([turned, [planes.size], last]))
    return orders
