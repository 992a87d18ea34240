"""The losses of latent goals.

posterior   mismatch(goal drawn from q, selected goal) + w KL(q || encoding of the selected state)
prior       the VAE of `models.goals`; a pretrained prior stays as it is
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.agents.opponents import OpponentModels, by_other
from hopplus.core.numerics import Metrics
from hopplus.games.fields import Observation
from hopplus.games.game import NO_ACTION
from hopplus.learning.config import LearnerConfig, ModellingConfig, PriorLoss
from hopplus.learning.opponent_data import GoalTargets, OpponentData
from hopplus.models import goals, others
from hopplus.models.config import GoalsConfig
from hopplus.models.others import OpponentInput


def posterior_outputs(
    models: OpponentModels, inputs: OpponentInput, data: OpponentData
) -> Float32[Array, "rows time others outputs"]:
    """The posterior at every step, given all actions before it."""
    posterior = models.posterior
    assert posterior is not None
    num_actions = inputs.legal.shape[-1]

    def everywhere(fn: Callable[..., Array]) -> Callable[..., Array]:
        return jax.vmap(jax.vmap(jax.vmap(fn)))

    embedded = everywhere(lambda view: goals.embed(posterior, view))(inputs.observation)
    acted = jnp.where(data.valid, data.actions, NO_ACTION)
    added = everywhere(lambda one, action: goals.evidence_of(posterior, one, action, num_actions))(embedded, acted)

    def forwards(total, step):
        added, new = step
        now = jnp.where(new[:, None, None], 0.0, total)
        return now + added, now

    steps = (jnp.moveaxis(added, 1, 0), data.reset_before.T)
    totals = jnp.moveaxis(jax.lax.scan(forwards, data.before, steps)[1], 0, 1)
    return everywhere(partial(goals.infer, posterior))(embedded, totals)


def pick_steps(
    wanted: Bool[Array, "rows time others"], size: int, *, key: Key[Array, ""]
) -> tuple[Int32[Array, "others samples"], Int32[Array, "others samples"], Float32[Array, "others samples"]]:
    """Row, step and weight of `size` wanted steps of each co-player, in random order; all come before one repeats."""
    flat = jnp.moveaxis(wanted, -1, 0).reshape(wanted.shape[-1], -1)
    noise = jax.random.bits(key, flat.shape[-1:], jnp.uint32) >> 1
    order = jnp.argsort(jnp.where(flat, noise, jnp.uint32(2**32 - 1)), axis=-1).astype(jnp.int32)
    count = jnp.sum(flat, axis=-1, keepdims=True, dtype=jnp.int32)
    chosen = jnp.take_along_axis(order, jnp.arange(size) % jnp.maximum(count, 1), axis=-1)
    weights = jnp.broadcast_to(count > 0, chosen.shape).astype(jnp.float32)
    return chosen // wanted.shape[1], chosen % wanted.shape[1], weights


def at_samples(tree: Any, rows: Int32[Array, "others samples"], steps: Int32[Array, "others samples"]) -> Any:
    """The samples of arrays [rows, time, others, ...] as [others, samples, ...]."""
    which = jnp.broadcast_to(jnp.arange(len(rows))[:, None], rows.shape)
    return jax.tree.map(lambda leaf: leaf[rows, steps, which], tree)


def goals_loss(
    config: LearnerConfig,
    models: OpponentModels,
    data: OpponentData,
    targets: GoalTargets,
    *,
    train_prior: bool,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The losses of posterior and prior over a few rows."""
    pick_key, posterior_key, prior_key = jax.random.split(key, 3)
    outputs = posterior_outputs(models, targets.inputs, data)
    target = jnp.take_along_axis(targets.encoded, targets.selected[..., None], axis=1)
    rows, steps, weights = pick_steps(data.valid, config.modelling.goal_minibatch_size, key=pick_key)
    outputs, target = at_samples((outputs, target), rows, steps)
    total, metrics = _posterior_loss(
        config.modelling, config.opponents.goals, outputs, target, weights, key=posterior_key
    )
    if train_prior:
        of_prior, parts = _prior_loss(config, models, data, targets, (rows, steps, weights), key=prior_key)
        total, metrics = total + of_prior, metrics | parts
    return total, metrics


