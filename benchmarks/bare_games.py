"""The other games on a grid against bare loops: env steps/s at 4096 environments. `games.py --others` runs it.

A bare module has the physics of one preset by hand; the loop of random legal actions, records and resets is here.
From the same states, with the same actions and draws, each bare step must give what the product gives, bit for bit.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import bare_coins
import bare_foraging
import bare_harvest
from bare_grid import draw_actions, random_words
from hopplus.games.presets import make
from measure import Program, block_program, measure, print_table, short, times_as_fast

MODULES = (bare_coins, bare_foraging, bare_harvest)
NEEDED = 0.9


class Record(NamedTuple):
    views: Array  # uint8 [batch, viewers, side, side, planes]
    actions: Array
    rewards: Array
    terminated: Array


def compare_others(product: Callable[..., Program], num_envs: int, *, quick: bool) -> dict[str, dict[str, float]]:
    """The rates of each game and their ratio, measured in turns; the larger the ratio the faster is the product."""
    found = {}
    for bare in MODULES:
        check_step(bare, num_envs)
        pair = product(num_envs, make(bare.PRESET)), bare_program(bare, num_envs)
        measure(pair, rounds=5, seconds=0.1 if quick else 0.5)
        check_rewards(*pair)
        ours, by_hand = (program.steps_per_second for program in pair)
        found[bare.PRESET] = {"hopplus": ours, "bare": by_hand, "ratio": times_as_fast(*pair)}
    rows = [[name, *map(short, rates.values()), f">= {NEEDED}"] for name, rates in found.items()]
    heads = ["game", "hopplus", "bare scan", "ratio", "needed"]
    print_table(f"env steps/s at {num_envs} environments", heads, rows)
    return found


def bare_program(bare: ModuleType, num_envs: int) -> Program:
    state = jax.jit(bare.first)(random_words(jax.random.key(0), bare.NUM_RESET, num_envs))
    state = state._replace(time=jnp.arange(num_envs, dtype=jnp.int32) % bare.HORIZON)
    return block_program("bare scan", play_of(bare), state, num_envs=num_envs, agents=bare.PLAYERS)


def play_of(bare: ModuleType) -> Callable[[Any, Array, int], tuple[Any, Record]]:
    """Random legal actions; an episode that ends is followed by a fresh one."""
    over = getattr(bare, "over", lambda state: state.time >= bare.HORIZON)

    def one_step(state: Any, key: Array) -> tuple[Any, Record]:
        words = random_words(key, bare.PLAYERS + bare.NUM_DRAWS + bare.NUM_RESET, state.time.shape[0])
        for_actions, for_step, for_reset = jnp.split(words, [bare.PLAYERS, bare.PLAYERS + bare.NUM_DRAWS])
        seen = bare.views(state)
        actions = draw_actions(bare.legal(state), for_actions)
        after, rewards = bare.step(state, actions, for_step)
        ends = over(after)
        record = Record(seen, actions, rewards, jnp.broadcast_to(ends, rewards.shape))
        return jax.tree.map(lambda new, old: jnp.where(ends, new, old), bare.first(for_reset), after), record

    def play(state: Any, key: Array, num_steps: int) -> tuple[Any, Record]:
        return jax.lax.scan(one_step, state, jax.random.split(key, num_steps))

    return play


def check_step(bare: ModuleType, num_envs: int) -> None:
    """From the same states, actions and draws both must come to the same."""
    game = make(bare.PRESET)

    @jax.jit
    def both(state: Any, key: Array) -> dict[str, tuple[Any, Any]]:
        actions = draw_actions(bare.legal(state), random_words(key, bare.PLAYERS, num_envs))
        keys = jax.random.split(key, num_envs)
        after, rewards = bare.step(state, actions, bare.product_draws(game, keys))
        ours = bare.as_product_state(state)
        our_after, our_rewards = jax.vmap(game.step)(ours, actions.T, key=keys)
        return {
            "views": (bare.views(state), jax.vmap(game.observe)(ours)["planes"]),
            "legal actions": (jnp.stack(bare.legal(state), axis=-1).swapaxes(0, 1), jax.vmap(game.legal)(ours)),
            "rewards": (rewards.T, our_rewards),
            "next states": (bare.as_product_state(after), our_after),
        }

    for name, (by_hand, by_product) in both(bare.crowded(num_envs), jax.random.key(0)).items():
        if not jax.tree.all(jax.tree.map(np.array_equal, by_hand, by_product)):
            raise SystemExit(f"the bare loop of {bare.PRESET} plays another game: its {name} differ")


def check_rewards(ours: Program, by_hand: Program, num_runs: int = 10) -> None:
    """Random play must earn as much by hand as in the product: mean returns at most five standard errors apart."""
    means, errors = [], []
    for program, seats in ((ours, 2), (by_hand, 1)):
        runs = [jnp.sum(program.run()[2], axis=(0, seats)) for _ in range(num_runs)]
        earned = sum(runs[1:], start=runs[0])
        means.append(float(jnp.mean(earned)))
        errors.append(float(jnp.std(earned)) / np.sqrt(earned.size))
    if abs(means[0] - means[1]) > 5 * np.hypot(*errors):
        raise SystemExit(f"random play earns {means[0]:.4f} in the product, but {means[1]:.4f} in the bare loop")
