"""Observations as named fields of declared kinds, and the one function through which every network reads them.

    planes       [height, width, channels]: layers of a board or an image
    vector       floats
    categories   integers below a number; a negative one stands for none

An observation is a dict with one array for each field that the game's spec declares.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

MOST_SUMMED = 255
"""A view holds bytes."""
Observation = dict[str, Array]
"""The observation of one seat by field name; with a leading `agents` axis in every array, of every seat."""


@dataclass(frozen=True)
class Plane:
    """One layer of the board, and what a world model may assume about it."""

    name: str
    kind: Literal["walker", "set", "category", "counter", "fixed", "sum"]
    """walker: a player, in one cell or gone. set: each cell on or off. category: on where a player stands that has this
    trait. counter: a number, shown by as many cells, in reading order. fixed: constant in an episode. sum: the sum of
    the other players' planes, in views only."""
    per_player: bool = False
    """One of as many planes as there are players, such as the coins of each; they follow the walkers, in the order of
    the players. Walkers are always per player."""
    one_cell: bool = False
    """Of a set: whether it is always on in exactly one cell, such as the coin of a player."""
    random: bool = False
    """Whether the game draws at random what comes next on it, such as apples that grow. A learned world is then wrong
    only where it had ruled out what came."""
    returns: bool = False
    """Of a walker: whether it may be gone for a while and come back. Otherwise it is gone for ever."""
    reached: Literal["on", "entered", "beside"] = "on"
    """Of a set: from where players take what is on a cell. on: they stood on it before the step. entered: they are on
    it after the step. beside: they stand on a neighbouring cell. Pictures and the world of cells need it."""


@dataclass(frozen=True)
class Field:
    """One named array of an observation."""

    name: str
    kind: Literal["planes", "vector", "categories"]
    shape: tuple[int, ...]
    """Without the axis of seats."""
    below: int = 0
    """Of categories: every entry is below this number."""
    layout: Literal["own", "shared", "players", "summed"] = "own"
    """own: only this seat sees it. shared: every seat sees the same. players: one entry for each player, the viewer
    first and then the other seats in seat order; what follows these entries is shared. The entries of `planes` are the
    channels, otherwise they are along the first axis. summed: of the planes of a board, one entry of the viewer and the
    sum of the others'; what follows is shared. If no field is `own`, a seat knows its co-players' views."""
    planes: tuple[Plane, ...] = ()
    """What each channel is, for the planes of a board. Without it, planes are an image."""
    board: tuple[Plane, ...] = ()
    """The planes of `Game.board` where the views sum the others; empty where the views show all of them."""

    def num_blocks(self, num_agents: int) -> int:
        """How many entries each player has, if the layout is `players`: a block of them follows another."""
        return 1 + sum(plane.per_player for plane in self.board or self.planes) // num_agents

    @property
    def num_features(self) -> int:
        """How many numbers a network reads of it."""
        return prod(self.shape) * (self.below if self.kind == "categories" else 1)


TIME = Field("time", "vector", (), layout="shared")
"""The share of the horizon that has passed."""


def last_actions_field(num_agents: int, num_actions: int) -> Field:
    """The action of each player in the step before, the viewer first; NO_ACTION if there was none."""
    return Field("last_actions", "categories", (num_agents,), below=num_actions, layout="players")


OthersInView = Literal["planes", "summed"]
"""How a view shows the other players: each on a plane of its own, or all summed in one."""


def board_fields(
    planes: tuple[Plane, ...],
    height: int,
    width: int,
    num_agents: int,
    num_actions: int,
    others: OthersInView = "planes",
) -> tuple[Field, ...]:
    """The fields of a fully observed board: its planes, the time, and the last joint action.

    The planes are in the ego's order: the viewer, the other players in seat order after it, then the shared planes.
    With the others summed, a view does not grow with the number of players. It does not tell which of the others is
    where, so it does not show what each of them did last.
    """
    if others == "planes":
        board = Field("planes", "planes", (height, width, len(planes)), layout="players", planes=planes)
        return board, TIME, last_actions_field(num_agents, num_actions)
    seen = summed_planes(planes, num_agents)
    return Field("planes", "planes", (height, width, len(seen)), layout="summed", planes=seen, board=planes), TIME


def summed_planes(planes: tuple[Plane, ...], num_agents: int) -> tuple[Plane, ...]:
    """The planes of a view in which the others are summed: for each thing that players have, the own and the sum."""
    walkers = [plane for plane in planes if plane.kind == "walker"]
    own = [plane for plane in planes if plane.kind == "walker" or plane.per_player]
    if len(walkers) != num_agents or any(plane.kind not in ("walker", "counter") for plane in own):
        raise ValueError("the others can be summed where each player has a place, and else only counters of its own")
    if num_agents > MOST_SUMMED:
        raise ValueError(f"{num_agents} players cannot be summed in a plane of bytes; give {MOST_SUMMED} at most")
    seen = []
    for first in own[::num_agents]:
        thing = first.name.rpartition("_")[0]
        seen += [first, Plane("others" if first.kind == "walker" else f"{thing}_others", "sum")]
    return (*seen, *planes[len(own) :])


def num_features(fields: Sequence[Field]) -> int:
    """How many numbers a network reads of an observation."""
    return sum(field.num_features for field in fields)


def is_within_unit(fields: Sequence[Field]) -> bool:
    """Whether all features are between 0 and 1: planes of a board, categories, and the time."""
    return all(
        field.kind == "categories" or field == TIME or (field.planes and field.layout != "summed") for field in fields
    )


def features(fields: Sequence[Field], observation: Observation) -> Float32[Array, " features"]:
    """An observation as one vector: categories one-hot, where none is all zeros; the rest as it is."""
    return jnp.concatenate([_numbers(field, observation[field.name]) for field in fields])


def _numbers(field: Field, array: Array) -> Float32[Array, " features"]:
    if field.kind == "categories":
        return jax.nn.one_hot(array, field.below).reshape(-1)
    return array.reshape(-1).astype(jnp.float32)


def rotated(field: Field, array: Array, num_agents: int, offset: int) -> Array:
    """The field as the co-player `offset` seats after the viewer sees it."""
    if field.layout != "players":
        return array
    axis = array.ndim - 1 if field.kind == "planes" else array.ndim - len(field.shape)
    *blocks, shared = jnp.split(array, _ends_of_blocks(field, num_agents), axis=axis)
    return jnp.concatenate([*(jnp.roll(block, -offset, axis=axis) for block in blocks), shared], axis=axis)


def feature_order(fields: Sequence[Field], num_agents: int, offset: int) -> np.ndarray:
    """Which of the viewer's features the features of the co-player `offset` seats after it are."""
    orders, start = [], 0
    for field in fields:
        shape = (*field.shape, field.below) if field.kind == "categories" else field.shape
        numbers = np.arange(start, start + field.num_features).reshape(shape)
        start += field.num_features
        if field.layout == "players":
            axis = numbers.ndim - 1 if field.kind == "planes" else 0
            *blocks, shared = np.split(numbers, _ends_of_blocks(field, num_agents), axis=axis)
            numbers = np.concatenate([*(np.roll(block, -offset, axis=axis) for block in blocks), shared], axis=axis)
        orders.append(numbers.reshape(-1))
    return np.concatenate(orders)


def _ends_of_blocks(field: Field, num_agents: int) -> list[int]:
    return [num_agents * (block + 1) for block in range(field.num_blocks(num_agents))]
