"""Play a run's final policies: the one function behind `hopplus evaluate` and `hopplus.evaluate`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from hopplus.agents.config import NO_PLANNING, PlanningConfig
from hopplus.core.checks import check_seed
from hopplus.evaluation.selfplay import Played, play
from hopplus.runs.lineups import seat_players
from hopplus.runs.run import Run, load


def evaluate(
    run: Run | Path | str,
    episodes: int = 1000,
    seed: int = 0,
    co_players: str | Sequence[Any] | None = None,
    *,
    rotate: int = 0,
    greedy: bool = False,
    planning: PlanningConfig = NO_PLANNING,
    on_batch: Callable[[int], None] | None = None,
) -> Played:
    """Play that many episodes with the policies of every seed of a run, or of a run folder, on the whole board.

    `co_players` replaces the last seats, as in `nearest_stag,random`, `runs/other:2` or a list with your own players;
    without it the seats are those of training. `greedy` policies take their likeliest action instead of a sample.
    `rotate` shifts every policy by that many seats. `on_batch` is called with the number of episodes of each batch.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; give 1 or more")
    check_seed(seed)
    run = run if isinstance(run, Run) else load(run)
    lineup, names = seat_players(run, co_players, greedy=greedy, rotate=rotate, planning=planning)
    return play(
        run.game,
        lineup,
        episodes,
        num_seeds=run.config.seeds,
        key=jax.random.key(seed),
        names=tuple(names),
        on_batch=on_batch,
    )
