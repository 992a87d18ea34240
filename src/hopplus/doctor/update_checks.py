"""Does an update treat every seat alike? It must depend neither on the seat's number nor on other seats' optimisers.

turned      Every learner moves on by one seat, with its data, keys and optimisers. Its update must stay the same: to
            the bit with independent parameters, up to the order of a sum with shared ones.
alone       One learner's optimiser is disturbed. The updates of all other learners must stay the same to the bit.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from hopplus.doctor.examined_run import ExaminedRun
from hopplus.doctor.influence import Influence
from hopplus.learning.replay import Kept
from hopplus.learning.state import Experience, Learner, LearnerState
from hopplus.models.world import Outcome, Situation, Transition
from hopplus_doctor.answer import Finding, Picture

SAME, SAME_WHEN_SHARED = 1e-3, 0.1
"""Relative differences of updates that count as rounding."""
DISTURBED = 1e-4
"""The factor by which the disturbance shrinks an optimiser's state."""


def turned(examined: ExaminedRun) -> list[Finding]:
    """One finding for each learned module, over all seeds."""
    if not examined.is_symmetric:
        return []
    learned = [_learned(examined, seed) for seed in examined.seeds]
    findings = []
    for module in learned[0]:
        differences, sizes = (np.stack([each[module][part] for each in learned]) for part in (0, 1))
        findings.append(_judge_module(examined, module, differences, sizes))
    return findings


