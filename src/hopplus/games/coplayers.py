"""Scripted co-players, each with its full action distribution, and line-ups of them.

A policy reads what its own seat sees and nothing else, so it plays in any seat, on a game or on a learned world. It
returns the distribution it draws from: the best possible prediction of it can then be computed instead of guessed.
"""

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PyTree, UInt8

from hopplus.games.board import MOVE_NAMES
from hopplus.games.game import GameSpec, Observation
from hopplus.games.paths import FAR, paths_around_walls, straight_paths

Memory = PyTree[Array]


class Policy(eqx.Module):
    """One player, in whatever seat it sits. A script may remember something within an episode."""

    @abstractmethod
    def start(self) -> Memory:
        """What it remembers when an episode begins."""

    def again(self, memory: Memory) -> Memory:
        """What it remembers when another episode with the same players begins: a script, nothing."""
        return self.start()

    @abstractmethod
    def __call__(
        self, observation: Observation, legal: Bool[Array, " actions"], memory: Memory
    ) -> tuple[Float32[Array, " actions"], Memory]:
        """The probability of each action, and what it remembers next."""


class Random(Policy):
    """Uniform over the legal actions."""

    def start(self) -> Memory:
        return ()

    def __call__(self, observation, legal, memory):
        return legal / jnp.sum(legal, dtype=jnp.int32), memory


class Noisy(Policy):
    """Another policy that plays at random with probability epsilon."""

    policy: Policy
    epsilon: float = eqx.field(static=True)

    def start(self) -> Memory:
        return self.policy.start()

    def __call__(self, observation, legal, memory):
        intended, memory = self.policy(observation, legal, memory)
        at_random = legal / jnp.sum(legal, dtype=jnp.int32)
        return (1 - self.epsilon) * intended + self.epsilon * at_random, memory


class Idler(Policy):
    """Wanders: uniform over the legal actions but one, which it never takes."""

    never: int = eqx.field(static=True)

    def start(self) -> Memory:
        return ()

    def __call__(self, observation, legal, memory):
        allowed = legal & (np.arange(legal.shape[0]) != self.never)
        return allowed / jnp.sum(allowed, dtype=jnp.int32), memory


class Nearest(Policy):
    """Takes a shortest path to the nearest target and acts on it; stays where there is none.

    The target is uniform among the nearest, the step uniform among those that shorten the path to it.
    """

    targets: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """(plane, action on it), in order of preference: the next is for when the one before is empty."""
    stay: int = eqx.field(static=True)
    straight_paths: bool = eqx.field(static=True)
    walls: int = eqx.field(static=True)

    def start(self) -> Memory:
        return ()

    def __call__(self, observation, legal, memory):
        own = observation.planes[..., 0] > 0
        if self.straight_paths:
            distance, moves = straight_paths(own)
        else:
            distance, moves = paths_around_walls(observation.planes[..., self.walls] == 0, own)
        staying = jax.nn.one_hot(self.stay, legal.shape[0])
        intended = staying
        for plane, action in reversed(self.targets):
            wanted = observation.planes[..., plane] > 0
            approach = _approach(wanted, distance, moves, action, legal.shape[0])
            intended = jnp.where(jnp.any(wanted), approach, intended)
        possible = jnp.where(legal, intended, 0.0)
        return jnp.where(jnp.any(own) & jnp.any(possible > 0), possible, staying), memory


class PatientStag(Policy):
    """Goes for stags until it has stood on a stag's cell for `patience` steps in all, then for hares."""

    for_stags: Nearest
    for_hares: Nearest
    patience: int = eqx.field(static=True)

    def start(self) -> Memory:
        return jnp.int32(0)

    def __call__(self, observation, legal, memory):
        stags, _ = self.for_stags(observation, legal, ())
        hares, _ = self.for_hares(observation, legal, ())
        (stag_plane, _), *_ = self.for_stags.targets
        on_stag = jnp.any((observation.planes[..., 0] & observation.planes[..., stag_plane]) > 0)
        return jnp.where(memory < self.patience, stags, hares), memory + on_stag.astype(jnp.int32)


