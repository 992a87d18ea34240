"""A policy with a recurrent encoder that is trained to tell what the others see and do (LIAM: Papoudakis et al., 2021).

    z_t = encoder(own views and own last actions up to t)          learned by reconstruction alone
    decoder(z_t) -> the views and the actions of the others at t   needed in training alone
    policy and critic read the own view and z_t, whose gradient is stopped

The encoder reads only what the seat has seen itself, so the policy can be played anywhere.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.core.numerics import MASKED
from hopplus.games.fields import Field, features, num_features
from hopplus.games.game import GameSpec
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.config import ActorCriticConfig
from hopplus.models.networks import GRU, MLP, Heads, init_gru, init_heads, init_mlp


class Liam(PolicyNetwork):
    """Encoder, decoder, and the trunk that policy and critic share."""

    before: MLP
    encoder: GRU
    decoder: MLP
    decoder_head: Heads
    """For each other: its view's features, then a logit for each action."""
    trunk: MLP
    heads: Heads
    """A logit for each action, then the value."""
    fields: tuple[Field, ...] = eqx.field(static=True)
    """What it reads of an observation."""

    @property
    def reads_all_views(self):
        return True

    def start(self):
        return jnp.zeros(self.encoder.size, jnp.float32)

    def __call__(self, observation, legal, goals):
        return self.step(self.start(), observation, legal, goals)[:2]

    def step(self, hidden, observation, legal, goals):
        """`goals` are the others' views, which only the decoder's loss reads."""
        own = features(self.fields, observation)
        assert hidden is not None
        hidden = self.encoder(hidden, self.before(own))
        outputs = self.heads(self.trunk(jnp.concatenate([own, jax.lax.stop_gradient(hidden)])))
        return jax.nn.log_softmax(jnp.where(legal, outputs[:-1], MASKED)), outputs[-1], hidden

    def auxiliary_loss(
        self,
        hidden: Float32[Array, " hidden"],
        views: Float32[Array, "others features"],
        actions: Int32[Array, " others"],
        present: Bool[Array, " others"],
    ) -> Float32[Array, ""]:
        """Squared error of the others' views plus cross-entropy of their actions, over those that are in the game."""
        num_others, size = views.shape
        outputs = self.decoder_head(self.decoder(hidden)).reshape(num_others, -1)
        of_views = jnp.mean(jnp.square(outputs[:, :size] - views), axis=-1)
        log_probabilities = jax.nn.log_softmax(outputs[:, size:])
        of_actions = -jnp.take_along_axis(log_probabilities, actions[:, None], axis=-1)[:, 0]
        return jnp.sum(jnp.where(present, of_views + of_actions, 0.0)) / jnp.maximum(jnp.sum(present), 1)


def init_liam(config: ActorCriticConfig, spec: GameSpec, *, key: Key[Array, ""]) -> Liam:
    """A policy that starts almost uniform, and a critic that starts near zero."""
    keys = jax.random.split(key, 6)
    size, width, last = num_features(spec.observation), config.memory_size, config.hidden[-1]
    num_outputs = (spec.num_agents - 1) * (size + spec.num_actions)
    return Liam(
        before=init_mlp(size, config.hidden[:1], key=keys[0]),
        encoder=init_gru(config.hidden[0], width, key=keys[1]),
        decoder=init_mlp(width, config.hidden[-1:], key=keys[2]),
        decoder_head=init_heads(last, [0.1] * num_outputs, key=keys[3]),
        trunk=init_mlp(size + width, config.hidden, key=keys[4]),
        heads=init_heads(last, [0.01] * spec.num_actions + [1.0], key=keys[5]),
        fields=spec.observation,
    )
