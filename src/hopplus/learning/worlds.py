"""How a learner's world is trained during a run, and its errors.

It learns from the replay buffer; each member of the ensemble draws its own samples. The world is scored on the steps of
every update before it learns from them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.core.devices import shard_samples
from hopplus.core.numerics import Metrics, count_rows, weighted_mean
from hopplus.games.fields import Observation
from hopplus.games.game import GameSpec
from hopplus.learning import replay
from hopplus.learning.config import WorldTrainingConfig
from hopplus.learning.optim import Trained, apply_gradient, falling
from hopplus.learning.replay import Kept
from hopplus.models import world
from hopplus.models.world import Outcome, Situation, Transition, WorldModel, WorldPrediction

SAME_REWARD = 0.05
"""Rewards that differ by less are the same."""
FINAL_RATE = 0.1
"""The learning rate falls to this share of itself over a run."""


RULED_OUT = 1e-3
"""What comes with a smaller predicted probability was ruled out."""
KNOWN = 0.01
"""The sum of errors below which a world counts as known."""


def optimizer() -> optax.GradientTransformation:
    """Adam without its learning rate, which falls over a run."""
    return optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())


def mean_loss(params: WorldModel, spec: GameSpec, batch: Transition) -> tuple[Float32[Array, ""], Metrics]:
    """The mean loss of one member over a minibatch, and its parts."""
    losses, parts = jax.vmap(partial(world.loss, params, spec))(batch)
    return jnp.mean(losses), jax.tree.map(jnp.mean, parts)


def update(
    config: WorldTrainingConfig,
    spec: GameSpec,
    world_members: Trained,
    kept: Kept,
    *,
    is_known: Bool[Array, ""],
    orders: Int32[Array, "seats agents"],
    remaining: Float32[Array, ""],
    key: Key[Array, ""],
) -> tuple[Trained, Metrics]:
    """The gradient steps of all members, [members, ...]; `remaining` is the share of the schedule that is left.

    A world that predicts new transitions well makes one step, so that it does not forget. Boards are read in the orders
    of the learner's own seats: a sum over seats then has the same bits in every seat.
    """
    transform = optimizer()
    rate = falling(config.learning_rate, FINAL_RATE, remaining)
    num_members = count_rows(world_members.params)

    def one_member(member: Trained, places: Array) -> tuple[Trained, Metrics]:
        batch = jax.tree.map(lambda leaf: leaf[places], kept.transition)
        batch = seen_by_seats(spec, member.params, shard_samples(batch), orders)
        gradient, parts = jax.grad(mean_loss, has_aux=True)(member.params, spec, batch)
        return apply_gradient(transform, member, gradient, rate), parts

    def one_step(index, carry: tuple[Trained, Metrics]) -> tuple[Trained, Metrics]:
        members, totals = carry
        members, parts = jax.vmap(one_member)(members, places[index])
        return members, {name: totals[name] + jnp.mean(part) for name, part in parts.items()}

    shape = (config.minibatches, num_members, config.minibatch_size)
    places = replay.draw_places(replay.by_reward(spec, kept), shape, key=key)
    num_steps = jnp.where(is_known, 1, config.minibatches)
    zeros = dict.fromkeys(world_members.params.parts, jnp.float32(0))
    world_members, totals = jax.lax.fori_loop(0, num_steps, one_step, (world_members, zeros))
    done = num_steps.astype(jnp.float32)
    losses = {f"wm/{name}": total / done for name, total in totals.items()}
    counts = {
        "count/updates/world": done,
        "count/samples/world": done * (config.minibatch_size * num_members),
    }
    return world_members, {"wm/loss": sum(losses.values(), jnp.float32(0)), **losses} | counts


def seen_by_seats(
    spec: GameSpec, params: WorldModel, transitions: Transition, orders: Int32[Array, "seats agents"]
) -> Transition:
    """Transitions in the orders of the learner's seats, in turns: the world must know them in the order of each.

    One order will do if the world treats the players alike.
    """
    if params.is_symmetric or len(orders) == 1:
        return world.seen_by(spec, transitions, orders[0])
    turns = np.arange(len(transitions.now.time)) % len(orders)
    return jax.vmap(partial(world.seen_by, spec))(transitions, orders[turns])


def is_known(errors: Metrics) -> Bool[Array, ""]:
    """Whether a world with these errors needs little more training."""
    return sum((errors[f"wm/{name}_error"] for name in ("board", "reward", "end")), jnp.float32(0)) < KNOWN


def score(spec: GameSpec, members: WorldModel, transitions: Transition) -> Metrics:
    """The errors of the members' most likely outcomes, a mean over members; `transitions` are unseen data.

    board    share of transitions whose next board is not the true one, cell for cell, or where the rules draw at random
             was ruled out; of a viewer's own fields, the share whose bits and categories are not the true ones, and the
             unexplained share of changes of numbers
    reward   share of rewards that were not predicted, a mean over the sizes that occurred, plus false rewards; without
             a reward support, the unexplained share of their variance
    ended    ends that were missed or false, over the true ones
    """

    true, playing = transitions.after, ~transitions.now.ended

    def one_situation(params: WorldModel, now: Situation, came: Array) -> tuple[Outcome, Bool[Array, ""]]:
        prediction = world.apply(params, spec, now)
        likeliest = world.draw(spec, now, prediction, key=None)
        return likeliest, is_wrong_board(spec, prediction, now, likeliest.board, came)

    of_member = jax.vmap(one_situation, in_axes=(None, 0, 0))
    predicted, wrong = jax.vmap(lambda params: of_member(params, transitions.now, true.board))(members)
    reward_error = jax.vmap(lambda rewards: reward_misses(spec, rewards, true.rewards, playing))(predicted.rewards)
    wrong_ends = jnp.sum((predicted.ended != true.ended) & playing, axis=(1, 2))
    ends = jnp.sum(true.ended & playing)
    differ = jnp.any(predicted.board != predicted.board[:1], axis=(0, -1, -2, -3))
    board_error = jnp.mean(wrong, dtype=jnp.float32)
    seen, came = transitions.now.view, true.view
    if seen is not None and came is not None:
        views = jax.vmap(lambda view: view_error(spec, seen, view, came))(predicted.view)
        board_error = 1 - (1 - board_error) * (1 - jnp.mean(views))
    return {
        "wm/board_error": board_error,
        "wm/reward_error": jnp.mean(reward_error),
        "wm/end_error": jnp.mean(wrong_ends / jnp.maximum(ends, 1)),
        "wm/disagreement": jnp.mean(differ, dtype=jnp.float32),
    }


def is_wrong_board(
    spec: GameSpec,
    predicted: WorldPrediction,
    now: Situation,
    likeliest: UInt8[Array, "height width planes"],
    came: UInt8[Array, "height width planes"],
) -> Bool[Array, ""]:
    """Whether the likeliest board is not the one that came; where the rules draw at random, whether what came there
    was ruled out."""
    is_random = np.array([plane.random or plane.returns for plane in spec.planes], bool)
    if not is_random.any():
        return jnp.any(likeliest != came)
    on = predicted.expected_board(spec, now)[..., is_random]
    ruled_out = jnp.where(came[..., is_random] > 0, on, 1 - on) < RULED_OUT
    return jnp.any(likeliest[..., ~is_random] != came[..., ~is_random]) | jnp.any(ruled_out)


def reward_misses(
    spec: GameSpec,
    predicted: Float32[Array, "rows agents"],
    true: Float32[Array, "rows agents"],
    playing: Bool[Array, "rows agents"],
) -> Float32[Array, ""]:
    """The error of predicted rewards; every size of reward counts equally, because rare ones matter most."""
    if not spec.reward_support:
        return _unexplained_rewards(predicted, true, playing)
    sizes = jnp.asarray([size for size in spec.reward_support if size != 0], jnp.float32)
    wrong = jnp.abs(predicted - true) > SAME_REWARD
    paid = (jnp.abs(true[..., None] - sizes) < SAME_REWARD) & playing[..., None]
    counts = jnp.sum(paid, axis=(0, 1))
    missed = jnp.sum(paid & wrong[..., None], axis=(0, 1)) / jnp.maximum(counts, 1)
    false_rewards = jnp.sum(wrong & playing & (jnp.abs(true) < SAME_REWARD)) / jnp.maximum(jnp.sum(counts), 1)
    return jnp.sum(missed) / jnp.maximum(jnp.sum(counts > 0), 1) + false_rewards


def _unexplained_rewards(
    predicted: Float32[Array, "rows agents"], true: Float32[Array, "rows agents"], playing: Bool[Array, "rows agents"]
) -> Float32[Array, ""]:
    """The squared errors over those of the mean reward; rewards that hardly vary need not be told apart."""
    mean = weighted_mean(true, playing)
    errors, variance = (jnp.sum(jnp.square(true - guess) * playing) for guess in (predicted, mean))
    return errors / jnp.maximum(variance, SAME_REWARD**2 * jnp.maximum(jnp.sum(playing), 1))


def view_error(spec: GameSpec, now: Observation, predicted: Observation, true: Observation) -> Float32[Array, ""]:
    """The error of predicted views, [rows, ...], from 0 to 1.

    It is the share of rows with a wrong bit or category, and of the others the share of the changes of numbers that is
    unexplained: squared errors over those of "nothing changes", a mean over the entries that change.
    """
    wrong, unexplained, num_changing = jnp.bool_(False), jnp.float32(0), jnp.float32(0)
    for field in world.viewed_fields(spec):
        before, guess, came = (each[field.name] for each in (now, predicted, true))
        rows = before.shape[0]
        if field.planes or field.kind == "categories":
            wrong |= jnp.any((guess != came).reshape(rows, -1), axis=1)
            continue
        before, guess, came = (each.reshape(rows, -1).astype(jnp.float32) for each in (before, guess, came))
        changes, errors = (jnp.sum(jnp.square(came - from_), axis=0) for from_ in (before, guess))
        is_changing = changes > 0
        shares = jnp.minimum(errors / jnp.where(is_changing, changes, 1.0), 1.0)
        unexplained += jnp.sum(jnp.where(is_changing, shares, 0.0))
        num_changing += jnp.sum(is_changing)
    of_numbers = unexplained / jnp.maximum(num_changing, 1)
    return 1 - (1 - jnp.mean(wrong, dtype=jnp.float32)) * (1 - of_numbers)


def fit(
    loss: Callable[[Any, Transition], tuple[Array, Metrics]],
    params: Any,
    data: Transition,
    *,
    epochs: int,
    minibatch_size: int = 256,
    learning_rate: float = 3e-3,
    weight_decay: float | None = None,
    key: Key[Array, ""],
    on_epoch: Callable[[int, Any], None] | None = None,
) -> Any:
    """Train a world of any kind on given transitions; the learning rate falls to a thirtieth.

    With a weight decay it is AdamW, and the rate falls to zero along a cosine. `loss` is of one transition; `on_epoch`
    gets the number of the epoch and the parameters after it.
    """
    count = len(data.now.time) // minibatch_size * minibatch_size
    num_steps = count // minibatch_size * epochs
    if weight_decay is None:
        adam = optax.adam(optax.linear_schedule(learning_rate, learning_rate / 30, num_steps))
    else:
        adam = optax.adamw(optax.cosine_decay_schedule(learning_rate, num_steps), weight_decay=weight_decay)
    transform = optax.chain(optax.clip_by_global_norm(10.0), adam)
    data = jax.tree.map(jnp.asarray, data)

    @jax.jit
    def one_epoch(params, state, data, order):
        def one_step(carry, chosen):
            params, state = carry
            batch = jax.tree.map(lambda leaf: leaf[chosen], data)
            gradient = jax.grad(lambda params: jnp.mean(jax.vmap(partial(loss, params))(batch)[0]))(params)
            steps, state = transform.update(gradient, state, params)
            return (optax.apply_updates(params, steps), state), None

        return jax.lax.scan(one_step, (params, state), order)[0]

    state = transform.init(params)
    for epoch in range(epochs):
        order = jax.random.permutation(jax.random.fold_in(key, epoch), len(data.now.time))[:count]
        params, state = jax.block_until_ready(one_epoch(params, state, data, order.reshape(-1, minibatch_size)))
        if on_epoch:
            on_epoch(epoch, params)
    return params
