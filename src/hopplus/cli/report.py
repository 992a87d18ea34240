"""`hopplus report`: one HTML page about a run, with a viewer of episodes."""

from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import tyro
from rich.console import Console

from hopplus.agents.config import PlanningConfig
from hopplus.cli.evaluate import RunPath
from hopplus.core.checks import check_seed
from hopplus.evaluation.decisions import decisions_of
from hopplus.games.draw import frames
from hopplus.games.rollout import play_episode
from hopplus.report import Replay, page
from hopplus.runs.lineups import seat_players
from hopplus.runs.records import read_run
from hopplus.runs.run import NO_PLANNING, Run, load


def report(
    run: RunPath,
    out: Path | None = None,
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 6,
    co_players: str | None = None,
    planning: PlanningConfig = NO_PLANNING,
    seed: int = 0,
) -> int:
    """Write an HTML page with learning curves, a comparison of seats, and a viewer of episodes. It needs no network.

    Beside the board the viewer shows the first seat's beliefs about its co-players, and its values or probabilities of
    actions.

    Args:
        run: A run folder.
        out: The file for the page. None: report.html in the run folder.
        episodes: Episodes of the final policies in the viewer. The seeds take turns.
        co_players: Players for the last seats of those episodes, as in `hopplus evaluate`.
        planning: Planning of the run's policies in those episodes.
        seed: The seed of those episodes.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")
    check_seed(seed)
    record, loaded = read_run(run), load(run)
    target = out or run / "report.html"
    if target.is_dir():
        raise ValueError(f"{target} is a folder; give a file for the page, as in --out {target / 'report.html'}")
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} to write {target.name} into; give another --out")
    with Console(stderr=True).status("playing episodes and drawing"):
        target.write_text(page(record, _replays(loaded, episodes, co_players, planning, seed)), encoding="utf-8")
    print(f"wrote {target}")
    return 0


def _replays(run: Run, episodes: int, co_players: str | None, planning: PlanningConfig, seed: int) -> list[Replay]:
    lineup, names = seat_players(run, co_players, greedy=True, planning=planning)
    play = jax.jit(lambda lineup, key: play_episode(run.game, lineup, key=key))
    replays = []
    for index in range(episodes):
        of_seed = index % run.config.seeds
        one = jax.tree.map(lambda leaf, of_seed=of_seed: leaf[of_seed], lineup)
        episode = jax.device_get(play(one, jax.random.fold_in(jax.random.key(seed), index)))
        returned = " ".join(f"{value:g}" for value in np.round(episode.returns, 2))
        title = f"episode {index + 1}, seed {of_seed}, greedy: {returned}"
        decisions = decisions_of(one.policies[0], run.game, episode.states, seat=0)
        replays.append(Replay(title, run.game.spec, frames(run.game, episode), names, decisions))
    return replays
