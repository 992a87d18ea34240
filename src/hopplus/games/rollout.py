"""Play a game: step by step with fresh episodes started as old ones end, or one whole episode.

Everything is written for one table; `jax.vmap` over tables and keys makes it many.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree, UInt32

from hopplus.games.board import random_words
from hopplus.games.coplayers import Memory
from hopplus.games.game import Game, GameSpec, Observation


@runtime_checkable
class JointPolicy(Protocol):
    """All seats of a table together; `coplayers.Lineup` is one."""

    def start(self) -> Memory: ...

    def again(self, memory: Memory) -> Memory: ...

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], memory: Memory
    ) -> tuple[Float32[Array, "agents actions"], Memory]: ...


class Table(eqx.Module):
    """One game in progress, between two steps."""

    state: PyTree[Array]
    memory: Memory
    reset_before: Bool[Array, "*tables"]
    """Whether this is the first state of an episode."""


class Step(eqx.Module):
    """One step as it was played."""

    state: PyTree[Array]
    observation: Observation
    legal: Bool[Array, "*batch agents actions"]
    probabilities: Float32[Array, "*batch agents actions"]
    actions: Int32[Array, "*batch agents"]
    rewards: Float32[Array, "*batch agents"]
    after: PyTree[Array]
    """The state that it led to, before a fresh episode, if one began."""
    reset_before: Bool[Array, "*batch"]
    terminated_after: Bool[Array, "*batch agents"]
    memory: Memory
    """What the players remembered after they had seen the state and before a fresh episode, if one began."""


class Episode(eqx.Module):
    """One whole episode. Arrays are as long as the horizon; what lies beyond `num_steps` is no data."""

    states: PyTree[Array]
    """One more than there are steps: the last is the state after the last step."""
    actions: Int32[Array, "*batch steps agents"]
    rewards: Float32[Array, "*batch steps agents"]
    num_steps: Int32[Array, "*batch"]

    @property
    def returns(self) -> Float32[Array, "*batch agents"]:
        return jnp.sum(self.rewards, axis=-2)


def sample_actions(
    probabilities: Float32[Array, "agents actions"], *, levels: Float32[Array, " agents"]
) -> Int32[Array, " agents"]:
    """Draw one action for each seat with its own random number from [0, 1).

    The first action whose cumulative probability is above the number, where Gumbel noise would need one per action. The
    sum runs in order, so an action of probability 0 adds nothing and is never the first.
    """
    sums = [probabilities[:, 0]]
    for action in range(1, probabilities.shape[1]):
        sums.append(sums[-1] + probabilities[:, action])
    passed = jnp.stack(sums[:-1], axis=-1) <= (levels * sums[-1])[:, None]
    return jnp.sum(passed, axis=-1, dtype=jnp.int32)


def random_levels(
    num_steps: int, num_agents: int, *, key: Key[Array, ""]
) -> Float32[Array, "{num_steps} {num_agents}"]:
    """Numbers from [0, 1) to draw actions with, 23 bits each, so that none is rounded to 1."""
    return levels_from_words(random_words(num_steps * num_agents, key=key)).reshape(num_steps, num_agents)


def levels_from_words(words: UInt32[Array, "*shape"]) -> Float32[Array, "*shape"]:
    return (words >> 9).astype(jnp.float32) * 2.0**-23


def paid_deeds(
    spec: GameSpec,
    legal: Bool[Array, "agents actions"],
    actions: Int32[Array, " agents"],
    rewards: Float32[Array, " agents"],
) -> Bool[Array, "deeds agents"]:
    """Which of the actions that the game counts each seat took in one step, legally and paid."""
    wanted = spec.deed_actions
    return ((actions[:, None] == wanted) & legal[:, wanted] & (rewards > 0)[:, None]).T


def open_table(game: Game, policy: JointPolicy, *, key: Key[Array, ""]) -> Table:
    """A table with a fresh episode on it."""
    return Table(game.reset(key=key), policy.start(), jnp.bool_(True))


def advance(
    game: Game,
    policy: JointPolicy,
    table: Table,
    *,
    levels: Float32[Array, " agents"],
    step_key: Key[Array, ""],
    reset_key: Key[Array, ""],
    is_over: Callable[[Bool[Array, " agents"]], Bool[Array, ""]] = jnp.all,
) -> tuple[Table, Step]:
    """One step of all seats; where that ends the episode, the table is given a fresh one.

    `is_over` tells from who has left whether the episode is over.

    The views are built first, from the state that the loop carries: built last, from a state that is only being
    computed, XLA would compute that anew for every cell of the board.
    """
    observation = game.observe(table.state)
    legal = game.legal(table.state)
    probabilities, memory = policy(observation, legal, table.memory)
    actions = sample_actions(probabilities, levels=levels)
    state, rewards = game.step(table.state, actions, key=step_key)
    terminated = game.terminated(state)
    over = is_over(terminated)
    played = Step(
        state=table.state,
        observation=observation,
        legal=legal,
        probabilities=probabilities,
        actions=actions,
        rewards=rewards,
        after=state,
        reset_before=table.reset_before,
        terminated_after=terminated,
        memory=memory,
    )
    state = _where(over, game.reset(key=reset_key), state)
    memory = _where(over, policy.again(memory), memory)
    return Table(state, memory, over), played


def rollout(
    game: Game,
    policy: JointPolicy,
    table: Table,
    num_steps: int,
    *,
    key: Key[Array, ""],
    levels: Float32[Array, "{num_steps} agents"] | None = None,
    record: Callable[[Step], Any] = lambda step: step,
) -> tuple[Table, Any]:
    """Many steps; `record` says what of each step is kept, stacked along time. What is not kept costs nothing.

    `levels` are the numbers that actions are drawn with, for seats that have random streams of their own.
    """
    act_key, step_key, reset_key = jax.random.split(key, 3)

    def one_step(table: Table, chance: tuple[Array, Array, Array]) -> tuple[Table, Any]:
        levels, for_step, for_reset = chance
        keys = {"step_key": jax.random.wrap_key_data(for_step), "reset_key": jax.random.wrap_key_data(for_reset)}
        table, played = advance(game, policy, table, levels=levels, **keys)
        return table, record(played)

    if levels is None:
        levels = random_levels(num_steps, game.spec.num_agents, key=act_key)
    return jax.lax.scan(one_step, table, (levels, _key_data(step_key, num_steps), _key_data(reset_key, num_steps)))


def play_episode(game: Game, policy: JointPolicy, *, key: Key[Array, ""]) -> Episode:
    """One episode from its first state to its end."""
    first_key, act_key, step_key = jax.random.split(key, 3)
    horizon = game.spec.horizon
    first = game.reset(key=first_key)

    def one_step(carry, step):
        state, memory = carry
        levels, for_step = step
        probabilities, memory = policy(game.observe(state), game.legal(state), memory)
        actions = sample_actions(probabilities, levels=levels)
        state, rewards = game.step(state, actions, key=jax.random.wrap_key_data(for_step))
        return (state, memory), (state, actions, rewards, jnp.all(game.terminated(state)))

    steps = (random_levels(horizon, game.spec.num_agents, key=act_key), _key_data(step_key, horizon))
    _, (states, actions, rewards, over) = jax.lax.scan(one_step, (first, policy.start()), steps)
    states = jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest]), first, states)
    return Episode(states, actions, rewards, jnp.argmax(over).astype(jnp.int32) + 1)


def _key_data(key: Key[Array, ""], num_steps: int) -> UInt32[Array, "{num_steps} words"]:
    """A key for each step, as plain numbers: JAX's reuse checker takes a mapped loop over keys for their reuse."""
    return jax.random.key_data(jax.random.split(key, num_steps))


def _where(condition: Bool[Array, ""], new: PyTree[Array], old: PyTree[Array]) -> PyTree[Array]:
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), new, old)
