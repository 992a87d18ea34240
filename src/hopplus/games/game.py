"""The Game protocol: a Markov game as pure functions over an immutable state.

A game is written and typed for one environment; `jax.vmap` runs thousands, `jax.jit` makes it fast. Seats are an array
axis, called `agents`, in every signature; nothing here or in a game may depend on a seat's number.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

State = TypeVar("State")

NO_ACTION = -1
"""The last action of a seat that has not acted, or has left the game."""


@dataclass(frozen=True)
class Plane:
    """One layer of the board, and what a world model may assume about it."""

    name: str
    kind: Literal["walker", "set", "fixed"]
    """walker: a player, in one cell or gone for ever; set: each cell on or off; fixed: constant in an episode."""


@dataclass(frozen=True)
class GameSpec:
    """The static description of a game."""

    name: str
    version: int
    """Increased whenever the rules change, so that an old run is never resumed under new rules."""
    num_agents: int
    action_names: tuple[str, ...]
    stay: int | None
    """The action that an illegal action acts as; None if every action is always legal."""
    height: int
    width: int
    planes: tuple[Plane, ...]
    """In the ego's order: the viewer, the other players in seat order after it, then the shared planes."""
    reward_support: tuple[float, ...]
    """Every reward that one seat can get in one step, ascending."""
    horizon: int
    straight_paths: bool = False
    """True if no wall can make a shortest path longer than the Manhattan distance."""
    events: tuple[tuple[str, str], ...] = ()
    """(name, action): an event is a rewarded use of that action; it is counted for each seat and episode."""

    @property
    def num_actions(self) -> int:
        return len(self.action_names)

    @property
    def board(self) -> tuple[Any, ...]:
        """The parts of the spec that must be equal for networks of one game to fit another."""
        return self.planes, self.height, self.width, self.action_names

    @cached_property
    def event_actions(self) -> np.ndarray:
        return np.array([self.action_names.index(action) for _, action in self.events], np.int32)

    @cached_property
    def num_walkers(self) -> int:
        return sum(plane.kind == "walker" for plane in self.planes)

    def plane_index(self, name: str) -> int:
        return [plane.name for plane in self.planes].index(name)

    def has_plane(self, name: str) -> bool:
        return any(plane.name == name for plane in self.planes)


class Observation(eqx.Module):
    """The observation of one seat; with a leading `agents` axis, of every seat."""

    planes: UInt8[Array, "*agents height width planes"]
    time: Float32[Array, "*agents"]
    """The share of the horizon that has passed."""
    last_actions: Int32[Array, "*agents players"]
    """The action of each player in the step before, in the ego's order; NO_ACTION if there was none."""


