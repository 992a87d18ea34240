"""PPO for one learner (Schulman et al., 2017): clipped surrogate, clipped value loss, entropy, all masked.

Where a seat planned, its policy learns the planned one by cross-entropy instead of the surrogate (HOP's objective).

A learner has one set of parameters and plays one seat, or several that share it. Nothing here knows which: the
training step maps `update` over learners, so a gradient's norm and an optimiser's state are each learner's own, and
advantages are normalised within each seat.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.game import Observation
from hopplus.learning.devices import dealt_out
from hopplus.learning.returns import advantages
from hopplus.learning.rollout import Trajectory
from hopplus.models import actor_critic
from hopplus.models.actor_critic import ActorCritic

Metrics = dict[str, Array]


@dataclass(frozen=True)
class PPOConfig:
    """The objective and how it is optimised."""

    discount: float = 0.99
    """Worth of a reward one step later."""
    gae_lambda: float = 0.95
    """1 is the plain Monte-Carlo return, 0 the one-step one."""
    clip: float = 0.2
    """How far the probability ratio may move before the gain is cut off."""
    value_clip: float = 0.2
    """How far a value may move in one update, in units of the game's largest reward; 0 leaves it free."""
    value_coefficient: float = 0.5
    """Weight of the value loss."""
    entropy_coefficient: float = 0.06
    """Weight of the entropy bonus when a run begins: enough to find that stags pay before hares are a habit."""
    final_entropy_coefficient: float = 0.003
    """Its weight when the run ends; in between it follows a straight line."""
    learning_rate: float = 5e-4
    """Of Adam."""
    max_gradient_norm: float = 0.5
    """Each learner's gradient is scaled down to this norm."""
    epochs: int = 4
    """How many times each update goes over its data."""
    ranked_reward: float = 0.0
    """Pay +1 at the end of an episode that is among the best of its update, -1 else, and nothing before; the best are
    those at or above this percentile of the returns, as in 0.75. 0: pay what the game pays."""
    minibatch_size: int = 512
    """The most samples of a seat in one gradient step; steps of seats that have left are none, and cost nothing."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        for name in ("discount", "gae_lambda"):
            check_number("ppo", name, getattr(self, name), 0 <= getattr(self, name) <= 1, "between 0 and 1")
        for name in ("clip", "learning_rate", "max_gradient_norm"):
            check_number("ppo", name, getattr(self, name), getattr(self, name) > 0, "above 0")
        for name in ("value_clip", "value_coefficient", "entropy_coefficient", "final_entropy_coefficient"):
            check_number("ppo", name, getattr(self, name), getattr(self, name) >= 0, "of 0 or more")
        check_number("ppo", "ranked_reward", self.ranked_reward, 0 <= self.ranked_reward < 1, "from 0 to below 1")
        check_counts("ppo", self, "epochs", "minibatch_size")


def check_number(group: str, name: str, value: float | int, fine: bool, wanted: str) -> None:
    """Raise unless a setting of that group of flags is fine."""
    if not fine:
        raise ValueError(f"--{group}.{name.replace('_', '-')} is {value}; give a number {wanted}")


def check_counts(group: str, settings: object, *names: str) -> None:
    """Raise unless these settings of that group of flags are 1 or more."""
    for name in names:
        check_number(group, name, getattr(settings, name), getattr(settings, name) >= 1, "of 1 or more")


class Source(eqx.Module):
    """Where samples come from, and how much they count; without it all are real and count in full."""

    imagined: Bool[Array, "*batch"]
    weights: Float32[Array, "*batch"]
    """For the policy."""
    critic_weights: Float32[Array, "*batch"]


class Batch(eqx.Module):
    """What a learner learns from; leading axes: the seats it plays, samples."""

    observation: Observation
    legal: Bool[Array, "*batch actions"]
    goals: Float32[Array, "*batch others goal"]
    """What the seat took its co-players' goals to be; no gradient reaches the models that told so."""
    actions: Int32[Array, "*batch"]
    log_probabilities: Float32[Array, "*batch"]
    """Of the actions, when they were taken."""
    values: Float32[Array, "*batch"]
    """What the critic said then."""
    advantages: Float32[Array, "*batch"]
    active: Bool[Array, "*batch"]
    """Whether the seat was in the game; what it was not in is no data."""
    planned: Float32[Array, "*batch actions"] | None = None
    """What planning made of the actions: where it is told, the policy learns this instead of PPO's objective."""
    source: Source | None = None

    @property
    def targets(self) -> Float32[Array, "*batch"]:
        return self.values + self.advantages


