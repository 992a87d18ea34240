"""Foraging on 8x8 with four players and four foods as one hand-written loop over a batch."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from bare_grid import distinct, free_moves, moved_by, packed_marks, random_words, uniform_below, view_bits
from bare_grid import views as seen_of
from hopplus.games.foraging import ForagingState

PRESET, SIDE, PLAYERS, FOODS, HORIZON = "foraging-8x8", 8, 4, 4, 40
CELLS, PLAYER_LEVELS, FOOD_LEVELS, LOAD = SIDE * SIDE, 2, 3, 5
BITS = view_bits(PLAYERS, 1, 1 + FOOD_LEVELS + PLAYER_LEVELS)
NUM_DRAWS = 0
NUM_RESET = 2 * (PLAYERS + FOODS)


class State(NamedTuple):
    position: Array  # int32 [players, batch]
    level: Array  # int32 [players, batch]
    last_actions: Array  # int32 [players, batch]
    food_position: Array  # int32 [foods, batch]
    food_level: Array  # int32 [foods, batch]
    food_remains: Array  # bool [foods, batch]
    time: Array  # int32 [batch]


def first(words: Array) -> State:
    cells = distinct(words[: PLAYERS + FOODS], jnp.int32(CELLS))
    levels = words[PLAYERS + FOODS :]
    batch = words.shape[1]
    return State(
        cells[:PLAYERS],
        1 + uniform_below(levels[:PLAYERS], jnp.int32(PLAYER_LEVELS)),
        jnp.full((PLAYERS, batch), -1),
        cells[PLAYERS:],
        1 + uniform_below(levels[PLAYERS:], jnp.int32(FOOD_LEVELS)),
        jnp.ones((FOODS, batch), bool),
        jnp.zeros(batch, jnp.int32),
    )


def over(state: State) -> Array:
    return ~jnp.any(state.food_remains, axis=0) | (state.time >= HORIZON)


def beside(state: State) -> Array:
    """bool [players, foods, batch]"""
    position, food = state.position[:, None], state.food_position
    rows, columns = jnp.abs((position >> 3) - (food >> 3)), jnp.abs((position & 7) - (food & 7))
    return (rows + columns == 1) & state.food_remains


def legal(state: State) -> list[Array]:
    playing = ~over(state)
    things = jnp.concatenate([state.position, jnp.where(state.food_remains, state.food_position, -1)])
    moves = []
    for free, change in zip(free_moves(state.position, SIDE), (-SIDE, SIDE, -1, 1), strict=True):
        is_open = jnp.all(things != (state.position + change)[:, None], axis=1)
        moves.append(free & is_open & playing)
    return [*moves, jnp.ones_like(state.position, bool), jnp.any(beside(state), axis=1) & playing]


def step(state: State, actions: Array, words: Array) -> tuple[State, Array]:
    """The next state and the rewards; the actions must be legal."""
    del words
    loads = beside(state) & (actions == LOAD)[:, None]
    strength = jnp.sum(jnp.where(loads, state.level[:, None], 0), axis=0, dtype=jnp.int32)
    taken = (strength >= state.food_level) & (strength > 0)
    gets = loads & taken
    parts = jnp.where(gets, strength, 1)
    whole = jnp.prod(parts, axis=1, dtype=jnp.int32)
    worth = jnp.sum(jnp.where(gets, state.food_level * (whole[:, None] // parts), 0), axis=1, dtype=jnp.int32)
    rewards = (state.level * worth).astype(jnp.float32) / whole.astype(jnp.float32)
    target = state.position + moved_by(actions, SIDE)
    clash = jnp.any((target[:, None] == target) & ~np.eye(PLAYERS, dtype=bool)[..., None], axis=1)
    after = state._replace(
        position=jnp.where(clash, state.position, target),
        last_actions=actions,
        food_remains=state.food_remains & ~taken,
        time=state.time + 1,
    )
    return after, rewards


def views(state: State) -> Array:
    """A bit for each player and one for its level, on its cell; a bit for the level of each food."""
    food_bit, level_bit = PLAYERS + 1, PLAYERS + 1 + FOOD_LEVELS
    players = (1 << np.arange(PLAYERS))[:, None] | (1 << (level_bit + state.level - 1))
    foods = 1 << (food_bit + state.food_level - 1)
    cells = jnp.concatenate([state.position, jnp.where(state.food_remains, state.food_position, -1)])
    bits = jnp.concatenate([players, foods]).astype(jnp.uint16)
    return seen_of(packed_marks(cells, bits, CELLS), BITS, SIDE)


def as_product_state(state: State) -> ForagingState:
    food = state.food_position.T, state.food_level.T, state.food_remains.T
    walls = jnp.zeros((state.time.shape[0], SIDE, SIDE), bool)
    return ForagingState(state.position.T, state.level.T, state.last_actions.T, *food, walls, state.time)


def product_draws(_game, keys: Array) -> Array:
    return jnp.zeros((0, len(keys)), jnp.uint32)


def crowded(num_envs: int) -> State:
    """Random states in which many players stand beside a food."""
    import jax

    words = random_words(jax.random.key(3), NUM_RESET + PLAYERS + FOODS, num_envs)
    state = first(words[:NUM_RESET])
    place = state.food_position + np.array([-SIDE, SIDE, -1, 1])[:, None]
    things = jnp.concatenate([state.position, state.food_position])
    is_open = (place >= 0) & (place < CELLS) & jnp.all(place[:, None] != things, axis=1)
    same = jnp.any((place[:, None] == place) & ~np.eye(PLAYERS, dtype=bool)[..., None], axis=1)
    last = uniform_below(words[NUM_RESET : NUM_RESET + PLAYERS], jnp.int32(7)) - 1
    remains = uniform_below(words[NUM_RESET + PLAYERS :], jnp.int32(5)) > 0
    position = jnp.where(is_open & ~same, place, state.position)
    return state._replace(position=position, last_actions=last, food_remains=remains)
