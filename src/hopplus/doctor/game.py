"""`doctor game`: does a game treat its seats alike?

A game of hopplus is checked exactly (its spawns, its rules under relabelled seats, its views) and by random play. A
PettingZoo environment is checked by random play alone. All seats act at random, so their returns differ only by chance
or because of the game.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus.core.extensions import load_factory
from hopplus.doctor.answer import Answer, Finding, OnProgress, settled
from hopplus.doctor.first_views import FirstViews
from hopplus.doctor.random_play import Budget, EnvPlayed, GamePlayed, play_env, play_game, reset_env
from hopplus.doctor.seat_differences import MATTERS, Measured, scale_of, standing_out, trends
from hopplus.games import contract
from hopplus.games.draw import player_name
from hopplus.games.game import Game
from hopplus.games.roles import stem
from hopplus.games.spawns import FALSE_ALARM

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

QUESTION, ASKS = "game", "does the game treat its seats alike?"
ALL_ALIKE = "all"
"""Stands for all agents of an environment."""
SPAWN_LEVEL = f"broken below p = {FALSE_ALARM:.0e}, not adjusted"
PROMISES = {
    "spawns": "game: spawns",
    "seats": "game: rules",
    "ego views": "game: views",
    "rotated views": "game: views",
}
"""The promises of the contract that are about seats, and the part to blame if one is broken."""
TIE_MATTERS = 0.02
"""The smallest difference that matters, as a share of the reward of a tie."""
SHARE_OF_PLAY = 0.8
"""Share of the time in which an environment is played; in the rest it is only reset."""


@dataclass(frozen=True)
class Advice:
    """What to do if a seat is treated differently, and how to get more evidence."""

    next: str
    more: str


def examine_game(
    game: Game,
    name: str,
    *,
    seconds: float = 60.0,
    episodes: int | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Answer:
    """Examine a game of hopplus. Random play takes `seconds`, and at least one batch of episodes.

    With `episodes`, that many episodes are played instead, rounded up to whole batches.
    """
    _check_budget(seconds, episodes)
    on_progress = on_progress or _silent
    started = time.monotonic()
    findings = []
    for promise in contract.examine(game, only=PROMISES, seed=seed):
        on_progress(f"contract: {promise.name}")
        if promise.unchecked is None:
            findings.append(_promise_finding(promise, name))
    if all(finding.check != "contract, plays" for finding in findings):
        played = play_game(game, budget=_budget(seconds, episodes), seed=seed, on_progress=on_progress)
        advice = Advice(_look_into(name), _longer(name, seconds, episodes))
        findings += game_findings(played, game.spec.seats_by_role, advice=advice)
    return _answer(findings, started)


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
    _check_budget(seconds, episodes)
    on_progress = on_progress or _silent
    with closing(_checked(make_env(), name)) as env:
        agents = tuple(env.possible_agents)
        groups = [_named_group(agents, alike, name)] if alike else groups_of(agents)
        if not groups:
            raise ValueError(_cannot_compare(agents, name))
        views = [FirstViews(tuple(agents[index] for index in group)) for group in groups]

        def add_views(observations: Any) -> None:
            for group in views:
                group.add(observations)

        started = time.monotonic()
        play_budget = _budget(SHARE_OF_PLAY * seconds, episodes)
        played = play_env(env, budget=play_budget, seed=seed, on_progress=on_progress, on_reset=add_views)
        reset_budget = _budget(started + seconds - time.monotonic(), episodes)
        reset_env(env, budget=reset_budget, seed=seed, on_progress=on_progress, on_reset=add_views)
    subject = f"--env {name}" + (f" --alike {','.join(alike)}" if alike else "")
    advice = Advice(_look_into(name), _longer(subject, seconds, episodes))
    findings = _roles(agents, groups, is_given=bool(alike))
    for group, first_views in zip(groups, views, strict=True):
        suffix = f" of {_group_name(agents, group)}" if len(group) < len(agents) else ""
        findings.append(first_views.finding(suffix, advice=advice.next, more=advice.more))
        findings += env_findings(played, agents, group, suffix=suffix, advice=advice)
    return _answer(findings, started)


def load_env(text: str) -> Callable[[], "ParallelEnv"]:
    """Import the factory `module:factory`, also from the working folder. The factory is not called."""
    return load_factory(text, "environment")


def game_findings(played: GamePlayed, roles: Mapping[str, Sequence[int]], *, advice: Advice) -> list[Finding]:
    """The findings of random play of a game of hopplus, for each role that has two seats or more."""
    groups = {role: list(seats) for role, seats in roles.items() if len(seats) > 1}
    if not groups:
        says = f"every seat has a role of its own ({', '.join(roles)}), so no seats are compared"
        return [Finding("roles", "game: roles", "exact", "fine", says)]
    findings = []
    for role, group in groups.items():
        suffix = f" of {role}" if len(roles) > 1 else ""
        seats = tuple(map(player_name, group))
        returns = _returns(played.returns[:, group], seats, suffix=suffix, advice=advice)
        findings += [standing_out(returns), *trends(returns)]
        if played.ties.any() and len(roles) == 1:
            shares = played.tie_excess * (played.ties.size / played.ties.sum())
            what = "share of a tie's reward beyond an equal one"
            ties = Measured("ties", "game: rules", what, shares, seats, TIE_MATTERS, advice.next, advice.more)
            findings.append(standing_out(ties))
    return findings


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
    returns = _returns(played.returns[:, list(group)], seats, suffix=suffix, advice=advice)
    return [standing_out(returns), *trends(returns), standing_out(staying)]


def _returns(returns: np.ndarray, seats: tuple[str, ...], *, suffix: str = "", advice: Advice) -> Measured:
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


def _promise_finding(promise: contract.Finding, name: str) -> Finding:
    """A promise of the contract as a finding. Spawns are tested by a chi-square at a fixed level; the rest is exact."""
    module = PROMISES.get(promise.name, "game: rules")
    about = partial(Finding, f"contract, {promise.name}", module)
    about = partial(about, "test", threshold=SPAWN_LEVEL) if promise.name == "spawns" else partial(about, "exact")
    if promise.fault:
        return about("broken", promise.fault, next=f"hopplus check {name}")
    return about("fine", promise.promise)


def _checked(env: Any, name: str) -> "ParallelEnv":
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


def _check_budget(seconds: float, episodes: int | None) -> None:
    if not seconds >= 0:
        raise ValueError(f"--seconds is {seconds:g}; give 0 or more")
    if episodes is not None and episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")


def _budget(seconds: float, episodes: int | None) -> Budget:
    """A budget that starts now."""
    return Budget(time.monotonic() + seconds) if episodes is None else Budget(episodes=episodes)


def _longer(subject: str, seconds: float, episodes: int | None) -> str:
    more = f"--seconds {10 * seconds:g}" if episodes is None else f"--episodes {10 * episodes}"
    return f"hopplus doctor game {subject} {more}"


def _look_into(name: str) -> str:
    return f"look in {name} for code that depends on an agent's index: spawns, ties, the order of moves, payoffs"


def _answer(findings: Sequence[Finding], started: float) -> Answer:
    """The answer with its verdicts, adjusted over its own tests."""
    return settled([Answer(QUESTION, ASKS, tuple(findings), time.monotonic() - started)])[0]


def _silent(_: str) -> None:
    """Show no progress."""
