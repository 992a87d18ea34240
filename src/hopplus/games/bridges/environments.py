"""A pool of environments of PettingZoo: each is in some episode, which is named by its seed and the actions so far.

The functions that compiled programs call are `Environments.reset` and `Environments.step`. They use NumPy alone,
because a callback that waits for JAX can wait for ever.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from threading import Lock
from typing import Any

import jax
import numpy as np

from hopplus.games.fields import Field
from hopplus.games.game import GameSpec
from hopplus.games.roles import roles_of

try:
    from gymnasium import spaces
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper
except ImportError as error:
    raise ImportError('games of PettingZoo need an extra; run: pip install "hopplus[pettingzoo]"') from error

LIMITS = ("max_cycles", "max_steps", "max_episode_steps", "_max_episode_steps")
"""Attributes in which environments keep the length of an episode."""
MOST_JOINT_ACTIONS = 64
SPARE = 1024
"""The pool keeps this many environments beside those of a batch."""


@dataclass(frozen=True)
class Seat:
    """One agent of the environment."""

    agent: Any
    actions: tuple[Any, ...]
    """What the environment is given for each action of the game."""
    view: spaces.Space
    """The space of its observation, without a mask."""
    entry: str | None
    """The entry of a dict with a mask in which the observation is; None if there is no such single entry."""

    def split(self, seen: Any, info: Any) -> tuple[Any, Any]:
        """The observation, and the mask; None if there is no mask."""
        mask = seen.get("action_mask") if isinstance(seen, dict) else None
        mask = info.get("action_mask") if mask is None and info else mask
        return seen[self.entry] if self.entry else seen, mask

    def flat(self, seen: Any) -> np.ndarray:
        return np.ravel(seen) if isinstance(self.view, spaces.Box) else spaces.flatten(self.view, seen)  # pyright: ignore


class Environments:
    """A pool of equal environments, each in some episode or idle, and the spec of their game."""

    def __init__(self, make: Callable[[], Any], name: str, horizon: int | None = None):
        self._make, self._lock = make, Lock()
        self._running: OrderedDict[bytes, Any] = OrderedDict()
        env = _checked(make(), name)
        self._idle = [env]
        self.seats = tuple(_seat(env, agent, name) for agent in env.possible_agents)
        self._agents = [seat.agent for seat in self.seats]
        views = [seat.view for seat in self.seats]
        self.is_image = len(views[0].shape or ()) == 3 and all(view == views[0] for view in views)
        self.dtype = np.dtype(np.uint8 if self.is_image and views[0].dtype == np.uint8 else np.float32)
        observations, infos = env.reset(seed=0)
        seen = [(seat, observations[seat.agent]) for seat in self.seats if seat.agent in env.agents]
        has_masks = any(seat.split(view, infos.get(seat.agent))[1] is not None for seat, view in seen)
        self.spec = self._spec(name, _horizon(env, name) if horizon is None else horizon, has_masks)
        agents = self.spec.num_agents
        shapes = (agents, *self.spec.observation[0].shape), (agents, self.spec.num_actions), (agents,)
        self._rows = tuple(zip(shapes, (self.dtype, np.dtype(bool), np.dtype(bool)), strict=True))
        counts, actions = [len(seat.actions) for seat in self.seats], np.arange(self.spec.num_actions)
        self._unmasked = actions < np.array(counts)[:, None]
        self._of_absent = actions < (len(actions) if self.spec.stay is None else 1)
        first = [rows[0] for rows in self._empty(1)]
        self._see(first, observations, infos, left=self._absent(env))  # raises if a seat has no legal action

    def _spec(self, name: str, horizon: int, has_masks: bool) -> GameSpec:
        kind, shape = "vector", (max(spaces.flatdim(seat.view) for seat in self.seats),)
        if self.is_image:
            kind, shape = "planes", self.seats[0].view.shape or ()
        most = max((seat.actions for seat in self.seats), key=len)
        all_legal = not has_masks and all(len(seat.actions) == len(most) for seat in self.seats)
        kinds = [(len(seat.actions), str(seat.view)) for seat in self.seats]
        return GameSpec(
            name=name,
            version=1,
            num_agents=len(self.seats),
            action_names=tuple(",".join(map(str, np.ravel(action))) for action in most),
            observation=(Field("observation", kind, shape),),
            horizon=horizon,
            stay=None if all_legal else 0,
            roles=roles_of([seat.agent for seat in self.seats], kinds),
        )

    def shapes(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        """The arrays of observations, legal actions and terminations of one environment."""
        return tuple(jax.ShapeDtypeStruct(*row) for row in self._rows)

    def reset(self, seeds: Any, wanted: Any) -> tuple[np.ndarray, ...]:
        """The first views of the episodes that are wanted; zeros for the others."""
        seeds, wanted = np.asarray(seeds), np.asarray(wanted)
        flat, views = seeds.ravel(), self._empty(seeds.size)
        with self._lock:
            for index in np.flatnonzero(wanted).tolist():
                env = self._take(seeds.size)
                first = env.reset(seed=int(flat[index]))
                self._keep(flat[index].tobytes(), env)
                self._see([rows[index] for rows in views], *first, left=self._absent(env))
        return _in_batch(views, seeds.shape)

    def step(self, seeds: Any, times: Any, history: Any, actions: Any, left: Any) -> tuple[np.ndarray, ...]:
        """The next views, and the rewards; an episode that is over stays as it is."""
        batch = np.shape(seeds)
        given = map(np.asarray, (seeds, times, history, actions, left))
        seeds, times, history, actions, left = (each.reshape(-1, *each.shape[len(batch) :]) for each in given)
        result = (*self._empty(len(seeds)), np.zeros(left.shape, np.float32))
        known: dict[bytes, int] = {}
        with self._lock:
            for index, (time, gone) in enumerate(zip(times.tolist(), left.tolist(), strict=True)):
                past, rows = history[index, :time], tuple(array[index] for array in result)
                before = seeds[index].tobytes() + past.tobytes()
                after = before + actions[index].tobytes()
                if (first := known.setdefault(after, index)) != index:
                    for row, array in zip(rows, result, strict=True):
                        row[...] = array[first]
                elif all(gone):
                    self._see(rows[:3], {}, {}, left=gone)
                else:
                    env = self._running.pop(before, None) or self._replayed(int(seeds[index]), past, len(seeds))
                    self._step(env, after, actions[index], gone, time + 1 >= self.spec.horizon, rows)
        return _in_batch(result, batch)

    def _step(
        self, env: Any, after: bytes, actions: np.ndarray, left: list[bool], is_last: bool, rows: tuple[np.ndarray, ...]
    ) -> None:
        """Step one environment, write what came of it, and keep it: as idle if the episode is over."""
        observations, rewards, terminations, truncations, infos = env.step(self._joint(actions, left))
        still = env.agents
        now = [
            is_last or gone or agent not in still or bool(terminations.get(agent) or truncations.get(agent))
            for agent, gone in zip(self._agents, left, strict=True)
        ]
        rows[3][:] = [0.0 if gone else rewards.get(agent, 0.0) for agent, gone in zip(self._agents, left, strict=True)]
        if all(now):
            self._idle.append(env)
        else:
            self._keep(after, env)
        self._see(rows[:3], observations, infos, left=now)

    def _replayed(self, seed: int, past: np.ndarray, batch: int) -> Any:
        """An environment in which these joint actions have been played."""
        env = self._take(batch)
        env.reset(seed=seed)
        for actions in past:
            env.step(self._joint(actions, self._absent(env)))
        return env

    def _take(self, batch: int) -> Any:
        """An environment for another episode: an idle one, a new one, or the one that was used least recently."""
        if self._idle:
            return self._idle.pop()
        return self._make() if len(self._running) < batch + SPARE else self._running.popitem(last=False)[1]

    def _keep(self, name: bytes, env: Any) -> None:
        """Keep an environment as the one that was used last; a second one in the same state is not needed."""
        if (same := self._running.pop(name, None)) is not None:
            self._idle.append(same)
        self._running[name] = env

    def _absent(self, env: Any) -> list[bool]:
        playing = env.agents  # a wrapped environment is slow to say so
        return [agent not in playing for agent in self._agents]

    def _joint(self, actions: np.ndarray, left: list[bool]) -> dict[Any, Any]:
        chosen = zip(self.seats, actions.tolist(), left, strict=True)
        return {seat.agent: seat.actions[action] for seat, action, gone in chosen if not gone}

    def _see(self, rows: Sequence[np.ndarray], observations: Any, infos: Any, *, left: list[bool]) -> None:
        """Write what the seats of one environment see, over zeros."""
        view, legal, terminated = rows
        legal[...] = self._unmasked
        terminated[:] = left
        for index, (seat, gone) in enumerate(zip(self.seats, left, strict=True)):
            if gone:
                legal[index] = self._of_absent
                continue
            seen, mask = seat.split(observations[seat.agent], infos.get(seat.agent))
            numbers = seen if self.is_image else seat.flat(seen)
            view[index][... if self.is_image else slice(len(numbers))] = numbers
            if mask is not None:
                legal[index, : len(seat.actions)] = np.asarray(mask, bool)
                if not legal[index].any():
                    who = f"{self.spec.name} gives {seat.agent}"
                    raise ValueError(f"{who} no legal action; turn-based games do not fit")

    def _empty(self, count: int) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros((count, *shape), dtype) for shape, dtype in self._rows)


def _checked(env: Any, name: str) -> ParallelEnv:
    if isinstance(env, AECEnv):
        how = "wrap it in pettingzoo.utils.aec_to_parallel, if all agents may act at once"
        raise ValueError(f"{name!r} gives an AECEnv, whose agents act in turn; {how}")
    if isinstance(env, turn_based_aec_to_parallel_wrapper):
        raise ValueError(f"{name!r} is turn-based; give an environment in which all agents act at once")
    if not isinstance(env, ParallelEnv):
        raise ValueError(f"{name!r} gives a {type(env).__name__}; give a factory of a pettingzoo.ParallelEnv")
    if not getattr(env, "possible_agents", None):
        raise ValueError(f"{name!r} has no possible_agents; set them, so that its seats are known")
    return env


def _seat(env: ParallelEnv, agent: Any, name: str) -> Seat:
    acts, view, entry = env.action_space(agent), env.observation_space(agent), None
    if isinstance(view, spaces.Dict) and "action_mask" in view.spaces:
        rest = {key: space for key, space in view.spaces.items() if key != "action_mask"}
        entry = next(iter(rest)) if len(rest) == 1 else None
        view = rest[entry] if entry else spaces.Dict(rest)
    if not view.is_np_flattenable:
        raise ValueError(f"{agent} of {name!r} sees a {type(view).__name__}, which has no fixed number of entries")
    if isinstance(acts, spaces.Discrete):
        return Seat(agent, tuple(range(int(acts.start), int(acts.start + acts.n))), view, entry)
    if isinstance(acts, spaces.MultiDiscrete) and prod(acts.nvec.tolist()) <= MOST_JOINT_ACTIONS:
        joint = product(*(range(count) for count in acts.nvec.tolist()))
        return Seat(agent, tuple(np.array(each, acts.dtype) for each in joint), view, entry)
    wanted = f"a Discrete space, or MultiDiscrete of up to {MOST_JOINT_ACTIONS} joint actions"
    raise ValueError(f"{agent} of {name!r} acts in {acts}; hopplus needs {wanted}")


def _horizon(env: ParallelEnv, name: str) -> int:
    for limit in LIMITS:
        if isinstance(steps := getattr(env.unwrapped, limit, None), int) and steps > 0:
            return steps
    raise ValueError(f"{name!r} does not say how long an episode is; add ?horizon=200, or as many steps as it has")


def _in_batch(arrays: Sequence[np.ndarray], batch: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(array.reshape(*batch, *array.shape[1:]) for array in arrays)
