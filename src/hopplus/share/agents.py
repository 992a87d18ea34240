"""Trained agents as a page reads them: settings as JSON, weights as one row of float32 numbers."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from hopplus.agents.player import Player
from hopplus.models.actor_critic import ActorCritic
from hopplus.models.config import GOAL_KINDS
from hopplus.models.others import Others
from hopplus.runs.checkpoints import by_name
from hopplus.runs.run import Run
from hopplus.share.program import trained_seats

UNUSED = ("opponents.prior.", "opponents.posterior.recognition.")
"""Arrays that only training reads."""


@dataclass
class Weights:
    """The numbers of all arrays, one after the other."""

    parts: list[np.ndarray] = field(default_factory=list)
    length: int = 0

    def add(self, array: np.ndarray) -> int:
        """Append an array; returns where it starts."""
        start, flat = self.length, np.ascontiguousarray(array, "<f4").reshape(-1)
        self.parts.append(flat)
        self.length += flat.size
        return start

    def to_bytes(self) -> bytes:
        """All numbers in order."""
        return np.concatenate([np.zeros(0, "<f4"), *self.parts]).tobytes()


def page_agent(run: Run, name: str, weights: Weights, *, seed: int = 0) -> dict[str, Any]:
    """One seed of a run as a page reads it; its weights are appended. The agent plays its policy, without search."""
    players = trained_seats(run, seed)
    _check(players, run)
    arrays = {path: np.asarray(leaf) for path, leaf in by_name(players).items() if not path.startswith(UNUSED)}
    settings, goals = run.config.learner, players.config.goals
    one = jax.tree.map(lambda leaf: leaf[0], players)
    hidden = one.params.start()
    return {
        "name": name,
        "agent": str(run.config.agent),
        "sets": len(next(iter(arrays.values()))),
        "goals": {"kind": goals.kind, "size": one.goals.size, "evidence": goals.evidence, "hidden": goals.hidden},
        "goal_names": list(one.goals.names),
        "as_input": settings.opponents.others.as_input,
        "memory_size": 0 if hidden is None else len(hidden),
        "arrays": {
            path: {"shape": list(array.shape), "start": weights.add(array)} for path, array in sorted(arrays.items())
        },
    }


def _check(players: Player, run: Run) -> None:
    """Raise if a part is the user's own: the page has only the networks of hopplus."""
    others = players.opponents.others
    own = {
        "its policy network": not isinstance(players.params, ActorCritic),
        "its opponent model": others is not None and not isinstance(others, Others),
        "its goal model": players.config.goals.kind not in GOAL_KINDS,
    }
    if isinstance(others, Others) and others.paths is not None:
        raise ValueError(
            f"{run.folder} cannot be played in a page: its opponent models learn paths; use `hopplus export`"
        )
    if found := [name for name, is_own in own.items() if is_own]:
        raise ValueError(f"{run.folder} cannot be played in a page: {found[0]} is your own; use `hopplus export`")
