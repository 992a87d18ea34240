"""Goals as latent variables: a prior over states, and a posterior that reads a co-player's past actions.

The prior is a VAE (after Yu et al., NeurIPS 2024): it encodes a state that a co-player reaches as a goal, which is
continuous (a Gaussian) or one of K symbols (relaxed by Gumbel-softmax in training).

    reconstruction   E_z [mean over cells of -log p(state | z)]
    action           E_z [-log p(action that led there | the state before, z)]      the head is `others`
    KL               KL(encoding || N(0, 1))   or   KL(encoding || uniform)

The posterior q(g | history, s) sums evidence, as a Bayes filter sums log-likelihoods: each past step contributes
phi(view of j, action of j). It is trained to match the encoding of a later state. It is additive (the goal is linear
in evidence and view), or a conditional VAE (after Sohn et al., 2015): a decoder makes the goal of evidence, view and
noise. In training a second encoder also sees the goal, and says which noise it came from.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from hopplus.core.numerics import flag_cross_entropy
from hopplus.games.fields import Field, Observation, features, num_features
from hopplus.games.game import GameSpec
from hopplus.models.config import GoalsConfig
from hopplus.models.inputs import read_for_others
from hopplus.models.networks import Dense, Heads, init_dense, init_heads


def goal_size(config: GoalsConfig, spec: GameSpec) -> int:
    """How many numbers describe a goal."""
    if config.kind == "none":
        return 0
    return len(goal_names(spec)) if config.kind == "hindsight" else config.size


def goal_names(spec: GameSpec) -> tuple[str, ...]:
    """The hindsight goals of a game: its events, then `other`."""
    return (*(event.name.removesuffix("_rate") for event in spec.events), "other")


class Prior(eqx.Module):
    """Encoder and decoder of states."""

    view: Dense
    code: Heads
    expand: Dense
    cells: Dense
    fields: tuple[Field, ...] = eqx.field(static=True)


def init_prior(config: GoalsConfig, spec: GameSpec, *, key: Key[Array, ""]) -> Prior:
    view_key, code_key, expand_key, cells_key = jax.random.split(key, 4)
    num_cells = spec.height * spec.width * len(spec.view_planes)
    return Prior(
        view=init_dense(num_features(spec.observation), config.hidden, 2**0.5, key=view_key),
        code=init_heads(config.hidden, [1.0] * config.num_outputs, key=code_key),
        expand=init_dense(config.size, config.hidden, 2**0.5, key=expand_key),
        cells=init_dense(config.hidden, num_cells, 1.0, key=cells_key),
        fields=spec.observation,
    )


def encode(params: Prior, observation: Observation) -> Float32[Array, " outputs"]:
    """The encoded goal of a player that reaches this view."""
    return params.code(jax.nn.relu(params.view(features(params.fields, observation))))


def encode_others(params: Prior, spec: GameSpec, observation: Observation) -> Float32[Array, "others outputs"]:
    """The encoded goal of every co-player, from the seat's own view."""
    read = read_for_others(params.fields, spec.num_agents, params.view, features(params.fields, observation))
    return jax.vmap(params.code)(jax.nn.relu(read))


def reconstruction(params: Prior, observation: Observation, goal: Float32[Array, " goal"]) -> Float32[Array, ""]:
    """Binary cross-entropy of the planes given the goal, a mean over cells."""
    logits = params.cells(jax.nn.relu(params.expand(goal)))
    planes = observation["planes"].reshape(-1).astype(jnp.float32)
    return jnp.mean(flag_cross_entropy(logits, planes))


class Posterior(eqx.Module):
    """The network that infers a goal from a history."""

    view: Dense
    step: Dense
    code: Heads
    fields: tuple[Field, ...] = eqx.field(static=True)
    decoder: Dense | None = None
    """Of a conditional VAE: reads view, evidence and noise."""
    recognition: Heads | None = None
    """Of a conditional VAE, for training: mean and log standard deviation of the noise that a goal came from."""


def init_posterior(config: GoalsConfig, spec: GameSpec, *, key: Key[Array, ""]) -> Posterior:
    view_key, step_key, code_key = jax.random.split(key, 3)
    known = config.hidden + config.evidence
    posterior = Posterior(
        view=init_dense(num_features(spec.observation), config.hidden, 2**0.5, key=view_key),
        step=init_dense(config.hidden + spec.num_actions, config.evidence, 1.0, key=step_key),
        code=init_heads(known, [0.1] * config.num_outputs, key=code_key),
        fields=spec.observation,
    )
    if config.posterior == "additive":
        return posterior
    code_key, decoder_key, recognition_key = jax.random.split(jax.random.fold_in(key, 1), 3)
    return replace(
        posterior,
        code=init_heads(config.hidden, [0.1] * config.num_outputs, key=code_key),
        decoder=init_dense(known + config.size, config.hidden, 2**0.5, key=decoder_key),
        recognition=init_heads(known + config.num_outputs, [0.1] * (2 * config.size), key=recognition_key),
    )


def embed(params: Posterior, observation: Observation) -> Float32[Array, " hidden"]:
    return jax.nn.relu(params.view(features(params.fields, observation)))


