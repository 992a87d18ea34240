"""Several episodes in a row with the same co-players: what the first seat gets in each of them.

What players remember of each other is carried from one episode to the next. An episode is over for this purpose when
the first seat has left: it sees no more, and gets no more.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Key

from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game
from hopplus.games.rollout import JointPolicy, advance, open_table, random_levels
from hopplus.learning.devices import in_parts

NUM_TABLES = 1000


def play_series(game: Game, policy: JointPolicy, length: int, *, key: Key[Array, ""]) -> Float32[Array, " {length}"]:
    """One series. Tables that are mapped over go on until the last of them is done."""
    open_key, play_key = jax.random.split(key)
    first = open_table(game, policy, key=open_key)
    numbers = jax.random.key_data(play_key)

    def one_step(carry):
        table, returns, episode, step = carry
        act_key, step_key, reset_key = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(numbers), step), 3)
        levels = random_levels(1, game.spec.num_agents, key=act_key)[0]
        keys = {"step_key": step_key, "reset_key": reset_key}
        table, played = advance(game, policy, table, levels=levels, **keys, is_over=lambda terminated: terminated[0])
        returns += jnp.where(jnp.arange(length) == episode, played.rewards[0], 0.0)
        return table, returns, episode + table.reset_before, step + 1

    begin = (first, jnp.zeros(length, jnp.float32), jnp.int32(0), jnp.int32(0))
    return jax.lax.while_loop(lambda carry: carry[2] < length, one_step, begin)[1]


def play_rows(
    game: Game,
    lineup: Lineup,
    num_series: int,
    length: int,
    *,
    num_rows: int,
    key: Key[Array, ""],
    on_row: Callable[[], None] | None = None,
) -> Float32[np.ndarray, "{num_rows} {num_series} {length}"]:
    """So many series of each row; every array of the line-up has a leading axis of rows.

    Each device plays a row at a time: a planner is slow, so that progress can be seen, and the next row begins when
    the last table of one is done.
    """
    num_devices = min(len(jax.devices()), num_rows)
    num_tables = min(NUM_TABLES, num_series)
    num_batches = -(-num_series // num_tables)
    arrays, static = eqx.partition(lineup, eqx.is_array)

    def one_row(arrays: Lineup, key: Key[Array, ""]) -> Float32[Array, "series episodes"]:
        seated = eqx.combine(arrays, static)
        batch = jax.vmap(lambda key: play_series(game, seated, length, key=key))
        keys = jax.random.split(key, (num_batches, num_tables))
        return jax.lax.map(batch, keys).reshape(num_batches * num_tables, length)

    def on_device(_: None, rows: tuple[Lineup, Key[Array, " rows"]]) -> Float32[Array, "rows series episodes"]:
        return jax.lax.map(lambda row: one_row(*row), rows)

    play = jax.jit(in_parts(on_device, num_devices, num_devices))
    keys = jax.random.split(key, num_rows)
    found = []
    for first in range(0, num_rows, num_devices):
        rows = np.minimum(np.arange(first, first + num_devices), num_rows - 1)
        found.append(jax.device_get(play(None, jax.tree.map(lambda leaf, rows=rows: leaf[rows], (arrays, keys)))))
        for _ in range(min(num_devices, num_rows - first)):
            if on_row:
                on_row()
    return np.concatenate(found)[:num_rows, :num_series]
