"""`doctor game`: does a game treat its seats alike?

A game of hopplus is checked exactly (its spawns, its rules under relabelled seats, its views) and by random play. All
seats act at random, so their returns differ only by chance or because of the game. A PettingZoo environment is checked
by random play alone, in `hopplus_doctor.environment`.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial

from hopplus.doctor.random_play import GamePlayed, play_game
from hopplus.games import contract
from hopplus.games.game import Game
from hopplus.games.spawns import FALSE_ALARM
from hopplus_doctor.answer import Answer, Finding, OnProgress
from hopplus_doctor.environment import Advice, answer_of, budget_of, check_budget, longer, look_into, returns_of, silent
from hopplus_doctor.names import player_name
from hopplus_doctor.seat_differences import Measured, standing_out, trends

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
    check_budget(seconds, episodes)
    on_progress = on_progress or silent
    started = time.monotonic()
    findings = []
    for promise in contract.examine(game, only=PROMISES, seed=seed):
        on_progress(f"contract: {promise.name}")
        if promise.unchecked is None:
            findings.append(_promise_finding(promise, name))
    if all(finding.check != "contract, plays" for finding in findings):
        played = play_game(game, budget=budget_of(seconds, episodes), seed=seed, on_progress=on_progress)
        advice = Advice(look_into(name), longer(name, seconds, episodes))
        findings += game_findings(played, game.spec.seats_by_role, advice=advice)
    return answer_of(findings, started)


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
        returns = returns_of(played.returns[:, group], seats, suffix=suffix, advice=advice)
        findings += [standing_out(returns), *trends(returns)]
        if played.ties.any() and len(roles) == 1:
            shares = played.tie_excess * (played.ties.size / played.ties.sum())
            what = "share of a tie's reward beyond an equal one"
            ties = Measured("ties", "game: rules", what, shares, seats, TIE_MATTERS, advice.next, advice.more)
            findings.append(standing_out(ties))
    return findings


def _promise_finding(promise: contract.Finding, name: str) -> Finding:
    """A promise of the contract as a finding. Spawns are tested by a chi-square at a fixed level; the rest is exact."""
    module = PROMISES.get(promise.name, "game: rules")
    about = partial(Finding, f"contract, {promise.name}", module)
    about = partial(about, "test", threshold=SPAWN_LEVEL) if promise.name == "spawns" else partial(about, "exact")
    if promise.fault:
        return about("broken", promise.fault, next=f"hopplus check {name}")
    return about("fine", promise.promise)
