"""PPO for one learner (Schulman et al., 2017): clipped surrogate, clipped value loss, entropy, all masked.

Where a seat planned, its policy learns the planned action probabilities by cross-entropy instead of the surrogate
(HOP's objective).

A learner has one set of parameters and plays one seat, or several that share it. The training step maps `update` over
learners, so gradient norms and optimiser states belong to one learner, and advantages are normalised within each
seat.
"""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.core.devices import shard_samples
from hopplus.core.numerics import Metrics, normalised, weighted_mean
from hopplus.games.fields import Observation
from hopplus.games.game import ego_order
from hopplus.learning.config import PPOConfig
from hopplus.learning.optim import Trained, apply_gradient
from hopplus.learning.returns import advantages
from hopplus.learning.rollout import Trajectory
from hopplus.models import actor_critic
from hopplus.models.actor_critic import PolicyNetwork


class Source(eqx.Module):
    """Where samples come from, and their weights; without it all are real and have weight 1."""

    imagined: Bool[Array, "*batch"]
    weights: Float32[Array, "*batch"]
    """For the policy."""
    critic_weights: Float32[Array, "*batch"]


class Recurrent(eqx.Module):
    """What replays the sequences of a policy with memory; samples are then in the order of time."""

    hidden: Float32[Array, "*batch hidden"]
    """The state that the seat acted from."""
    reset_before: Bool[Array, "*batch"]
    others_actions: Int32[Array, "*batch others"]
    """What the others did in the step, in seat order after the seat."""
    others_in_game: Bool[Array, "*batch others"]
    """Whether they were in the game."""


class Batch(eqx.Module):
    """The samples of one learner; leading axes: the seats it plays, samples."""

    observation: Observation
    legal: Bool[Array, "*batch actions"]
    goals: Float32[Array, "*batch others goal"]
    """The co-players' goals as the seat inferred them, and what else its policy reads about them; no gradient reaches
    the models that inferred them."""
    actions: Int32[Array, "*batch"]
    log_probabilities: Float32[Array, "*batch"]
    """Of the actions, under the policy that took them."""
    values: Float32[Array, "*batch"]
    """The critic's values when the actions were taken."""
    advantages: Float32[Array, "*batch"]
    active: Bool[Array, "*batch"]
    """Whether the seat was in the game; other samples are padding."""
    planned: Float32[Array, "*batch actions"] | None = None
    """Planned action probabilities: where given, the policy learns them instead of PPO's objective."""
    source: Source | None = None
    recurrent: Recurrent | None = None

    @property
    def targets(self) -> Float32[Array, "*batch"]:
        return self.values + self.advantages


def make_batch(config: PPOConfig, steps: Trajectory, last_values: Float32[Array, "envs seats"]) -> Batch:
    """The samples of each learning seat, [seats, envs, time]; its targets come from its own rewards."""
    num_learning = steps.legal.shape[2]

    def by_seat(leaf: Array) -> Array:
        return jnp.moveaxis(leaf[:, :, :num_learning], 2, 0)

    values = by_seat(steps.values)
    gae = partial(advantages, discount=config.discount, gae_lambda=config.gae_lambda)
    over_seats_and_envs = jax.vmap(jax.vmap(gae))
    advantage = over_seats_and_envs(by_seat(steps.rewards), values, last_values.T, by_seat(steps.terminated_after))
    return Batch(
        observation=jax.tree.map(by_seat, steps.observation),
        legal=by_seat(steps.legal),
        goals=by_seat(steps.goals if steps.inputs is None else steps.inputs),
        actions=by_seat(steps.actions),
        log_probabilities=by_seat(steps.log_probabilities),
        values=values,
        advantages=advantage,
        active=by_seat(steps.in_game),
        planned=None if steps.planned is None else by_seat(steps.planned),
        recurrent=_recurrent(steps),
    )


def _recurrent(steps: Trajectory) -> Recurrent | None:
    if steps.hidden is None:
        return None
    hidden = jnp.moveaxis(steps.hidden, 2, 0)
    others = ego_order(steps.actions.shape[2])[: len(hidden), 1:]
    of_others = (jnp.moveaxis(leaf[:, :, others], 2, 0) for leaf in (steps.actions, steps.in_game))
    return Recurrent(hidden, jnp.broadcast_to(steps.reset_before, hidden.shape[:3]), *of_others)