def look_back(config: PPOConfig, steps: Trajectory, last_values: Float32[Array, "envs seats"]) -> Batch:
    """What each learning seat can learn from the steps, [seats, envs, time]: its targets are of its own rewards."""
    num_learning = steps.legal.shape[2]
    by_seat = lambda leaf: jnp.moveaxis(leaf[:, :, :num_learning], 2, 0)  # noqa: E731
    values = by_seat(steps.values)
    gae = partial(advantages, discount=config.discount, gae_lambda=config.gae_lambda)
    over_seats_and_envs = jax.vmap(jax.vmap(gae))
    advantage = over_seats_and_envs(by_seat(steps.rewards), values, last_values.T, by_seat(steps.terminated_after))
    return Batch(
        observation=jax.tree.map(by_seat, steps.observation),
        legal=by_seat(steps.legal),
        goals=by_seat(steps.goals),
        actions=by_seat(steps.actions),
        log_probabilities=by_seat(steps.log_probabilities),
        values=values,
        advantages=advantage,
        active=by_seat(steps.in_game),
        planned=None if steps.planned is None else by_seat(steps.planned),
    )


def optimizer(config: PPOConfig) -> optax.GradientTransformation:
    """Adam without its learning rate, which changes over a run."""
    return optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), optax.scale_by_adam(eps=1e-5))


def optimizer_state(config: PPOConfig, params: Any) -> PyTree[Array]:
    """Before the first update."""
    return optimizer(config).init(params)


