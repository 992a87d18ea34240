"""Does training treat every seat alike?

Exact questions first, which name the part at fault; then what the seats got, over seeds, which says whether it matters.
"""

from collections.abc import Iterator
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64
from scipy.stats import t as student

from hopplus.doctor import learning, playing
from hopplus.doctor.answer import Finding, Picture, Significance
from hopplus.doctor.case import Case
from hopplus.evaluation.selfplay import play
from hopplus.evaluation.statistics import Interval, page_trend
from hopplus.games.coplayers import Lineup
from hopplus.runs.records import final_by_seat, seat_tags

ASKS = "does training treat seats alike?"
MATTERS = 0.1
"""Of the mean return: a seat that gets less than this more or less than the others is not a finding."""
UNEVEN = 0.25
"""Of the mean count: episodes that end sooner for a seat make smaller differences than this."""
EPISODES = 250
MODULES = {"policy": "buffer", "episode_length": "buffer", "imagined": "imagination"}
"""Whom to blame where counts of this name are uneven; else it is the module of that name."""
LEAST_SEEDS = 3


def ask(case: Case) -> Iterator[Finding]:
    """One finding after the other."""
    yield playing.streams(case)
    yield playing.samples(case)
    yield from playing.targets(case)
    for about in (playing.goals, playing.company, playing.alignment):
        if found := about(case):
            yield found
    yield from learning.turned(case)
    if found := learning.alone(case):
        yield found
    yield from counts(case)
    if not case.is_symmetric:
        yield Finding(
            "returns", "seats", "not enough evidence", "fixed co-players sit at the table: seats need not get the same"
        )
        return
    yield from returns(case)
    yield rotated(case)


def counts(case: Case) -> Iterator[Finding]:
    """Updates and samples of every module, and what its buffer held, as the run recorded them."""
    families = sorted({tag.rsplit("/", 1)[0] for tag in case.recorded.metrics if tag.startswith(("count/", "buffer/"))})
    for family in families:
        tags = seat_tags(case.recorded, family)
        if len(tags) < 2:
            continue
        totals = np.stack([np.nanmean(case.recorded.metrics[tag], axis=0) for tag in tags], axis=-1)
        yield _even(case, family, totals)


def _even(case: Case, family: str, totals: Float64[np.ndarray, "seeds seats"]) -> Finding:
    module = MODULES.get(family.rsplit("/", 1)[-1], family.rsplit("/", 1)[-1])
    ratios = totals / np.maximum(totals.mean(axis=1, keepdims=True), 1e-12)
    seat, effect, p_value = stands_out(ratios - 1)
    means = totals.mean(axis=0)
    picture = Picture("bars", f"{family}, mean of an update", case.seats, {family: means.tolist()})
    says = f"{case.seats[seat]} has {1 + effect.estimate:.3g} times the mean of all seats of {family}"
    if np.all(ratios == 1):
        return Finding(family, module, "fine", f"the same for every seat: {means[0]:.6g} in an update", picture=picture)
    return Finding(family, module, "fine", says, effect, "of the mean", Significance(p_value, UNEVEN), picture)


def stands_out(values: Float64[np.ndarray, "seeds seats"]) -> tuple[int, Interval, float]:
    """The seat that differs most from 0, its interval over seeds, and a p-value for all seats together.

    With one seed nothing is known of the spread, and nothing can be said.
    """
    num_seeds, num_seats = values.shape
    mean = values.mean(axis=0)
    if num_seeds < LEAST_SEEDS:
        seat = int(np.abs(mean).argmax())
        return seat, Interval(float(mean[seat]), -np.inf, np.inf), 1.0
    error = np.maximum(values.std(axis=0, ddof=1) / np.sqrt(num_seeds), 1e-12)
    seat = int(np.abs(mean / error).argmax())
    p_value = min(1.0, 2 * num_seats * float(student.sf(abs(mean[seat]) / error[seat], num_seeds - 1)))
    half = float(student.ppf(1 - 0.025 / num_seats, num_seeds - 1) * error[seat])
    return seat, Interval(float(mean[seat]), float(mean[seat] - half), float(mean[seat] + half)), p_value