def _posterior_loss(
    config: ModellingConfig,
    goals_config: GoalsConfig,
    outputs: Float32[Array, "others samples outputs"],
    target: Float32[Array, "others samples outputs"],
    weights: Float32[Array, "others samples"],
    *,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    keys = jax.random.key_data(jax.random.split(key, weights.shape))

    def one(outputs, target, key_data):
        goal = goals.draw_goal(goals_config, outputs, key=jax.random.wrap_key_data(key_data))
        wanted = goals.mean_goal(goals_config, target)
        return goals.mismatch(goals_config, goal, wanted), goals.divergence(goals_config, outputs, target)

    mismatch, kl = (jnp.mean(each * weights) for each in jax.vmap(jax.vmap(one))(outputs, target, keys))
    return mismatch + config.posterior_kl * kl, {"goal/mismatch": mismatch, "goal/posterior_kl": kl}


def _prior_loss(
    config: LearnerConfig,
    models: OpponentModels,
    data: OpponentData,
    targets: GoalTargets,
    samples: tuple[Int32[Array, "others samples"], Int32[Array, "others samples"], Float32[Array, "others samples"]],
    *,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The VAE's loss on states that lie a few steps ahead of the samples."""
    rows, steps, weights = samples
    draw_key, ahead_key = jax.random.split(key)
    later = steps + 1 + jax.random.randint(ahead_key, steps.shape, 0, config.modelling.lookahead)
    inputs, actions, last = at_samples((targets.inputs, data.actions, targets.ahead), rows, steps)
    future = at_samples(targets.inputs.observation, rows, jnp.minimum(later, last))
    assert models.prior is not None
    keys = jax.random.key_data(jax.random.split(draw_key, len(rows)))
    over_others = jax.vmap(partial(prior_terms, config.opponents.goals, models.prior))
    terms = over_others(by_other(models, len(rows)), inputs, future, actions, weights, keys)
    terms = jax.tree.map(jnp.mean, terms)
    loss = prior_total(config.modelling.prior_loss, config.modelling.prior_kl, terms)
    return loss, {f"goal/{name}": term for name, term in terms.items()}


def prior_terms(
    goals_config: GoalsConfig,
    prior: goals.Prior,
    head: others.OpponentModel,
    inputs: OpponentInput,
    future: Observation,
    actions: Int32[Array, " samples"],
    weights: Float32[Array, " samples"],
    key_data: Array,
) -> Metrics:
    """Every term of the VAE's loss by name, over samples of one co-player."""
    outputs = jax.vmap(partial(goals.encode, prior))(future)
    keys = jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key_data), len(actions)))

    def draw(one: Array, data: Array) -> Array:
        return goals.draw_goal(goals_config, one, key=jax.random.wrap_key_data(data))

    def mean(numbers: Array) -> Array:
        return jnp.sum(numbers * weights) / jnp.maximum(jnp.sum(weights), 1)

    drawn = jax.vmap(draw)(outputs, keys)
    kl = jax.vmap(lambda one: goals.divergence(goals_config, one, jnp.zeros_like(one)))(outputs)
    action, _ = others.loss(head, inputs, drawn, actions, weights)
    rebuilt = jax.vmap(partial(goals.reconstruction, prior))(future, drawn)
    return {"reconstruction": mean(rebuilt), "action": action, "prior_kl": mean(kl)}


def prior_total(kind: PriorLoss, kl_weight: float, terms: Metrics) -> Float32[Array, ""]:
    """The sum of the terms that this kind of loss has."""
    chosen = {"reconstruction": ("reconstruction",), "action": ("action",), "both": ("reconstruction", "action")}[kind]
    return sum((terms[name] for name in chosen), kl_weight * terms["prior_kl"])
