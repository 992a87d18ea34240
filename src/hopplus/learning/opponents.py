"""How a seat's opponent models learn during training: alike for every seat, from its own view alone.

Data are the steps in which the seat and the co-player were both in the game. Predictions are scored before the models
learn from them. Each gradient step takes equally many samples of every co-player, so that no seat learns more.

    others      cross-entropy of the co-player's action, given the inferred goal or the hindsight label; for an agent
                with a world also on samples from `replay`: with labels every kind of goal equally often, with latent
                goals given the encoding of the state that followed
    goals       `goal_losses`, for latent goals
"""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.goals import goal_model
from hopplus.agents.opponents import OpponentModels, by_other, parts_of
from hopplus.core.devices import shard_samples
from hopplus.core.numerics import LEAST, Metrics
from hopplus.games.game import Game
from hopplus.learning.config import LearnerConfig, ModellingConfig
from hopplus.learning.goal_losses import at_samples, goals_loss, pick_steps
from hopplus.learning.opponent_data import ActionExamples, GoalTargets, OpponentData, all_inputs, some_inputs
from hopplus.learning.optim import Trained, apply_gradient, clipped, falling
from hopplus.models import others
from hopplus.models.others import OpponentInput

SCORED = 8
"""Rows that are scored in each update; over several updates that is enough."""
FINAL_RATE = 0.2
"""The learning rate falls to this share of itself over a run, as co-players change less and less."""


def optimizer() -> optax.GradientTransformation:
    """Adam without its learning rate, which falls over a run."""
    return optax.scale_by_adam()


