"""Harvest on 8x8 with four players and beams as one hand-written loop over a batch."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bare_grid import distinct, free_moves, moved_by, packed_marks, random_words, uniform_below, view_bits
from bare_grid import views as seen_of
from hopplus.games.harvest import HarvestState

PRESET, SIDE, PLAYERS, HORIZON = "harvest-8x8-beam", 8, 4, 100
CELLS, AWAY, LENGTH, ZAP = SIDE * SIDE, 10, 4, 5
FIRST, GROWTH = round(0.3 * 2**16), [round(chance * 2**16) for chance in (0.0, 0.01, 0.02, 0.04)]
BITS = view_bits(PLAYERS, 2, 2)
APPLE_BIT = np.uint16(1 << (2 * PLAYERS + 1))
NUM_DRAWS = 1 + CELLS // 2
NUM_RESET = PLAYERS + CELLS // 2


class State(NamedTuple):
    position: Array  # int32 [players, batch]
    away: Array  # int32 [players, batch]
    last_actions: Array  # int32 [players, batch]
    apples: Array  # bool [cells, batch]
    time: Array  # int32 [batch]


def halves(words: Array) -> Array:
    """int32 [cells, batch], below 2**16: two draws from each word."""
    return jnp.concatenate([words & 0xFFFF, words >> 16]).astype(jnp.int32)


def occupied(position: Array, there: Array) -> Array:
    """bool [cells, batch]"""
    return jnp.any((np.arange(CELLS)[:, None, None] == position) & there, axis=1)


def first(words: Array) -> State:
    position, batch = distinct(words[:PLAYERS], jnp.int32(CELLS)), words.shape[1]
    apples = (halves(words[PLAYERS:]) < FIRST) & ~occupied(position, jnp.ones((PLAYERS, batch), bool))
    none = jnp.zeros((PLAYERS, batch), jnp.int32)
    return State(position, none, none - 1, apples, jnp.zeros(batch, jnp.int32))


def legal(state: State) -> list[Array]:
    acting = state.away == 0
    moves = [free & acting for free in free_moves(state.position, SIDE)]
    return [*moves, jnp.ones_like(acting), acting, acting, acting, acting]


def step(state: State, actions: Array, words: Array) -> tuple[State, Array]:
    """The next state and the rewards; the actions must be legal."""
    there = state.away == 0
    position = state.position + moved_by(actions, SIDE)
    on_cell = (np.arange(CELLS)[:, None, None] == position) & there
    eats = jnp.any(on_cell & state.apples[:, None], axis=0)
    sharers = jnp.sum((position[:, None] == position) & there, axis=1)
    rewards = jnp.where(eats, 1.0 / jnp.maximum(sharers, 1), 0.0)
    apples = state.apples & ~jnp.any(on_cell, axis=1)

    position = jnp.where(state.away == 1, uniform_below(words[0], jnp.int32(CELLS)), position)
    row, column = position >> 3, position & 7
    down = (actions == ZAP + 1).astype(jnp.int32) - (actions == ZAP)
    right = (actions == ZAP + 3).astype(jnp.int32) - (actions == ZAP + 2)
    hit = jnp.zeros_like(there)
    for length in range(1, LENGTH + 1):
        to_row, to_column = row + length * down, column + length * right
        inside = (actions >= ZAP) & (to_row >= 0) & (to_row < SIDE) & (to_column >= 0) & (to_column < SIDE)
        hit |= jnp.any(inside[:, None] & ((to_row * SIDE + to_column)[:, None] == position), axis=0)
    away = jnp.where(hit & there, AWAY, jnp.maximum(state.away - 1, 0))

    around = jnp.pad(apples.reshape(SIDE, SIDE, -1).astype(jnp.int32), ((1, 1), (1, 1), (0, 0)))
    rows = around[:-2] + around[1:-1] + around[2:]
    number = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]).reshape(CELLS, -1)
    chance = jnp.where(number >= 3, GROWTH[3], jnp.where(number >= 2, GROWTH[2], jnp.where(number >= 1, GROWTH[1], 0)))
    apples |= (halves(words[1:]) < chance) & ~occupied(position, away == 0)
    return State(position, away, actions, apples, state.time + 1), rewards


def views(state: State) -> Array:
    cells = jnp.where(state.away == 0, state.position, -1)
    packed = packed_marks(cells, (1 << np.arange(PLAYERS)).astype(np.uint16), CELLS)
    counters = (1 << np.arange(PLAYERS, 2 * PLAYERS)).astype(np.uint16)
    counting = np.arange(CELLS)[:, None] < state.away.T[:, None, :]
    packed |= jnp.sum(jnp.where(counting, counters, np.uint16(0)), axis=-1, dtype=jnp.uint16)
    packed |= jnp.where(state.apples.T, APPLE_BIT, np.uint16(0))
    return seen_of(packed, BITS, SIDE)


def as_product_state(state: State) -> HarvestState:
    apples = state.apples.T.reshape(-1, SIDE, SIDE)
    return HarvestState(
        state.position.T, state.away.T, state.last_actions.T, apples, jnp.zeros_like(apples), state.time
    )


def product_draws(game, keys: Array) -> Array:
    draws = jax.vmap(lambda key: game.draw_growth(key=key))(keys)
    cells = draws.growth.reshape(len(keys), CELLS).T.astype(jnp.uint32)
    return jnp.concatenate([draws.back[None], cells[: CELLS // 2] | (cells[CELLS // 2 :] << 16)])


def crowded(num_envs: int) -> State:
    """Random states with players in few rows, some of them away."""
    words = random_words(jax.random.key(3), NUM_RESET + 2 * PLAYERS, num_envs)
    state = first(words[:NUM_RESET])
    away = jnp.maximum(uniform_below(words[NUM_RESET : NUM_RESET + PLAYERS], jnp.int32(20)) - 9, 0)
    last = uniform_below(words[-PLAYERS:], jnp.int32(10)) - 1
    return state._replace(position=state.position % 16, away=away, last_actions=last)
