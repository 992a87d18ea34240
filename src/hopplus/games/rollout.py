"""Play a game: step by step with automatic resets, or one whole episode.

Everything is written for one environment; `jax.vmap` over environments and keys runs many.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree, UInt32

from hopplus.games.board import random_words
from hopplus.games.chance import with_chances
from hopplus.games.coplayers import PolicyState
from hopplus.games.fields import Observation
from hopplus.games.game import Game


@runtime_checkable
class JointPolicy(Protocol):
    """The policy of all seats of an environment; `coplayers.Lineup` is one."""

    def init(self) -> PolicyState: ...

    def next_episode(self, state: PolicyState) -> PolicyState: ...

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], state: PolicyState
    ) -> tuple[Float32[Array, "agents actions"], PolicyState]: ...


class EnvState(eqx.Module):
    """One environment between two steps."""

    state: PyTree[Array]
    policy_state: PolicyState
    reset_before: Bool[Array, "*envs"]
    """Whether this is the first state of an episode."""


class Step(eqx.Module):
    """One step of an environment."""

    state: PyTree[Array]
    observation: Observation
    legal: Bool[Array, "*batch agents actions"]
    probabilities: Float32[Array, "*batch agents actions"]
    actions: Int32[Array, "*batch agents"]
    rewards: Float32[Array, "*batch agents"]
    after: PyTree[Array]
    """The next state, before a reset."""
    reset_before: Bool[Array, "*batch"]
    terminated_after: Bool[Array, "*batch agents"]
    policy_state: PolicyState
    """The states of the policies after they acted, before a reset."""


class Episode(eqx.Module):
    """One whole episode. Arrays are as long as the horizon; entries after `num_steps` are no data."""

    states: PyTree[Array]
    """One more than steps: the last is the state after the last step."""
    actions: Int32[Array, "*batch steps agents"]
    rewards: Float32[Array, "*batch steps agents"]
    num_steps: Int32[Array, "*batch"]

    @property
    def returns(self) -> Float32[Array, "*batch agents"]:
        return jnp.sum(self.rewards, axis=-2)


def sample_actions(
    probabilities: Float32[Array, "agents actions"], *, uniforms: Float32[Array, " agents"]
) -> Int32[Array, " agents"]:
    """Sample one action for each seat with its own random number from [0, 1).

    It is the first action whose cumulative probability is above the number; Gumbel noise would need a number per
    action. The sum runs in order, so an action of probability 0 is never chosen.
    """
    sums = [probabilities[:, 0]]
    for action in range(1, probabilities.shape[1]):
        sums.append(sums[-1] + probabilities[:, action])
    passed = jnp.stack(sums[:-1], axis=-1) <= (uniforms * sums[-1])[:, None]
    return jnp.sum(passed, axis=-1, dtype=jnp.int32)


def random_uniforms(
    num_steps: int, num_agents: int, *, key: Key[Array, ""]
) -> Float32[Array, "{num_steps} {num_agents}"]:
    """Random numbers from [0, 1) that actions are sampled with, 23 bits each, so that none is rounded to 1."""
    return uniforms_from_words(random_words(num_steps * num_agents, key=key)).reshape(num_steps, num_agents)


def uniforms_from_words(words: UInt32[Array, "*shape"]) -> Float32[Array, "*shape"]:
    return (words >> 9).astype(jnp.float32) * 2.0**-23


def init_env(game: Game, policy: JointPolicy, *, key: Key[Array, ""]) -> EnvState:
    """An environment at the start of an episode."""
    return EnvState(game.reset(key=key), with_chances(policy.init(), key=key), jnp.bool_(True))


def env_step(
    game: Game,
    policy: JointPolicy,
    env: EnvState,
    *,
    uniforms: Float32[Array, " agents"],
    step_key: Key[Array, ""],
    reset_key: Key[Array, ""],
    is_over: Callable[[Bool[Array, " agents"]], Bool[Array, ""]] = jnp.all,
) -> tuple[EnvState, Step]:
    """One step of all seats; the environment is reset if the episode is over.

    `is_over` decides that from the seats that have terminated.

    The views are built first, from the state that the loop carries. Built last, from a state that is being computed,
    XLA would compute that state again for every cell of the board.
    """
    observation = game.observe(env.state)
    legal = game.legal(env.state)
    probabilities, policy_state = policy(observation, legal, env.policy_state)
    actions = sample_actions(probabilities, uniforms=uniforms)
    state, rewards = game.step(env.state, actions, key=step_key)
    terminated = game.terminated(state)
    over = is_over(terminated)
    played = Step(
        state=env.state,
        observation=observation,
        legal=legal,
        probabilities=probabilities,
        actions=actions,
        rewards=rewards,
        after=state,
        reset_before=env.reset_before,
        terminated_after=terminated,
        policy_state=policy_state,
    )
    state = game.reset_where(over, state, key=reset_key)
    policy_state = _where(over, policy.next_episode(policy_state), policy_state)
    return EnvState(state, policy_state, over), played


def rollout(
    game: Game,
    policy: JointPolicy,
    env: EnvState,
    num_steps: int,
    *,
    key: Key[Array, ""],
    uniforms: Float32[Array, "{num_steps} agents"] | None = None,
    record: Callable[[Step], Any] = lambda step: step,
) -> tuple[EnvState, Any]:
    """Play many steps; `record` selects the part of each step that is stacked along time. Other parts cost nothing.

    `uniforms` are the numbers that actions are sampled with, for seats that have random streams of their own.
    """
    act_key, step_key, reset_key = jax.random.split(key, 3)

    def one_step(env: EnvState, random: tuple[Array, Array, Array]) -> tuple[EnvState, Any]:
        uniforms, for_step, for_reset = random
        keys = {"step_key": jax.random.wrap_key_data(for_step), "reset_key": jax.random.wrap_key_data(for_reset)}
        env, played = env_step(game, policy, env, uniforms=uniforms, **keys)
        return env, record(played)

    if uniforms is None:
        uniforms = random_uniforms(num_steps, game.spec.num_agents, key=act_key)
    return jax.lax.scan(one_step, env, (uniforms, _key_data(step_key, num_steps), _key_data(reset_key, num_steps)))


def play_episode(game: Game, policy: JointPolicy, *, key: Key[Array, ""]) -> Episode:
    """Play one episode from its first state to its end."""
    first_key, act_key, step_key = jax.random.split(key, 3)
    horizon = game.spec.horizon
    first = game.reset(key=first_key)

    def one_step(carry, step):
        state, policy_state = carry
        uniforms, for_step = step
        probabilities, policy_state = policy(game.observe(state), game.legal(state), policy_state)
        actions = sample_actions(probabilities, uniforms=uniforms)
        state, rewards = game.step(state, actions, key=jax.random.wrap_key_data(for_step))
        return (state, policy_state), (state, actions, rewards, jnp.all(game.terminated(state)))

    steps = (random_uniforms(horizon, game.spec.num_agents, key=act_key), _key_data(step_key, horizon))
    policy_state = with_chances(policy.init(), key=first_key)
    _, (states, actions, rewards, over) = jax.lax.scan(one_step, (first, policy_state), steps)
    states = jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest]), first, states)
    return Episode(states, actions, rewards, jnp.argmax(over).astype(jnp.int32) + 1)


def _key_data(key: Key[Array, ""], num_steps: int) -> UInt32[Array, "{num_steps} words"]:
    """A key for each step, as plain numbers: JAX's checker mistakes a mapped loop over keys for their reuse."""
    return jax.random.key_data(jax.random.split(key, num_steps))


def _where(condition: Bool[Array, ""], new: PyTree[Array], old: PyTree[Array]) -> PyTree[Array]:
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), new, old)
