"""The 8x8 stag hunt of four players as one hand-written loop over a batch: what `hopplus` is measured against.

The same physics with the default rules and nothing else: no classes, no vmap, no options, one key per step for all
tables. The batch is the last axis, so that arithmetic streams over it; only the views have it first, as a learner
wants them. `games.py` checks that a step from the same state with the same actions gives the same as the product's.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

SIDE, CELLS, PLAYERS, PREY, HORIZON = 8, 64, 4, 5, 35
STAG_REWARD, HARE_REWARD = 10.0, 1.0
UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
PLAYER_BITS, WALL_BIT, STAG_BIT, HARE_BIT = (1, 2, 4, 8), 16, 32, 64
NUM_WORDS = PLAYERS + PLAYERS + PREY
"""The random words that one table needs for one step: an action for each player, a cell for everything."""

VIEW_BITS = np.array(
    [[*(PLAYER_BITS[viewer:] + PLAYER_BITS[:viewer]), WALL_BIT, STAG_BIT, HARE_BIT] for viewer in range(PLAYERS)],
    np.uint8,
)
"""[viewer, plane]: the bit of the packed board that the viewer sees in that plane."""


class State(NamedTuple):
    position: Array  # int32 [players, batch]
    present: Array  # bool [players, batch]
    last_actions: Array  # int32 [players, batch]
    prey_position: Array  # int32 [prey, batch], the stag first
    prey_alive: Array  # bool [prey, batch]
    walls: Array  # bool [batch, cells]
    time: Array  # int32 [batch]


class Record(NamedTuple):
    views: Array  # uint8 [batch, viewers, side, side, planes]
    actions: Array
    rewards: Array
    terminated: Array


def reset(key: Array, num_envs: int) -> State:
    words = random_words(key, PLAYERS + PREY, num_envs)
    cells = distinct_cells(words)
    return State(
        position=cells[:PLAYERS],
        present=jnp.ones((PLAYERS, num_envs), bool),
        last_actions=jnp.full((PLAYERS, num_envs), -1),
        prey_position=cells[PLAYERS:],
        prey_alive=jnp.ones((PREY, num_envs), bool),
        walls=jnp.zeros((num_envs, CELLS), bool),
        time=jnp.zeros(num_envs, jnp.int32),
    )


def play(state: State, key: Array, num_steps: int) -> tuple[State, Record]:
    """Random legal actions; an episode that ends is followed by a fresh one."""

    def one_step(state: State, key: Array) -> tuple[State, Record]:
        words = random_words(key, NUM_WORDS, state.time.shape[0])
        seen = views(state)
        actions = draw_actions(legal(state), words[:PLAYERS])
        after, rewards = step(state, actions)
        terminated = ~after.present | (after.time >= HORIZON)
        record = Record(seen, actions, rewards, terminated)
        return fresh_if_over(after, jnp.all(terminated, axis=0), words[PLAYERS:]), record

    return jax.lax.scan(one_step, state, jax.random.split(key, num_steps))


def legal(state: State) -> list[Array]:
    """bool [players, batch] for each action."""
    row, column = state.position >> 3, state.position & 7
    on_stag, on_hare = on_prey(state)[:, 0], jnp.any(on_prey(state)[:, 1:], axis=1)
    moves = row > 0, row < SIDE - 1, column > 0, column < SIDE - 1
    stay = jnp.ones_like(state.present)
    return [*(move & state.present for move in moves), stay, on_stag & state.present, on_hare & state.present]


def draw_actions(allowed: list[Array], words: Array) -> Array:
    """Uniform among the legal ones: the first action up to which there are more legal ones than the number drawn."""
    up_to_here = [allowed[0].astype(jnp.int32)]
    for one in allowed[1:]:
        up_to_here.append(up_to_here[-1] + one)
    choice = uniform_below(words, up_to_here[-1])
    # argmax, and not a plain sum, because XLA would compute a sum again for every one that reads it
    return jnp.argmax(jnp.stack([count > choice for count in up_to_here]), axis=0).astype(jnp.int32)


def step(state: State, actions: Array) -> tuple[State, Array]:
    """The next state and the rewards; the actions must be legal."""
    hunted = np.array([HUNT_STAG] + [HUNT_HARE] * (PREY - 1))[:, None]
    hunts = on_prey(state) & (actions[:, None] == hunted) & state.present[:, None]
    hunters = jnp.sum(hunts, axis=0, dtype=jnp.int32)
    caught = hunters >= np.array([2] + [1] * (PREY - 1))[:, None]
    catches = hunts & caught
    sharing = jnp.sum(jnp.where(catches, hunters, 0), axis=1)
    worth = jnp.where(actions == HUNT_STAG, STAG_REWARD, HARE_REWARD)
    after = state._replace(
        position=state.position + moved_by(actions),
        present=state.present & (sharing == 0),
        last_actions=jnp.where(state.present, actions, -1),
        prey_alive=state.prey_alive & ~caught,
        time=state.time + 1,
    )
    return after, jnp.where(sharing > 0, worth / jnp.maximum(sharing, 1), 0.0)


def fresh_if_over(state: State, over: Array, words: Array) -> State:
    cells = distinct_cells(words)
    return State(
        position=jnp.where(over, cells[:PLAYERS], state.position),
        present=state.present | over,
        last_actions=jnp.where(over, -1, state.last_actions),
        prey_position=jnp.where(over, cells[PLAYERS:], state.prey_position),
        prey_alive=state.prey_alive | over,
        walls=state.walls,
        time=jnp.where(over, 0, state.time),
    )


def views(state: State) -> Array:
    """The ego views: the board is packed into a byte per cell, and each viewer picks its bits from it."""
    bits = np.array([*PLAYER_BITS, STAG_BIT] + [HARE_BIT] * (PREY - 1), np.uint8)
    players, prey = jnp.where(state.present, state.position, -1), jnp.where(state.prey_alive, state.prey_position, -1)
    shown = jnp.concatenate([players, prey]).T[:, None, :] == np.arange(CELLS)[:, None]
    packed = jnp.sum(jnp.where(shown, bits, np.uint8(0)), axis=-1, dtype=jnp.uint8)
    packed |= jnp.where(state.walls, np.uint8(WALL_BIT), np.uint8(0))
    seen = jnp.where(state.present.T[:, :, None], packed[:, None, :], np.uint8(0))
    planes = (seen[..., None] & VIEW_BITS[:, None, :]) != 0
    return planes.astype(jnp.uint8).reshape(-1, PLAYERS, SIDE, SIDE, VIEW_BITS.shape[1])


def on_prey(state: State) -> Array:
    """bool [players, prey, batch]"""
    return (state.position[:, None] == state.prey_position) & state.prey_alive


def moved_by(actions: Array) -> Array:
    rows = jnp.where(actions == UP, -SIDE, jnp.where(actions == DOWN, SIDE, 0))
    return rows + jnp.where(actions == LEFT, -1, jnp.where(actions == RIGHT, 1, 0))


def distinct_cells(words: Array) -> Array:
    """int32 [number, batch]: a Fisher-Yates shuffle of the board that never writes down the deck."""
    picks = [index + uniform_below(word, jnp.int32(CELLS - index)) for index, word in enumerate(words)]
    cells = list(picks)
    for place in reversed(range(len(cells) - 1)):
        for later in range(place + 1, len(cells)):
            cells[later] = jnp.where(cells[later] == picks[place], place, cells[later])
    return jnp.stack(cells)


def uniform_below(words: Array, bound: Array) -> Array:
    """floor(word * bound / 2**32) for a bound of at most 2**16"""
    bound = bound.astype(jnp.uint32)
    low = ((words & 0xFFFF) * bound) >> 16
    return (((words >> 16) * bound + low) >> 16).astype(jnp.int32)


def random_words(key: Array, count: int, num_envs: int) -> Array:
    """uint32 [count, batch]: two words from each hash, since a key that another is split into is 64 random bits"""
    pairs = jax.random.key_data(jax.random.split(key, (count + 1) // 2 * num_envs))
    return pairs.T.reshape(-1, num_envs)[:count]
