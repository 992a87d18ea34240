"""What the opponent models read of a co-player, from the viewer's own features."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from hopplus.games.fields import Field, feature_order
from hopplus.models.networks import Dense


def read_for_others(
    fields: Sequence[Field], num_agents: int, layer: Dense, seen: Float32[Array, " features"]
) -> Float32[Array, "others outputs"]:
    """The layer applied to every co-player's view, from the seat's own features.

    A co-player's features are the seat's own in another order, so the weights are put in order instead: one product of
    matrices, and no view is ever written down.
    """
    orders = [feature_order(fields, num_agents, offset) for offset in range(1, num_agents)]
    weights = jnp.concatenate([layer.weight[np.argsort(order)] for order in orders], axis=-1)
    return (seen @ weights).reshape(-1, *layer.bias.shape) + layer.bias
