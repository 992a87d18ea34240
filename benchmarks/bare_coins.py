"""The coin game on 5x5 with four players as one hand-written loop over a batch: what `hopplus` is measured against."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bare_grid import (
    distinct,
    free_moves,
    moved_by,
    packed_marks,
    random_words,
    uniform_below,
    view_bits,
)
from bare_grid import views as seen_of
from hopplus.games.coins import CoinsState

PRESET, SIDE, PLAYERS, HORIZON = "coins-5x5", 5, 4, 40
CELLS = SIDE * SIDE
BITS = view_bits(PLAYERS, 2, 1)
NUM_DRAWS = PLAYERS
NUM_RESET = 2 * PLAYERS


class State(NamedTuple):
    position: Array  # int32 [players, batch]
    coins: Array  # int32 [players, batch]
    last_actions: Array  # int32 [players, batch]
    time: Array  # int32 [batch]


def first(words: Array) -> State:
    cells = distinct(words, jnp.int32(CELLS))
    batch = words.shape[1]
    return State(cells[:PLAYERS], cells[PLAYERS:], jnp.full((PLAYERS, batch), -1), jnp.zeros(batch, jnp.int32))


def legal(state: State) -> list[Array]:
    return [*free_moves(state.position, SIDE), jnp.ones_like(state.position, bool)]


def step(state: State, actions: Array, words: Array) -> tuple[State, Array]:
    """The next state and the rewards; the actions must be legal."""
    position = state.position + moved_by(actions, SIDE)
    takes = position[:, None] == state.coins
    takers = jnp.sum(takes, axis=0, dtype=jnp.int32)
    taken = takers > 0
    own = jnp.stack([takes[player, player] for player in range(PLAYERS)])
    gain = jnp.sum(jnp.where(takes, 1.0 / jnp.maximum(takers, 1), 0.0), axis=1)
    loss = 2.0 * (takers - own) / jnp.maximum(takers, 1)

    things = jnp.concatenate([position, state.coins])
    free = jnp.all(things != np.arange(CELLS)[:, None, None], axis=1)
    up_to_here = jnp.cumsum(free, axis=0, dtype=jnp.int32)
    ranks = distinct(words, up_to_here[-1])
    turn = jnp.sum(taken & (state.coins < state.coins[:, None]), axis=1, dtype=jnp.int32)
    rank = jnp.sum(jnp.where(turn[:, None] == np.arange(PLAYERS)[:, None], ranks, 0), axis=1)
    back = jnp.sum(up_to_here[:, None] <= rank, axis=0, dtype=jnp.int32)
    after = State(position, jnp.where(taken, back, state.coins), actions, state.time + 1)
    return after, gain - loss


def views(state: State) -> Array:
    things = jnp.concatenate([state.position, state.coins])
    return seen_of(packed_marks(things, (1 << np.arange(2 * PLAYERS)).astype(np.uint16), CELLS), BITS, SIDE)


def as_product_state(state: State) -> CoinsState:
    walls = jnp.zeros((state.time.shape[0], SIDE, SIDE), bool)
    return CoinsState(state.position.T, state.coins.T, state.last_actions.T, walls, state.time)


def product_draws(game, keys: Array) -> Array:
    """The words that the product's step draws, [draws, batch]."""
    return jax.vmap(lambda key: game.draw_words(key=key))(keys).T


def crowded(num_envs: int) -> State:
    """Random states in which most players stand beside a coin."""
    words = random_words(jax.random.key(3), NUM_RESET, num_envs)
    state = first(words)
    beside = (state.coins[::-1] + 1) % CELLS
    clear = jnp.all(beside[:, None] != state.coins, axis=1)
    last = uniform_below(words[:PLAYERS], jnp.int32(6)) - 1
    return state._replace(position=jnp.where(clear, beside, state.position), last_actions=last)
