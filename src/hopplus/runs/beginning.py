"""A run that begins with what another one learned: policies, critics, models of the others, and worlds."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp

from hopplus.learning.learner import LearnerState
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import read_config
from hopplus.runs.run import last_state


def check_beginning(config: RunConfig) -> None:
    """Raise where what the other run learned does not fit."""
    if config.begin_with is None:
        return
    other = read_config(Path(config.begin_with))
    spec, of_other = config.evaluation_game.spec, other.evaluation_game.spec
    if (spec.board, spec.num_agents) != (of_other.board, of_other.num_agents):
        raise ValueError(f"--begin-with: {config.begin_with} plays {other.game}, not {config.game}; give another run")
    for name in ("network", "mind"):
        own, others = getattr(config.learner, name), getattr(other.learner, name)
        if own != others:
            raise ValueError(f"--begin-with: {config.begin_with} has {others}, this run {own}; give the same settings")
    if other.learner.sharing == "independent" and (
        config.learner.sharing != "independent" or other.task.num_learning != config.task.num_learning
    ):
        raise ValueError(
            f"--begin-with: each of the {other.task.num_learning} learning seats of {config.begin_with} has parameters "
            "of its own; give --sharing independent and as many learning seats"
        )


def with_beginning(config: RunConfig, states: LearnerState) -> LearnerState:
    """Seed after seed of the other run, from the first again where this one has more; optimisers start anew.

    Worlds are taken over where both runs have the same kind of them.
    """
    if config.begin_with is None:
        return states
    folder = Path(config.begin_with)
    other = read_config(folder)
    _, learned = last_state(folder, other)
    seeds = jnp.arange(config.seeds) % other.seeds
    copies = lambda new, old: jnp.broadcast_to(new[seeds], old.shape).astype(old.dtype)  # noqa: E731
    params, minds = jax.tree.map(copies, (learned.params, learned.minds), (states.params, states.minds))
    begun = replace(states, params=params, minds=minds)
    if config.learner.world != other.learner.world:
        return begun
    return replace(begun, worlds=jax.tree.map(copies, learned.worlds, states.worlds))