def loss(
    config: PPOConfig,
    value_scale: float,
    params: ActorCritic,
    batch: Batch,
    entropy_coefficient: Float32[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The loss of one seat's minibatch, and its parts by name."""
    over_samples = jax.vmap(actor_critic.apply, in_axes=(None, 0, 0, 0))
    log_probabilities, values = over_samples(params, batch.observation, batch.legal, batch.goals)
    taken = jnp.arange(log_probabilities.shape[-1]) == batch.actions[..., None]
    log_ratio = jnp.sum(jnp.where(taken, log_probabilities, 0.0), axis=-1) - batch.log_probabilities
    ratio = jnp.exp(log_ratio)
    counted, for_critic = weights_of(batch)
    mean = lambda numbers: weighted_mean(numbers, counted)  # noqa: E731

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
    value_scale: float,
    remaining: Float32[Array, ""],
    learner: tuple[ActorCritic, PyTree[Array], Batch, Key[Array, ""]],
) -> tuple[ActorCritic, PyTree[Array], Metrics]:
    """All epochs over one learner's batch, `remaining` being the share of the run that is left."""
    params, optimizer_state, batch, key = learner
    entropy_coefficient = entropy_bonus(config, remaining)
    transform = optimizer(config)

    def learner_loss(params: ActorCritic, minibatch: Batch) -> tuple[Float32[Array, ""], Metrics]:
        by_seat = jax.vmap(lambda seat: loss(config, value_scale, params, seat, entropy_coefficient))
        return jax.tree.map(jnp.mean, by_seat(minibatch))

    def one_step(params: ActorCritic, optimizer_state: PyTree[Array], minibatch: Batch):
        gradient, metrics = jax.grad(learner_loss, has_aux=True)(params, minibatch)
        steps, optimizer_state = transform.update(gradient, optimizer_state)
        params = descend(params, steps, config.learning_rate)
        return params, optimizer_state, metrics | {"gradient_norm": optax.tree.norm(gradient)}

    num_active = jnp.sum(batch.active, axis=-1, dtype=jnp.int32)
    num_parts = jnp.maximum(-(-jnp.max(num_active) // config.minibatch_size), 1)
    minibatch = partial(minibatch_of, batch, num_active, num_parts, config.minibatch_size)
    cut = lambda order, part: dealt_out(minibatch(order, part), axis=1)  # noqa: E731
    order = jax.eval_shape(shuffle, batch.active, key)
    shapes = jax.eval_shape(lambda order: one_step(params, optimizer_state, cut(order, 0))[2], order)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def one_epoch(epoch, carry):
        order = shuffle(batch.active, jax.random.fold_in(key, epoch))

        def one_minibatch(part, carry):
            params, optimizer_state, totals = carry
            params, optimizer_state, metrics = one_step(params, optimizer_state, cut(order, part))
            return params, optimizer_state, jax.tree.map(jnp.add, totals, metrics)

        return jax.lax.fori_loop(0, num_parts, one_minibatch, carry)

    params, optimizer_state, totals = jax.lax.fori_loop(0, config.epochs, one_epoch, (params, optimizer_state, zeros))
    num_steps = (num_parts * config.epochs).astype(jnp.float32)
    return params, optimizer_state, {name: total / num_steps for name, total in totals.items()} | {"steps": num_steps}


def falling(rate: float, final_share: float, remaining: Float32[Array, ""]) -> Float32[Array, ""]:
    """A rate that falls to a share of itself along a straight line, `remaining` being the share of the run left."""
    return rate * (final_share + (1 - final_share) * remaining)


def descend(params: Any, steps: Any, rate: float | Float32[Array, ""]) -> Any:
    """The parameters after a step of an optimiser that leaves its rate to us."""
    return jax.tree.map(lambda param, step: param - rate * step, params, steps)


def entropy_bonus(config: PPOConfig, remaining: Float32[Array, ""]) -> Float32[Array, ""]:
    start, end = config.entropy_coefficient, config.final_entropy_coefficient
    return end + (start - end) * remaining


def shuffle(active: Bool[Array, "seats samples"], key: Key[Array, ""]) -> Int32[Array, "seats samples"]:
    """For each seat the numbers of its samples in random order, those that are no data last.

    The order before that is the same for all seats that share parameters, so that none is told from another.
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
    """Every num_parts-th sample of the order: the parts are then equal but for one sample."""
    places = part + num_parts * jnp.arange(size)
    chosen = order.at[:, places].get(mode="clip")
    picked = jax.tree.map(lambda leaf: jax.vmap(lambda rows, index: rows[index])(leaf, chosen), batch)
    return replace(picked, active=places < num_active[:, None])


def weights_of(batch: Batch) -> tuple[Array, Array]:
    """How much each sample counts for the policy and for the critic."""
    if batch.source is None:
        return batch.active, batch.active
    counted = lambda weights: jnp.where(batch.active, weights, 0.0)  # noqa: E731
    return counted(batch.source.weights), counted(batch.source.critic_weights)


def value_losses(misses: Float32[Array, "*batch"], batch: Batch) -> Metrics:
    """By source and unweighted, so that bad imagined targets cannot hide behind real ones."""
    if batch.source is None:
        return {"value_loss_real": weighted_mean(misses, batch.active)}
    imagined = batch.active & batch.source.imagined
    return {
        "value_loss_real": weighted_mean(misses, batch.active & ~imagined),
        "value_loss_imagined": weighted_mean(misses, imagined),
    }


def weighted_mean(numbers: Float32[Array, "*batch"], weights: Array) -> Float32[Array, ""]:
    """The mean of what counts, 0 where nothing does; weights may be flags."""
    counted = jnp.where(weights > 0, numbers * weights, 0.0)
    return jnp.sum(counted) / jnp.maximum(jnp.sum(weights), 1e-6 if jnp.issubdtype(weights.dtype, jnp.floating) else 1)


def normalised(numbers: Float32[Array, "*batch"], weights: Array) -> Float32[Array, "*batch"]:
    """Mean 0 and deviation 1 over what counts."""
    centred = numbers - weighted_mean(numbers, weights)
    return centred / jnp.sqrt(weighted_mean(jnp.square(centred), weights) + 1e-8)
