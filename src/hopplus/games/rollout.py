"""Play a game: step by step with fresh episodes started as old ones end, or one whole episode.

Everything is written for one table; `jax.vmap` over tables and keys makes it many.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.coplayers import Memory
from hopplus.games.game import Game, Observation


@runtime_checkable
class JointPolicy(Protocol):
    """All seats of a table together; `coplayers.Lineup` is one."""

    def start(self) -> Memory: ...

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], memory: Memory
    ) -> tuple[Float32[Array, "agents actions"], Memory]: ...


class Table(eqx.Module):
    """One game in progress, between two steps."""

    state: PyTree[Array]
    memory: Memory
    reset_before: Bool[Array, ""]
    """Whether this is the first state of an episode."""


class Step(eqx.Module):
    """One step as it was played."""

    state: PyTree[Array]
    observation: Observation
    legal: Bool[Array, "*batch agents actions"]
    probabilities: Float32[Array, "*batch agents actions"]
    actions: Int32[Array, "*batch agents"]
    rewards: Float32[Array, "*batch agents"]
    reset_before: Bool[Array, "*batch"]
    terminated_after: Bool[Array, "*batch agents"]


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


def sample_actions(probabilities: Float32[Array, "agents actions"], *, key: Key[Array, ""]) -> Int32[Array, " agents"]:
    """Draw one action for each seat, each with a random number of its own.

    The first action whose cumulative probability is above the number, where Gumbel noise would need one per action. The
    sum runs in order, so an action of probability 0 adds nothing and is never the first.
    """
    levels = jax.random.uniform(key, (probabilities.shape[0], 1))
    sums = [probabilities[:, 0]]
    for action in range(1, probabilities.shape[1]):
        sums.append(sums[-1] + probabilities[:, action])
    up_to_here = jnp.stack(sums, axis=-1)
    return jnp.argmax(up_to_here > levels * up_to_here[:, -1:], axis=-1).astype(jnp.int32)


def open_table(game: Game, policy: JointPolicy, *, key: Key[Array, ""]) -> Table:
    """A table with a fresh episode on it."""
    return Table(game.reset(key=key), policy.start(), jnp.bool_(True))


def advance(game: Game, policy: JointPolicy, table: Table, *, key: Key[Array, ""]) -> tuple[Table, Step]:
    """One step of all seats; where that ends the episode, the table is given a fresh one.

    The views are built first, from the state that the loop carries: built last, from a state that is only being
    computed, XLA would compute that anew for every cell of the board.
    """
    act_key, step_key, reset_key = jax.random.split(key, 3)
    observation = game.observe(table.state)
    legal = game.legal(table.state)
    probabilities, memory = policy(observation, legal, table.memory)
    actions = sample_actions(probabilities, key=act_key)
    state, rewards = game.step(table.state, actions, key=step_key)
    terminated = game.terminated(state)
    over = jnp.all(terminated)
    played = Step(table.state, observation, legal, probabilities, actions, rewards, table.reset_before, terminated)
    state = _where(over, game.reset(key=reset_key), state)
    memory = _where(over, policy.start(), memory)
    return Table(state, memory, over), played


def rollout(
    game: Game,
    policy: JointPolicy,
    table: Table,
    num_steps: int,
    *,
    key: Key[Array, ""],
    record: Callable[[Step], Any] = lambda step: step,
) -> tuple[Table, Any]:
    """Many steps; `record` says what of each step is kept, stacked along time. What is not kept costs nothing."""

    def one_step(table: Table, step: Int32[Array, ""]) -> tuple[Table, Any]:
        table, played = advance(game, policy, table, key=jax.random.fold_in(key, step))
        return table, record(played)

    return jax.lax.scan(one_step, table, jnp.arange(num_steps, dtype=jnp.int32))


def play_episode(game: Game, policy: JointPolicy, *, key: Key[Array, ""]) -> Episode:
    """One episode from its first state to its end."""
    reset_key, play_key = jax.random.split(key)
    first = game.reset(key=reset_key)

    def one_step(carry, step):
        state, memory = carry
        act_key, step_key = jax.random.split(jax.random.fold_in(play_key, step))
        probabilities, memory = policy(game.observe(state), game.legal(state), memory)
        actions = sample_actions(probabilities, key=act_key)
        state, rewards = game.step(state, actions, key=step_key)
        return (state, memory), (state, actions, rewards, jnp.all(game.terminated(state)))

    steps = jnp.arange(game.spec.horizon, dtype=jnp.int32)
    _, (states, actions, rewards, over) = jax.lax.scan(one_step, (first, policy.start()), steps)
    states = jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest]), first, states)
    return Episode(states, actions, rewards, jnp.argmax(over).astype(jnp.int32) + 1)


def _where(condition: Bool[Array, ""], new: PyTree[Array], old: PyTree[Array]) -> PyTree[Array]:
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), new, old)
