"""Environments of Jumanji (https://instadeepai.github.io/jumanji) as games: `make("jumanji:LevelBasedForaging-v0")`.

    jumanji:RobotWarehouse-v0?num_agents=2&time_limit=100     arguments of the environment, or of its generator

These have several agents: LevelBasedForaging, RobotWarehouse, Cleaner and Connector. A reward that is one number is
every seat's. What all seats see is turned into ego views: in Cleaner the viewer's place is first, in Connector the
viewer's wire is the first. Jumanji keeps a random key in its state, so a step needs none.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PyTree, UInt32

from hopplus.games.bridges.imported import (
    ImportedGame,
    Settings,
    Source,
    check_known,
    horizon_of,
    imported,
    parameters_of,
    read_name,
    version_number,
)
from hopplus.games.fields import TIME, Field, Observation
from hopplus.games.game import GameSpec, ego_order

try:
    import jumanji  # noqa: F401  (it registers the environments)
    from jumanji import registration
except ImportError as error:
    raise ImportError('games of Jumanji need an extra; run: pip install "hopplus[jumanji]"') from error


def make_jumanji(name: str, **settings: Any) -> ImportedGame:
    """The environment of that name as a game. Settings may be in the name, or given here."""
    return imported(JumanjiSource, name, settings)


class JumanjiSource(Source):
    """An environment of Jumanji; the state here is the environment's, and the mask that it gives with its view."""

    is_masked = True

    def __init__(self, text: str):
        name, settings = read_name(text)
        check_known("environment of Jumanji", name, registration.registered_environments())
        check_known("environment of Jumanji with several agents and numbered actions", name, VIEWS)
        wanted = settings.pop("horizon", None)
        if isinstance(wanted, int):
            settings.setdefault("time_limit", wanted)
        self.env = _construct(name, settings)
        view_fields, self.views = VIEWS[name](self.env)
        limit = int(self.env.time_limit)
        # A lookup, because compiled XLA multiplies with the reciprocal of a constant, which rounds otherwise.
        self.shares = np.arange(limit + 1, dtype=np.float32) / np.float32(limit)
        self.spec = GameSpec(
            name=f"jumanji:{text}",
            version=version_number("jumanji"),
            num_agents=int(self.env.num_agents),
            action_names=tuple(f"action_{index}" for index in range(int(self.env.action_spec.num_values[0]))),
            observation=(*view_fields, TIME),
            horizon=horizon_of(name, wanted, limit),
        )

    def reset(self, key: UInt32[Array, " words"]) -> tuple[PyTree[Array], Observation]:
        env_state, timestep = self.env.reset(key)
        return (env_state, timestep.observation.action_mask), self._views(timestep.observation)

    def step(
        self, env_state: PyTree[Array], actions: Int32[Array, " agents"], key: UInt32[Array, " words"]
    ) -> tuple[PyTree[Array], Observation, Float32[Array, " agents"], Bool[Array, " agents"]]:
        inner, timestep = self.env.step(env_state[0], actions)
        rewards, discount = (
            jnp.broadcast_to(jnp.asarray(each, jnp.float32), actions.shape)
            for each in (timestep.reward, timestep.discount)
        )
        done = timestep.last() | (discount == 0)
        return (inner, timestep.observation.action_mask), self._views(timestep.observation), rewards, done

    def legal(self, env_state: PyTree[Array]) -> Bool[Array, "agents actions"]:
        return env_state[1]

    def _views(self, seen: Any) -> Observation:
        share = jnp.asarray(self.shares)[seen.step_count]
        return {**self.views(seen), TIME.name: jnp.full(len(seen.action_mask), share)}


Views = tuple[tuple[Field, ...], Callable[[Any], Observation]]
"""The fields of the views, and the function that makes the views of all seats of an observation."""


def _agents_views(env: Any) -> Views:
    """Every agent's own view, as a vector."""
    shape = env.observation_spec.agents_view.shape
    size = int(np.prod(shape[1:]))
    return (Field("observation", "vector", (size,)),), lambda seen: {
        "observation": seen.agents_view.reshape(shape[0], size).astype(jnp.float32)
    }


def _cleaner_views(env: Any) -> Views:
    """The grid (dirty, clean, wall), and the row and column of each player, the viewer first."""
    order = ego_order(env.num_agents)
    fields = (
        Field("grid", "categories", (env.num_rows, env.num_cols), below=3, layout="shared"),
        Field("places", "vector", (env.num_agents, 2), layout="players"),
    )
    return fields, lambda seen: {
        "grid": jnp.tile(seen.grid.astype(jnp.int32), (env.num_agents, 1, 1)),
        "places": seen.agents_locations.astype(jnp.float32)[order],
    }


def _connector_views(env: Any) -> Views:
    """The grid: 0 is empty, then path, head and target of each player, the viewer's first."""
    num_agents, seats = env.num_agents, np.arange(env.num_agents)[:, None, None]
    field = Field("grid", "categories", (env.grid_size, env.grid_size), below=3 * env.num_agents + 1)

    def views(seen: Any) -> Observation:
        player, part = (seen.grid - 1) // 3, (seen.grid - 1) % 3
        return {"grid": jnp.where(seen.grid > 0, 1 + 3 * ((player - seats) % num_agents) + part, 0)}

    return (field,), views


VIEWS: dict[str, Callable[[Any], Views]] = {
    "Cleaner-v0": _cleaner_views,
    "Connector-v3": _connector_views,
    "LevelBasedForaging-v0": _agents_views,
    "RobotWarehouse-v0": _agents_views,
}


def _construct(name: str, settings: Settings) -> Any:
    """The environment; a setting that is none of its own is one of its generator."""
    env: Any = registration.make(name)
    generator: Any = getattr(env, "_generator", None) or getattr(env, "generator", None)
    of_env = parameters_of(type(env).__init__) - {"generator", "viewer"}
    of_generator = parameters_of(type(generator).__init__)
    for setting in settings:
        check_known(f"setting of {name}", setting, of_env | of_generator)
    sizes = {each: getattr(generator, each, getattr(generator, f"_{each}", None)) for each in of_generator}
    sizes |= {setting: value for setting, value in settings.items() if setting not in of_env}
    own = {setting: value for setting, value in settings.items() if setting in of_env}
    try:
        return registration.make(name, **own, generator=type(generator)(**sizes)) if settings else env
    except (TypeError, AssertionError) as error:
        raise ValueError(f"Jumanji cannot make {name} with {settings}: {error}") from None
