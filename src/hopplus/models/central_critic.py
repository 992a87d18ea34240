"""A policy that reads its own view, and a critic that reads the views of all seats (MAPPO: Yu et al., 2022).

Policy and critic are networks of their own. Only training needs the critic, so the policy can be played anywhere. The
views of the co-players come in seat order after the viewer, in the place of their inferred goals. Where all players see
the whole board, they tell the critic nothing new.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Key

from hopplus.core.numerics import MASKED
from hopplus.games.fields import Field, Observation, features, num_features
from hopplus.games.game import GameSpec
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.config import ActorCriticConfig
from hopplus.models.networks import MLP, Heads, init_heads, init_mlp


class CentralCritic(PolicyNetwork):
    """Two networks without shared layers."""

    policy: MLP
    policy_head: Heads
    critic: MLP
    critic_head: Heads
    fields: tuple[Field, ...] = eqx.field(static=True)
    """What it reads of an observation."""

    @property
    def reads_all_views(self):
        return True

    def __call__(self, observation, legal, goals):
        own = features(self.fields, observation)
        logits = self.policy_head(self.policy(own))
        everything = jnp.concatenate([own, goals.reshape(-1)])
        everything = jnp.pad(everything, (0, self.critic.num_inputs - len(everything)))
        value = self.critic_head(self.critic(everything))[0]
        return jax.nn.log_softmax(jnp.where(legal, logits, MASKED)), value


def init_central_critic(config: ActorCriticConfig, spec: GameSpec, *, key: Key[Array, ""]) -> CentralCritic:
    """A policy that starts almost uniform, and a critic that starts near zero."""
    policy_key, policy_head_key, critic_key, critic_head_key = jax.random.split(key, 4)
    size = num_features(spec.observation)
    return CentralCritic(
        policy=init_mlp(size, config.hidden, key=policy_key),
        policy_head=init_heads(config.hidden[-1], [0.01] * spec.num_actions, key=policy_head_key),
        critic=init_mlp(size * spec.num_agents, config.hidden, key=critic_key),
        critic_head=init_heads(config.hidden[-1], [1.0], key=critic_head_key),
        fields=spec.observation,
    )


def views_of_the_others(
    fields: tuple[Field, ...], views: Observation, order: np.ndarray
) -> Float32[Array, "seats others features"]:
    """For each seat, the views of all other seats in seat order after it, as the critic reads them.

    Row i of `order`: seat i, then the seats after it.
    """
    seen = jax.vmap(lambda view: features(fields, view))(views)
    return seen[order[:, 1:]]
