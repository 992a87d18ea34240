"""Goals as latent variables: a prior over states, and a posterior that reads what a co-player has done so far.

The prior is a VAE (after Yu et al., NeurIPS 2024): a state that a co-player comes to is encoded as a goal,
continuous (a Gaussian) or one of K symbols (relaxed by Gumbel-softmax in training).

    reconstruction   E_z [mean over cells of -log p(state | z)]
    action           E_z [-log p(action that led there | the state before, z)]      the head is `others`
    KL               KL(encoding || N(0, 1))   or   KL(encoding || uniform)

The posterior q(g | history, s) adds up evidence, as a Bayes filter adds log-likelihoods: each step that it has seen
contributes phi(what j saw, what j did). It is trained to match the encoding of a state that lies ahead.
"""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key

from hopplus.games.game import GameSpec, Observation
from hopplus.models.inputs import features, num_features, read_for_others
from hopplus.models.networks import Dense, Heads, check_least, init_dense, init_heads

Kind = Literal["none", "continuous", "discrete", "hindsight"]
TEMPERATURE = 1.0
"""Of Gumbel-softmax."""


@dataclass(frozen=True)
class GoalsConfig:
    """What a co-player may be after, and the networks that tell it."""

    kind: Kind = "none"
    """none; continuous: a vector; discrete: one of a few symbols that are learned; hindsight: what the co-player
    catches in the end, or other."""
    size: int = 16
    """Dimensions of a continuous goal, or how many symbols there are; hindsight goals are counted by the game."""
    hidden: int = 32
    """Width of the networks."""
    evidence: int = 16
    """Width of what the posterior sums up over an episode."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        check_least("goals", self, 1, "size", "hidden", "evidence")

    @property
    def is_latent(self) -> bool:
        """Whether goals are learned by prior and posterior."""
        return self.kind in ("continuous", "discrete")

    @property
    def num_outputs(self) -> int:
        """Mean and log-deviation of a Gaussian, or a logit for each symbol."""
        return 2 * self.size if self.kind == "continuous" else self.size


def goal_size(config: GoalsConfig, spec: GameSpec) -> int:
    """How many numbers tell a goal."""
    if config.kind == "none":
        return 0
    return len(goal_names(spec)) if config.kind == "hindsight" else config.size


def goal_names(spec: GameSpec) -> tuple[str, ...]:
    """The hindsight goals of a game: what can be caught or removed, then `other`."""
    return (*(name.removesuffix("_rate") for name, _ in spec.deeds), "other")


class Prior(eqx.Module):
    """Encoder and decoder of states."""

    view: Dense
    code: Heads
    expand: Dense
    cells: Dense


def init_prior(config: GoalsConfig, spec: GameSpec, *, key: Key[Array, ""]) -> Prior:
    view_key, code_key, expand_key, cells_key = jax.random.split(key, 4)
    num_cells = spec.height * spec.width * len(spec.planes)
    return Prior(
        view=init_dense(num_features(spec), config.hidden, 2**0.5, key=view_key),
        code=init_heads(config.hidden, [1.0] * config.num_outputs, key=code_key),
        expand=init_dense(config.size, config.hidden, 2**0.5, key=expand_key),
        cells=init_dense(config.hidden, num_cells, 1.0, key=cells_key),
    )


def encode(params: Prior, observation: Observation, num_actions: int) -> Float32[Array, " outputs"]:
    """The goal of whoever comes to see this."""
    return params.code(jax.nn.relu(params.view(features(observation, num_actions))))


def encode_others(params: Prior, spec: GameSpec, observation: Observation) -> Float32[Array, "others outputs"]:
    """The same for every co-player, from the seat's own view."""
    read = read_for_others(spec, params.view, features(observation, spec.num_actions))
    return jax.vmap(params.code)(jax.nn.relu(read))


def reconstruction(params: Prior, observation: Observation, goal: Float32[Array, " goal"]) -> Float32[Array, ""]:
    """How badly the planes are told by the goal: binary cross-entropy, a mean over their cells."""
    logits = params.cells(jax.nn.relu(params.expand(goal)))
    planes = observation.planes.reshape(-1).astype(jnp.float32)
    return jnp.mean(jax.nn.softplus(logits) - planes * logits)


