"""The policy and the critic of one seat: an ego view goes in, action probabilities and a value come out."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Key

from hopplus.core.numerics import MASKED
from hopplus.games.game import GameSpec, Observation
from hopplus.models.config import ActorCriticConfig
from hopplus.models.inputs import features, num_features
from hopplus.models.networks import MLP, Heads, init_heads, init_mlp


class ActorCritic(eqx.Module):
    """One trunk with two heads."""

    trunk: MLP
    heads: Heads
    """A logit for each action, then the value."""


def init(config: ActorCriticConfig, spec: GameSpec, goal_size: int = 0, *, key: Key[Array, ""]) -> ActorCritic:
    """A policy that starts almost uniform, and a critic that starts near zero.

    Besides its view it reads `goal_size` numbers about the goal of each co-player.
    """
    trunk_key, heads_key = jax.random.split(key)
    gains = [0.01] * spec.num_actions + [1.0]
    return ActorCritic(
        trunk=init_mlp(num_features(spec) + (spec.num_agents - 1) * goal_size, config.hidden, key=trunk_key),
        heads=init_heads(config.hidden[-1], gains, key=heads_key),
    )


def apply(
    params: ActorCritic,
    observation: Observation,
    legal: Bool[Array, " actions"],
    goals: Float32[Array, "others goal"],
) -> tuple[Float32[Array, " actions"], Float32[Array, ""]]:
    """The log-probability of each action, and the value of the state, given the co-players' inferred goals."""
    inputs = jnp.concatenate([features(observation, legal.shape[0]), goals.reshape(-1)])
    outputs = params.heads(params.trunk(inputs))
    return jax.nn.log_softmax(jnp.where(legal, outputs[:-1], MASKED)), outputs[-1]


def values_under(
    params: ActorCritic,
    observation: Observation,
    num_actions: int,
    goals: Float32[Array, "others goal"],
    instead: Float32[Array, "others options goal"],
) -> Float32[Array, "others options"]:
    """The value of one state with one co-player's goal replaced; what the answers share is computed once."""
    first, *rest = params.trunk.layers
    seen = features(observation, num_actions)
    of_goals = first.weight[len(seen) :].reshape(*goals.shape, -1)
    usual = seen @ first.weight[: len(seen)] + first.bias + jnp.einsum("jg,jgh->h", goals, of_goals)
    hidden = jnp.tanh(usual + jnp.einsum("jog,jgh->joh", instead - goals[:, None], of_goals))
    for layer in rest:
        hidden = jnp.tanh(hidden @ layer.weight + layer.bias)
    return hidden @ params.heads.weight[-1] + params.heads.bias[-1]
