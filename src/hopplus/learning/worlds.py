"""How a learner's world is trained on line, and how wrong it is.

It learns from what is kept in `replay`; each member of the ensemble draws its own samples. The world is scored on every
update's play before it learns from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.game import GameSpec
from hopplus.learning import replay
from hopplus.learning.devices import dealt_out
from hopplus.learning.ppo import Metrics, check_counts, check_number, descend, falling
from hopplus.models import world
from hopplus.models.world import Outcome, Transition, World

SAME_REWARD = 0.05
"""Rewards that are nearer to each other than this are the same."""
FINAL_RATE = 0.1
"""The learning rate falls to this share of itself over a run."""


@dataclass(frozen=True)
class WorldTrainingConfig:
    """How a world is trained."""

    minibatches: int = 8
    """Gradient steps in each update."""
    minibatch_size: int = 256
    """Transitions in each of them, for every member."""
    learning_rate: float = 3e-3
    """Of Adam; a run ends with a tenth of it."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        check_counts("world-training", self, "minibatches", "minibatch_size")
        check_number("world-training", "learning_rate", self.learning_rate, self.learning_rate > 0, "above 0")


def optimizer() -> optax.GradientTransformation:
    """Adam without its learning rate, which changes over a run."""
    return optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())


def mean_loss(params: World, spec: GameSpec, batch: Transition) -> tuple[Float32[Array, ""], Metrics]:
    """Over a minibatch, for one member."""
    losses, parts = jax.vmap(partial(world.loss, params, spec))(batch)
    return jnp.mean(losses), jax.tree.map(jnp.mean, parts)


def update(
    config: WorldTrainingConfig,
    spec: GameSpec,
    remaining: Float32[Array, ""],
    learner: tuple[World, PyTree[Array], PyTree[Array], Int32[Array, " agents"], Key[Array, ""]],
) -> tuple[World, PyTree[Array], Metrics]:
    """All gradient steps of all members, [members, ...], `remaining` being the share of the run that is left.

    Boards are read in the learner's own order of seats: a sum over seats is then the same to the bit, wherever it sits.
    """
    members, optimizer_state, kept, order, key = learner
    transform = optimizer()
    rate = falling(config.learning_rate, FINAL_RATE, remaining)
    num_members = members.cell.bias.shape[0]

    def one_member(params, optimizer_state, places):
        batch = jax.tree.map(lambda leaf: leaf[0, places], kept.experience.transition)
        batch = world.seen_by(spec, dealt_out(batch), order)
        gradient, parts = jax.grad(mean_loss, has_aux=True)(params, spec, batch)
        steps, optimizer_state = transform.update(gradient, optimizer_state)
        return descend(params, steps, rate), optimizer_state, parts

    def one_step(carry: tuple[Any, Any], places: Array):
        members, optimizer_state, parts = jax.vmap(one_member)(carry[0], carry[1], places)
        return (members, optimizer_state), jax.tree.map(jnp.mean, parts)

    shape = (config.minibatches, num_members, config.minibatch_size)
    places = replay.draw_places(replay.by_reward(spec, kept), shape, key=key)
    (members, optimizer_state), parts = jax.lax.scan(one_step, (members, optimizer_state), places)
    losses = {f"wm/{name}": jnp.mean(part) for name, part in parts.items()}
    counts = {
        "count/updates/world": jnp.float32(config.minibatches),
        "count/samples/world": jnp.float32(config.minibatches * config.minibatch_size * num_members),
        "buffer/size/world": jnp.sum(replay.is_kept(kept), dtype=jnp.float32),
    }
    return members, optimizer_state, {"wm/loss": sum(losses.values(), jnp.float32(0)), **losses, **counts}


def score(spec: GameSpec, members: World, happened: Transition) -> Metrics:
    """How wrong the members' likeliest outcomes are, a mean over them; nothing of `happened` was learned from yet.

    board    share of transitions whose next board is not the true one, cell for cell
    reward   share of rewards that were not foretold, a mean over the sizes that occurred, and what was made up
    ended    ends that were missed or made up, over the true ones
    """

    def one_member(params: World) -> Outcome:
        one = lambda now: world.draw(spec, now, world.apply(params, spec, now), key=None)  # noqa: E731
        return jax.vmap(one)(happened.now)

    told, true = jax.vmap(one_member)(members), happened.after
    playing = ~happened.now.ended
    wrong = jnp.any(told.board != true.board, axis=(-1, -2, -3))
    reward_error = jax.vmap(lambda rewards: reward_misses(spec, rewards, true.rewards, playing))(told.rewards)
    misjudged = jnp.sum((told.ended != true.ended) & playing, axis=(1, 2))
    ends = jnp.sum(true.ended & playing)
    differ = jnp.any(told.board != told.board[:1], axis=(0, -1, -2, -3))
    return {
        "wm/board_error": jnp.mean(wrong, dtype=jnp.float32),
        "wm/reward_error": jnp.mean(reward_error),
        "wm/end_error": jnp.mean(misjudged / jnp.maximum(ends, 1)),
        "wm/disagreement": jnp.mean(differ, dtype=jnp.float32),
    }


def reward_misses(
    spec: GameSpec,
    told: Float32[Array, "rows agents"],
    true: Float32[Array, "rows agents"],
    playing: Bool[Array, "rows agents"],
) -> Float32[Array, ""]:
    """How wrong rewards are, every size counting alike: rare ones are what play is about."""
    sizes = jnp.asarray([size for size in spec.reward_support if size != 0], jnp.float32)
    wrong = jnp.abs(told - true) > SAME_REWARD
    paid = (jnp.abs(true[..., None] - sizes) < SAME_REWARD) & playing[..., None]
    counts = jnp.sum(paid, axis=(0, 1))
    missed = jnp.sum(paid & wrong[..., None], axis=(0, 1)) / jnp.maximum(counts, 1)
    made_up = jnp.sum(wrong & playing & (jnp.abs(true) < SAME_REWARD)) / jnp.maximum(jnp.sum(counts), 1)
    return jnp.sum(missed) / jnp.maximum(jnp.sum(counts > 0), 1) + made_up


def fit(
    loss: Callable[[Any, Transition], tuple[Array, Metrics]],
    params: Any,
    data: Transition,
    *,
    epochs: int,
    minibatch_size: int = 256,
    learning_rate: float = 3e-3,
    key: Key[Array, ""],
    on_epoch: Callable[[int], None] | None = None,
) -> Any:
    """Train a world of any kind on transitions that are there already; the rate falls to a thirtieth.

    `loss` is of one transition.
    """
    count = len(data.now.time) // minibatch_size * minibatch_size
    schedule = optax.linear_schedule(learning_rate, learning_rate / 30, count // minibatch_size * epochs)
    transform = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(schedule))
    data = jax.tree.map(jnp.asarray, data)

    @jax.jit
    def one_epoch(params, state, data, order):
        def one_step(carry, chosen):
            params, state = carry
            batch = jax.tree.map(lambda leaf: leaf[chosen], data)
            gradient = jax.grad(lambda params: jnp.mean(jax.vmap(partial(loss, params))(batch)[0]))(params)
            steps, state = transform.update(gradient, state)
            return (optax.apply_updates(params, steps), state), None

        return jax.lax.scan(one_step, (params, state), order)[0]

    state = transform.init(params)
    for epoch in range(epochs):
        order = jax.random.permutation(jax.random.fold_in(key, epoch), len(data.now.time))[:count]
        params, state = jax.block_until_ready(one_epoch(params, state, data, order.reshape(-1, minibatch_size)))
        if on_epoch:
            on_epoch(epoch)
    return params
