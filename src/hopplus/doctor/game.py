"""`doctor game`: does a game treat its seats alike?

A game of ours is asked exactly (its spawns, its rules under relabelled seats, its views) and by random play; anybody's
PettingZoo environment by random play alone. All play alike, so what they get differs by chance or by the game.
"""

import re
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus.doctor.alike import MATTERS, Measured, scale_of, standing_out, trends
from hopplus.doctor.answer import Answer, Finding, Tell, settled
from hopplus.doctor.first_views import FirstViews
from hopplus.doctor.random_play import EnvPlayed, TablesPlayed, play_env, play_tables, reset_env
from hopplus.games import contract
from hopplus.games.draw import player_name
from hopplus.games.game import Game
from hopplus.games.presets import load_factory

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

QUESTION, ASKS = "game", "does the game treat its seats alike?"
PROMISES = {"spawns": "game: spawns", "seats": "game: rules", "ego views": "game: views"}
"""Those of the contract that are about seats, and what is to blame where they are broken."""
TIE_MATTERS = 0.02
"""Of the reward of a tie."""
SHARE_OF_PLAY = 0.8
"""Of the time for an environment; the rest sees only beginnings."""


def ask(game: Game, name: str, *, seconds: float = 60.0, seed: int = 0, tell: Tell | None = None) -> Answer:
    """Of a game of ours; the seconds are for random play, of which there is one batch at least."""
    tell = tell or _silent
    started = time.monotonic()
    findings = []
    for promise in contract.examine(game, only=PROMISES, seed=seed):
        tell(f"contract: {promise.name}")
        findings.append(_promise_finding(promise, name))
    if all(finding.check != "contract, plays" for finding in findings):
        played = play_tables(game, deadline=time.monotonic() + seconds, seed=seed, tell=tell)
        findings += tables_findings(played, deeds=bool(game.spec.deeds), next_command=_longer(name, seconds))
    return _answer(findings, started)


def ask_env(
    make_env: Callable[[], "ParallelEnv"],
    name: str,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    tell: Tell | None = None,
) -> Answer:
    """Of any PettingZoo ParallelEnv, by random legal play until the time is up."""
    tell = tell or _silent
    started = time.monotonic()
    with closing(_checked(make_env(), name)) as env:
        agents = tuple(env.possible_agents)
        groups = groups_of(agents)
        views = [FirstViews(tuple(agents[index] for index in group)) for group in groups]

        def see(observations: Any) -> None:
            for group in views:
                group.add(observations)

        play_until, end = started + SHARE_OF_PLAY * seconds, started + seconds
        played = play_env(env, deadline=play_until, seed=seed, tell=tell, on_reset=see)
        reset_env(env, deadline=end, seed=seed, tell=tell, on_reset=see)
    next_command = _longer(f"--env {name}", seconds)
    findings = _roles(agents, groups)
    for group, first_views in zip(groups, views, strict=True):
        suffix = f" of {stem(agents[group[0]])}" if len(group) < len(agents) else ""
        findings.append(first_views.finding(suffix, next_command))
        findings += env_findings(played, agents, group, suffix=suffix, next_command=next_command)
    return _answer(findings, started)


def load_env(text: str) -> Callable[[], "ParallelEnv"]:
    """What `module:factory` names, looked for in the working folder too; the factory is not called yet."""
    return load_factory(text, "environment")


def tables_findings(played: TablesPlayed, *, deeds: bool, next_command: str) -> list[Finding]:
    """What random play of a game of ours says; without deeds, ties cannot be told."""
    seats = tuple(map(player_name, range(played.returns.shape[1])))
    returns = _returns(played.returns, seats, next_command=next_command)
    findings = [standing_out(returns), *trends(returns)]
    if deeds and played.ties.any():
        shares = played.tie_excess * (played.ties.size / played.ties.sum())
        what = "share of a tie's reward beyond an equal one"
        findings.append(standing_out(Measured("ties", "game: rules", what, shares, seats, TIE_MATTERS, next_command)))
    return findings


def env_findings(
    played: EnvPlayed, agents: Sequence[Hashable], group: Sequence[int], *, suffix: str, next_command: str
) -> list[Finding]:
    """What random play of an environment says about agents of one role."""
    seats = tuple(str(agents[index]) for index in group)
    steps = played.steps[:, list(group)]
    staying = Measured(
        f"leaving{suffix}",
        "game: termination",
        "number of steps in the game",
        steps,
        seats,
        MATTERS * scale_of(steps),
        next_command,
    )
    returns = _returns(played.returns[:, list(group)], seats, suffix=suffix, next_command=next_command)
    return [standing_out(returns), *trends(returns), standing_out(staying)]


def _returns(returns: np.ndarray, seats: tuple[str, ...], *, suffix: str = "", next_command: str) -> Measured:
    matters = MATTERS * scale_of(returns)
    return Measured(f"returns{suffix}", "game: returns", "return", returns, seats, matters, next_command)


def stem(agent: Hashable) -> str:
    """An agent's role by its name: `adversary_0` is an adversary."""
    return re.sub(r"[\W_]*\d+$", "", str(agent)) or "agent"


def groups_of(agents: Sequence[Hashable]) -> list[list[int]]:
    """The agents of each role that has two or more; agents of different roles may be treated differently."""
    stems = [stem(agent) for agent in agents]
    groups = [[index for index, other in enumerate(stems) if other == role] for role in dict.fromkeys(stems)]
    return [group for group in groups if len(group) > 1]


def _roles(agents: Sequence[Hashable], groups: Sequence[Sequence[int]]) -> list[Finding]:
    """Says who is compared with whom, where that is not all with all."""
    if groups and len(groups[0]) == len(agents):
        return []
    roles = ", ".join(dict.fromkeys(map(stem, agents)))
    if not groups:
        says = f"no two agents have the same role by their names ({roles}), so none are compared; number those alike"
        return [Finding("roles", "game: roles", "not enough evidence", says)]
    says = f"by their names agents have different roles ({roles}); only agents of the same role are compared"
    return [Finding("roles", "game: roles", "fine", says)]


def _promise_finding(promise: contract.Finding, name: str) -> Finding:
    module = PROMISES.get(promise.name, "game: rules")
    if promise.fault:
        return Finding(f"contract, {promise.name}", module, "broken", promise.fault, next=f"hopplus check {name}")
    return Finding(f"contract, {promise.name}", module, "fine", promise.promise)


def _checked(env: Any, name: str) -> "ParallelEnv":
    try:
        from pettingzoo import ParallelEnv
    except ImportError as error:
        raise ImportError('asking an environment needs an extra; run: pip install "hopplus[pettingzoo]"') from error
    if not isinstance(env, ParallelEnv):
        raise ValueError(
            f"{name!r} gives a {type(env).__name__}, which is no pettingzoo.ParallelEnv; "
            "an AECEnv whose agents act at once can be wrapped in pettingzoo.utils.aec_to_parallel"
        )
    if not getattr(env, "possible_agents", None):
        raise ValueError(f"{name!r} does not say its possible_agents, so that its seats are not known")
    return env


def _longer(subject: str, seconds: float) -> str:
    return f"hopplus doctor game {subject} --seconds {10 * seconds:g}"


def _answer(findings: Sequence[Finding], started: float) -> Answer:
    """With verdicts already, for whoever asks nothing else."""
    return settled([Answer(QUESTION, ASKS, tuple(findings), time.monotonic() - started)])[0]


def _silent(_: str) -> None:
    """Where nobody watches."""
