"""`hopplus report`: one HTML page about a run, with a viewer of episodes."""

import jax
import numpy as np
from rich.console import Console

from hopplus.cli.verbs.report import Report
from hopplus.core.checks import check_seed
from hopplus.evaluation.decisions import decisions_of
from hopplus.games.draw import frames
from hopplus.games.rollout import play_episode
from hopplus.report import Replay, page
from hopplus.runs.lineups import seat_players
from hopplus.runs.records import read_run
from hopplus.runs.run import Run, load


def write_report(asked: Report) -> int:
    """Write the page of a run."""
    if asked.episodes < 1:
        raise ValueError(f"--episodes is {asked.episodes}; give 1 or more")
    check_seed(asked.seed)
    record, loaded = read_run(asked.run), load(asked.run)
    target = asked.out or asked.run / "report.html"
    if target.is_dir():
        raise ValueError(f"{target} is a folder; give a file for the page, as in --out {target / 'report.html'}")
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} to write {target.name} into; give another --out")
    with Console(stderr=True).status("playing episodes and drawing"):
        target.write_text(page(record, _replays(loaded, asked)), encoding="utf-8")
    print(f"wrote {target}")
    return 0


def _replays(run: Run, asked: Report) -> list[Replay]:
    lineup, names = seat_players(run, asked.co_players, greedy=True, planning=asked.planning)
    play = jax.jit(lambda lineup, key: play_episode(run.game, lineup, key=key))
    replays = []
    for index in range(asked.episodes):
        of_seed = index % run.config.seeds
        one = jax.tree.map(lambda leaf, of_seed=of_seed: leaf[of_seed], lineup)
        episode = jax.device_get(play(one, jax.random.fold_in(jax.random.key(asked.seed), index)))
        returned = " ".join(f"{value:g}" for value in np.round(episode.returns, 2))
        title = f"episode {index + 1}, seed {of_seed}, greedy: {returned}"
        decisions = decisions_of(one.policies[0], run.game, episode.states, seat=0)
        replays.append(Replay(title, run.game.spec, frames(run.game, episode), names, decisions))
    return replays