def score(config: OpponentsConfig, game: Game, models: OpponentModels, data: OpponentData) -> Metrics:
    """How well the seats predicted each co-player, before they learned from it: [others] each, on some rows.

    One number each where the model is of any player (`modelled_players`). `data` has a leading axis of seats.
    """
    num_seats, num_envs = data.valid.shape[:2]
    every = max(num_envs // -(-SCORED // num_seats), 1)
    data = jax.tree.map(lambda leaf: jnp.concatenate(leaf[:, ::every]), data)
    inputs = all_inputs(game, data)
    predict = jax.vmap(jax.vmap(partial(goal_model(config, game).expected, models)))
    predicted = predict(inputs, data.goals)

    def mean(numbers: Array) -> Array:
        return jnp.sum(jnp.where(data.valid, numbers, 0.0), (0, 1)) / jnp.sum(data.valid, (0, 1))

    taken = jnp.take_along_axis(predicted, data.actions[..., None], axis=-1)[..., 0]
    rank = jnp.sum(predicted > taken[..., None], axis=-1)
    scores = {
        "moa/ce_loss": mean(-jnp.log(jnp.maximum(taken, LEAST))),
        "moa/top1": mean(jnp.argmax(predicted, axis=-1) == data.actions),
        "moa/top3": mean(rank < 3),
        "moa/ceiling": mean(data.best),
        "moa/misfit": misfit(predicted, inputs.legal, data.actions, data.valid),
        **recall(game.spec.action_names, predicted, data.actions, data.valid),
    }
    return jax.tree.map(jnp.mean, scores) if game.spec.sums_others else scores


def recall(
    names: Sequence[str],
    predicted: Float32[Array, "rows time others actions"],
    actions: Int32[Array, "rows time others"],
    valid: Bool[Array, "rows time others"],
) -> Metrics:
    """For each action, the share of its occurrences that were predicted; NaN where there are none.

    A model that has collapsed to the most frequent action has 1 there and 0 for all others.
    """
    likely = jnp.argmax(predicted, axis=-1)
    found = {}
    for action, name in enumerate(names):
        taken = valid & (actions == action)
        found[f"moa/recall/{name.replace(' ', '_')}"] = jnp.sum(taken & (likely == action)) / jnp.sum(taken)
    return found


def misfit(
    predicted: Float32[Array, "rows time others actions"],
    legal: Bool[Array, "rows time others actions"],
    actions: Int32[Array, "rows time others"],
    valid: Bool[Array, "rows time others"],
) -> Float32[Array, " others"]:
    """How wrong a model is, from 0 to 1, the worse of two:

    overconfident               1 - E p(action taken) / E sum_a p(a)^2
    worse than the marginals    1 - exp(cross-entropy of the marginals - its own)

    A model that knows everything that can be known has 0 even where a co-player acts at random.
    """
    done = jnp.arange(predicted.shape[-1]) == actions[..., None]

    def total(numbers: Array | float) -> Array:
        return jnp.sum(jnp.where(valid, numbers, 0.0), (0, 1))

    def chance(given: Array) -> Array:
        return jnp.sum(jnp.where(done, given, 0.0), axis=-1)

    def surprise(given: Array) -> Array:
        return -jnp.log(jnp.maximum(chance(given), LEAST))

    unsure = 1 - total(chance(predicted)) / jnp.maximum(total(jnp.sum(jnp.square(predicted), axis=-1)), 1e-6)
    frequencies = jnp.sum(done & valid[..., None], (0, 1)) + 1e-3
    marginal = jnp.where(legal, frequencies, 0.0)
    marginal = marginal / jnp.sum(marginal, axis=-1, keepdims=True)
    worse = total(surprise(predicted) - surprise(marginal)) / jnp.maximum(total(1.0), 1)
    return jnp.clip(jnp.maximum(unsure, 1 - jnp.exp(-jnp.maximum(worse, 0.0))), 0.0, 1.0)


class OpponentBatch(eqx.Module):
    """What one learner's opponent models learn from in one update; leading axis: its seats."""

    examples: tuple[ActionExamples, ...]
    """For the model of actions: one minibatch of each for every gradient step."""
    num_available: int = eqx.field(static=True)
    """How many steps of co-players the first examples were picked from."""
    goal_data: OpponentData | None
    """What latent goals learn from; None without them."""
    goal_targets: GoalTargets | None
    """Their targets; None without them."""


def update(
    config: LearnerConfig,
    opponents: Trained,
    batch: OpponentBatch,
    *,
    train_prior: bool,
    remaining: Float32[Array, ""],
    temperature: Float32[Array, ""] | None = None,
    keys: Key[Array, " seats"],
) -> tuple[Trained, Metrics]:
    """All gradient steps of one learner; `remaining` is the share of the schedule that is left.

    The temperature follows the same schedule if none is given. The settings are those of one seat; every seat counts as
    much in the loss.
    """
    settings, transform = config.modelling, optimizer()
    rate = falling(settings.learning_rate, FINAL_RATE, remaining)
    if temperature is None:
        temperature = temperature_left(settings, remaining)
    num_rows = batch.goal_data.valid.shape[1] if batch.goal_data else 1
    rows_each = max(min(settings.minibatch_envs, num_rows // settings.minibatches), 1)
    rows_keys, steps_keys = jax.vmap(lambda key: tuple(jax.random.split(key)))(keys)
    orders = jax.vmap(lambda key: jax.random.permutation(key, num_rows))(rows_keys)

    def one_step(opponents: Trained, index: Int32[Array, ""]) -> tuple[Trained, Metrics]:
        def of_seat(models, examples, goal_parts, order, key) -> tuple[Float32[Array, ""], Metrics]:
            ce_loss = others_loss(settings, models, examples, index)
            metrics = {"moa/minibatch_ce": jnp.mean(ce_loss)}
            if batch.goal_data is None:
                return jnp.sum(ce_loss), metrics
            rows = jax.lax.dynamic_slice_in_dim(order, (index * rows_each) % num_rows, rows_each)
            some = jax.tree.map(lambda leaf: leaf[rows], goal_parts)
            key = jax.random.fold_in(key, index)
            of_goals, parts = goals_loss(
                config, models, *some, train_prior=train_prior, temperature=temperature, key=key
            )
            return jnp.sum(ce_loss) + of_goals, metrics | parts

        def loss(models: OpponentModels) -> tuple[Float32[Array, ""], Metrics]:
            goal_parts = (batch.goal_data, batch.goal_targets)
            over_seats = jax.vmap(partial(of_seat, models))(batch.examples, goal_parts, orders, steps_keys)
            return jax.tree.map(jnp.mean, over_seats)

        gradient, metrics = jax.grad(loss, has_aux=True)(opponents.params)
        gradient = OpponentModels(*(clipped(part, settings.max_grad_norm) for part in parts_of(gradient)))
        return apply_gradient(transform, opponents, gradient, rate), metrics

    opponents, metrics = jax.lax.scan(one_step, opponents, jnp.arange(settings.minibatches))
    return opponents, jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), metrics) | _counts(settings, batch)


def temperature_left(config: ModellingConfig, remaining: Float32[Array, ""]) -> Float32[Array, ""]:
    """The temperature of Gumbel-softmax when this share of the schedule is left."""
    return config.final_temperature + (config.temperature - config.final_temperature) * remaining


def _counts(config: ModellingConfig, batch: OpponentBatch) -> Metrics:
    """How much each module of a seat was trained in one update, and the size of its data."""
    num_co_players = batch.examples[0].weights[..., 0].size
    sizes = {"others": (len(batch.examples) * config.minibatch_size, batch.num_available)}
    if batch.goal_data is not None:
        sizes["goals"] = (config.goal_minibatch_size, batch.goal_data.valid.size)
    counts = {}
    for module, (size, available) in sizes.items():
        counts[f"count/updates/{module}"] = jnp.float32(config.minibatches)
        counts[f"count/samples/{module}"] = jnp.float32(config.minibatches * size * num_co_players)
        counts[f"buffer/size/{module}"] = jnp.float32(available)
    return counts


def _wanted(config: LearnerConfig, num_events: int, data: OpponentData) -> Bool[Array, "rows time others"]:
    """The steps that the model of actions learns from."""
    if not config.opponents.goals.has_labels and not config.modelling.rewarded_only:
        return data.valid
    return data.valid & (data.labels >= 0) & (data.labels < num_events)


def pick_examples(
    config: LearnerConfig,
    game: Game,
    data: OpponentData,
    inputs: OpponentInput | None = None,
    *,
    key: Key[Array, ""],
) -> ActionExamples:
    """Examples for all gradient steps of an update, from one seat's data; `inputs` where the data has no views.

    The goal of a co-player is the inferred one, or its hindsight label.
    """
    wanted = _wanted(config, len(game.spec.events), data)
    rows, steps, weights = pick_steps(wanted, config.modelling.num_examples, key=key)
    goal, actions, labels = at_samples((data.goals, data.actions, data.labels), rows, steps)
    if config.opponents.goals.has_labels:
        goal = jax.nn.one_hot(labels, goal.shape[-1])
    seen = some_inputs(game, data, rows, steps) if inputs is None else at_samples(inputs, rows, steps)
    return ActionExamples(seen, goal, actions, weights)


def others_loss(
    config: ModellingConfig, models: OpponentModels, examples: tuple[ActionExamples, ...], index: Int32[Array, ""]
) -> Float32[Array, " others"]:
    """Cross-entropy of each co-player's actions in the minibatch of that index."""
    size = config.minibatch_size
    batches = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, index * size, size, 1), examples)
    batches = shard_samples(batches, axis=1)
    params = by_other(models, batches[0].weights.shape[0])
    losses = [jax.vmap(others.loss)(params, each.inputs, each.goals, each.actions, each.weights)[0] for each in batches]
    return jnp.sum(jnp.stack(losses), axis=0)
