"""`game --env`: does a PettingZoo environment treat its agents alike? All agents act at random, so their returns differ
only by chance or because of the environment.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus_doctor.answer import Answer, Finding, OnProgress, settled
from hopplus_doctor.factories import load_factory
from hopplus_doctor.first_views import FirstViews
from hopplus_doctor.names import stem
from hopplus_doctor.random_play import Budget, EnvPlayed, play_env, reset_env
from hopplus_doctor.seat_differences import MATTERS, Measured, scale_of, standing_out, trends

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

QUESTION, ASKS = "game", "does the game treat its seats alike?"
ALL_ALIKE = "all"
"""Stands for all agents of an environment."""
SHARE_OF_PLAY = 0.8
"""Share of the time in which an environment is played; in the rest it is only reset."""


@dataclass(frozen=True)
class Advice:
    """What to do if a seat is treated differently, and how to get more evidence."""

    next: str
    more: str


def examine_env(
    make_env: Callable[[], "ParallelEnv"],
    name: str,
    *,
    seconds: float = 60.0,
    episodes: int | None = None,
    alike: Sequence[str] = (),
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Answer:
    """Examine a PettingZoo ParallelEnv by random legal play, for `seconds` or for `episodes`.

    Agents whose names differ only in a number are compared. With `alike`, the named agents are compared; ("all",)
    compares all. Raises ValueError before the first reset if no agents can be compared.
    """
    check_budget(seconds, episodes)
    on_progress = on_progress or silent
    with closing(checked_env(make_env(), name)) as env:
        agents = tuple(env.possible_agents)
        groups = [_named_group(agents, alike, name)] if alike else groups_of(agents)
        if not groups:
            raise ValueError(_cannot_compare(agents, name))
        views = [FirstViews(tuple(agents[index] for index in group)) for group in groups]

        def add_views(observations: Any) -> None:
            for group in views:
                group.add(observations)

        started = time.monotonic()
        play_budget = budget_of(SHARE_OF_PLAY * seconds, episodes)
        played = play_env(env, budget=play_budget, seed=seed, on_progress=on_progress, on_reset=add_views)
        reset_budget = budget_of(started + seconds - time.monotonic(), episodes)
        reset_env(env, budget=reset_budget, seed=seed, on_progress=on_progress, on_reset=add_views)
    subject = f"--env {name}" + (f" --alike {','.join(alike)}" if alike else "")
    advice = Advice(look_into(name), longer(subject, seconds, episodes))
    findings = _roles(agents, groups, is_given=bool(alike))
    for group, first_views in zip(groups, views, strict=True):
        suffix = f" of {_group_name(agents, group)}" if len(group) < len(agents) else ""
        findings.append(first_views.finding(suffix, advice=advice.next, more=advice.more))
        findings += env_findings(played, agents, group, suffix=suffix, advice=advice)
    return answer_of(findings, started)


def load_env(text: str) -> Callable[[], "ParallelEnv"]:
    """Import the factory `module:factory`, also from the working folder. The factory is not called."""
    return load_factory(text, "environment")


def env_findings(
    played: EnvPlayed, agents: Sequence[Hashable], group: Sequence[int], *, suffix: str, advice: Advice
) -> list[Finding]:
    """The findings of random play of an environment about one group of agents."""
    seats = tuple(str(agents[index]) for index in group)
    steps = played.steps[:, list(group)]
    staying = Measured(
        f"leaving{suffix}",
        "game: termination",
        "number of steps in the game",
        steps,
        seats,
        MATTERS * scale_of(steps),
        advice.next,
        advice.more,
    )
    returns = returns_of(played.returns[:, list(group)], seats, suffix=suffix, advice=advice)
    return [standing_out(returns), *trends(returns), standing_out(staying)]


def returns_of(returns: np.ndarray, seats: tuple[str, ...], *, suffix: str = "", advice: Advice) -> Measured:
    matters = MATTERS * scale_of(returns)
    return Measured(f"returns{suffix}", "game: returns", "return", returns, seats, matters, advice.next, advice.more)


def groups_of(agents: Sequence[Hashable]) -> list[list[int]]:
    """The indices of the agents of each role that has two agents or more."""
    stems = [stem(agent) for agent in agents]
    groups = [[index for index, other in enumerate(stems) if other == role] for role in dict.fromkeys(stems)]
    return [group for group in groups if len(group) > 1]


def _named_group(agents: Sequence[Hashable], alike: Sequence[str], name: str) -> list[int]:
    """The indices of the agents that `alike` names."""
    known = [str(agent) for agent in agents]
    wanted = known if tuple(alike) == (ALL_ALIKE,) else list(dict.fromkeys(alike))
    if unknown := [each for each in wanted if each not in known]:
        raise ValueError(f"{name!r} has no agent {unknown[0]!r}; its agents are {', '.join(known)}")
    if len(wanted) < 2:
        raise ValueError(f"--alike names {len(wanted)} agent of {name!r}; name two or more")
    return [known.index(each) for each in wanted]


def _cannot_compare(agents: Sequence[Hashable], name: str) -> str:
    names = list(map(str, agents))
    if len(names) < 2:
        return f"{name!r} has only one agent, {names[0]}; give an environment with two or more"
    return (
        f"no agents of {name!r} can be compared: by their names ({', '.join(names)}) no two have the same role; "
        f"if all have the same role, add --alike {ALL_ALIKE}; if some do, name them, as in "
        f"--alike {','.join(names[:2])}"
    )


def _group_name(agents: Sequence[Hashable], group: Sequence[int]) -> str:
    """The role of the agents if they share one; otherwise their names."""
    roles = {stem(agents[index]) for index in group}
    return roles.pop() if len(roles) == 1 else ", ".join(str(agents[index]) for index in group)


def _roles(agents: Sequence[Hashable], groups: Sequence[Sequence[int]], *, is_given: bool) -> list[Finding]:
    """A finding that names the agents that are compared; none if all are."""
    if len(groups[0]) == len(agents):
        return []
    if is_given:
        says = f"only {_group_name(agents, groups[0])} are compared, as --alike says"
    else:
        roles = ", ".join(dict.fromkeys(map(stem, agents)))
        says = f"by their names agents have different roles ({roles}); only agents of the same role are compared"
        says += "; use --alike to compare others"
    return [Finding("roles", "game: roles", "exact", "fine", says)]


def checked_env(env: Any, name: str) -> "ParallelEnv":
    """The environment, if it is one that can be examined."""
    try:
        from pettingzoo import ParallelEnv
    except ImportError as error:
        raise ImportError('--env needs PettingZoo; run: pip install "hopplus[pettingzoo]"') from error
    if not isinstance(env, ParallelEnv):
        raise ValueError(
            f"{name!r} gives a {type(env).__name__}, which is no pettingzoo.ParallelEnv; give a factory of one, or "
            "wrap an AECEnv in pettingzoo.utils.aec_to_parallel"
        )
    if not getattr(env, "possible_agents", None):
        raise ValueError(f"{name!r} has no possible_agents; set them, so that its seats are known")
    return env


def check_budget(seconds: float, episodes: int | None) -> None:
    if not seconds >= 0:
        raise ValueError(f"--seconds is {seconds:g}; give 0 or more")
    if episodes is not None and episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")


def budget_of(seconds: float, episodes: int | None) -> Budget:
    """A budget that starts now."""
    return Budget(time.monotonic() + seconds) if episodes is None else Budget(episodes=episodes)


def longer(subject: str, seconds: float, episodes: int | None) -> str:
    more = f"--seconds {10 * seconds:g}" if episodes is None else f"--episodes {10 * episodes}"
    return f"hopplus doctor game {subject} {more}"


def look_into(name: str) -> str:
    return f"look in {name} for code that depends on an agent's index: spawns, ties, the order of moves, payoffs"


def answer_of(findings: Sequence[Finding], started: float) -> Answer:
    """The answer with its verdicts, adjusted over its own tests."""
    return settled([Answer(QUESTION, ASKS, tuple(findings), time.monotonic() - started)])[0]


def silent(_: str) -> None:
    """Show no progress."""
