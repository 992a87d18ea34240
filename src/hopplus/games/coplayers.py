"""Scripted co-players, each with its full action distribution, and line-ups of policies.

A policy uses only its own seat's observation, so it plays in any seat, in a game or in a learned world. It returns the
distribution that its action is sampled from, so that the best possible prediction of it can be computed.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PyTree, UInt8

from hopplus.games.board import COLUMN_STEPS, MOVE_NAMES, ROW_STEPS
from hopplus.games.fields import Observation
from hopplus.games.game import GameSpec
from hopplus.games.paths import FAR, paths_around_walls, straight_paths

PolicyState = PyTree[Array]
"""The state of a policy between two steps."""


class Policy(eqx.Module):
    """A player that can take any seat. It may keep a state within an episode, and from one episode to the next."""

    @abstractmethod
    def init(self) -> PolicyState:
        """The state at the start of an episode with new players."""

    def next_episode(self, state: PolicyState) -> PolicyState:
        """The state at the start of another episode with the same players; by default that of `init`."""
        return self.init()

    @abstractmethod
    def __call__(
        self, observation: Observation, legal: Bool[Array, " actions"], state: PolicyState
    ) -> tuple[Float32[Array, " actions"], PolicyState]:
        """The probability of each action, and the next state."""


class Random(Policy):
    """Uniform over the legal actions."""

    def init(self) -> PolicyState:
        return ()

    def __call__(self, observation, legal, state):
        return legal / jnp.sum(legal, dtype=jnp.int32), state


class Noisy(Policy):
    """Another policy that plays at random with probability epsilon."""

    policy: Policy
    epsilon: float = eqx.field(static=True)

    def init(self) -> PolicyState:
        return self.policy.init()

    def __call__(self, observation, legal, state):
        intended, state = self.policy(observation, legal, state)
        at_random = legal / jnp.sum(legal, dtype=jnp.int32)
        return (1 - self.epsilon) * intended + self.epsilon * at_random, state


class Idler(Policy):
    """Uniform over the legal actions but one, which it never takes."""

    never: int = eqx.field(static=True)

    def init(self) -> PolicyState:
        return ()

    def __call__(self, observation, legal, state):
        allowed = legal & (np.arange(legal.shape[0]) != self.never)
        return allowed / jnp.sum(allowed, dtype=jnp.int32), state


class Nearest(Policy):
    """Takes a shortest path to the nearest target and acts on it; stays if there is no target.

    The target is uniform among the nearest, and the step is uniform among those that shorten the path to it.
    """

    targets: tuple[tuple[int | tuple[int, ...], int], ...] = eqx.field(static=True)
    """(plane or planes, action there) in order of preference: a later one is used if the earlier planes are empty."""
    stay: int = eqx.field(static=True)
    straight_paths: bool = eqx.field(static=True)
    walls: int = eqx.field(static=True)
    avoided: tuple[int, ...] = eqx.field(static=True, default=())
    """Planes whose cells it does not walk on."""

    def init(self) -> PolicyState:
        return ()

    def __call__(self, observation, legal, state):
        planes = observation["planes"]
        own = planes[..., 0] > 0
        if self.straight_paths and not self.avoided:
            distance, moves = straight_paths(own)
        else:
            distance, moves = paths_around_walls(~_any_of(planes, (self.walls, *self.avoided)), own)
        staying = jax.nn.one_hot(self.stay, legal.shape[0])
        intended = staying
        for wanted_planes, action in reversed(self.targets):
            wanted = _any_of(planes, wanted_planes)
            approach = _approach(wanted, distance, moves, action, legal.shape[0])
            intended = jnp.where(jnp.any(wanted), approach, intended)
        possible = jnp.where(legal, intended, 0.0)
        return jnp.where(jnp.any(own) & jnp.any(possible > 0), possible, staying), state


class Forager(Policy):
    """Walks beside the food that it chooses, around all that blocks, and loads; stays if it cannot get there."""

    foods: tuple[int, ...] = eqx.field(static=True)
    """The plane of the foods of each level, from 1 up."""
    levels: tuple[int, ...] = eqx.field(static=True)
    """The plane of the players of each level, from 1 up."""
    blocked: tuple[int, ...] = eqx.field(static=True)
    """The planes of walls, foods and other players."""
    choice: Literal["nearest", "strongest", "easy"] = eqx.field(static=True)
    """strongest: one of the highest level that is left. easy: one that it can load alone, as long as there is any."""
    load: int = eqx.field(static=True)
    stay: int = eqx.field(static=True)

    def init(self) -> PolicyState:
        return ()

    def __call__(self, observation, legal, state):
        planes = observation["planes"]
        own = planes[..., 0] > 0
        place = self._beside_wanted(planes, own) & (~_any_of(planes, self.blocked) | own)
        distance, moves = paths_around_walls(~_any_of(planes, self.blocked), own)
        approach = _approach(place, distance, moves, self.load, legal.shape[0])
        possible = jnp.where(legal, approach, 0.0)
        return jnp.where(jnp.any(possible > 0), possible, jax.nn.one_hot(self.stay, legal.shape[0])), state

    def _beside_wanted(
        self, planes: UInt8[Array, "height width planes"], own: Bool[Array, "height width"]
    ) -> Bool[Array, "height width"]:
        """The cells around the foods that it chooses among."""
        foods = [planes[..., plane] > 0 for plane in self.foods]
        wanted = every = _any_of(planes, self.foods)
        if self.choice == "strongest":
            for food in foods:
                wanted = jnp.where(jnp.any(food), food, wanted)
        if self.choice == "easy":
            strength = [jnp.any(own & _any_of(planes, self.levels[at:])) for at in range(len(self.levels))]
            strength += [jnp.bool_(False)] * (len(foods) - len(strength))
            easy = jnp.stack([food & enough for food, enough in zip(foods, strength, strict=False)]).any(axis=0)
            wanted = jnp.where(jnp.any(easy), easy, every)
        around = jnp.pad(wanted, 1)
        return around[:-2, 1:-1] | around[2:, 1:-1] | around[1:-1, :-2] | around[1:-1, 2:]


class Sustainable(Policy):
    """Eats the nearest apple with enough apples around it, and walks around the others; stays if there is none."""

    nearest: Nearest
    apples: int = eqx.field(static=True)
    least: int = eqx.field(static=True)
    """The number of apples on the eight cells around an apple from which on it is eaten."""

    def init(self) -> PolicyState:
        return ()

    def __call__(self, observation, legal, state):
        planes = observation["planes"]
        apples, walls = planes[..., self.apples], planes[..., self.nearest.walls]
        around = jnp.pad(apples.astype(jnp.int32), 1)
        rows = around[:-2] + around[1:-1] + around[2:]
        number = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] - apples
        spared = jnp.where(number < self.least, apples, jnp.uint8(0))
        planes = planes.at[..., self.apples].set(apples - spared).at[..., self.nearest.walls].set(walls | spared)
        return self.nearest({**observation, "planes": planes}, legal, state)


class Zapper(Policy):
    """Zaps where a player stands in line within reach, walls or not; otherwise plays as another script."""

    otherwise: Policy
    zaps: int = eqx.field(static=True)
    """The first of the four beams."""
    reach: int = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)
    """The planes on which the other players are."""

    def init(self) -> PolicyState:
        return self.otherwise.init()

    def __call__(self, observation, legal, state):
        planes = observation["planes"] > 0
        others = jnp.pad(_any_of(observation["planes"], self.others), self.reach)
        height, width = planes.shape[:2]
        in_line = jnp.zeros((height, width, len(MOVE_NAMES)), bool)
        for length in range(1, self.reach + 1):
            for move, (down, right) in enumerate(zip(ROW_STEPS * length, COLUMN_STEPS * length, strict=True)):
                top, left = self.reach + int(down), self.reach + int(right)
                in_line = in_line.at[..., move].set(
                    in_line[..., move] | others[top : top + height, left : left + width]
                )
        sees = jnp.any(in_line & planes[..., :1], axis=(0, 1))
        zaps = jnp.zeros(legal.shape[0], bool).at[self.zaps : self.zaps + len(MOVE_NAMES)].set(sees) & legal
        instead, state = self.otherwise(observation, legal, state)
        return jnp.where(jnp.any(zaps), zaps / jnp.maximum(jnp.sum(zaps), 1), instead), state


class PatientStag(Policy):
    """Hunts stags until it has stood on a stag's cell for `patience` steps in total, then hares."""

    for_stags: Nearest
    for_hares: Nearest
    patience: int = eqx.field(static=True)

    def init(self) -> PolicyState:
        return jnp.int32(0)

    def __call__(self, observation, legal, state):
        stags, _ = self.for_stags(observation, legal, ())
        hares, _ = self.for_hares(observation, legal, ())
        (stag_planes, _), *_ = self.for_stags.targets
        on_stag = jnp.any((observation["planes"][..., 0] > 0) & _any_of(observation["planes"], stag_planes))
        return jnp.where(state < self.patience, stags, hares), state + on_stag.astype(jnp.int32)