def _learned(examined: ExaminedRun, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each module and learner: the relative difference of the update one seat further, and the ratio of sizes."""
    state, experience = examined.state(seed), examined.experience[seed]
    here, there = (
        examined.learn(state, experience)[0],
        examined.learn(turn_state(examined, state), turn_experience(examined, experience))[0],
    )

    def steps(after, before):
        return jax.tree.map(jnp.subtract, after, before)

    differences = {}
    for module, before in modules(state.learners).items():
        moved = steps(modules(here)[module], before)
        elsewhere = turn_learners(examined, steps(modules(there)[module], turn_learners(examined, before, 1)), -1)
        size, size_elsewhere, off = (_norms(each) for each in (moved, elsewhere, steps(moved, elsewhere)))
        differences[module] = off / np.maximum(size, 1e-12), size_elsewhere / np.maximum(size, 1e-12)
    return differences


def _judge_module(examined: ExaminedRun, module: str, differences: np.ndarray, sizes: np.ndarray) -> Finding:
    shared = examined.learner.sharing == "shared"
    names = ("all seats",) if shared else examined.seats
    worst = differences.max(axis=0)
    title = f"{module}: difference of a seat's update when it moves on by one seat"
    picture = Picture("bars", title, names, {"relative difference": worst.tolist()})
    about = partial(Finding, f"{module}, turned", module, "exact", picture=picture)
    if worst.max() <= (SAME_WHEN_SHARED if shared else SAME):
        rounding = "to the bit" if worst.max() == 0 else f"up to rounding ({worst.max():.1e})"
        return about("fine", f"with the seats turned, the update of {module} is the same {rounding}")
    ratio = np.median(sizes, axis=0)
    far = int(np.abs(np.log(np.maximum(ratio, 1e-6))).argmax())
    return about(
        "broken",
        f"with the same data one seat further, the {module} of {names[far]} moves {_times(ratio[far])}",
        next=f"check whether the update of {module} depends on the seat: learning rate, number of updates, data",
    )


def _times(ratio: float) -> str:
    if ratio < 1e-6:
        return "not at all"
    if ratio > 1e6:
        return "there, but not at all in its own seat"
    return "as far, in another direction" if abs(np.log(ratio)) < 0.05 else f"{ratio:.2g} times as far"


def alone(examined: ExaminedRun) -> Finding | None:
    """Does one seat's optimiser change the updates of other seats?"""
    if examined.learner.sharing == "shared" or len(examined.seats) < 2:
        return None
    state, experience = examined.state(0), examined.experience[0]
    usual, _ = examined.learn(state, experience)
    reached = np.zeros((len(examined.seats), len(examined.seats)))
    for seat in range(len(examined.seats)):
        policy = state.learners.policy
        disturbed = replace(policy, opt_state=_disturb(policy.opt_state, seat))
        other, _ = examined.learn(replace(state, learners=replace(state.learners, policy=disturbed)), experience)
        compared = (policy.params, usual.policy.params, other.policy.params)
        for before, one, two in zip(*map(jax.tree.leaves, compared), strict=True):
            axes = tuple(range(1, one.ndim))
            step = np.maximum(np.abs(np.asarray(one - before)).max(axes), 1e-12)
            reached[seat] = np.maximum(reached[seat], np.abs(np.asarray(one - two)).max(axes) / step)
    influence = Influence(examined.seats, reached)
    title = "change of a seat's update, by the seat whose optimiser is disturbed"
    about = partial(
        Finding,
        "seats learn alone",
        "gradient clipping",
        "exact",
        picture=influence.picture(title, "optimiser", "policy", most=10.0),
    )
    if influence.wrong.any():
        seat, victim, share = influence.worst
        return about(
            "broken",
            f"a disturbed optimiser of {seat} changes the policy update of {victim} by {share:.1%} of its size",
            next="look for a norm or a mean over the gradients of several seats; clip each seat's gradient by itself",
        )
    if not influence.own.all():
        words = "a disturbed optimiser does not change the update of its own seat"
        return about("not enough evidence", words, next="check that the policies still learn: --ppo.learning-rate")
    return about("fine", "one seat's optimiser changes no other seat's update")


def _disturb(optimizer: PyTree[Array], seat: int) -> PyTree[Array]:
    def is_float(leaf):
        return jnp.issubdtype(leaf.dtype, jnp.floating)

    def other(leaf):
        return leaf.at[seat].set(DISTURBED * (1 + leaf[seat]))

    return jax.tree.map(lambda leaf: other(leaf) if is_float(leaf) else leaf, optimizer)


def modules(learners: Learner) -> dict[str, PyTree[Array]]:
    """The learned parameters by module; leading axis: learners."""
    models = learners.opponents.params
    goals = (models.posterior, models.prior)
    world = learners.world.params if learners.world else None
    parts = {"policy": learners.policy.params, "others": models.others, "goals": goals, "world": world}
    return {name: part for name, part in parts.items() if jax.tree.leaves(part)}


def _norms(tree: PyTree[Array]) -> np.ndarray:
    """The norm of each learner's parameters."""
    squares = [np.square(np.asarray(leaf, np.float64)).reshape(len(leaf), -1).sum(1) for leaf in jax.tree.leaves(tree)]
    return np.sqrt(np.sum(squares, axis=0))


def turn_learners(examined: ExaminedRun, tree: Any, shift: int) -> Any:
    """Move learners on by `shift` seats; a learner that all seats share stays."""
    if examined.learner.sharing == "shared":
        return tree
    return jax.tree.map(lambda leaf: jnp.roll(leaf, -shift, axis=0), tree)


def turn_state(examined: ExaminedRun, state: LearnerState) -> LearnerState:
    """Move every learner to the seat before: the learner of seat 2 is then in seat 1."""
    learners, keys = turn_learners(examined, (state.learners, state.keys.learners), 1)
    seats = jnp.roll(state.keys.seats, -1, axis=0)
    return replace(state, learners=learners, keys=replace(state.keys, learners=keys, seats=seats))


def turn_experience(examined: ExaminedRun, experience: Experience) -> Experience:
    """Move the learners' experience to the seat before, and turn everything that is in the order of seats."""

    def seats(tree):
        return jax.tree.map(lambda leaf: jnp.roll(leaf, -1, axis=0), tree)

    walkers = examined.game.spec.num_walkers
    names = ("batch", "opponent_data", "goal_data", "branches")
    turned = {name: seats(getattr(experience, name)) for name in names}
    transitions = None if experience.transitions is None else turn_transition(walkers, experience.transitions)
    kept = experience.replay
    if kept is not None:
        kept = replace(kept, experience=turn_kept(walkers, kept.experience))
    return replace(experience, **turned, transitions=transitions, replay=kept)


def turn_transition(walkers: int, transition: Transition) -> Transition:
    """Turn the order of seats in a transition. It does not use `world.seen_by`, which is itself examined."""

    def agents(leaf):
        return jnp.roll(leaf, -1, axis=-1)

    def board(leaf):
        return jnp.concatenate([agents(leaf[..., :walkers]), leaf[..., walkers:]], axis=-1)

    now, after = transition.now, transition.after
    return Transition(
        Situation(board(now.board), now.time, agents(now.actions), agents(now.ended)),
        Outcome(board(after.board), agents(after.rewards), agents(after.ended)),
    )


def turn_kept(walkers: int, kept: Kept) -> Kept:
    """Turn the order of seats in the replay buffer's entries."""

    def agents(leaf):
        return jnp.roll(leaf, -1, axis=-1)

    return Kept(
        turn_transition(walkers, kept.transition), agents(kept.last_actions), agents(kept.labels), agents(kept.until)
    )
