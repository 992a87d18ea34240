"""PPO for a policy with memory: minibatches are whole sequences, replayed from the state that each began with.

A sequence is the rollout of one environment. Its first recurrent state was stored when it was played, and the state
starts again before the first step of every episode, so the first replay gives the log-probabilities of the rollout.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32, Int32, Key

from hopplus.core.devices import shard_samples
from hopplus.core.numerics import Metrics, weighted_mean
from hopplus.learning.config import PPOConfig
from hopplus.learning.optim import Trained, apply_gradient
from hopplus.learning.ppo import Batch, entropy_bonus, loss_of, optimizer
from hopplus.models.actor_critic import PolicyNetwork


def replay(
    params: PolicyNetwork, sequence: Batch
) -> tuple[Float32[Array, "time actions"], Float32[Array, " time"], Float32[Array, "time hidden"]]:
    """The log-probabilities, values and recurrent states after the step, of one sequence, [time]."""
    start = params.start()
    assert sequence.recurrent is not None and start is not None

    def one_step(hidden: Array, step: Batch) -> tuple[Array, tuple[Array, Array, Array]]:
        assert step.recurrent is not None
        hidden = jnp.where(step.recurrent.reset_before, start, hidden)
        log_probabilities, value, after = params.step(hidden, step.observation, step.legal, step.goals)
        assert after is not None
        return after, (log_probabilities, value, after)

    return jax.lax.scan(one_step, sequence.recurrent.hidden[0], sequence)[1]


def update(
    config: PPOConfig,
    num_steps: int,
    policy: Trained,
    batch: Batch,
    *,
    value_scale: float,
    remaining: Float32[Array, ""],
    key: Key[Array, ""],
) -> tuple[Trained, Metrics]:
    """All epochs over one learner's batch, [seats, samples]; its samples are sequences of `num_steps`, concatenated."""
    num_seats, num_envs = batch.actions.shape[0], batch.actions.shape[1] // num_steps
    rows = jax.tree.map(lambda leaf: leaf.reshape(num_seats, num_envs, num_steps, *leaf.shape[2:]), batch)
    num_parts = max(round(num_envs * num_steps / config.minibatch_size), 1)
    envs_each = -(-num_envs // num_parts)
    entropy_coefficient = entropy_bonus(config, remaining)
    transform = optimizer(config)

    def learner_loss(params: PolicyNetwork, minibatch: Batch) -> tuple[Float32[Array, ""], Metrics]:
        def one_seat(seat: Batch) -> tuple[Float32[Array, ""], Metrics]:
            outputs = jax.vmap(lambda sequence: replay(params, sequence))(seat)
            (log_probabilities, values, hidden), samples = _flat((outputs, seat))
            of_ppo, metrics = loss_of(config, value_scale, log_probabilities, values, samples, entropy_coefficient)
            recurrent = samples.recurrent
            of_others = jax.vmap(params.auxiliary_loss)(
                hidden, samples.goals, recurrent.others_actions, recurrent.others_in_game
            )
            if of_others is None:
                return of_ppo, metrics
            auxiliary = weighted_mean(of_others, samples.active)
            return of_ppo + auxiliary, metrics | {"auxiliary_loss": auxiliary}

        return jax.tree.map(jnp.mean, jax.vmap(one_seat)(minibatch))

    def one_step(policy: Trained, chosen: Int32[Array, " envs"]) -> tuple[Trained, Metrics]:
        minibatch = shard_samples(jax.tree.map(lambda leaf: leaf[:, chosen], rows), axis=1)
        gradient, metrics = jax.grad(learner_loss, has_aux=True)(policy.params, minibatch)
        policy = apply_gradient(transform, policy, gradient, config.learning_rate)
        return policy, metrics | {"gradient_norm": optax.tree.norm(gradient)}

    def parts_of(epoch: Int32[Array, ""]) -> Int32[Array, "parts envs"]:
        order = jax.random.permutation(jax.random.fold_in(key, epoch), num_envs)
        return order[jnp.arange(num_parts * envs_each) % num_envs].reshape(num_parts, envs_each)

    chosen = jax.vmap(parts_of)(jnp.arange(config.epochs)).reshape(-1, envs_each)
    policy, metrics = jax.lax.scan(one_step, policy, chosen)
    return policy, jax.tree.map(jnp.mean, metrics) | {"steps": jnp.float32(len(chosen))}


def _flat(tree: Any) -> Any:
    """[envs, time] -> [samples]"""
    return jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), tree)