class Posterior(eqx.Module):
    """What a history says of the goal."""

    view: Dense
    step: Dense
    code: Heads


def init_posterior(config: GoalsConfig, spec: GameSpec, *, key: Key[Array, ""]) -> Posterior:
    view_key, step_key, code_key = jax.random.split(key, 3)
    return Posterior(
        view=init_dense(num_features(spec), config.hidden, 2**0.5, key=view_key),
        step=init_dense(config.hidden + spec.num_actions, config.evidence, 1.0, key=step_key),
        code=init_heads(config.hidden + config.evidence, [0.1] * config.num_outputs, key=code_key),
    )


def embed(params: Posterior, observation: Observation, num_actions: int) -> Float32[Array, " hidden"]:
    return jax.nn.relu(params.view(features(observation, num_actions)))


def evidence_of(
    params: Posterior, embedded: Float32[Array, " hidden"], action: Int32[Array, ""], num_actions: int
) -> Float32[Array, " evidence"]:
    """What one step adds; nothing where no action was taken."""
    took = jax.nn.one_hot(action, num_actions)
    of_view, of_action = params.step.weight[: len(embedded)], params.step.weight[len(embedded) :]
    return jnp.tanh(embedded @ of_view + took @ of_action + params.step.bias) * jnp.sum(took)


def infer(
    params: Posterior, embedded: Float32[Array, " hidden"], evidence: Float32[Array, " evidence"]
) -> Float32[Array, " outputs"]:
    """The goal, given what was seen before and what is seen now."""
    weight, width = params.code.weight, len(embedded)
    return weight[:, :width] @ embedded + weight[:, width:] @ evidence + params.code.bias


def mean_goal(config: GoalsConfig, outputs: Float32[Array, " outputs"]) -> Float32[Array, " goal"]:
    """The mean of a Gaussian, or the probability of each symbol: what a policy reads."""
    return outputs[: config.size] if config.kind == "continuous" else jax.nn.softmax(outputs)


def draw_goal(
    config: GoalsConfig, outputs: Float32[Array, " outputs"], *, key: Key[Array, ""]
) -> Float32[Array, " goal"]:
    """A draw that gradients pass through."""
    if config.kind == "continuous":
        mean, log_std = jnp.split(outputs, 2)
        return mean + jnp.exp(_bounded(log_std)) * jax.random.normal(key, mean.shape)
    return jax.nn.softmax((outputs + jax.random.gumbel(key, outputs.shape)) / TEMPERATURE)


def divergence(
    config: GoalsConfig, outputs: Float32[Array, " outputs"], other: Float32[Array, " outputs"]
) -> Float32[Array, ""]:
    """KL(one || other) in nats; zeros for `other` are the unit Gaussian, or the uniform choice."""
    if config.kind == "continuous":
        (mean, log_std), (other_mean, other_log_std) = jnp.split(outputs, 2), jnp.split(other, 2)
        log_std, other_log_std = _bounded(log_std), _bounded(other_log_std)
        variances = jnp.exp(2 * (log_std - other_log_std))
        squares = jnp.square((mean - other_mean) / jnp.exp(other_log_std))
        return 0.5 * jnp.sum(variances + squares - 1) + jnp.sum(other_log_std - log_std)
    logs, other_logs = jax.nn.log_softmax(outputs), jax.nn.log_softmax(other)
    return jnp.sum(jnp.exp(logs) * (logs - other_logs))


def mismatch(config: GoalsConfig, goal: Float32[Array, " goal"], target: Float32[Array, " goal"]) -> Float32[Array, ""]:
    """How far a drawn goal is from the one to match: squared distance per dimension, or cross-entropy."""
    if config.kind == "continuous":
        return jnp.mean(jnp.square(goal - target))
    return -jnp.sum(target * jnp.log(goal + 1e-6))


def _bounded(log_std: Float32[Array, " goal"]) -> Float32[Array, " goal"]:
    return jnp.clip(log_std, -5.0, 2.0)
