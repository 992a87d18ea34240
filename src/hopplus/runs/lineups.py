"""Line-ups of trained policies, scripts and other runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.agents.config import NO_PLANNING, PlanningConfig
from hopplus.agents.player import Player
from hopplus.core.extensions import is_own
from hopplus.evaluation.crossplay import Guest
from hopplus.games.coplayers import Lineup, Policy
from hopplus.games.game import Game
from hopplus.games.lineups import check_policy, read_policies, seat_names, split
from hopplus.runs.run import Run, for_seeds, load

POPULATION = "population"
"""The name of a co-player that is drawn from the population of a best response."""


def seat_players(
    run: Run,
    co_players: str | Sequence[Any] | None,
    *,
    greedy: bool,
    rotate: int = 0,
    planning: PlanningConfig = NO_PLANNING,
) -> tuple[Lineup, list[str]]:
    """The policy of each seat and its name; arrays have a leading axis of the run's seeds.

    The run's policies take the first seats and the co-players the last; then all move on by `rotate` seats. Only the
    run's own policies plan.
    """
    seats = run.game.spec.num_agents
    if not 0 <= rotate < seats:
        raise ValueError(f"--rotate is {rotate}; give 0 to {seats - 1}, since {run.config.game} has {seats} seats")
    if co_players is None:
        players = run.lineup(greedy=greedy, planning=planning).policies
        names = [f"{run.folder.name}:{seat + 1}" for seat in range(run.num_learning)]
        names += seat_names(run.config.co_players) if run.config.co_players else []
        names += [POPULATION] * (seats - len(names))
    else:
        texts = [co_players] if isinstance(co_players, str) else co_players
        texts = [part for text in texts for part in (split(text) if isinstance(text, str) else [text])]
        first = run.players(greedy=greedy, planning=planning)[: max(seats - len(texts), 0)]
        if len(first) + len(texts) != seats or not first:
            raise ValueError(
                f"--co-players names {len(texts)} players; with the {run.num_learning} trained seats of {run.folder} "
                f"they must fill the {seats} seats of {run.config.game}, one of them at least by the run"
            )
        names = [f"{run.folder.name}:{seat + 1}" for seat in range(len(first))]
        names += [text if isinstance(text, str) else type(text).__name__ for text in texts]
        players = (*first, *(_player(text, run, len(first) + index, greedy) for index, text in enumerate(texts)))
    order = [(seat - rotate) % seats for seat in range(seats)]
    return Lineup(tuple(players[seat] for seat in order)), [names[seat] for seat in order]


def read_guests(texts: Sequence[str], planning: PlanningConfig) -> tuple[Game, list[Guest]]:
    """The game of the runs, which must be one, and the players of cross-play: runs and scripts.

    Runs that learned from search also search here, because their policies alone are only the prior of the search.
    """
    if len(set(texts)) < len(texts):
        raise ValueError("a player is named twice; name each once, a run plays with its own other seeds anyway")
    runs = {text: load(text) for text in texts if Path(text).is_dir()}
    if not runs:
        raise ValueError("give one run folder at least, as in runs/ppo: it names the game")
    game = next(iter(runs.values())).game
    guests = []
    for text in texts:
        if text not in runs:
            if "/" in text:
                raise ValueError(f"there is no run folder {text}; give a run, as in runs/other, or a script")
            (policy,) = read_policies(text, game)
            guests.append(Guest(text, (for_seeds(policy, 1),) * game.spec.num_agents, 1))
            continue
        run = runs[text]
        if not eqx.tree_equal(run.game, game):
            raise ValueError(f"{text} plays {run.config.game}; give runs of the same game")
        if run.population is None and run.num_learning < game.spec.num_agents:
            raise ValueError(f"{text} was trained among {run.config.co_players}; give runs whose seats all learned")
        searches = run.config.learner.planning.is_used and planning.is_used
        players = run.players(greedy=True, planning=planning) if searches else run.players()
        players = players * (game.spec.num_agents if run.population is not None else 1)
        guests.append(Guest(run.folder.name, players, run.config.seeds))
    if len({guest.name for guest in guests}) < len(guests):
        raise ValueError("two runs have the same name; give folders with different names")
    return game, guests


def _player(text: Any, run: Run, seat: int, greedy: bool) -> Policy:
    if not isinstance(text, str):
        return for_seeds(check_policy(text, run.game), run.config.seeds)
    if is_own(text.partition("(")[0]) and not Path(text.partition(":")[0]).is_dir():
        (policy,) = read_policies(text, run.game)
        return for_seeds(policy, run.config.seeds)
    path, number = (text, "") if not text or Path(text).is_dir() else _cut_number(text)
    if not text or not Path(path).is_dir():
        if "/" in text or ":" in text:
            raise ValueError(f"--co-players: there is no run folder {path}; give a run, as in runs/other, or a script")
        (policy,) = read_policies(text, run.game)
        return policy
    other = load(path)
    if not eqx.tree_equal(other.game, run.game):
        raise ValueError(f"{path} plays {other.config.game}, not {run.config.game}; give a run of the same game")
    chosen = _seat_of(other, number, seat)
    player = other.players(greedy=greedy)[chosen]
    pairs = [index % other.config.seeds for index in range(run.config.seeds)]
    return jax.tree.map(lambda leaf: leaf[jnp.array(pairs)], player)


def is_run(text: str) -> bool:
    """Whether the name of a player is that of a run folder, as in runs/a or runs/a:2."""
    return bool(text) and (Path(text).is_dir() or Path(_cut_number(text)[0]).is_dir())


def run_player(text: str, game: Game, seat: int) -> Player:
    """The first seed's player of a run, for a seat: that of the same seat, or of the seat after the colon."""
    path, number = (text, "") if Path(text).is_dir() else _cut_number(text)
    run = load(path)
    if run.game.spec.interface != game.spec.interface:
        raise ValueError(f"{path} plays {run.config.game}, which has another board; give a run of the same game")
    player = run.policy(seat=_seat_of(run, number, seat))
    assert isinstance(player, Player)
    return player


def _seat_of(run: Run, number: str, seat: int) -> int:
    """The seat that the number after the colon names, from 1 on; without one, that of the same seat."""
    if number and not (number.isdigit() and 1 <= int(number) <= run.num_learning):
        raise ValueError(f"{run.folder} has no seat {number}; give 1 to {run.num_learning}, as in {run.folder}:1")
    return int(number) - 1 if number else seat % run.num_learning


def _cut_number(text: str) -> tuple[str, str]:
    path, _, number = text.rpartition(":")
    return (path, number) if path else (text, "")