def _any_of(planes: UInt8[Array, "height width planes"], chosen: int | tuple[int, ...]) -> Bool[Array, "height width"]:
    """The cells that are on in any of the planes."""
    first, *others = (chosen,) if isinstance(chosen, int) else chosen
    cells = planes[..., first] > 0
    for plane in others:
        cells |= planes[..., plane] > 0
    return cells


def _approach(
    wanted: Bool[Array, "height width"],
    distance: Int32[Array, "height width"],
    moves: UInt8[Array, "height width"],
    action: int,
    num_actions: int,
) -> Float32[Array, " {num_actions}"]:
    """The action distribution that acts on a wanted cell, or moves to one of the nearest."""
    nearest = jnp.min(jnp.where(wanted, distance, FAR))
    chosen = wanted & (distance == nearest)
    begins_with = (moves[..., None] >> np.arange(len(MOVE_NAMES), dtype=np.uint8)) & 1
    share = begins_with / jnp.maximum(jnp.sum(begins_with, axis=-1, keepdims=True), 1)
    towards = jnp.sum(jnp.where(chosen[..., None], share, 0.0), axis=(0, 1)) / jnp.maximum(jnp.sum(chosen), 1)
    probabilities = jnp.zeros(num_actions, jnp.float32).at[: len(MOVE_NAMES)].set(towards)
    return probabilities.at[action].set((nearest == 0).astype(jnp.float32))


