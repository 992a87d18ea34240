"""A `ParallelEnv` of PettingZoo as a game: `pettingzoo:MODULE.FACTORY`, with settings as in `?N=3&max_cycles=25`.

Python steps the environments beside the compiled program. This is the one exception to the rule that nothing compiled
calls Python: `reset` and `step` are pure callbacks that get the whole batch at once and use NumPy alone.

A state is a pure function of the episode's seed and of the actions so far, and holds both. A pool keeps the
environments in play by seed and actions. Where it has none, because a step is repeated or a run is resumed, it resets
one with the seed and replays the actions. So the same state and actions give the same bits within one process, if the
environment is a function of its seed. hopplus cannot know that: exact resume in another process is not promised.

    actions       Discrete, or MultiDiscrete with up to 64 joint actions. A seat with fewer actions than others has the
                  rest masked. An illegal action acts as the seat's first legal one.
    observation   planes if all seats see 3-d boxes of one shape, else a vector, padded with zeros
    masks         `action_mask`, in the dict of an observation or in the infos
    ends          A truncated agent counts as terminated. An agent that has left sees zeros and never returns.
    roles         The agents' names without their numbers. Namesakes with different spaces have a role each.
    horizon       ?horizon=200, or what the environment says. A longer episode is cut there.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, Shaped, UInt32

from hopplus.core.extensions import load_factory
from hopplus.games.bridges.environments import Environments
from hopplus.games.bridges.imported import read_name
from hopplus.games.fields import Observation
from hopplus.games.game import Game, GameSpec


class ImportedState(eqx.Module):
    """One episode so far, and what its seats see now."""

    seed: UInt32[Array, "*envs"]
    time: Int32[Array, "*envs"]
    history: Shaped[Array, "*envs horizon agents"]
    """The joint actions before `time`; zeros from there on."""
    observation: Shaped[Array, "..."]
    legal: Bool[Array, "*envs agents actions"]
    terminated: Bool[Array, "*envs agents"]


class ImportedGame(Game[ImportedState]):
    """The environments of a pool as a game."""

    environments: Environments = eqx.field(static=True)

    @property
    def spec(self) -> GameSpec:
        return self.environments.spec

    @property
    def is_compiled(self) -> bool:
        return False

    @property
    def is_bit_exact(self) -> bool:
        return False

    def reset(self, *, key: Key[Array, ""]) -> ImportedState:
        return self._first(jnp.bool_(True), key)

    def reset_where(self, over: Bool[Array, ""], state: ImportedState, *, key: Key[Array, ""]) -> ImportedState:
        """Python resets only the environments whose episode is over."""
        return jax.tree.map(partial(jnp.where, over), self._first(over, key), state)

    def _first(self, wanted: Bool[Array, ""], key: Key[Array, ""]) -> ImportedState:
        # 31 bits, because some environments give the seed to generators that take no more
        seed = jax.random.bits(key, dtype=jnp.uint32) >> 1
        pool, spec = self.environments, self.spec
        history = jnp.zeros((spec.horizon, spec.num_agents), jnp.uint8 if spec.num_actions <= 256 else jnp.int32)
        views = jax.pure_callback(pool.reset, pool.shapes(), seed, wanted, vmap_method="broadcast_all")
        return ImportedState(seed, jnp.int32(0), history, *views)

    def step(
        self, state: ImportedState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[ImportedState, Float32[Array, " agents"]]:
        pool, left = self.environments, state.terminated
        chosen = jnp.arange(self.spec.num_actions) == actions[:, None]
        played = jnp.where(jnp.any(chosen & state.legal, axis=-1), actions, jnp.argmax(state.legal, axis=-1))
        played = played.astype(state.history.dtype)
        shapes = (*pool.shapes(), jax.ShapeDtypeStruct(left.shape, jnp.float32))
        arguments = (state.seed, state.time, state.history, played, left)
        *views, rewards = jax.pure_callback(pool.step, shapes, *arguments, vmap_method="broadcast_all")
        over = jnp.all(left)
        history = state.history.at[jnp.where(over, self.spec.horizon, state.time)].set(played, mode="drop")
        return ImportedState(state.seed, state.time + ~over, history, *views), rewards

    def observe(self, state: ImportedState) -> Observation:
        return {"observation": state.observation}

    def legal(self, state: ImportedState) -> Bool[Array, "agents actions"]:
        return state.legal

    def terminated(self, state: ImportedState) -> Bool[Array, " agents"]:
        return state.terminated


def import_env(make: Callable[[], Any], name: str, *, horizon: int | None = None) -> ImportedGame:
    """The game of the environments that `make` makes."""
    return ImportedGame(Environments(make, name, horizon))


@cache
def make_pettingzoo(name: str) -> ImportedGame:
    """The game that MODULE.FACTORY?SETTINGS names; a process has one pool for each name."""
    path, settings = read_name(name)
    horizon = settings.pop("horizon", None)
    if horizon is not None and (not isinstance(horizon, int) or horizon < 1):
        raise ValueError(f"horizon is {horizon!r} in {name!r}; give a whole number of steps")
    factory = load_factory(":".join(path.rsplit(".", 1)), "environment")
    try:
        return import_env(partial(factory, **settings), name, horizon=horizon)
    except TypeError as error:
        raise ValueError(f"{name!r} cannot be made: {error}") from error
