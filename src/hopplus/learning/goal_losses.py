"""The losses of latent goals.

posterior   mismatch(goal drawn from q, selected goal) + w KL(q || encoding of the selected state)
            a conditional VAE: + w KL(its noise, given the goal || N(0, 1))
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
from hopplus.learning.config import LearnerConfig, PriorLoss
from hopplus.learning.opponent_data import GoalTargets, OpponentData
from hopplus.models import goals, others
from hopplus.models.config import GoalsConfig
from hopplus.models.others import OpponentInput


def posterior_outputs(
    models: OpponentModels, inputs: OpponentInput, data: OpponentData
) -> Float32[Array, "rows time others outputs"]:
    """The posterior at every step, given all actions before it."""
    assert models.posterior is not None
    return _everywhere(partial(goals.infer, models.posterior))(*_known(models.posterior, inputs, data))


def _everywhere(fn: Callable[..., Array]) -> Callable[..., Array]:
    """Mapped over rows, time and co-players."""
    return jax.vmap(jax.vmap(jax.vmap(fn)))


def _known(
    posterior: goals.Posterior, inputs: OpponentInput, data: OpponentData
) -> tuple[Float32[Array, "rows time others hidden"], Float32[Array, "rows time others evidence"]]:
    """What the posterior knows at every step: the embedded view, and the evidence of all actions before it."""
    num_actions = inputs.legal.shape[-1]
    embedded = _everywhere(lambda view: goals.embed(posterior, view))(inputs.observation)
    acted = jnp.where(data.valid, data.actions, NO_ACTION)
    added = _everywhere(lambda one, action: goals.evidence_of(posterior, one, action, num_actions))(embedded, acted)

    def forwards(total, step):
        added, new = step
        now = jnp.where(new[:, None, None], 0.0, total)
        return now + added, now

    steps = (jnp.moveaxis(added, 1, 0), data.reset_before.T)
    return embedded, jnp.moveaxis(jax.lax.scan(forwards, data.before, steps)[1], 0, 1)


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
    temperature: Float32[Array, ""],
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The losses of posterior and prior over a few rows."""
    posterior = models.posterior
    assert posterior is not None
    pick_key, posterior_key, prior_key = jax.random.split(key, 3)
    target = jnp.take_along_axis(targets.encoded, targets.selected[..., None], axis=1)
    rows, steps, weights = pick_steps(data.valid, config.modelling.goal_minibatch_size, key=pick_key)
    embedded, evidence = _known(posterior, targets.inputs, data)
    embedded, evidence, target = at_samples((embedded, evidence, target), rows, steps)
    of_one = partial(posterior_terms, config.opponents.goals, posterior, temperature)
    keys = jax.random.key_data(jax.random.split(posterior_key, weights.shape))
    terms = jax.vmap(jax.vmap(of_one))(embedded, evidence, target, keys)
    terms = {name: jnp.mean(term * weights) for name, term in terms.items()}
    total = terms["mismatch"] + config.modelling.posterior_kl * (terms["posterior_kl"] + terms.get("noise_kl", 0.0))
    metrics = {f"goal/{name}": term for name, term in terms.items()}
    if train_prior:
        samples = (rows, steps, weights)
        of_prior, parts = _prior_loss(config, models, data, targets, samples, temperature, key=prior_key)
        total, metrics = total + of_prior, metrics | parts
    return total, metrics


def posterior_terms(
    config: GoalsConfig,
    posterior: goals.Posterior,
    temperature: float | Float32[Array, ""],
    embedded: Float32[Array, " hidden"],
    evidence: Float32[Array, " evidence"],
    target: Float32[Array, " outputs"],
    key_data: Array,
) -> Metrics:
    """Every term of the posterior's loss by name, for one sample; `noise_kl` only of a conditional VAE."""
    key, noise, of_noise = jax.random.wrap_key_data(key_data), None, {}
    if posterior.recognition is not None:
        key, noise_key = jax.random.split(key)
        found = goals.recognise(posterior, embedded, evidence, target)
        noise = goals.draw_gaussian(found, key=noise_key)
        of_noise = {"noise_kl": goals.gaussian_divergence(found, jnp.zeros_like(found))}
    outputs = goals.infer(posterior, embedded, evidence, noise)
    goal = goals.draw_goal(config, outputs, temperature, key=key)
    return {
        "mismatch": goals.mismatch(config, goal, goals.mean_goal(config, target)),
        "posterior_kl": goals.divergence(config, outputs, target),
        **of_noise,
    }


def _prior_loss(
    config: LearnerConfig,
    models: OpponentModels,
    data: OpponentData,
    targets: GoalTargets,
    samples: tuple[Int32[Array, "others samples"], Int32[Array, "others samples"], Float32[Array, "others samples"]],
    temperature: Float32[Array, ""],
    *,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The VAE's loss on states that lie a few steps ahead of the samples, or on the states of the samples."""
    rows, steps, weights = samples
    draw_key, ahead_key = jax.random.split(key)
    lookahead = config.modelling.lookahead
    later = steps + 1 + jax.random.randint(ahead_key, steps.shape, 0, lookahead) if lookahead else steps
    inputs, actions, last = at_samples((targets.inputs, data.actions, targets.ahead), rows, steps)
    future = at_samples(targets.inputs.observation, rows, jnp.minimum(later, last))
    assert models.prior is not None
    keys = jax.random.key_data(jax.random.split(draw_key, len(rows)))
    over_others = jax.vmap(partial(prior_terms, config.opponents.goals, models.prior, temperature))
    terms = over_others(by_other(models, len(rows)), inputs, future, actions, weights, keys)
    terms = jax.tree.map(jnp.mean, terms)
    loss = prior_total(config.modelling.prior_loss, config.modelling.prior_kl, terms)
    return loss, {f"goal/{name}": term for name, term in terms.items()}


def prior_terms(
    goals_config: GoalsConfig,
    prior: goals.Prior,
    temperature: float | Float32[Array, ""],
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
        return goals.draw_goal(goals_config, one, temperature, key=jax.random.wrap_key_data(data))

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