def _approach(
    wanted: Bool[Array, "height width"],
    distance: Int32[Array, "height width"],
    moves: UInt8[Array, "height width"],
    action: int,
    num_actions: int,
) -> Float32[Array, " {num_actions}"]:
    """The distribution of one who acts on a wanted cell, or goes to one of the nearest."""
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

    def start(self) -> Memory:
        return tuple(_repeat(policy.start(), len(seats)) for policy, seats in self._groups())

    def again(self, memory: Memory) -> Memory:
        groups = zip(self._groups(), memory, strict=True)
        return tuple(jax.vmap(policy.again, axis_size=len(seats))(one) for (policy, seats), one in groups)

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], memory: Memory
    ) -> tuple[Float32[Array, "agents actions"], Memory]:
        groups = self._groups()
        if len(groups) == 1:  # no seats to sort: a gather less on the way of every observation
            ((policy, _),), (remembered,) = groups, memory
            distribution, remembered = jax.vmap(policy)(observations, legal, remembered)
            return distribution, (remembered,)
        probabilities, memories = [], []
        for (policy, seats), remembered in zip(groups, memory, strict=True):
            seen = jax.tree.map(lambda leaf, seats=seats: leaf[seats], observations)
            distribution, remembered = jax.vmap(policy)(seen, legal[seats], remembered)
            probabilities.append(distribution)
            memories.append(remembered)
        back_in_seats = np.argsort(np.concatenate([seats for _, seats in groups]))
        return jnp.concatenate(probabilities)[back_in_seats], tuple(memories)

    def _groups(self) -> list[tuple[Policy, np.ndarray]]:
        """Each different policy with its seats. A script has no arrays, so equal ones can be told; others are alone."""
        groups: dict[Any, tuple[Policy, list[int]]] = {}
        for seat, policy in enumerate(self.policies):
            name = seat if jax.tree.leaves(policy) else policy
            groups.setdefault(name, (policy, []))[1].append(seat)
        return [(policy, np.array(seats)) for policy, seats in groups.values()]


def _repeat(memory: Memory, count: int) -> Memory:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), memory)


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
"""By name: the plane without which the script makes no sense, and how it is made."""


def scripts_for(spec: GameSpec) -> list[str]:
    """The names of the scripts that can play this game."""
    return [name for name, (plane, _) in SCRIPTS.items() if plane is None or spec.has_plane(plane)]


def read_policies(text: str, spec: GameSpec) -> tuple[Policy, ...]:
    """The scripts that a comma-separated text names, in order."""
    return tuple(_read_policy(node, spec) for node in _seats_of(text))


def seat_names(text: str) -> list[str]:
    """The line-up's text, cut into one name for each seat."""
    return [ast.unparse(node) for node in _seats_of(text)]


def _seats_of(text: str) -> list[ast.expr]:
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(
            f"cannot read the line-up {text!r}; write names with commas, as in nearest_stag,patient_stag(3),random"
        ) from None
    return expression.elts if isinstance(expression, ast.Tuple) else [expression]


def _read_policy(node: ast.expr, spec: GameSpec) -> Policy:
    call = node if isinstance(node, ast.Call) else None
    name = call.func if call else node
    if not isinstance(name, ast.Name) or name.id not in scripts_for(spec):
        known = ", ".join(scripts_for(spec))
        raise ValueError(f"there is no script called {ast.unparse(name)!r} for {spec.name}; the scripts are {known}")
    values = [_read_value(argument, spec) for argument in call.args] if call else []
    _, make_policy = SCRIPTS[name.id]
    try:
        return make_policy(spec, *values)
    except TypeError:
        raise ValueError(
            f"{ast.unparse(node)!r} has the wrong number of values in brackets; "
            "write nearest_stag, patient_stag(3) or noisy(nearest_stag, 0.1)"
        ) from None


def _read_value(node: ast.expr, spec: GameSpec) -> Policy | int | float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    return _read_policy(node, spec)