def evidence_of(
    params: Posterior, embedded: Float32[Array, " hidden"], action: Int32[Array, ""], num_actions: int
) -> Float32[Array, " evidence"]:
    """What one step adds to the evidence; zero where no action was taken."""
    took = jax.nn.one_hot(action, num_actions)
    of_view, of_action = params.step.weight[: len(embedded)], params.step.weight[len(embedded) :]
    return jnp.tanh(embedded @ of_view + took @ of_action + params.step.bias) * jnp.sum(took)


def infer(
    params: Posterior,
    embedded: Float32[Array, " hidden"],
    evidence: Float32[Array, " evidence"],
    noise: Float32[Array, " noise"] | None = None,
) -> Float32[Array, " outputs"]:
    """The posterior's outputs, given the evidence so far and the current view; without noise, the most usual goal."""
    if params.decoder is None:
        weight, width = params.code.weight, len(embedded)
        return weight[:, :width] @ embedded + weight[:, width:] @ evidence + params.code.bias
    noise = jnp.zeros(noise_size(params), jnp.float32) if noise is None else noise
    return params.code(jax.nn.relu(params.decoder(jnp.concatenate([embedded, evidence, noise]))))


def noise_size(params: Posterior) -> int:
    """How many numbers of noise the decoder reads."""
    return 0 if params.recognition is None else params.recognition.bias.shape[-1] // 2


def recognise(
    params: Posterior,
    embedded: Float32[Array, " hidden"],
    evidence: Float32[Array, " evidence"],
    goal: Float32[Array, " outputs"],
) -> Float32[Array, " noises"]:
    """Mean and log standard deviation of the noise that makes the decoder return this encoded goal."""
    assert params.recognition is not None
    return params.recognition(jnp.concatenate([embedded, evidence, goal]))


def mean_goal(config: GoalsConfig, outputs: Float32[Array, " outputs"]) -> Float32[Array, " goal"]:
    """The mean of a Gaussian, or the probability of each symbol: what a policy reads."""
    return outputs[: config.size] if config.kind == "continuous" else jax.nn.softmax(outputs)


def draw_goal(
    config: GoalsConfig,
    outputs: Float32[Array, " outputs"],
    temperature: float | Float32[Array, ""] = 1.0,
    *,
    key: Key[Array, ""],
) -> Float32[Array, " goal"]:
    """A differentiable sample of the goal; `temperature` is that of Gumbel-softmax."""
    if config.kind == "continuous":
        return draw_gaussian(outputs, key=key)
    return jax.nn.softmax((outputs + jax.random.gumbel(key, outputs.shape)) / temperature)


def draw_gaussian(outputs: Float32[Array, " outputs"], *, key: Key[Array, ""]) -> Float32[Array, " goal"]:
    """A sample, from mean and log standard deviation."""
    mean, log_std = jnp.split(outputs, 2)
    return mean + jnp.exp(_bounded(log_std)) * jax.random.normal(key, mean.shape)


def draw_for_play(
    config: GoalsConfig,
    params: Posterior,
    embedded: Float32[Array, " hidden"],
    evidence: Float32[Array, " evidence"],
    *,
    key: Key[Array, ""],
) -> Float32[Array, " goal"]:
    """A goal that a co-player may have, drawn from the posterior; one symbol where goals are symbols."""
    noise_key, goal_key = jax.random.split(key)
    outputs = infer(params, embedded, evidence, jax.random.normal(noise_key, (noise_size(params),)))
    if config.kind == "continuous":
        return draw_gaussian(outputs, key=goal_key)
    return jax.nn.one_hot(jax.random.categorical(goal_key, outputs), config.size)


def divergence(
    config: GoalsConfig, outputs: Float32[Array, " outputs"], other: Float32[Array, " outputs"]
) -> Float32[Array, ""]:
    """KL(one || other) in nats; zeros for `other` are the unit Gaussian, or the uniform choice."""
    if config.kind == "continuous":
        return gaussian_divergence(outputs, other)
    logs, other_logs = jax.nn.log_softmax(outputs), jax.nn.log_softmax(other)
    return jnp.sum(jnp.exp(logs) * (logs - other_logs))


def gaussian_divergence(outputs: Float32[Array, " outputs"], other: Float32[Array, " outputs"]) -> Float32[Array, ""]:
    """KL(one || other) in nats, from means and log standard deviations."""
    (mean, log_std), (other_mean, other_log_std) = jnp.split(outputs, 2), jnp.split(other, 2)
    log_std, other_log_std = _bounded(log_std), _bounded(other_log_std)
    variances = jnp.exp(2 * (log_std - other_log_std))
    squares = jnp.square((mean - other_mean) / jnp.exp(other_log_std))
    return 0.5 * jnp.sum(variances + squares - 1) + jnp.sum(other_log_std - log_std)


def mismatch(config: GoalsConfig, goal: Float32[Array, " goal"], target: Float32[Array, " goal"]) -> Float32[Array, ""]:
    """Distance of a sampled goal from its target: squared distance per dimension, or cross-entropy."""
    if config.kind == "continuous":
        return jnp.mean(jnp.square(goal - target))
    return -jnp.sum(target * jnp.log(goal + 1e-6))


def _bounded(log_std: Float32[Array, " goal"]) -> Float32[Array, " goal"]:
    return jnp.clip(log_std, -5.0, 2.0)