class Game(eqx.Module, Generic[State]):
    """The base class of games; `hopplus.games.contract.check` tests a subclass."""

    @property
    @abstractmethod
    def spec(self) -> GameSpec:
        """The static description of the game."""

    @abstractmethod
    def reset(self, *, key: Key[Array, ""]) -> State:
        """The first state of an episode."""

    @abstractmethod
    def step(
        self, state: State, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[State, Float32[Array, " agents"]]:
        """The next state, and the reward of each seat."""

    @abstractmethod
    def board(self, state: State) -> UInt8[Array, "height width planes"]:
        """The planes with the players in seat order: one board for all seats."""

    @abstractmethod
    def observe(self, state: State) -> Observation:
        """The ego views of all seats, stacked; `ego_views` builds them from `board`."""

    @abstractmethod
    def legal(self, state: State) -> Bool[Array, "agents actions"]:
        """Which actions each seat may take."""

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        """Which actions the viewer may take, from its ego view alone: for co-players and for imagined boards.

        The default allows every action: predictions of co-players are then less sharp, but not wrong.
        """
        return jnp.ones(self.spec.num_actions, bool)

    def from_view(self, observation: Observation) -> State:
        """The state as the viewer sees it, with the viewer in the first seat: the root of a plan.

        For a fully observed game. Entities that have left may be at any position.
        """
        raise NotImplementedError(f"{self.spec.name} has no `from_view`; write it to plan in this game")

    @abstractmethod
    def terminated(self, state: State) -> Bool[Array, " agents"]:
        """Which seats are done for this episode, for good; the episode is over when all are."""

    @abstractmethod
    def permute(self, state: State, order: Int32[Array, " agents"]) -> State:
        """The state with the seats relabelled: new seat i is old seat order[i]."""


def steps_passed(time: Float32[Array, ""], horizon: int) -> Int32[Array, ""]:
    """The number of steps played before, from the time in a view."""
    return jnp.round(time * horizon).astype(jnp.int32)


def as_played(
    legal: Bool[Array, "agents actions"], actions: Int32[Array, " agents"], *, stay: int
) -> Int32[Array, " agents"]:
    """The effective action of each seat: an illegal or nonexistent action becomes `stay`."""
    chosen = jnp.arange(legal.shape[-1]) == actions[:, None]
    return jnp.where(jnp.any(chosen & legal, axis=-1), actions, stay)


def ego_order(num_agents: int) -> np.ndarray:
    """Row i: viewer i, then the other seats in seat order after it."""
    seats = np.arange(num_agents)
    return (seats[:, None] + seats[None, :]) % num_agents


def view_of(spec: GameSpec, observation: Observation, offset: int) -> Observation:
    """The view of the co-player `offset` seats after the viewer, as far as the viewer knows it."""
    walkers = jnp.roll(observation.planes[..., : spec.num_walkers], -offset, axis=-1)
    return Observation(
        planes=jnp.concatenate([walkers, observation.planes[..., spec.num_walkers :]], axis=-1),
        time=observation.time,
        last_actions=jnp.roll(observation.last_actions, -offset, axis=-1),
    )


def views_of_others(spec: GameSpec, observation: Observation) -> Observation:
    """The views of all co-players in seat order after the viewer, stacked on an axis `others`."""
    views = [view_of(spec, observation, offset) for offset in range(1, spec.num_agents)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *views)


def ego_views(
    spec: GameSpec,
    board: UInt8[Array, "height width planes"],
    present: Bool[Array, " agents"],
    time: Int32[Array, ""],
    last_actions: Int32[Array, " agents"],
) -> Observation:
    """The view of each seat, from the one board. The view of a seat that has left is blank."""
    order = ego_order(spec.num_agents)
    # A lookup, because compiled XLA divides by a constant by multiplying with its reciprocal, which rounds otherwise.
    shares = np.arange(spec.horizon + 1, dtype=np.float32) / np.float32(spec.horizon)
    return Observation(
        planes=_rotate_planes(spec, board, present),
        time=jnp.where(present, jnp.asarray(shares)[time], 0.0),
        last_actions=jnp.where(present[:, None], last_actions[order], NO_ACTION),
    )


def _rotate_planes(
    spec: GameSpec, board: UInt8[Array, "height width planes"], present: Bool[Array, " agents"]
) -> UInt8[Array, "agents height width planes"]:
    """The board once per viewer, the walkers in the viewer's order.

    Eight planes are packed into the bits of one byte, and each view picks its bits with a constant mask. XLA turns this
    into a streaming loop; a gather along the last axis, which is equivalent, runs element by element on a CPU.
    """
    num_planes = len(spec.planes)
    num_words = -(-num_planes // 8)
    source = np.tile(np.arange(num_planes), (spec.num_agents, 1))
    source[:, : spec.num_walkers] = ego_order(spec.num_agents)[:, : spec.num_walkers]
    word_of, bit_of = source // 8, source % 8

    bits = board << (np.arange(num_planes, dtype=np.uint8) % 8)
    views = jnp.zeros((spec.num_agents, spec.height, spec.width, num_planes), bool)
    for word in range(num_words):
        packed = jnp.sum(bits[..., 8 * word : 8 * word + 8], axis=-1, dtype=jnp.uint8)
        seen = jnp.where(present[:, None, None], packed, jnp.uint8(0))
        mask = np.where(word_of == word, 1 << bit_of, 0).astype(np.uint8)
        views |= (seen[..., None] & mask[:, None, None, :]) != 0
    return views.astype(jnp.uint8)
