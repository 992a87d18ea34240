"""A run initialised from another: policies, critics, opponent models and worlds."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array

from hopplus.learning.optim import Trained
from hopplus.learning.state import LearnerState
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import read_config
from hopplus.runs.run import last_state


def check_init_from(config: RunConfig) -> None:
    """Raise if the other run's parameters do not fit."""
    if config.init_from is None:
        return
    other = read_config(Path(config.init_from))
    spec, of_other = config.evaluation_game.spec, other.evaluation_game.spec
    if (spec.interface, spec.num_agents) != (of_other.interface, of_other.num_agents):
        raise ValueError(f"--init-from: {config.init_from} plays {other.game}, not {config.game}; give another run")
    for name in ("network", "opponents"):
        own, others = getattr(config.learner, name), getattr(other.learner, name)
        if own != others:
            raise ValueError(f"--init-from: {config.init_from} has {others}, this run {own}; give the same settings")
    if other.learner.utilities.is_used != config.learner.utilities.is_used:
        has, gives = ("has", "0.75") if other.learner.utilities.is_used else ("has no", "0")
        raise ValueError(
            f"--init-from: {config.init_from} {has} hidden utilities, which its policies read; give --utilities.share "
            f"{gives}, or another run"
        )
    if other.learner.sharing == "independent" and (
        config.learner.sharing != "independent" or other.task.num_learning != config.task.num_learning
    ):
        raise ValueError(
            f"--init-from: each of the {other.task.num_learning} learning seats of {config.init_from} has parameters "
            "of its own; give --sharing independent and as many learning seats"
        )


def with_init_from(config: RunConfig, states: LearnerState) -> LearnerState:
    """The states with the parameters of the other run: seed by seed, repeated if this run has more seeds.

    Optimisers start fresh. Worlds are copied if both runs have the same world settings.
    """
    if config.init_from is None:
        return states
    folder = Path(config.init_from)
    other = read_config(folder)
    _, learned = last_state(folder, other)
    seeds = jnp.arange(config.seeds) % other.seeds

    def copied(part: Trained, learned: Trained) -> Trained:
        """The learned parameters in the shapes of this run; the optimiser stays fresh."""

        def copy(new: Array, old: Array) -> Array:
            return jnp.broadcast_to(new[seeds], old.shape).astype(old.dtype)

        return replace(part, params=jax.tree.map(copy, learned.params, part.params))

    own, theirs = states.learners, learned.learners
    learners = replace(own, policy=copied(own.policy, theirs.policy), opponents=copied(own.opponents, theirs.opponents))
    if own.world is not None and theirs.world is not None and config.learner.world == other.learner.world:
        learners = replace(learners, world=copied(own.world, theirs.world))
    return replace(states, learners=learners)
