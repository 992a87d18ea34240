"""Series of episodes with the same co-players: the return of the first seat in each episode.

The players keep their states from one episode to the next. An episode ends here when the first seat has left, because
that seat gets no more observations or rewards.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Key

from hopplus.core.devices import over_devices
from hopplus.games.coplayers import Lineup
from hopplus.games.game import Game
from hopplus.games.rollout import JointPolicy, env_step, init_env, random_uniforms

NUM_ENVS = 1000


def play_series(game: Game, policy: JointPolicy, length: int, *, key: Key[Array, ""]) -> Float32[Array, " {length}"]:
    """The returns of the first seat in one series. Under `vmap`, all series run until the last one is done."""
    open_key, play_key = jax.random.split(key)
    first = init_env(game, policy, key=open_key)
    numbers = jax.random.key_data(play_key)

    def one_step(carry):
        env, returns, episode, step = carry
        act_key, step_key, reset_key = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(numbers), step), 3)
        uniforms = random_uniforms(1, game.spec.num_agents, key=act_key)[0]
        keys = {"step_key": step_key, "reset_key": reset_key}
        env, played = env_step(game, policy, env, uniforms=uniforms, **keys, is_over=lambda terminated: terminated[0])
        returns += jnp.where(jnp.arange(length) == episode, played.rewards[0], 0.0)
        return env, returns, episode + env.reset_before, step + 1

    start = (first, jnp.zeros(length, jnp.float32), jnp.int32(0), jnp.int32(0))
    return jax.lax.while_loop(lambda carry: carry[2] < length, one_step, start)[1]


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
    """The returns of `num_series` series of each row; every array of the line-up has a leading axis of rows.

    Each device plays one row at a time, so that progress shows even with a slow planner. The next row starts when the
    last environment of a row is done.
    """
    num_devices = min(len(jax.devices()), num_rows)
    num_envs = min(NUM_ENVS, num_series)
    num_batches = -(-num_series // num_envs)
    arrays, static = eqx.partition(lineup, eqx.is_array)

    def one_row(arrays: Lineup, key: Key[Array, ""]) -> Float32[Array, "series episodes"]:
        seated = eqx.combine(arrays, static)
        batch = jax.vmap(lambda key: play_series(game, seated, length, key=key))
        keys = jax.random.split(key, (num_batches, num_envs))
        return jax.lax.map(batch, keys).reshape(num_batches * num_envs, length)

    def on_device(_: None, rows: tuple[Lineup, Key[Array, " rows"]]) -> Float32[Array, "rows series episodes"]:
        return jax.lax.map(lambda row: one_row(*row), rows)

    play = jax.jit(over_devices(on_device, num_devices, num_devices))
    keys = jax.random.split(key, num_rows)
    returns = []
    for first in range(0, num_rows, num_devices):
        rows = np.minimum(np.arange(first, first + num_devices), num_rows - 1)
        returns.append(jax.device_get(play(None, jax.tree.map(lambda leaf, rows=rows: leaf[rows], (arrays, keys)))))
        for _ in range(min(num_devices, num_rows - first)):
            if on_row:
                on_row()
    return np.concatenate(returns)[:num_rows, :num_series]
