"""`recording --env`: is what was recorded what the environment gives, and does the environment keep its word?

All findings about the recording and about what the environment hands out are exact but one: whether a reset without
a seed begins a new episode is a test, as starts may be equal by chance. Then random agents play, and their returns are
compared, as `game --env` does.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus_doctor.answer import Answer, Finding, OnProgress
from hopplus_doctor.ask import in_game
from hopplus_doctor.environment import checked_env, examine_env, groups_of, silent
from hopplus_doctor.random_play import sample_action
from hopplus_doctor.recording import Recording

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

ASKS = "is what was recorded what the environment gives, and does the environment keep its word?"
STEPS = 50
"""Steps of random play."""
SEEDS, MOST_RESETS = 20, 300
"""Seeds whose starts are compared with the first one, and the most resets without a seed."""
LEVEL = 1e-6
"""Equal starts are no chance if their probability is below this."""
Views = Mapping[Any, Any]


def env_findings(
    recording: Recording, make_env: Callable[[], "ParallelEnv"], name: str, seed: int
) -> Iterator[Finding]:
    """Compare a recording with its environment, and examine what the environment hands out."""
    with closing(checked_env(make_env(), name)) as env:
        agents = list(env.possible_agents)
        yield seats(recording, agents)
        yield actions(recording, env)
        yield from own_views(recording, env, seed)
        yield seeds(env, seed)
        yield same_seed(env, seed)
        yield copies(env, seed)


def play_findings(
    make_env: Callable[[], "ParallelEnv"], name: str, *, seconds: float, seed: int, on_progress: OnProgress = silent
) -> Answer | None:
    """The answer of `game --env`; None if no two agents have one role."""
    with closing(checked_env(make_env(), name)) as env:
        has_groups = bool(groups_of(env.possible_agents))
    if not has_groups:
        return None
    return examine_env(make_env, name, seconds=seconds, seed=seed, on_progress=on_progress)


def seats(recording: Recording, agents: list[Any]) -> Finding:
    """Does the recording have the agents of the environment?"""
    about = partial(Finding, "recorded seats", "seats", "exact")
    if len(agents) == len(recording.seats):
        return about("fine", f"the recording has as many seats as the environment has agents, {len(agents)}")
    says = f"the recording has {len(recording.seats)} seats, the environment {len(agents)} agents"
    return about("not enough evidence", f"{says}; some may not learn", next="record every agent, if all of them learn")


def actions(recording: Recording, env: "ParallelEnv") -> Finding:
    """Are the recorded actions those of the environment?"""
    about = partial(Finding, "recorded actions", "game: actions", "exact")
    taken = recording.get("real", "actions")
    sizes = [getattr(env.action_space(agent), "n", None) for agent in env.possible_agents]
    there = in_game(recording, "real", taken.shape) if taken is not None else None
    if taken is None or there is None or len(sizes) != len(recording.seats) or any(size is None for size in sizes):
        return about("not enough evidence", "actions of every agent, counted from 0, are needed")
    for seat, size in enumerate(sizes):
        own = taken[:, seat][there[:, seat]]
        if size is not None and (bad := own[(own < 0) | (own >= size)]).size:
            says = f"{recording.seats[seat]} took the action {bad[0]}; the environment has {size} actions"
            return about("broken", says, next="count actions from 0, without the entries of another agent")
    return about("fine", "every recorded action is one of the environment's")


def own_views(recording: Recording, env: "ParallelEnv", seed: int) -> Iterator[Finding]:
    """Do seats that hold equal observations see different things in the environment?"""
    views = recording.get("real", "observations")
    agents = list(env.possible_agents)
    if views is None or len(agents) != len(recording.seats) or len(agents) < 2:
        return
    seen = [shown for shown, _ in _episode(env, seed)]
    for one in range(len(agents)):
        for other in range(one):
            given = [_same(each[agents[one]], each[agents[other]]) for each in seen if _both(each, agents, one, other)]
            if given and not all(given) and np.array_equal(views[:, one], views[:, other]):
                says = f"{recording.seats[other]} and {recording.seats[one]} hold the same observations in all steps, "
                says += "and the environment shows them different ones"
                advice = "check where observations are put into the buffer: does every seat get its own?"
                yield Finding(
                    "own observations of the environment", "observations", "exact", "broken", says, next=advice
                )
                return
    says = "no seats share observations that the environment makes different"
    yield Finding("own observations of the environment", "observations", "exact", "fine", says)


def seeds(env: "ParallelEnv", seed: int) -> Finding:
    """Is an episode without a seed a new one?

    Of the starts of other seeds, some differ from the first one. If starts without a seed are drawn as those are, the
    probability that all that differ have a seed is that of Fisher's exact test.
    """
    threshold = f"broken if the equal starts have a probability below {LEVEL:g} by Fisher's exact test"
    about = partial(Finding, "new episodes", "random streams: envs", "test", threshold=threshold)
    others = [_kept(env.reset(seed=seed + number)[0]) for number in range(1, SEEDS + 1)]
    first = _kept(env.reset(seed=seed)[0])
    differ = sum(not _same(first, other) for other in others)
    if not differ:
        return about("not enough evidence", f"all {SEEDS + 1} seeds begin alike, as in a game with one start")
    for resets in range(1, MOST_RESETS + 1):
        if not _same(first, env.reset()[0]):
            return about("fine", "resets without a seed begin new episodes")
        if math.comb(SEEDS, differ) < LEVEL * math.comb(SEEDS + resets, differ):
            says = f"{resets} resets without a seed begin as the episode before; {differ} of {SEEDS} other seeds do not"
            advice = "seed once, and let a reset without a seed go on with the random numbers"
            return about("broken", says, next=advice)
    says = f"{MOST_RESETS} resets without a seed begin as the episode before, which may be chance: so do "
    advice = "look at how reset(seed=None) draws its start"
    return about("not enough evidence", f"{says}{SEEDS - differ} of {SEEDS} other seeds", next=advice)


def same_seed(env: "ParallelEnv", seed: int) -> Finding:
    """Do the same seed and actions give the same episode?"""
    about = partial(Finding, "repeatable episodes", "random streams: envs", "exact")
    one, other = (list(_episode(env, seed)) for _ in range(2))
    if len(one) == len(other) and all(
        _same(a, b) for pair in zip(one, other, strict=True) for a, b in zip(*pair, strict=True)
    ):
        return about("fine", "the same seed and actions give the same observations and rewards")
    says = "the same seed and actions give other observations or rewards"
    return about(
        "not enough evidence",
        f"{says}: recordings cannot be repeated",
        next="draw from the generator that the seed makes",
    )


def copies(env: "ParallelEnv", seed: int) -> Finding:
    """Does an observation stay as it was when the environment goes on?"""
    about = partial(Finding, "observations are copies", "observations", "exact")
    given, kept = None, None
    for shown, _ in _episode(env, seed, copied=False):
        if given is not None and not _same(given, kept):
            says = "an observation changes after it was handed out, in the next step"
            return about("broken", says, next="return a copy, or copy each observation before it is stored")
        given, kept = shown, _kept(shown)
    return about("fine", "observations stay as they were handed out")


def _episode(env: "ParallelEnv", seed: int, *, copied: bool = True) -> Iterator[tuple[Any, Any]]:
    """Observations and rewards of random play with fixed actions."""
    spaces = {agent: copy.deepcopy(env.action_space(agent)) for agent in env.possible_agents}
    for number, space in enumerate(spaces.values()):
        space.seed(seed + number)
    keep = _kept if copied else (lambda shown: shown)
    shown, infos = env.reset(seed=seed)
    yield keep(shown), {}
    for _ in range(STEPS):
        if not env.agents:
            return
        chosen = {agent: sample_action(spaces[agent], shown[agent], infos.get(agent)) for agent in env.agents}
        shown, rewards, _, _, infos = env.step(chosen)
        yield keep(shown), dict(rewards)


def _kept(shown: Any) -> Any:
    return copy.deepcopy(shown)


def _both(shown: Views, agents: list[Any], one: int, other: int) -> bool:
    return agents[one] in shown and agents[other] in shown


def _same(one: Any, other: Any) -> bool:
    """Whether two observations are equal, down to their arrays."""
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    try:
        return bool(np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True))
    except TypeError:
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
