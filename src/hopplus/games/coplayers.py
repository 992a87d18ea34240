"""Scripted co-players, each with its full action distribution, and line-ups of policies.

A policy uses only its own seat's observation, so it plays in any seat, in a game or in a learned world. It returns the
distribution that its action is sampled from, so that the best possible prediction of it can be computed.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PyTree, UInt8

from hopplus.games.board import MOVE_NAMES
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

    targets: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """(plane, action on it) in order of preference: a later one is used if the earlier planes are empty."""
    stay: int = eqx.field(static=True)
    straight_paths: bool = eqx.field(static=True)
    walls: int = eqx.field(static=True)

    def init(self) -> PolicyState:
        return ()

    def __call__(self, observation, legal, state):
        own = observation["planes"][..., 0] > 0
        if self.straight_paths:
            distance, moves = straight_paths(own)
        else:
            distance, moves = paths_around_walls(observation["planes"][..., self.walls] == 0, own)
        staying = jax.nn.one_hot(self.stay, legal.shape[0])
        intended = staying
        for plane, action in reversed(self.targets):
            wanted = observation["planes"][..., plane] > 0
            approach = _approach(wanted, distance, moves, action, legal.shape[0])
            intended = jnp.where(jnp.any(wanted), approach, intended)
        possible = jnp.where(legal, intended, 0.0)
        return jnp.where(jnp.any(own) & jnp.any(possible > 0), possible, staying), state


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
        (stag_plane, _), *_ = self.for_stags.targets
        on_stag = jnp.any((observation["planes"][..., 0] & observation["planes"][..., stag_plane]) > 0)
        return jnp.where(state < self.patience, stags, hares), state + on_stag.astype(jnp.int32)


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


def _nearest(spec: GameSpec, *targets: tuple[str, str]) -> Nearest:
    assert spec.stay is not None
    return Nearest(
        targets=tuple((spec.plane_index(plane), spec.action_names.index(action)) for plane, action in targets),
        stay=spec.stay,
        straight_paths=spec.straight_paths,
        walls=spec.plane_index("obstacles"),
    )


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
    "random": (None, lambda _: Random()),
    "noisy": (None, _noisy),
}
"""By name: the plane that the script needs, or None, and the function that makes it."""


def scripts_for(spec: GameSpec) -> list[str]:
    """The names of the scripts for this game."""
    return [name for name, (plane, _) in SCRIPTS.items() if plane is None or spec.has_plane(plane)]
