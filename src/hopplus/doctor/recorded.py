"""`doctor game --recorded`: episodes that people saved, played again, and the returns of seats with the same player."""

import time
from pathlib import Path

import numpy as np

from hopplus.games.game import Game
from hopplus.learning.page_episodes import read_page_episodes
from hopplus_doctor.answer import Answer, Finding
from hopplus_doctor.environment import answer_of
from hopplus_doctor.names import player_name
from hopplus_doctor.seat_differences import MATTERS, Measured, scale_of, standing_out, trends

PLAYED = "recorded play"


def examine_recorded(game: Game, name: str, path: Path) -> Answer:
    """Examine saved episodes of a game. Raises ValueError if an episode does not follow the game's rules."""
    started = time.monotonic()
    saved = read_page_episodes(path, game)
    rewards, in_game = np.asarray(saved.episodes.rewards), np.asarray(saved.episodes.in_game)
    returns = np.where(in_game, rewards, 0).sum(axis=1).astype(np.float64)
    says = f"all {len(returns):,} episodes, played again by the rules of {name}, have the same rewards and ends"
    findings = [Finding("recorded episodes", "game: rules", "exact", "fine", says)]
    groups = seats_alike(saved.seats)
    if not groups:
        says = "no two seats had the same player in every episode, so no seats are compared"
        findings.append(Finding("recorded seats", "game: roles", "exact", "fine", says))
    for player, group in groups.items():
        findings += _compare(returns[:, group], player, group)
    return answer_of(findings, started)


def seats_alike(seats: tuple[tuple[str, ...], ...]) -> dict[str, list[int]]:
    """The seats that had the same player in every episode, two or more of each, by a name for the player."""
    columns = list(zip(*seats, strict=True))
    found = {column: [seat for seat, other in enumerate(columns) if other == column] for column in columns}
    named = ((column[0] if len(set(column)) == 1 else "the same players", group) for column, group in found.items())
    return {name: group for name, group in named if len(group) > 1}


def _compare(returns: np.ndarray, player: str, group: list[int]) -> list[Finding]:
    next_step = "play more episodes; `hopplus doctor game` without --recorded examines the game itself"
    seats = tuple(map(player_name, group))
    measured = Measured(
        check=f"recorded returns of {player}",
        module="game: returns",
        what="return",
        values=returns,
        seats=seats,
        matters=MATTERS * scale_of(returns),
        next=next_step,
        more=next_step,
        played=PLAYED,
    )
    return [standing_out(measured), *trends(measured)]