class Lineup(eqx.Module):
    """A policy for each seat, played together. Seats with the same script are computed as one batch."""

    policies: tuple[Policy, ...]

    def init(self) -> PolicyState:
        return tuple(_repeat(policy.init(), len(seats)) for policy, seats in self.groups())

    def next_episode(self, state: PolicyState) -> PolicyState:
        groups = zip(self.groups(), state, strict=True)
        return tuple(jax.vmap(policy.next_episode, axis_size=len(seats))(one) for (policy, seats), one in groups)

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], state: PolicyState
    ) -> tuple[Float32[Array, "agents actions"], PolicyState]:
        groups = self.groups()
        if len(groups) == 1:  # no seats to sort, so no gather of the observations
            ((policy, _),), (group_state,) = groups, state
            distribution, group_state = jax.vmap(policy)(observations, legal, group_state)
            return distribution, (group_state,)
        probabilities, group_states = [], []
        for (policy, seats), group_state in zip(groups, state, strict=True):
            seen = jax.tree.map(lambda leaf, seats=seats: leaf[seats], observations)
            distribution, new_state = jax.vmap(policy)(seen, legal[seats], group_state)
            probabilities.append(distribution)
            group_states.append(new_state)
        seat_order = np.argsort(np.concatenate([seats for _, seats in groups]))
        return jnp.concatenate(probabilities)[seat_order], tuple(group_states)

    def groups(self) -> list[tuple[Policy, np.ndarray]]:
        """Each distinct policy with its seats. Equal scripts, which have no arrays, share a group; others do not."""
        groups: dict[Any, tuple[Policy, list[int]]] = {}
        for seat, policy in enumerate(self.policies):
            name = seat if jax.tree.leaves(policy) else policy
            groups.setdefault(name, (policy, []))[1].append(seat)
        return [(policy, np.array(seats)) for policy, seats in groups.values()]


def _repeat(state: PolicyState, count: int) -> PolicyState:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), state)


def _nearest(spec: GameSpec, *targets: tuple[str, str], avoided: Sequence[str] = ()) -> Nearest:
    """The script that goes for planes whose names begin like this, in order of preference."""
    assert spec.stay is not None
    return Nearest(
        targets=tuple((_planes(spec, name), spec.action_names.index(action)) for name, action in targets),
        stay=spec.stay,
        straight_paths=spec.straight_paths,
        walls=spec.view_index("obstacles"),
        avoided=tuple(plane for name in avoided for plane in _planes(spec, name)),
    )


def _planes(spec: GameSpec, name: str) -> tuple[int, ...]:
    return tuple(index for index, plane in enumerate(spec.view_planes) if plane.name.startswith(name))


def _others(spec: GameSpec) -> tuple[int, ...]:
    """The planes of a view on which the other players are."""
    return (spec.view_index("others"),) if spec.sums_others else tuple(range(1, spec.num_agents))