def optimizer(config: PPOConfig) -> optax.GradientTransformation:
    """Adam without its learning rate."""
    return optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), optax.scale_by_adam(eps=1e-5))


def loss(
    config: PPOConfig,
    value_scale: float,
    params: PolicyNetwork,
    batch: Batch,
    entropy_coefficient: Float32[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The loss of one seat's minibatch, and its parts by name."""
    over_samples = jax.vmap(actor_critic.apply, in_axes=(None, 0, 0, 0))
    outputs = over_samples(params, batch.observation, batch.legal, batch.goals)
    return loss_of(config, value_scale, *outputs, batch, entropy_coefficient)


def loss_of(
    config: PPOConfig,
    value_scale: float,
    log_probabilities: Float32[Array, "samples actions"],
    values: Float32[Array, " samples"],
    batch: Batch,
    entropy_coefficient: Float32[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The loss, given what the network says about the samples."""
    taken = jnp.arange(log_probabilities.shape[-1]) == batch.actions[..., None]
    log_ratio = jnp.sum(jnp.where(taken, log_probabilities, 0.0), axis=-1) - batch.log_probabilities
    ratio = jnp.exp(log_ratio)
    counted, for_critic = weights_of(batch)

    def mean(numbers: Array) -> Array:
        return weighted_mean(numbers, counted)

    advantages = normalised(batch.advantages, counted)
    clipped_ratio = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    if batch.planned is None:
        policy_loss = -mean(jnp.minimum(ratio * advantages, clipped_ratio * advantages))
    else:
        policy_loss = -mean(jnp.sum(batch.planned * log_probabilities, axis=-1))

    squares = jnp.square((values - batch.targets) / value_scale)
    if config.value_clip > 0:
        reach = config.value_clip * value_scale
        near = batch.values + jnp.clip(values - batch.values, -reach, reach)
        squares = jnp.maximum(squares, jnp.square((near - batch.targets) / value_scale))
    value_loss = 0.5 * weighted_mean(squares, for_critic)

    entropy = mean(-jnp.sum(jnp.exp(log_probabilities) * log_probabilities, axis=-1))
    total = policy_loss + config.value_coefficient * value_loss - entropy_coefficient * entropy
    misses = 0.5 * jnp.square(values - batch.targets)
    metrics = {
        "policy_loss": policy_loss,
        "value_loss": weighted_mean(misses, for_critic),
        **value_losses(misses, batch),
        "entropy": entropy,
        "approx_kl": mean(ratio - 1 - log_ratio),
        "clip_fraction": mean((jnp.abs(ratio - 1) > config.clip).astype(jnp.float32)),
    }
    return total, metrics


def update(
    config: PPOConfig,
    policy: Trained,
    batch: Batch,
    *,
    value_scale: float,
    remaining: Float32[Array, ""],
    key: Key[Array, ""],
) -> tuple[Trained, Metrics]:
    """All epochs over one learner's batch; `remaining` is the share of the schedule that is left."""
    entropy_coefficient = entropy_bonus(config, remaining)
    transform = optimizer(config)

    def learner_loss(params: PolicyNetwork, minibatch: Batch) -> tuple[Float32[Array, ""], Metrics]:
        by_seat = jax.vmap(lambda seat: loss(config, value_scale, params, seat, entropy_coefficient))
        return jax.tree.map(jnp.mean, by_seat(minibatch))

    @jax.jit  # traced once, for the shapes and for the loop
    def one_step(policy: Trained, minibatch: Batch) -> tuple[Trained, Metrics]:
        gradient, metrics = jax.grad(learner_loss, has_aux=True)(policy.params, minibatch)
        policy = apply_gradient(transform, policy, gradient, config.learning_rate)
        return policy, metrics | {"gradient_norm": optax.tree.norm(gradient)}

    pass_over = partial(Pass, config, batch, key)
    shapes = jax.eval_shape(lambda: one_step(policy, pass_over(jnp.int32(0)).minibatch(jnp.int32(0)))[1])
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def one_epoch(epoch, carry):
        now = pass_over(epoch)

        def one_minibatch(part, carry):
            policy, totals = carry
            policy, metrics = one_step(policy, now.minibatch(part))
            return policy, jax.tree.map(jnp.add, totals, metrics)

        policy, totals, steps = carry
        return *jax.lax.fori_loop(0, now.num_parts, one_minibatch, (policy, totals)), steps + now.num_parts

    policy, totals, steps = jax.lax.fori_loop(0, config.epochs, one_epoch, (policy, zeros, jnp.int32(0)))
    num_steps = steps.astype(jnp.float32)
    return policy, {name: total / num_steps for name, total in totals.items()} | {"steps": num_steps}


class Pass:
    """One pass over a learner's batch, in random order and in minibatches of similar size."""

    def __init__(self, config: PPOConfig, batch: Batch, key: Key[Array, ""], epoch: Int32[Array, ""]):
        self.batch, self.size = batch, min(config.minibatch_size, batch.active.shape[-1])
        active = in_epoch(config, batch, epoch)
        self.num_active = jnp.sum(active, axis=-1, dtype=jnp.int32)
        self.num_parts = jnp.maximum(-(-jnp.max(self.num_active) // self.size), 1)
        self.order = shuffle(active, jax.random.fold_in(key, epoch))

    def minibatch(self, part: Int32[Array, ""]) -> Batch:
        cut = minibatch_of(self.batch, self.num_active, self.num_parts, self.size, self.order, part)
        return shard_samples(cut, axis=1)


def in_epoch(config: PPOConfig, batch: Batch, epoch: Int32[Array, ""]) -> Bool[Array, "seats samples"]:
    """The samples that an epoch uses: all real ones, and those imagined ones whose turn it is."""
    if batch.source is None or config.imagined_epochs in (0, config.epochs):
        return batch.active
    turn = (jnp.arange(batch.active.shape[1]) - epoch) % config.epochs
    return batch.active & (~batch.source.imagined | (turn < config.imagined_epochs))


def entropy_bonus(config: PPOConfig, remaining: Float32[Array, ""]) -> Float32[Array, ""]:
    start, end = config.entropy_coefficient, config.final_entropy_coefficient
    return end + (start - end) * remaining


def shuffle(active: Bool[Array, "seats samples"], key: Key[Array, ""]) -> Int32[Array, "seats samples"]:
    """For each seat the indices of its samples in random order, padding last.

    All seats that share parameters use the same random words, so that no seat differs from another.
    """
    words = jax.random.bits(key, active.shape[-1:], jnp.uint32) >> 1
    return jnp.argsort(jnp.where(active, words, jnp.uint32(2**32 - 1)), axis=-1)


def minibatch_of(
    batch: Batch,
    num_active: Int32[Array, " seats"],
    num_parts: Int32[Array, ""],
    size: int,
    order: Int32[Array, "seats samples"],
    part: int | Int32[Array, ""],
) -> Batch:
    """Every num_parts-th sample of the order: the sizes of the parts differ by one sample at most."""
    places = part + num_parts * jnp.arange(size)
    chosen = order.at[:, places].get(mode="clip")
    picked = jax.tree.map(lambda leaf: jax.vmap(lambda rows, index: rows[index])(leaf, chosen), batch)
    return replace(picked, active=places < num_active[:, None])


def weights_of(batch: Batch) -> tuple[Array, Array]:
    """The weights of the samples for the policy and for the critic."""
    if batch.source is None:
        return batch.active, batch.active
    weights = batch.source.weights, batch.source.critic_weights
    return jnp.where(batch.active, weights[0], 0.0), jnp.where(batch.active, weights[1], 0.0)


def value_losses(misses: Float32[Array, "*batch"], batch: Batch) -> Metrics:
    """The value loss by source and unweighted, so that real data cannot hide bad imagined targets."""
    if batch.source is None:
        return {"value_loss_real": weighted_mean(misses, batch.active)}
    imagined = batch.active & batch.source.imagined
    return {
        "value_loss_real": weighted_mean(misses, batch.active & ~imagined),
        "value_loss_imagined": weighted_mean(misses, imagined),
    }
