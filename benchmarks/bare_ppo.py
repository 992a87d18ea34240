"""PPO on the bare stag hunt as one compiled update in plain JAX and optax: what `hopplus` training is measured against.

In the style of purejaxrl, by hand for these shapes and for a CPU: no configs, no logging, no checks, nothing from
`hopplus`. Views are kept as bytes, the key of a step is hashed once for actions and resets, an action is drawn from
one number by the inverse of the cumulated probabilities, and the heads' weights are stored [outputs, inputs], because
XLA's product for the gradient of a narrow [inputs, outputs] matrix was five times slower.

With `shared_board` the seats' networks read one view, with the players in seat order, instead of each its own. To four
independent networks the ego order is only another numbering of the inputs, so that the learner is the same; but a view
is kept and read once instead of four times, and the four first layers become one wide product. A seat that has left
then sees the board, and nothing is made of that: its samples are masked out and no value is bootstrapped from them.

    python benchmarks/bare_ppo.py --side 4 --updates 200    the curve of mean returns and the speed
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

import bare_stag_hunt as bare
from settings import Settings

SEATS, PREY, HORIZON, ACTIONS, PLANES = bare.PLAYERS, bare.PREY, bare.HORIZON, 7, 7
BOARD_BITS = np.array([*bare.PLAYER_BITS, bare.WALL_BIT, bare.STAG_BIT, bare.HARE_BIT], np.uint8)
EGO_ORDER = (np.arange(SEATS)[:, None] + np.arange(SEATS)) % SEATS
ILLEGAL_LOGIT = -1e9


class State(NamedTuple):
    parameters: dict[str, Array]  # all [seats, ...]
    optimizer: optax.OptState
    game: bare.State
    returns: Array  # [envs], so far in this episode, the mean over seats


class Batch(NamedTuple):
    views: Array  # uint8 [samples, seats, inputs], or [samples, inputs] of a shared board
    legal: Array  # bool [samples, seats, actions]
    actions: Array  # this and all below [samples, seats]
    log_probs: Array
    values: Array
    advantages: Array
    present: Array


def make_update(
    side: int, settings: Settings, *, shared_board: bool = False
) -> tuple[Callable[[Array], State], Callable[[State, Array], tuple[State, Array]]]:
    """The compiled `init(key) -> state` and `update(state, key) -> (state, mean return of the episodes that ended)`."""
    optimizer = optax.chain(
        optax.clip_by_global_norm(settings.max_gradient_norm),
        optax.adam(settings.learning_rate, eps=settings.adam_epsilon),
    )

    def init(key: Array) -> State:
        network_key, game_key = jax.random.split(key)
        make = partial(init_network, inputs=side * side * PLANES + 1 + SEATS * ACTIONS, hidden=settings.hidden_size)
        parameters = jax.vmap(make)(jax.random.split(network_key, SEATS))
        game = first_states(game_key, side, settings.num_envs)
        return State(parameters, jax.vmap(optimizer.init)(parameters), game, jnp.zeros(settings.num_envs))

    def update(state: State, key: Array) -> tuple[State, Array]:
        rollout_key, shuffle_key = jax.random.split(key)
        game, returns, batch, mean_return = rollout(state, rollout_key, side, settings, shared_board)
        samples = settings.env_steps_per_update
        orders = [jax.random.permutation(key, samples) for key in jax.random.split(shuffle_key, settings.num_epochs)]
        minibatches = jnp.concatenate(orders).reshape(-1, settings.minibatch_size)

        def learn(carry: tuple, indices: Array) -> tuple[tuple, None]:
            parameters, optimizer_state = carry
            gradients = jax.grad(loss)(parameters, jax.tree.map(lambda field: field[indices], batch), settings)
            updates, optimizer_state = jax.vmap(optimizer.update)(gradients, optimizer_state)
            return (optax.apply_updates(parameters, updates), optimizer_state), None

        (parameters, optimizer_state), _ = jax.lax.scan(learn, (state.parameters, state.optimizer), minibatches)
        return State(parameters, optimizer_state, game, returns), mean_return

    return jax.jit(init), jax.jit(update, donate_argnums=0)


def rollout(state: State, key: Array, side: int, settings: Settings, shared_board: bool) -> tuple:
    def one_step(carry: tuple[bare.State, Array], key: Array) -> tuple[tuple[bare.State, Array], tuple]:
        game, returns = carry
        words = bare.random_words(key, bare.NUM_WORDS, settings.num_envs)
        seen, allowed = views(game, side, shared_board), legal(game, side)
        logits, values = apply(state.parameters, seen)
        log_probs = log_probabilities(logits, allowed)
        actions = draw(log_probs, words[:SEATS])
        after, rewards = bare.step(game, actions)
        after = after._replace(position=game.position + moved_by(actions, side))
        terminated = ~after.present | (after.time >= HORIZON)
        over = jnp.all(terminated, axis=0)
        returns += jnp.mean(rewards, axis=0)
        finished = jnp.stack([jnp.sum(jnp.where(over, returns, 0.0)), jnp.sum(over)])
        sample = seen, allowed.swapaxes(0, 1), actions, chosen(log_probs, actions), values, game.present
        carry = fresh_if_over(after, over, words[SEATS:], side), jnp.where(over, 0.0, returns)
        return carry, (sample, rewards, terminated, finished)

    keys = jax.random.split(key, settings.num_steps)
    (game, returns), recorded = jax.lax.scan(one_step, (state.game, state.returns), keys)
    (seen, allowed, actions, log_probs, values, present), rewards, terminated, finished = recorded
    last_values = apply(state.parameters, views(game, side, shared_board))[1]
    advantages = estimate_advantages(rewards, values, terminated, last_values, settings)
    by_seat = (field.swapaxes(1, 2) for field in (actions, log_probs, values, advantages, present))
    batch = jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), Batch(seen, allowed, *by_seat))
    total, episodes = jnp.sum(finished, axis=0)
    return game, returns, batch, total / episodes


def estimate_advantages(rewards: Array, values: Array, terminated: Array, last: Array, settings: Settings) -> Array:
    def backwards(carry: tuple[Array, Array], step: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        next_values, advantages = carry
        rewards, values, terminated = step
        discounts = jnp.where(terminated, 0.0, settings.discount)
        advantages = rewards + discounts * (next_values + settings.gae_lambda * advantages) - values
        return (values, advantages), advantages

    carry = last, jnp.zeros_like(last)
    return jax.lax.scan(backwards, carry, (rewards, values, terminated), reverse=True)[1]


def loss(parameters: dict[str, Array], batch: Batch, settings: Settings) -> Array:
    """The sum over seats, whose parameters are apart."""
    legal, actions, old_log_probs, old_values, advantages, present = (field.swapaxes(0, 1) for field in batch[1:])
    weights = present / jnp.maximum(jnp.sum(present, axis=1, keepdims=True), 1)
    logits, values = apply(parameters, batch.views)
    log_probs = log_probabilities(logits, legal)
    ratios = jnp.exp(chosen(log_probs, actions) - old_log_probs)
    clipped_ratios = jnp.clip(ratios, 1 - settings.clip, 1 + settings.clip)
    scaled = normalised(advantages, weights)
    surrogate = jnp.minimum(ratios * scaled, clipped_ratios * scaled)
    targets = advantages + old_values
    clipped_values = old_values + jnp.clip(values - old_values, -settings.clip, settings.clip)
    value_loss = 0.5 * jnp.maximum((values - targets) ** 2, (clipped_values - targets) ** 2)
    entropy = -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)
    return jnp.sum(
        weights * (settings.value_coefficient * value_loss - surrogate - settings.entropy_coefficient * entropy)
    )


def normalised(advantages: Array, weights: Array) -> Array:
    centred = advantages - jnp.sum(weights * advantages, axis=1, keepdims=True)
    return centred / (jnp.sqrt(jnp.sum(weights * centred**2, axis=1, keepdims=True)) + 1e-8)


def init_network(key: Array, inputs: int, hidden: int) -> dict[str, Array]:
    keys, orthogonal = jax.random.split(key, 4), jax.nn.initializers.orthogonal
    policy, value = orthogonal(0.01)(keys[2], (ACTIONS, hidden)), orthogonal(1.0)(keys[3], (1, hidden))
    return {
        "first": orthogonal(2**0.5)(keys[0], (inputs, hidden)),
        "first_bias": jnp.zeros((1, hidden)),
        "second": orthogonal(2**0.5)(keys[1], (hidden, hidden)),
        "second_bias": jnp.zeros((1, hidden)),
        "heads": jnp.concatenate([policy, value]),
        "heads_bias": jnp.zeros((1, ACTIONS + 1)),
    }


def apply(parameters: dict[str, Array], seen: Array) -> tuple[Array, Array]:
    """Logits [seats, samples, actions] and values [seats, samples]"""
    scale = np.ones(seen.shape[-1], np.float32)
    scale[-1 - SEATS * ACTIONS] = 1 / HORIZON
    floats = seen.astype(jnp.float32) * scale
    first_layer = "bi,sih->sbh" if seen.ndim == 2 else "bsi,sih->sbh"
    hidden = jnp.tanh(jnp.einsum(first_layer, floats, parameters["first"]) + parameters["first_bias"])
    hidden = jnp.tanh(hidden @ parameters["second"] + parameters["second_bias"])
    heads = jnp.einsum("sbh,soh->sbo", hidden, parameters["heads"]) + parameters["heads_bias"]
    return heads[..., :ACTIONS], heads[..., ACTIONS]


def log_probabilities(logits: Array, allowed: Array) -> Array:
    return jax.nn.log_softmax(jnp.where(allowed, logits, ILLEGAL_LOGIT))


def chosen(log_probs: Array, actions: Array) -> Array:
    """By a sum, since the gradient of a gather is a scatter, which is slow on a CPU."""
    return jnp.sum(jnp.where(actions[..., None] == np.arange(ACTIONS), log_probs, 0.0), axis=-1)


def draw(log_probs: Array, words: Array) -> Array:
    cumulated = jnp.cumsum(jnp.exp(log_probs), axis=-1)
    thresholds = (words >> 9).astype(jnp.float32) * 2.0**-23 * cumulated[..., -1]
    return jnp.sum(cumulated <= thresholds[..., None], axis=-1, dtype=jnp.int32)


def views(game: bare.State, side: int, shared_board: bool) -> Array:
    """uint8 [envs, seats, inputs], or [envs, inputs]: planes, time, and last actions; the time is not yet scaled."""
    bits = np.array([*bare.PLAYER_BITS, bare.STAG_BIT] + [bare.HARE_BIT] * (PREY - 1), np.uint8)
    players, prey = jnp.where(game.present, game.position, -1), jnp.where(game.prey_alive, game.prey_position, -1)
    shown = jnp.concatenate([players, prey]).T[:, None, :] == np.arange(side * side)[:, None]
    packed = jnp.sum(jnp.where(shown, bits, np.uint8(0)), axis=-1, dtype=jnp.uint8)
    if shared_board:
        planes, last_actions = packed[:, :, None] & BOARD_BITS, game.last_actions.T
        shape = (game.time.size,)
    else:
        planes, last_actions = packed[:, None, :, None] & bare.VIEW_BITS[:, None, :], game.last_actions.T[:, EGO_ORDER]
        shape = game.time.size, SEATS
    played = last_actions[..., None] == np.arange(ACTIONS)
    clock = jnp.broadcast_to(game.time.reshape(-1, *[1] * len(shape)), (*shape, 1))
    parts = (planes != 0).reshape(*shape, -1), clock, played.reshape(*shape, -1)
    return jnp.concatenate([part.astype(jnp.uint8) for part in parts], axis=-1)


def legal(game: bare.State, side: int) -> Array:
    """bool [seats, envs, actions]"""
    row, column, on_prey = game.position // side, game.position % side, bare.on_prey(game)
    moves = row > 0, row < side - 1, column > 0, column < side - 1
    hunts = on_prey[:, 0], jnp.any(on_prey[:, 1:], axis=1)
    allowed = jnp.stack([*moves, jnp.ones_like(game.present), *hunts], axis=-1)
    return allowed & (game.present[..., None] | (np.arange(ACTIONS) == bare.STAY))


def moved_by(actions: Array, side: int) -> Array:
    rows = jnp.where(actions == bare.UP, -side, jnp.where(actions == bare.DOWN, side, 0))
    return rows + jnp.where(actions == bare.LEFT, -1, jnp.where(actions == bare.RIGHT, 1, 0))


def first_states(key: Array, side: int, num_envs: int) -> bare.State:
    board = bare.reset(key, num_envs)._replace(
        walls=jnp.zeros((num_envs, 0), bool),
        last_actions=jnp.full((SEATS, num_envs), -1, jnp.int32),  # of strong type, else the update is compiled twice
    )
    words = bare.random_words(key, SEATS + PREY, num_envs)
    return fresh_if_over(board, jnp.ones(num_envs, bool), words, side)


def fresh_if_over(game: bare.State, over: Array, words: Array, side: int) -> bare.State:
    cells = distinct_cells(words, side * side)
    return game._replace(
        position=jnp.where(over, cells[:SEATS], game.position),
        present=game.present | over,
        last_actions=jnp.where(over, -1, game.last_actions),
        prey_position=jnp.where(over, cells[SEATS:], game.prey_position),
        prey_alive=game.prey_alive | over,
        time=jnp.where(over, 0, game.time),
    )


def distinct_cells(words: Array, num_cells: int) -> Array:
    """As in `bare_stag_hunt`, for a board of any size."""
    picks = [index + bare.uniform_below(word, jnp.int32(num_cells - index)) for index, word in enumerate(words)]
    cells = list(picks)
    for place in reversed(range(len(cells) - 1)):
        for later in range(place + 1, len(cells)):
            cells[later] = jnp.where(cells[later] == picks[place], place, cells[later])
    return jnp.stack(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=4)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--shared-board", action="store_true")
    options = parser.parse_args()
    settings = Settings()
    init, update = make_update(options.side, settings, shared_board=options.shared_board)
    state, key = init(jax.random.key(0)), jax.random.key(1)
    started = time.perf_counter()
    for number in range(1, options.updates + 1):
        state, mean_return = update(state, jax.random.fold_in(key, number))
        if number == 1:
            mean_return.block_until_ready()
            started = time.perf_counter()  # without the compilation
        if number % 10 == 0:
            rate = (number - 1) * settings.env_steps_per_update / (time.perf_counter() - started)
            env_steps = number * settings.env_steps_per_update
            print(f"{env_steps:>9,} env steps  return {mean_return:.2f}  {rate:,.0f} env steps/s", flush=True)


if __name__ == "__main__":
    main()
