"""What every network reads of an ego view."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from hopplus.games.game import GameSpec, Observation


def num_features(spec: GameSpec) -> int:
    return spec.height * spec.width * len(spec.planes) + 1 + spec.num_agents * spec.num_actions


def features(observation: Observation, num_actions: int) -> Float32[Array, " features"]:
    """Planes, time, and the last joint action, one-hot; an action that was not taken is all zeros."""
    last_actions = jax.nn.one_hot(observation.last_actions, num_actions)
    planes = observation.planes.reshape(-1).astype(jnp.float32)
    return jnp.concatenate([planes, observation.time[None], last_actions.reshape(-1)])