def _own_coins(spec: GameSpec) -> Nearest:
    others = [f"coins_{offset}" for offset in range(1, spec.num_agents)]
    return _nearest(spec, ("coins_0", "stay"), avoided=others)


def _forager(spec: GameSpec, choice: Literal["nearest", "strongest", "easy"]) -> Forager:
    assert spec.stay is not None
    foods = _planes(spec, "food_")
    return Forager(
        foods=foods,
        levels=_planes(spec, "level_"),
        blocked=(spec.view_index("obstacles"), *foods, *_others(spec)),
        choice=choice,
        load=spec.action_names.index("load"),
        stay=spec.stay,
    )


def _greedy(spec: GameSpec) -> Nearest:
    return _nearest(spec, ("apples", "stay"))


def _sustainable(spec: GameSpec, least: object = 3) -> Sustainable:
    if isinstance(least, bool) or not isinstance(least, int) or not 0 <= least <= 8:
        raise ValueError(f"sustainable takes a number of apples up to 8, as in sustainable(3), not {least!r}")
    around_others = replace(_greedy(spec), straight_paths=False)
    return Sustainable(around_others, spec.view_index("apples"), least)


def _zapper(spec: GameSpec, reach: object = 4) -> Zapper:
    if isinstance(reach, bool) or not isinstance(reach, int) or reach < 1:
        raise ValueError(f"zapper takes a number of cells, as in zapper(4), not {reach!r}")
    return Zapper(_greedy(spec), spec.action_names.index("zap up"), reach, _others(spec))


def _nearest_stag(spec: GameSpec) -> Nearest:
    return _nearest(spec, ("stags", "hunt stag"), ("hares", "hunt hare"))


def _nearest_hare(spec: GameSpec) -> Nearest:
    return _nearest(spec, ("hares", "hunt hare"))


def _patient_stag(spec: GameSpec, patience: object) -> PatientStag:
    if isinstance(patience, bool) or not isinstance(patience, int) or patience < 0:
        raise ValueError(f"patient_stag takes a number of steps, as in patient_stag(3), not {patience!r}")
    return PatientStag(_nearest_stag(spec), _nearest_hare(spec), patience)


def _noisy(_: GameSpec, policy: object, epsilon: object) -> Noisy:
    if not isinstance(policy, Policy) or not isinstance(epsilon, float | int) or not 0 <= epsilon <= 1:
        raise ValueError("noisy takes a script and a probability, as in noisy(nearest_stag, 0.1)")
    return Noisy(policy, float(epsilon))


SCRIPTS: dict[str, tuple[str | None, Callable[..., Policy]]] = {
    "nearest_stag": ("stags", _nearest_stag),
    "nearest_hare": ("stags", _nearest_hare),
    "patient_stag": ("stags", _patient_stag),
    "nearest_drift": ("drifts", lambda spec: _nearest(spec, ("drifts", "remove"))),
    "idler": ("drifts", lambda spec: Idler(spec.action_names.index("remove"))),
    "own_coins": ("coins_0", _own_coins),
    "any_coins": ("coins_0", lambda spec: _nearest(spec, ("coins_", "stay"))),
    "nearest_food": ("food_1", lambda spec: _forager(spec, "nearest")),
    "strongest_food": ("food_1", lambda spec: _forager(spec, "strongest")),
    "easy_food": ("food_1", lambda spec: _forager(spec, "easy")),
    "greedy": ("apples", _greedy),
    "sustainable": ("apples", _sustainable),
    "zapper": ("away_0", _zapper),
    "random": (None, lambda _: Random()),
    "noisy": (None, _noisy),
}
"""By name: the plane that the script needs, or None, and the function that makes it."""


KINDS = {
    "stags": ("nearest_stag", "nearest_hare"),
    "drifts": ("nearest_drift", "idler"),
    "coins_0": ("own_coins", "any_coins"),
    "food_1": ("strongest_food", "easy_food"),
    "apples": ("sustainable", "greedy"),
}
"""The scripts that agents are evaluated among, besides random players: by a plane of the game, one that cooperates and
one that does not."""


def usual_kinds(spec: GameSpec) -> tuple[str, ...]:
    """The scripts that agents of this game are evaluated among where no others are named."""
    return (*next((kinds for plane, kinds in KINDS.items() if spec.has_plane(plane)), ()), "random")


def scripts_for(spec: GameSpec) -> list[str]:
    """The names of the scripts for this game."""
    return [name for name, (plane, _) in SCRIPTS.items() if plane is None or spec.has_plane(plane)]
