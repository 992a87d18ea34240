"""Is the world model good where it matters? The measures of `hopplus evaluate --world`, judged, and where it errs."""

from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.doctor import playing
from hopplus.doctor.answer import Finding, Picture
from hopplus.doctor.case import Case
from hopplus.evaluation.world import by_world, judge, transitions_of
from hopplus.games.game import GameSpec, ego_order
from hopplus.learning.worlds import SAME_REWARD
from hopplus.models import world
from hopplus.models.world import Outcome, Transition, World
from hopplus.runs.records import Recorded

ASKS = "is the world model good where it matters?"
EPISODES, DRAWS = 64, 5
POOR, BAD = 0.9, 0.5
"""Shares of right predictions below which a world is suspicious, or broken."""
FALLING = 0.9
"""While its error falls to this share of itself within a fifth of training, a world is still learning."""


def ask(case: Case) -> Iterator[Finding]:
    """One finding after the other."""
    if not case.learner.world.is_used:
        yield Finding("models", "world", "fine", "this agent learns no world")
        return
    if found := playing.alignment(case):
        yield found
    run = case.run
    players = jax.tree.map(lambda leaf: leaf[0], run.lineup())
    judged = judge(run.game, run.every_world, players, EPISODES, DRAWS, key=jax.random.key(0))
    happened = jax.tree.map(jnp.asarray, transitions_of(judged.records["self-play"]))
    told = foretold(run.game.spec, judged.worlds, happened)
    rate = partial(_rate, is_learning(case.recorded))
    yield exact(rate, judged.figures)
    yield from moments(rate, happened, told)
    right = judged.figures["self-play"]["open_loop_exact"]
    yield rate("five steps", "world: board", right, "of boards are right after five imagined steps")
    yield impossible(judged.impossible_drawn)
    yield seats(rate, case, happened)
    yield where(run.game.spec, happened, told)


def foretold(spec: GameSpec, every: World, happened: Transition) -> Outcome:
    """What every world says comes next, [worlds, rows]."""
    tell = lambda now: jax.lax.map(lambda params: jax.vmap(by_world(spec, params))(now).outcome, every)  # noqa: E731
    return jax.jit(tell)(happened.now)


def is_learning(recorded: Recorded) -> bool:
    """Whether its error on play that it had not learned from yet was still falling when the run ended."""
    errors = recorded.metrics["wm/board_error"].mean(axis=1)
    parts = [float(part.mean()) for part in np.array_split(errors, min(5, len(errors)))]
    return len(parts) < 2 or parts[-1] < FALLING * parts[-2]


def _rate(learning: bool, check: str, module: str, share: float, words: str, picture: Picture | None = None) -> Finding:
    """What a share of right predictions means: one that is middling may only be early."""
    says = f"{share:.1%} {words}"
    if share >= POOR:
        return Finding(check, module, "fine", says, picture=picture)
    if share < BAD:
        advice = "hopplus evaluate RUN --world shows its worst predictions"
        return Finding(check, module, "broken", says, picture=picture, next=advice)
    if learning:
        words = f"{says}, but it was still learning when the run ended"
        return Finding(check, module, "not enough evidence", words, picture=picture, next="train for longer")
    return Finding(check, module, "suspicious", says, picture=picture, next="hopplus evaluate RUN --world")


def exact(rate: Callable[..., Finding], figures: dict) -> Finding:
    """Whole boards that were foretold, cell for cell."""
    shares = {name: each["exact_next_state"] for name, each in figures.items() if name != "all"}
    picture = Picture("bars", "next boards that are foretold", tuple(shares), {"share": list(shares.values())})
    words = f"of the next boards of its own play are foretold, {shares['random play']:.1%} of random play"
    return rate("next board", "world: board", shares["self-play"], words, picture)


def moments(rate: Callable[..., Finding], happened: Transition, told: Outcome) -> Iterator[Finding]:
    """What is rare and what games are about: a reward, and a seat that leaves the game. Each for itself."""
    true = happened.after
    paid = np.asarray((true.rewards != 0) & ~happened.now.ended)
    leaves = np.asarray(true.ended & ~happened.now.ended)
    right = np.asarray(jnp.abs(told.rewards - true.rewards) < SAME_REWARD)
    share = lambda found, where: float(found[:, where].mean()) if where.any() else 1.0  # noqa: E731
    let_go = share(np.asarray(told.ended), leaves)
    yield rate("foretold rewards", "world: reward", share(right, paid), "of rewards are foretold")
    yield rate("ends", "world: ends", let_go, "of the moments at which a seat leaves the game are foretold")


def impossible(drawn: dict[str, int]) -> Finding:
    """Outcomes that no rule of the game allows, among many that were drawn."""
    total = sum(drawn.values())
    picture = Picture("bars", "impossible outcomes among those drawn", tuple(drawn), {"count": list(drawn.values())})
    says = f"{total} impossible outcomes among those drawn"
    return Finding("impossible outcomes", "world: board", "broken" if total else "fine", says, picture=picture)


def seats(rate: Callable[..., Finding], case: Case, happened: Transition) -> Finding:
    """Every seat's world, on what that seat learns from, in its own order."""
    spec = case.game.spec
    order = jnp.asarray(ego_order(spec.num_agents), jnp.int32)
    assert case.run.worlds is not None
    num_learners = case.run.worlds.cell.bias.shape[1]

    @jax.jit
    def right(params, order):
        own: Transition = world.seen_by(spec, happened, order)
        told = jax.vmap(by_world(spec, params))(own.now).outcome
        return jnp.mean(jnp.all(told.board == own.after.board, axis=(1, 2, 3)))

    of = lambda seed, learner: jax.tree.map(lambda leaf: leaf[seed, learner, 0], case.run.worlds)  # noqa: E731
    shares = np.array(
        [[float(right(of(seed, seat), order[seat])) for seat in range(num_learners)] for seed in case.seeds]
    )
    names = case.seats if num_learners > 1 else ("all seats",)
    picture = Picture(
        "boxes",
        "next boards foretold exactly, by seat and seed",
        names,
        dict(zip(names, shares.T.tolist(), strict=True)),
    )
    worst = int(shares.mean(axis=0).argmin())
    words = f"of next boards are foretold by the world of {names[worst]}, which is the worst, in its own order of seats"
    return rate("by seat", "world: data", float(shares.mean(axis=0)[worst]), words, picture)


def where(spec: GameSpec, happened: Transition, told: Outcome) -> Finding:
    """On which cells the first world errs."""
    errors = np.asarray(jnp.mean(jnp.any(told.board[0] != happened.after.board, axis=-1), axis=0), np.float64)
    rows = tuple(f"row {row + 1}" for row in range(spec.height))
    columns = {f"column {column + 1}": errors[:, column].tolist() for column in range(spec.width)}
    picture = Picture("matrix", "cells that were foretold wrongly", rows, columns, unit="share of steps")
    row, column = np.unravel_index(errors.argmax(), errors.shape)
    says = f"it errs most in row {row + 1}, column {column + 1}: in {errors.max():.2%} of steps"
    return Finding("where on the board", "world: board", "fine", says, picture=picture)
