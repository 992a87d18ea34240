"""What the games from other libraries share: names with settings, the state, padding, roles and refusals.

A name may have settings: `NAME?setting=value&setting=value`. A value is a Python literal, or otherwise a string.
"""

import ast
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.metadata import version
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree, UInt32

from hopplus.games.fields import Field, Observation
from hopplus.games.game import Game, GameSpec, as_played

Settings = dict[str, Any]


class Source(ABC):
    """An environment of another library in the form of a game. Its random keys are untyped, as those libraries use."""

    spec: GameSpec
    is_masked: bool
    """Whether an action can be illegal."""

    @abstractmethod
    def __init__(self, text: str):
        """Make the environment of that name, which may have settings."""

    @abstractmethod
    def reset(self, key: UInt32[Array, " words"]) -> tuple[PyTree[Array], Observation]:
        """The environment's first state, and the views of all seats, stacked."""

    @abstractmethod
    def step(
        self, env_state: PyTree[Array], actions: Int32[Array, " agents"], key: UInt32[Array, " words"]
    ) -> tuple[PyTree[Array], Observation, Float32[Array, " agents"], Bool[Array, " agents"]]:
        """The next state without a reset, the views, the rewards, and which seats are done."""

    def legal(self, env_state: PyTree[Array]) -> Bool[Array, "agents actions"]:
        """Which actions each seat may take."""
        return jnp.ones((self.spec.num_agents, self.spec.num_actions), bool)


class ImportedState(eqx.Module):
    """A moment of an imported game. The views are kept, because the environment gives them with every step."""

    env_state: PyTree[Array]
    views: Observation
    gone: Bool[Array, " agents"]
    """Which seats are done."""
    time: Int32[Array, ""]


class ImportedGame(Game[ImportedState]):
    """An environment of another library as a game. Games of equal names and settings are equal.

    A seat that is done gets no reward, also where its environment goes on to pay it. An illegal action acts as the
    seat's first legal one.
    """

    kind: type[Source] = eqx.field(static=True)
    text: str = eqx.field(static=True)
    """The name of the environment with its settings."""

    @property
    def source(self) -> Source:
        """The environment of that name; made once in a process."""
        return _source(self.kind, self.text)

    @property
    def spec(self) -> GameSpec:
        return self.source.spec

    @property
    def is_bit_exact(self) -> bool:
        return False

    def reset(self, *, key: Key[Array, ""]) -> ImportedState:
        env_state, views = self.source.reset(jax.random.key_data(key))
        none = jnp.zeros(self.spec.num_agents, bool)
        return ImportedState(_strong(env_state), _strong(views), none, jnp.int32(0))

    def step(
        self, state: ImportedState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[ImportedState, Float32[Array, " agents"]]:
        source = self.source
        if source.is_masked:
            actions = as_played(self.legal(state), actions, stay=None)
        env_state, views, rewards, done = source.step(state.env_state, actions, jax.random.key_data(key))
        time = state.time + 1
        gone = state.gone | done | (time >= source.spec.horizon)
        return ImportedState(_strong(env_state), _strong(views), gone, time), jnp.where(state.gone, 0.0, rewards)

    def observe(self, state: ImportedState) -> Observation:
        return state.views

    def terminated(self, state: ImportedState) -> Bool[Array, " agents"]:
        return state.gone

    def legal(self, state: ImportedState) -> Bool[Array, "agents actions"]:
        return self.source.legal(state.env_state)


def imported(kind: type[Source], name: str, settings: Settings) -> ImportedGame:
    """The environment of that name as a game. Settings may be in the name, or given here."""
    game = ImportedGame(kind, write_name(name, settings))
    _ = game.source  # raises here if there is no such environment
    return game


@cache
def _source(kind: type[Source], text: str) -> Source:
    # The first use can be inside a program that is being compiled, whose arrays must not be kept.
    with jax.ensure_compile_time_eval():
        return kind(text)


def _strong(tree: PyTree[Array]) -> PyTree[Array]:
    """The tree with every leaf of its own dtype for good. A weak type can change in a step, which a loop refuses."""
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, jnp.result_type(leaf)), tree)


