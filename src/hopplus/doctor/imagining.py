"""Is imagined play possible play? It must keep the rules that are known beforehand: all findings are exact."""

from functools import cache, cached_property, partial

import jax
import numpy as np

from hopplus.doctor.answer import Finding, Picture
from hopplus.doctor.case import Case
from hopplus.learning import imagination
from hopplus.learning.learner import by_seat
from hopplus.learning.rollout import Trajectory
from hopplus.learning.worlds import SAME_REWARD


class ImaginedPlay:
    """Imagined play of every seat of every seed, from where its real play stopped; [seats][tables, time]."""

    def __init__(self, case: Case):
        self._case = case

    @cached_property
    def steps(self) -> list[list[Trajectory]]:
        return [[self.of(seed, seat) for seat in range(len(self._case.seats))] for seed in self._case.seeds]

    @cached_property
    def _imagine(self):
        """`imagination.imagine` as training calls it, compiled."""
        config = self._case.learner
        return jax.jit(partial(imagination.imagine, config.imagination, config.mind, self._case.game))

    def of(self, seed: int, seat: int) -> Trajectory:
        """One seat's, with the first member of its worlds."""
        state, begin = self._case.state(seed), self._case.lived[seed].begin
        assert begin is not None
        seated = by_seat(self._case.task, (state.params, state.minds, state.worlds))
        params, mind, members = jax.tree.map(lambda leaf: leaf[seat], seated)
        member = jax.tree.map(lambda leaf: leaf[0], members)
        own = jax.tree.map(lambda leaf: leaf[seat], begin)
        return self._imagine(params, mind, member, own, key=jax.random.fold_in(jax.random.key(0), seat))[0]

    def shares(self, wrong) -> np.ndarray:
        """Of the steps that each seat was in the game, [seats]: a mean over seeds of what `wrong` tells of a record."""
        return np.array([[_share(wrong(steps), steps) for steps in of_seed] for of_seed in self.steps]).mean(axis=0)


@cache
def imagined_play(case: Case) -> ImaginedPlay:
    """Compiled once, and imagined once, whoever asks."""
    return ImaginedPlay(case)


def _share(wrong: np.ndarray, steps: Trajectory) -> float:
    active = np.asarray(steps.in_game[..., 0])
    return float((wrong & active).sum() / max(active.sum(), 1))


def goals(case: Case) -> Finding | None:
    """Does the policy read goals in imagined play as it does in real play?"""
    real = np.abs(np.asarray(case.lived[0].steps.goals)).sum(-1)
    if real.size == 0 or not real.any():
        return None
    told = imagined_play(case).shares(lambda steps: np.abs(np.asarray(steps.goals[:, :, 0])).sum((-1, -2)) > 0)
    return _judged(
        case,
        "imagined goals",
        1 - told,
        "of its imagined steps {seat} has no goals to read, which real play has",
        "every imagined step carries the goals that the seat would infer",
        "look at what imagined play hands to the policy as goals",
    )


def rewards(case: Case) -> Finding:
    """Does imagined play pay what the game can pay?"""
    support = np.asarray(case.game.spec.reward_support)
    outside = lambda steps: _distance(np.asarray(steps.rewards[..., 0]), support) > SAME_REWARD  # noqa: E731
    return _judged(
        case,
        "imagined rewards",
        imagined_play(case).shares(outside),
        "of its imagined steps pay {seat} what the game never pays",
        "every imagined reward is one that the game can pay",
        "look at what happens to rewards between the world and the buffer: are they scaled, or summed?",
    )


def _distance(values: np.ndarray, support: np.ndarray) -> np.ndarray:
    return np.abs(values[..., None] - support).min(axis=-1)


def legal(case: Case) -> Finding:
    """Are imagined actions masked as real ones would be on the same board?"""
    allowed = jax.jit(jax.vmap(jax.vmap(case.game.legal_in_view)))

    def wrong(steps: Trajectory) -> np.ndarray:
        views = jax.tree.map(lambda leaf: leaf[:, :, 0], steps.observation)
        return (np.asarray(allowed(views)) != np.asarray(steps.legal[:, :, 0])).any(-1)

    return _judged(
        case,
        "imagined legal actions",
        imagined_play(case).shares(wrong),
        "of its imagined steps offer {seat} other actions than the rules allow there",
        "imagined steps offer the actions that the rules allow",
        "mask imagined actions by the predicted board, as real ones are",
    )


def ends(case: Case) -> Finding | None:
    """Does a seat that has left the imagined board leave the imagined game?"""
    if not case.has_board:
        return None
    gone = lambda steps: ~np.asarray(steps.observation.planes[:, :, 0, ..., 0]).any((-1, -2))  # noqa: E731
    return _judged(
        case,
        "imagined ends",
        imagined_play(case).shares(gone),
        "of its imagined steps {seat} plays on though it has left the board",
        "who leaves the imagined board leaves the imagined game",
        "look at how imagined play learns that a seat is done: the world must predict ends",
        module="world: ends",
    )


def _judged(
    case: Case, check: str, shares: np.ndarray, wrong: str, right: str, advice: str, *, module: str | None = None
) -> Finding:
    picture = Picture("bars", f"{check}: share of steps that cannot be", case.seats, {"share": shares.tolist()})
    about = partial(Finding, check, module or check, picture=picture)
    if not shares.any():
        return about("fine", right)
    seat = int(shares.argmax())
    return about("broken", f"{shares[seat]:.1%} {wrong.format(seat=case.seats[seat])}", next=advice)
