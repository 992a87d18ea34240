"""An agent of your own, which acts and learns differently: REINFORCE with a linear softmax policy.

    hopplus train own_agent:Reinforce --game matrix-prisoners-dilemma --steps 100000 --out runs/reinforce
    hopplus evaluate runs/reinforce
    hopplus report runs/reinforce
    hopplus doctor runs/reinforce

Everything else stays: seeds and seats as array axes, checkpoints, resume, evaluation, cross-play, the doctor.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32

from hopplus.games.fields import Field, features, num_features
from hopplus.learning import Agent, LearnerConfig, PPOConfig
from hopplus.learning.optim import Trained, apply_gradient, init_trained
from hopplus.models import PolicyNetwork


class Linear(PolicyNetwork):
    """How it acts: a softmax over linear scores, mixed with a little random play. Its value is a constant."""

    weights: Float32[Array, "features actions"]
    baseline: Float32[Array, ""]
    fields: tuple[Field, ...] = eqx.field(static=True)
    epsilon: float = eqx.field(static=True, default=0.02)

    def __call__(self, observation, legal, goals):
        scores = features(self.fields, observation) @ self.weights
        chosen = jax.nn.softmax(jnp.where(legal, scores, -1e9))
        mixed = (1 - self.epsilon) * chosen + self.epsilon * legal / jnp.sum(legal)
        return jnp.log(jnp.maximum(mixed, 1e-30)), self.baseline


class Reinforce(Agent):
    """REINFORCE: the log-probability of each action, weighted by the return after it over a baseline."""

    rate: float = eqx.field(static=True, default=0.02)

    def settings(self):
        return replace(LearnerConfig(), envs=64, rollout_steps=10, ppo=PPOConfig(gae_lambda=1.0))

    def init(self, config, spec, goal_size, *, key):
        weights = 0.01 * jax.random.normal(key, (num_features(spec.observation), spec.num_actions))
        return init_trained(optax.scale_by_adam(), Linear(weights, jnp.float32(0), spec.observation))

    def update(self, config, policy, batch, *, value_scale, remaining, key):
        """One gradient step over all samples. How it learns: no clipping, no epochs, no entropy bonus."""
        counted = batch.active / jnp.maximum(jnp.sum(batch.active), 1)

        def loss(network: Linear):
            over_samples = jax.vmap(jax.vmap(network))
            log_probabilities, values = over_samples(batch.observation, batch.legal, batch.goals)
            taken = jnp.take_along_axis(log_probabilities, batch.actions[..., None], axis=-1)[..., 0]
            advantages = (batch.targets - batch.values) / value_scale
            policy_loss = -jnp.sum(counted * taken * advantages)
            value_loss = jnp.sum(counted * jnp.square(values - batch.targets))
            return policy_loss + value_loss / value_scale**2, {"policy_loss": policy_loss, "value_loss": value_loss}

        gradient, metrics = jax.grad(loss, has_aux=True)(policy.params)
        after: Trained = apply_gradient(optax.scale_by_adam(), policy, gradient, self.rate)
        return after, metrics | {"steps": jnp.float32(1)}
