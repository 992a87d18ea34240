"""Do imagined rollouts keep the known rules of the game? All findings are exact."""

from functools import cache, cached_property, partial

import jax
import numpy as np

from hopplus.doctor.examined_run import ExaminedRun, learned_params
from hopplus.learning import imagination
from hopplus.learning.initial import by_seat
from hopplus.learning.rollout import Trajectory
from hopplus.learning.worlds import SAME_REWARD
from hopplus_doctor.answer import Finding, Picture


class ImaginedRollouts:
    """Imagined rollouts of every seat of every seed, from the branching points of its experience."""

    def __init__(self, examined: ExaminedRun):
        self._examined = examined

    @cached_property
    def steps(self) -> list[list[Trajectory]]:
        """For each seed and each seat, [envs, time]."""
        return [[self.of(seed, seat) for seat in range(len(self._examined.seats))] for seed in self._examined.seeds]

    @cached_property
    def _imagine(self):
        """`imagination.imagine`, called as in training, compiled."""
        config, game = self._examined.learner, self._examined.game

        def one_seat(params, models, member, begin, *, key):
            players = imagination.ImaginedPlayers(params, models, game, config.opponents)
            return imagination.imagine(config.imagination, players, member, begin, key=key)

        return jax.jit(one_seat)

    def of(self, seed: int, seat: int) -> Trajectory:
        """The imagined rollouts of one seat, in the first member of its world ensemble."""
        state, begin = self._examined.state(seed), self._examined.experience[seed].branches
        assert begin is not None
        seated = by_seat(self._examined.task, learned_params(state))
        params, models, members = jax.tree.map(lambda leaf: leaf[seat], seated)
        member = jax.tree.map(lambda leaf: leaf[0], members)
        own = jax.tree.map(lambda leaf: leaf[seat], begin)
        return self._imagine(params, models, member, own, key=jax.random.fold_in(jax.random.key(0), seat))[0]

    def shares(self, wrong) -> np.ndarray:
        """For each seat, the share of its steps in the game for which `wrong(steps)` is true; a mean over seeds."""
        return np.array([[_share(wrong(steps), steps) for steps in of_seed] for of_seed in self.steps]).mean(axis=0)


@cache
def imagined_rollouts(examined: ExaminedRun) -> ImaginedRollouts:
    """The imagined rollouts of a run; all checks share them."""
    return ImaginedRollouts(examined)


def _share(wrong: np.ndarray, steps: Trajectory) -> float:
    active = np.asarray(steps.in_game[..., 0])
    return float((wrong & active).sum() / max(active.sum(), 1))


def goals(examined: ExaminedRun) -> Finding | None:
    """Does the policy read goals in imagined rollouts, as it does in real ones?"""
    real = np.abs(np.asarray(examined.experience[0].steps.goals)).sum(-1)
    if real.size == 0 or not real.any():
        return None

    def has_goals(steps: Trajectory) -> np.ndarray:
        return np.abs(np.asarray(steps.goals[:, :, 0])).sum((-1, -2)) > 0

    return _judged(
        examined,
        "imagined goals",
        1 - imagined_rollouts(examined).shares(has_goals),
        "of the imagined steps of {seat} have no goals; real steps have them",
        "every imagined step has the goals that the seat infers",
        "check which goals the policy reads in imagined rollouts",
    )


def rewards(examined: ExaminedRun) -> Finding | None:
    """Is every imagined reward one that the game can pay? Not asked if the game does not say which it can, or if the
    world does not know it."""
    support = np.asarray(examined.game.spec.reward_support)
    if not support.size or examined.learner.world.kind == "fields":
        return None

    def outside(steps):
        return _distance(np.asarray(steps.rewards[..., 0]), support) > SAME_REWARD

    return _judged(
        examined,
        "imagined rewards",
        imagined_rollouts(examined).shares(outside),
        "of the imagined steps of {seat} have a reward that the game never pays",
        "every imagined reward is one that the game can pay",
        "check the rewards between the world and the buffer: are they scaled, or summed?",
    )


def _distance(values: np.ndarray, support: np.ndarray) -> np.ndarray:
    return np.abs(values[..., None] - support).min(axis=-1)


def legal(examined: ExaminedRun) -> Finding:
    """Are imagined actions masked as real actions are on the same board?"""
    allowed = jax.jit(jax.vmap(jax.vmap(examined.game.legal_in_view)))

    def wrong(steps: Trajectory) -> np.ndarray:
        views = jax.tree.map(lambda leaf: leaf[:, :, 0], steps.observation)
        return (np.asarray(allowed(views)) != np.asarray(steps.legal[:, :, 0])).any(-1)

    return _judged(
        examined,
        "imagined legal actions",
        imagined_rollouts(examined).shares(wrong),
        "of the imagined steps of {seat} have another mask of legal actions than the rules",
        "the masks of legal actions in imagined steps are those of the rules",
        "mask imagined actions by the predicted board, as real actions are masked",
    )


def ends(examined: ExaminedRun) -> Finding | None:
    """Does a seat that leaves the imagined board also leave the imagined game?"""
    if not examined.has_board:
        return None

    def gone(steps):
        return ~np.asarray(steps.observation["planes"][:, :, 0, ..., 0]).any((-1, -2))

    return _judged(
        examined,
        "imagined ends",
        imagined_rollouts(examined).shares(gone),
        "of the imagined steps of {seat} come after it has left the board",
        "a seat that leaves the imagined board leaves the imagined game",
        "check how imagined rollouts terminate a seat: the world must predict terminations",
        module="world: ends",
    )


def _judged(
    examined: ExaminedRun,
    check: str,
    shares: np.ndarray,
    wrong: str,
    right: str,
    advice: str,
    *,
    module: str | None = None,
) -> Finding:
    picture = Picture("bars", f"{check}: share of wrong steps", examined.seats, {"share": shares.tolist()})
    about = partial(Finding, check, module or check, "exact", picture=picture)
    if not shares.any():
        return about("fine", right)
    seat = int(shares.argmax())
    return about("broken", f"{shares[seat]:.1%} {wrong.format(seat=examined.seats[seat])}", next=advice)
