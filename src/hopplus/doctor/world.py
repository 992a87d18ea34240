"""Is the world model good where it matters? Judges the measures of `hopplus evaluate --world`."""

from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.doctor import rollout_checks
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.evaluation.world import by_world, judge, transitions_of
from hopplus.games.game import GameSpec, ego_order
from hopplus.learning.worlds import SAME_REWARD
from hopplus.models import world
from hopplus.models.world import Outcome, Transition, WorldModel
from hopplus.runs.records import Recorded
from hopplus_doctor.answer import NO_THRESHOLD, Finding, Picture

ASKS = "is the world model good where it matters?"
EPISODES, DRAWS = 64, 5
POOR, BAD = 0.9, 0.5
"""Below these shares of right predictions a world is suspicious, or broken."""
FALLING = 0.9
"""A world is still learning if its error in the last fifth of training is below this share of the fifth before."""


def ask(examined: ExaminedRun) -> Iterator[Finding]:
    """Yield the findings."""
    if not examined.learner.world.is_used:
        yield Finding("models", "world", "exact", "fine", "this agent learns no world")
        return
    if finding := rollout_checks.alignment(examined):
        yield finding
    run = examined.run
    players = jax.tree.map(lambda leaf: leaf[0], run.lineup())
    judged = judge(run.game, run.every_world, players, EPISODES, DRAWS, key=jax.random.key(0))
    transition = jax.tree.map(jnp.asarray, transitions_of(judged.records["self-play"]))
    outcome = predicted(run.game.spec, judged.worlds, transition)
    rate = partial(_rate, is_learning(examined.recorded))
    yield exact(rate, judged.figures)
    yield from moments(rate, transition, outcome)
    right = judged.figures["self-play"]["open_loop_exact"]
    yield rate("five steps", "world: board", right, "of boards are right after five predicted steps")
    yield impossible(judged.impossible_drawn, examined.learner.world.kind)
    if world.has_shared_board(run.game.spec):
        yield seats(rate, examined, transition)
        yield where(run.game.spec, transition, outcome)


def predicted(spec: GameSpec, every: WorldModel, transition: Transition) -> Outcome:
    """The outcomes that every world predicts, [worlds, rows]."""

    def predict(now):
        return jax.lax.map(lambda params: jax.vmap(by_world(spec, params))(now).outcome, every)

    return jax.jit(predict)(transition.now)


def is_learning(recorded: Recorded) -> bool:
    """Whether the world's error on new data was still falling when the run ended."""
    errors = recorded.metrics["wm/board_error"].mean(axis=1)
    parts = [float(part.mean()) for part in np.array_split(errors, min(5, len(errors)))]
    return len(parts) < 2 or parts[-1] < FALLING * parts[-2]


def _rate(learning: bool, check: str, module: str, share: float, words: str, picture: Picture | None = None) -> Finding:
    """The finding for a share of right predictions. A middling share is no alarm while the world is still learning."""
    says = f"{share:.1%} {words}"
    threshold = f"suspicious below {POOR:.0%}, broken below {BAD:.0%}"
    about = partial(Finding, check, module, "judgement", picture=picture, threshold=threshold)
    if share >= POOR:
        return about("fine", says)
    if share < BAD:
        advice = "hopplus evaluate RUN --world shows its worst predictions"
        return about("broken", says, next=advice)
    if learning:
        words = f"{says}, but the world was still learning when the run ended"
        return about("not enough evidence", words, next="train for longer: --steps")
    return about("suspicious", says, next="hopplus evaluate RUN --world")


def exact(rate: Callable[..., Finding], figures: dict) -> Finding:
    """Are whole next boards predicted exactly?"""
    shares = {name: each["exact_next_state"] for name, each in figures.items() if name != "all"}
    picture = Picture("bars", "next boards predicted exactly", tuple(shares), {"share": list(shares.values())})
    words = f"of the next boards in self-play are predicted exactly, {shares['random play']:.1%} in random play"
    return rate("next board", "world: board", shares["self-play"], words, picture)


