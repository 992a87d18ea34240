"""The policy and the critic of one seat: an ego view goes in, action probabilities and a value come out."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Key

from hopplus.games.coplayers import Memory, Policy
from hopplus.games.game import GameSpec, Observation
from hopplus.models.networks import MLP, Heads, init_heads, init_mlp

ILLEGAL = -1e9


@dataclass(frozen=True)
class ActorCriticConfig:
    """The network of one seat."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the layers that the policy and the critic share."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"--network.hidden is {self.hidden}; give one width or more, each at least 1")


class ActorCritic(eqx.Module):
    """One trunk with two heads."""

    trunk: MLP
    heads: Heads
    """A logit for each action, then the value."""


def init(config: ActorCriticConfig, spec: GameSpec, *, key: Key[Array, ""]) -> ActorCritic:
    """A policy that begins almost uniform, and a critic that begins near zero."""
    trunk_key, heads_key = jax.random.split(key)
    gains = [0.01] * spec.num_actions + [1.0]
    return ActorCritic(
        trunk=init_mlp(num_features(spec), config.hidden, key=trunk_key),
        heads=init_heads(config.hidden[-1], gains, key=heads_key),
    )


def apply(
    params: ActorCritic, observation: Observation, legal: Bool[Array, " actions"]
) -> tuple[Float32[Array, " actions"], Float32[Array, ""]]:
    """The log-probability of each action, and the value of the state."""
    outputs = params.heads(params.trunk(features(observation, legal.shape[0])))
    return jax.nn.log_softmax(jnp.where(legal, outputs[:-1], ILLEGAL)), outputs[-1]


class Player(Policy):
    """A trained policy as a player: a pure function of what its seat sees, in whatever seat it sits."""

    params: ActorCritic
    greedy: bool = eqx.field(static=True, default=False)
    """Whether it always takes its most likely action."""

    def start(self) -> Memory:
        return ()

    def __call__(self, observation, legal, memory):
        log_probabilities, _ = apply(self.params, observation, legal)
        if self.greedy:
            return jax.nn.one_hot(jnp.argmax(log_probabilities), legal.shape[0]), memory
        return jnp.exp(log_probabilities), memory


def num_features(spec: GameSpec) -> int:
    return spec.height * spec.width * len(spec.planes) + 1 + spec.num_agents * spec.num_actions


def features(observation: Observation, num_actions: int) -> Float32[Array, " features"]:
    """Planes, time, and the last joint action, one-hot; an action that was not taken is all zeros."""
    last_actions = jax.nn.one_hot(observation.last_actions, num_actions)
    planes = observation.planes.reshape(-1).astype(jnp.float32)
    return jnp.concatenate([planes, observation.time[None], last_actions.reshape(-1)])
