"""Does learning treat every seat alike? The same data in another seat must teach the same.

turned      every learner, with its data, keys and optimisers, moves on by one seat; then it must learn the same,
            to the bit where seats have parameters of their own, up to the order of a sum where they share
alone       one learner's optimiser is disturbed; then nobody else may learn anything else, to the bit
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from hopplus.doctor.answer import Finding, Picture
from hopplus.doctor.case import Case
from hopplus.doctor.influence import Influence
from hopplus.learning.learner import Experience, Learner, LearnerState
from hopplus.learning.replay import Kept
from hopplus.models.world import Outcome, Situation, Transition

SAME, SAME_WHEN_SHARED = 1e-3, 0.1
"""Differences of what was learned, relative to it, that are rounding."""
DISTURBED = 1e-4
"""One learner's optimiser is made this small, and not quite zero."""


def turned(case: Case) -> list[Finding]:
    """Every module that is learned, judged by all seeds."""
    if not case.is_symmetric:
        return []
    learned = [_learned(case, seed) for seed in case.seeds]
    found = []
    for module in learned[0]:
        differences, sizes = (np.stack([each[module][part] for each in learned]) for part in (0, 1))
        found.append(_judge_module(case, module, differences, sizes))
    return found


def _learned(case: Case, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each module: how differently each learner learns one seat further, and how many times as far it goes."""
    state, lived = case.state(seed), case.lived[seed]
    here, there = case.learn(state, lived)[0], case.learn(turn_state(case, state), turn_experience(case, lived))[0]
    steps = lambda after, before: jax.tree.map(jnp.subtract, after, before)  # noqa: E731
    found = {}
    for module, before in modules(state).items():
        moved = steps(modules(here)[module], before)
        elsewhere = turn_learners(case, steps(modules(there)[module], turn_learners(case, before, 1)), -1)
        size, size_elsewhere, off = (_norms(each) for each in (moved, elsewhere, steps(moved, elsewhere)))
        found[module] = off / np.maximum(size, 1e-12), size_elsewhere / np.maximum(size, 1e-12)
    return found


def _judge_module(case: Case, module: str, differences: np.ndarray, sizes: np.ndarray) -> Finding:
    shared = case.learner.sharing == "shared"
    names = ("all seats",) if shared else case.seats
    worst = differences.max(axis=0)
    title = f"{module}: how differently a seat learns when it sits elsewhere"
    picture = Picture("bars", title, names, {"relative difference": worst.tolist()})
    about = partial(Finding, f"{module}, turned", module, picture=picture)
    if worst.max() <= (SAME_WHEN_SHARED if shared else SAME):
        rounding = "to the bit" if worst.max() == 0 else f"up to rounding ({worst.max():.1e})"
        return about("fine", f"with the seats turned, {module} learns the same {rounding}")
    ratio = np.median(sizes, axis=0)
    far = int(np.abs(np.log(np.maximum(ratio, 1e-6))).argmax())
    return about(
        "broken",
        f"with the same data one seat further, the {module} of {names[far]} moves {_times(ratio[far])}",
        next=f"look for what depends on the seat in how {module} is updated: rate, number of updates, data",
    )


def _times(ratio: float) -> str:
    if ratio < 1e-6:
        return "not at all"
    if ratio > 1e6:
        return "only there: in its own seat it does not move at all"
    return "otherwise, though as far" if abs(np.log(ratio)) < 0.05 else f"{ratio:.2g} times as far"


def alone(case: Case) -> Finding | None:
    """Whether what one seat does to its optimiser reaches the others."""
    if case.learner.sharing == "shared" or len(case.seats) < 2:
        return None
    state, lived = case.state(0), case.lived[0]
    usual, _ = case.learn(state, lived)
    reached = np.zeros((len(case.seats), len(case.seats)))
    for seat in range(len(case.seats)):
        other, _ = case.learn(replace(state, optimizer=_disturb(state.optimizer, seat)), lived)
        for before, one, two in zip(*map(jax.tree.leaves, (state.params, usual.params, other.params)), strict=True):
            axes = tuple(range(1, one.ndim))
            step = np.maximum(np.abs(np.asarray(one - before)).max(axes), 1e-12)
            reached[seat] = np.maximum(reached[seat], np.abs(np.asarray(one - two)).max(axes) / step)
    found = Influence(case.seats, reached)
    title = "change of what a seat learns, by whose optimiser is disturbed"
    about = partial(
        Finding,
        "seats learn alone",
        "gradient clipping",
        picture=found.picture(title, "optimiser", "policy", most=10.0),
    )
    if found.wrong.any():
        seat, victim, share = found.worst
        return about(
            "broken",
            f"disturb the optimiser of {seat}, and the policy of {victim} learns otherwise, by {share:.1%} of its step",
            next="look for a norm or a mean over the gradients of several seats; clip each seat's by itself",
        )
    if not found.own.all():
        return about("not enough evidence", "the disturbance of an optimiser did not even reach its own seat")
    return about("fine", "what one seat's optimiser does reaches no other seat")


def _disturb(optimizer: PyTree[Array], seat: int) -> PyTree[Array]:
    is_float = lambda leaf: jnp.issubdtype(leaf.dtype, jnp.floating)  # noqa: E731
    other = lambda leaf: leaf.at[seat].set(DISTURBED * (1 + leaf[seat]))  # noqa: E731
    return jax.tree.map(lambda leaf: other(leaf) if is_float(leaf) else leaf, optimizer)


def modules(learned: LearnerState | Learner) -> dict[str, PyTree[Array]]:
    """What is learned, by name; leading axis: learners."""
    mind = learned.minds if isinstance(learned, LearnerState) else learned.mind
    goals = (mind.posterior, mind.prior)
    parts = {"policy": learned.params, "others": mind.others, "goals": goals, "world": learned.worlds}
    return {name: part for name, part in parts.items() if jax.tree.leaves(part)}


def _norms(tree: PyTree[Array]) -> np.ndarray:
    """One for each learner."""
    squares = [np.square(np.asarray(leaf, np.float64)).reshape(len(leaf), -1).sum(1) for leaf in jax.tree.leaves(tree)]
    return np.sqrt(np.sum(squares, axis=0))


def turn_learners(case: Case, tree: Any, shift: int) -> Any:
    """What belongs to learners moves on by so many seats; one that all seats share stays."""
    if case.learner.sharing == "shared":
        return tree
    return jax.tree.map(lambda leaf: jnp.roll(leaf, -shift, axis=0), tree)


def turn_state(case: Case, state: LearnerState) -> LearnerState:
    """Learners in the seat before theirs: seat 1 is then who was in seat 2."""
    names = ("params", "optimizer", "minds", "mind_optimizer", "worlds", "world_optimizer", "learner_keys")
    return replace(state, **{name: turn_learners(case, getattr(state, name), 1) for name in names})


def turn_experience(case: Case, lived: Experience) -> Experience:
    """And with them what they saw; what is kept in the order of seats is turned to the new one."""
    seats = lambda tree: jax.tree.map(lambda leaf: jnp.roll(leaf, -1, axis=0), tree)  # noqa: E731
    walkers = case.game.spec.num_walkers
    names = ("batch", "seen", "goals_seen", "begin")
    turned = {name: seats(getattr(lived, name)) for name in names}
    happened = None if lived.happened is None else turn_transition(walkers, lived.happened)
    kept = lived.replay
    if kept is not None:
        kept = replace(kept, experience=turn_kept(walkers, kept.experience))
    return replace(lived, **turned, happened=happened, replay=kept)


def turn_transition(walkers: int, happened: Transition) -> Transition:
    """Not by `world.seen_by`, which is among what is examined."""
    agents = lambda leaf: jnp.roll(leaf, -1, axis=-1)  # noqa: E731
    board = lambda leaf: jnp.concatenate([agents(leaf[..., :walkers]), leaf[..., walkers:]], axis=-1)  # noqa: E731
    now, after = happened.now, happened.after
    return Transition(
        Situation(board(now.board), now.time, agents(now.actions), agents(now.ended)),
        Outcome(board(after.board), agents(after.rewards), agents(after.ended)),
    )


def turn_kept(walkers: int, kept: Kept) -> Kept:
    agents = lambda leaf: jnp.roll(leaf, -1, axis=-1)  # noqa: E731
    return Kept(
        turn_transition(walkers, kept.transition), agents(kept.last_actions), agents(kept.labels), agents(kept.until)
    )