def final_returns(case: Case) -> Float64[np.ndarray, "seeds seats"]:
    """Of the last fifth of training, of the seeds that have returns of every seat."""
    blocks = final_by_seat(case.recorded)
    return blocks[np.isfinite(blocks).all(axis=1)]


def over_mean(values: Float64[np.ndarray, "seeds *policies seats"]) -> Float64[np.ndarray, "seeds *policies seats"]:
    """What is above the mean of a seed, in units of the mean of all."""
    of_seed = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True)
    return (values - of_seed) / max(abs(float(values.mean())), 1e-9)


def returns(case: Case) -> Iterator[Finding]:
    """What the seats got over the last fifth of training."""
    blocks = final_returns(case)
    if len(blocks) < LEAST_SEEDS:
        words = f"{len(blocks)} seeds have returns of every seat; train {LEAST_SEEDS} or more"
        yield Finding("returns", "seats", "not enough evidence", words, next="train again with --seeds 5")
        return
    over = over_mean(blocks)
    samples = {name: blocks[:, at].tolist() for at, name in enumerate(case.seats)}
    picture = Picture("boxes", "return of each seat over the last fifth of training, by seed", case.seats, samples)
    seat, effect, p_value = stands_out(over)
    more = "more" if effect.estimate > 0 else "less"
    says = f"{case.seats[seat]} gets {abs(effect.estimate):.1%} {more} than the mean of all seats"
    advice = f"hopplus doctor game {case.config.game}"
    about = partial(Finding, module="seats", verdict="fine", unit="of the mean", picture=picture, next=advice)
    yield about("returns", says=says, effect=effect, test=Significance(p_value, MATTERS))
    if blocks.shape[1] > 2:
        trend = page_trend(blocks)
        slope = np.polyfit(np.arange(blocks.shape[1]), over.T, 1)[0] * (blocks.shape[1] - 1)
        _, size, _ = stands_out(slope[:, None])
        says = f"from the first seat to the last, returns change by {size.estimate:+.1%}, if any {trend.direction}"
        test = Significance(trend.p_value, MATTERS)
        yield about("order of seats", says=says, effect=size, test=test)


def rotated(case: Case) -> Finding:
    """Do returns follow the policy or the seat? The trained policies are moved round the table."""
    values = _in_every_seat(case)
    num_seats = values.shape[1]
    over = over_mean(values)
    seat, effect, p_value = stands_out(over.mean(axis=1))
    of_policy = np.abs(over.mean(axis=2)).mean()
    columns = {f"seat {at + 1}": values.mean(axis=0)[:, at].tolist() for at in range(num_seats)}
    rows = tuple(f"policy of {name}" for name in case.seats)
    picture = Picture("matrix", "return of each policy in each seat", rows, columns)
    return Finding(
        "policies in other seats",
        "game: rules",
        "fine",
        f"whoever sits in seat {seat + 1} gets {effect.estimate:+.1%}; policies differ by {of_policy:.1%} in any seat",
        effect,
        "of the mean",
        Significance(p_value, MATTERS),
        picture,
        f"hopplus doctor game {case.config.game}",
    )


def _in_every_seat(case: Case) -> Float64[np.ndarray, "seeds policies seats"]:
    """Mean returns. Every turn of the table is so many more seeds to the program that plays."""
    players = case.run.players()
    num_seats, num_seeds = len(players), case.config.seeds
    arrays, static = zip(*(eqx.partition(player, eqx.is_array) for player in players), strict=True)
    turns = [arrays[num_seats - turn :] + arrays[: num_seats - turn] for turn in range(num_seats)]
    moved = [jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *of_seat) for of_seat in zip(*turns, strict=True)]
    lineup = Lineup(tuple(eqx.combine(*both) for both in zip(moved, static, strict=True)))
    played = play(case.run.game, lineup, EPISODES, num_seeds=num_seats * num_seeds, key=jax.random.key(0)).seat_means
    by_turn = played.reshape(num_seats, num_seeds, num_seats)
    turn_of = lambda policy, seat: (seat - policy) % num_seats  # noqa: E731
    rows = [[by_turn[turn_of(policy, seat), :, seat] for seat in range(num_seats)] for policy in range(num_seats)]
    return np.moveaxis(np.array(rows), -1, 0)