def moments(rate: Callable[..., Finding], transition: Transition, outcome: Outcome) -> Iterator[Finding]:
    """Are the rare steps that matter predicted: the steps with a reward, and those in which a seat leaves the game?"""
    true = transition.after
    paid = np.asarray((true.rewards != 0) & ~transition.now.ended)
    leaves = np.asarray(true.ended & ~transition.now.ended)
    right = np.asarray(jnp.abs(outcome.rewards - true.rewards) < SAME_REWARD)

    def share(predicted, where):
        return float(predicted[:, where].mean()) if where.any() else 1.0

    ends = share(np.asarray(outcome.ended), leaves)
    yield rate("predicted rewards", "world: reward", share(right, paid), "of rewards are predicted")
    yield rate("ends", "world: ends", ends, "of the steps in which a seat leaves the game are predicted")


def impossible(drawn: dict[str, int], kind: str) -> Finding:
    """Are all sampled outcomes possible by the rules of the game? A world of fields knows no rules."""
    total = sum(drawn.values())
    picture = Picture("bars", "impossible outcomes among the samples", tuple(drawn), {"count": list(drawn.values())})
    says = f"{total} impossible outcomes among the samples"
    if kind == "fields":
        says = f"{says}, which a world of fields may draw"
        return Finding(
            "impossible outcomes", "world: board", "judgement", "fine", says, picture=picture, threshold=NO_THRESHOLD
        )
    about = partial(Finding, "impossible outcomes", "world: board", "exact", picture=picture)
    return about("broken" if total else "fine", says)


def seats(rate: Callable[..., Finding], examined: ExaminedRun, transition: Transition) -> Finding:
    """Is every seat's world good? Each is judged on data in its own seat's order."""
    spec = examined.game.spec
    order = jnp.asarray(ego_order(spec.num_agents), jnp.int32)
    assert examined.run.worlds is not None
    num_learners = jax.tree.leaves(examined.run.worlds)[0].shape[1]

    @jax.jit
    def right(params, order):
        own: Transition = world.seen_by(spec, transition, order)
        outcome = jax.vmap(by_world(spec, params))(own.now).outcome
        return jnp.mean(jnp.all(outcome.board == own.after.board, axis=(1, 2, 3)))

    def of(seed, learner):
        return jax.tree.map(lambda leaf: leaf[seed, learner, 0], examined.run.worlds)

    shares = np.array(
        [[float(right(of(seed, seat), order[seat])) for seat in range(num_learners)] for seed in examined.seeds]
    )
    names = examined.seats if num_learners > 1 else ("all seats",)
    picture = Picture(
        "boxes",
        "next boards predicted exactly, by seat and seed",
        names,
        dict(zip(names, shares.T.tolist(), strict=True)),
    )
    worst = int(shares.mean(axis=0).argmin())
    words = f"of next boards are predicted exactly by the world of {names[worst]}, the worst one"
    return rate("by seat", "world: data", float(shares.mean(axis=0)[worst]), words, picture)


def where(spec: GameSpec, transition: Transition, outcome: Outcome) -> Finding:
    """On which cells does the first world err?"""
    errors = np.asarray(jnp.mean(jnp.any(outcome.board[0] != transition.after.board, axis=-1), axis=0), np.float64)
    rows = tuple(f"row {row + 1}" for row in range(spec.height))
    columns = {f"column {column + 1}": errors[:, column].tolist() for column in range(spec.width)}
    picture = Picture("matrix", "cells predicted wrongly", rows, columns, unit="share of steps")
    row, column = np.unravel_index(errors.argmax(), errors.shape)
    says = f"the world errs most in row {row + 1}, column {column + 1}: in {errors.max():.2%} of steps"
    about = partial(Finding, "where on the board", "world: board", "judgement", threshold=NO_THRESHOLD)
    return about("fine", says, picture=picture)