def read_name(text: str) -> tuple[str, Settings]:
    """The name of an environment and its settings."""
    name, _, rest = text.partition("?")
    settings: Settings = {}
    for part in filter(None, rest.split("&")):
        setting, equals, value = part.partition("=")
        if not setting or not equals:
            raise ValueError(f"cannot read {part!r} in {text!r}; give settings as in NAME?setting=value&other=value")
        settings[setting] = _read_value(value)
    return name, settings


def write_name(text: str, settings: Settings) -> str:
    """One text for a name and its settings, in one order; those of the text and the others together."""
    name, of_text = read_name(text)
    settings = {**of_text, **settings}
    if not settings:
        return name
    written = f"{name}?" + "&".join(f"{setting}={_write_value(settings[setting])}" for setting in sorted(settings))
    try:
        is_same = read_name(written) == (name, settings)
    except ValueError:
        is_same = False
    if not is_same:
        raise ValueError(f"the settings of {name} are {settings}; give numbers, booleans, words, or lists of these")
    return written


def _read_value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _write_value(value: Any) -> str:
    return value if isinstance(value, str) and _read_value(value) == value else repr(value)


def check_known(what: str, name: Any, known: Iterable[str]) -> None:
    """Raise a ValueError that lists close matches if the name is not among the known ones."""
    names = sorted(known)
    if name not in names:
        folded = {other.casefold(): other for other in names}
        close = [folded[match] for match in get_close_matches(str(name).casefold(), folded, n=5, cutoff=0.5)]
        raise ValueError(f"there is no {what} called {name!r}; give one of {', '.join(close or names)}")


def parameters_of(*functions: Callable[..., Any]) -> set[str]:
    """The names of the arguments that the functions take."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [parameter for each in functions for parameter in inspect.signature(each).parameters.values()]
    return {parameter.name for parameter in parameters if parameter.kind in named} - {"self"}


def horizon_of(name: str, wanted: Any, own: int | None) -> int:
    """The most steps of an episode: what is wanted, or else the environment's own limit."""
    if wanted is None and own is None:
        raise ValueError(f"{name} has no limit of its own; give one, as in {name}?horizon=100")
    if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
        raise ValueError(f"the horizon of {name} is {wanted!r}; give a whole number of steps, 1 or more")
    if wanted is not None and own is not None and own < wanted:
        raise ValueError(f"the horizon of {name} is {wanted}, but it ends after {own} steps; give {own} or less")
    return min(steps for steps in (wanted, own) if steps is not None)


def version_number(library: str) -> int:
    """The version of a library as one number, so that a run is not resumed with other rules."""
    major, minor, patch = (re.findall(r"\d+", version(library)) + ["0"] * 3)[:3]
    return 10_000 * int(major) + 100 * int(minor) + int(patch)


def fields_of(views: Sequence[dict[str, Any]]) -> tuple[Field, ...]:
    """The fields of the seats' views: an image stays one, everything else is a vector as long as the longest."""
    fields = []
    for name in views[0]:
        shapes = {view[name].shape for view in views}
        if len(shapes) == 1 and len(views[0][name].shape) == 3:
            fields.append(Field(name, "planes", views[0][name].shape))
        else:
            fields.append(Field(name, "vector", (max(view[name].size for view in views),)))
    return tuple(fields)


def stacked(fields: Collection[Field], views: Sequence[dict[str, Array]]) -> Observation:
    """The views of all seats as one array for each field; shorter vectors are filled up with zeros."""
    return {field.name: jnp.stack([_fitted(field, view[field.name]) for view in views]) for field in fields}


def _fitted(field: Field, array: Array) -> Array:
    if field.kind == "planes":
        return array
    flat = array.reshape(-1).astype(jnp.float32)
    return jnp.pad(flat, (0, field.shape[0] - flat.size))
