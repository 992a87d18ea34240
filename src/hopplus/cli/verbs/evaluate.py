"""`hopplus evaluate`: evaluate the final policies and models of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.agents.config import NO_PLANNING, PlanningConfig
from hopplus.cli.verbs.types import RunPath, Switch
from hopplus.evaluation.config import Known
from hopplus.runs.config import CoPlayers


@dataclass(frozen=True)
class AdaptationSettings:
    """The co-players of the agent, the number of episodes with each line-up, and the oracles."""

    kinds: CoPlayers | None = None
    """With --adaptation: scripts for the co-players. Every line-up of them is played. None: one script that cooperates,
    one that does not, and random play, as in nearest_stag,nearest_hare,random."""
    series: int = 1
    """With --adaptation: episodes in a row with one line-up. The agent keeps its beliefs from one to the next."""
    known_co_players: Known = "nothing"
    """With --adaptation: what a planner knows of its co-players without inferring it. nothing; goals: their true goals;
    others: their true policies. The gain in return is the cost of its beliefs and of its opponent models."""
    oracles: Path = Path("runs/oracles")
    """With --adaptation: the folder of trained oracles."""
    oracle_steps: int | None = None
    """With --adaptation: steps of each seed of an oracle. None: 300,000 on small boards, 400,000 otherwise."""


DEFAULT_SETTINGS = AdaptationSettings()


@dataclass(frozen=True)
class Evaluate:
    """Play many episodes with the final policies of every seed: once with sampled actions, once with greedy ones.

    Intervals are 95% over seeds. Without --co-players the line-up is that of training, on the game's whole board."""

    run: RunPath
    """A run folder."""
    episodes: int = 10_000
    """Episodes for each seed."""
    co_players: str | None = None
    """Players for the last seats: scripts, as in nearest_stag,random, or runs, as in runs/a or runs/a:2
    (the policy of its second seat). The run's policies keep the seats before them."""
    rotate: int = 0
    """Move every policy on by this many seats, to see whether returns follow the policy or the seat."""
    others: Switch = False
    """Instead, evaluate the opponent models: their accuracy beside the best possible one, and whether the
    inferred goals change the policies. --co-players names the players to predict."""
    recorded: Path | None = None
    """With --others: predict the players of episodes that people saved from a page of `hopplus share`, instead."""
    world: Switch = False
    """Instead, evaluate the learned worlds on real episodes of random play, mixed scripts and self-play."""
    adaptation: Switch = False
    """Instead, play the frozen agent with every line-up of the game's scripts, beside the oracle (the best of several
    responses to that line-up). Oracles that --oracles lacks are trained first."""
    settings: Annotated[AdaptationSettings, tyro.conf.arg(name="")] = DEFAULT_SETTINGS
    """With --adaptation."""
    planning: PlanningConfig = NO_PLANNING
    """Plan before acting, with the run's models. A planner always takes the action of highest value."""
    seed: int = 0
    """The seed of all random numbers."""
    json: Switch = False
    """Print one line of JSON instead of tables."""

    def __call__(self) -> int:
        from hopplus.cli.evaluate import evaluate_run

        return evaluate_run(self)
