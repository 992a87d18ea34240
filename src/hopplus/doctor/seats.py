"""Does training treat every seat alike?

Exact checks come first: they name the part at fault. Tests of the seats' returns over seeds then show its effect.
"""

from collections.abc import Iterator
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64
from scipy.stats import t as student

from hopplus.doctor import rollout_checks, update_checks
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.evaluation.selfplay import play
from hopplus.games.coplayers import Lineup
from hopplus.runs.records import final_by_seat, seat_tags
from hopplus_doctor.answer import Finding, Picture, Significance
from hopplus_doctor.statistics import Interval, page_trend

ASKS = "does training treat seats alike?"
MATTERS = 0.1
"""The smallest difference of a seat that matters, as a share of the mean return."""
UNEVEN = 0.25
"""The smallest difference of counts that matters, as a share of the mean. Episodes of uneven length differ by less."""
EPISODES = 250
MODULES = {"policy": "buffer", "episode_length": "buffer", "imagined": "imagination"}
"""The module to blame for uneven counts of this name; for other names, the module of that name."""
LEAST_SEEDS = 3


def ask(examined: ExaminedRun) -> Iterator[Finding]:
    """Yield the findings."""
    yield rollout_checks.streams(examined)
    yield rollout_checks.samples(examined)
    yield from rollout_checks.targets(examined)
    for check in (rollout_checks.goals, rollout_checks.examples_after_leaving, rollout_checks.alignment):
        if finding := check(examined):
            yield finding
    yield from update_checks.turned(examined)
    if finding := update_checks.alone(examined):
        yield finding
    yield from counts(examined)
    if not examined.is_symmetric:
        yield Finding(
            "returns",
            "seats",
            "test",
            "not enough evidence",
            "some seats have fixed co-players, so returns may differ between seats",
            next="examine a run that was trained without --co-players",
        )
        return
    yield from returns(examined)
    if not examined.game.spec.roles:
        yield rotated(examined)


def counts(examined: ExaminedRun) -> Iterator[Finding]:
    """Do all seats have the same number of updates, of samples and of buffer entries, as the run recorded them?"""
    families = sorted(
        {tag.rsplit("/", 1)[0] for tag in examined.recorded.metrics if tag.startswith(("count/", "buffer/"))}
    )
    for family in families:
        tags = [tag for tag in seat_tags(examined.recorded, family) if tag.rpartition("/")[2] in examined.seats]
        if len(tags) < 2:
            continue
        by_seat = np.stack([examined.recorded.metrics[tag] for tag in tags], axis=-1)
        has_numbers = np.isfinite(by_seat).any(axis=0).all(axis=-1)  # a seed in which no episode ended has no lengths
        if has_numbers.any():
            yield _even(examined, family, np.nanmean(by_seat[:, has_numbers], axis=0))


def _even(examined: ExaminedRun, family: str, totals: Float64[np.ndarray, "seeds seats"]) -> Finding:
    module = MODULES.get(family.rsplit("/", 1)[-1], family.rsplit("/", 1)[-1])
    ratios = totals / np.maximum(totals.mean(axis=1, keepdims=True), 1e-12)
    seat, effect, p_value = stands_out(ratios - 1)
    means = totals.mean(axis=0)
    picture = Picture("bars", f"{family}, mean of an update", examined.seats, {family: means.tolist()})
    says = f"{examined.seats[seat]} has {1 + effect.estimate:.3g} times the mean {family} of all seats"
    if np.all(ratios == 1):
        says = f"every seat has {means[0]:.6g} in an update"
        return Finding(family, module, "exact", "fine", says, picture=picture)
    return Finding(family, module, "test", "fine", says, effect, "of the mean", Significance(p_value, UNEVEN), picture)


def stands_out(values: Float64[np.ndarray, "seeds seats"]) -> tuple[int, Interval, float]:
    """The seat that differs most from 0, its interval over seeds, and a p-value for all seats together.

    With too few seeds for an interval, the interval is infinite and the p-value 1.
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


def final_returns(examined: ExaminedRun) -> Float64[np.ndarray, "seeds seats"]:
    """Mean returns over the last fifth of training, of the seeds that have returns of every seat."""
    blocks = final_by_seat(examined.recorded)
    return blocks[np.isfinite(blocks).all(axis=1)]


def over_mean(values: Float64[np.ndarray, "seeds *policies seats"]) -> Float64[np.ndarray, "seeds *policies seats"]:
    """The difference from the seed's mean, as a share of the mean of all."""
    of_seed = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True)
    return (values - of_seed) / max(abs(float(values.mean())), 1e-9)


def returns(examined: ExaminedRun) -> Iterator[Finding]:
    """Do returns over the last fifth of training differ between seats?"""
    blocks = final_returns(examined)
    if len(blocks) < LEAST_SEEDS:
        words = f"{len(blocks)} seeds have returns of every seat; the test needs {LEAST_SEEDS} or more"
        yield Finding("returns", "seats", "test", "not enough evidence", words, next="train again with --seeds 5")
        return
    roles = examined.game.spec.seats_by_role
    compared = {role: seats for role, seats in roles.items() if len(seats) > 1}
    if not compared:
        words = f"every seat has a role of its own ({', '.join(roles)}), so no seats are compared"
        yield Finding("returns", "seats", "exact", "fine", words)
    for role, seats in compared.items():
        names = tuple(examined.seats[seat] for seat in seats)
        yield from _returns_of(examined, blocks[:, seats], names, f" of {role}" if len(roles) > 1 else "")


def _returns_of(
    examined: ExaminedRun, blocks: Float64[np.ndarray, "seeds seats"], names: tuple[str, ...], suffix: str
) -> Iterator[Finding]:
    """The findings about seats of one role."""
    over = over_mean(blocks)
    samples = {name: blocks[:, at].tolist() for at, name in enumerate(names)}
    picture = Picture("boxes", "return of each seat over the last fifth of training, by seed", names, samples)
    seat, effect, p_value = stands_out(over)
    more = "more" if effect.estimate > 0 else "less"
    says = f"{names[seat]} gets {abs(effect.estimate):.1%} {more} than the mean of all seats{suffix}"
    advice = f"hopplus doctor game {examined.config.game}"
    about = partial(
        Finding, module="seats", kind="test", verdict="fine", unit="of the mean", picture=picture, next=advice
    )
    yield about(f"returns{suffix}", says=says, effect=effect, test=Significance(p_value, MATTERS))
    if blocks.shape[1] > 2:
        trend = page_trend(blocks)
        slope = np.polyfit(np.arange(blocks.shape[1]), over.T, 1)[0] * (blocks.shape[1] - 1)
        _, size, _ = stands_out(slope[:, None])
        says = (
            f"from the first seat to the last returns change by {size.estimate:+.1%} (if anything, {trend.direction})"
        )
        test = Significance(trend.p_value, MATTERS)
        yield about(f"order of seats{suffix}", says=says, effect=size, test=test)


def rotated(examined: ExaminedRun) -> Finding:
    """Do returns follow the policy or the seat? Every trained policy plays in every seat."""
    values = _in_every_seat(examined)
    num_seats = values.shape[1]
    over = over_mean(values)
    seat, effect, p_value = stands_out(over.mean(axis=1))
    of_policy = np.abs(over.mean(axis=2)).mean()
    columns = {f"seat {at + 1}": values.mean(axis=0)[:, at].tolist() for at in range(num_seats)}
    rows = tuple(f"policy of {name}" for name in examined.seats)
    picture = Picture("matrix", "return of each policy in each seat", rows, columns)
    return Finding(
        "policies in other seats",
        "game: rules",
        "test",
        "fine",
        f"seat {seat + 1} gets {effect.estimate:+.1%} with any policy; policies differ by {of_policy:.1%} in any seat",
        effect,
        "of the mean",
        Significance(p_value, MATTERS),
        picture,
        f"hopplus doctor game {examined.config.game}",
    )


def _in_every_seat(examined: ExaminedRun) -> Float64[np.ndarray, "seeds policies seats"]:
    """Mean returns of every policy in every seat. Every rotation of the policies is played as additional seeds."""
    players = examined.run.players()
    num_seats, num_seeds = len(players), examined.config.seeds
    arrays, static = zip(*(eqx.partition(player, eqx.is_array) for player in players), strict=True)
    turns = [arrays[num_seats - turn :] + arrays[: num_seats - turn] for turn in range(num_seats)]
    moved = [jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *of_seat) for of_seat in zip(*turns, strict=True)]
    lineup = Lineup(tuple(eqx.combine(*both) for both in zip(moved, static, strict=True)))
    played = play(
        examined.run.game, lineup, EPISODES, num_seeds=num_seats * num_seeds, key=jax.random.key(0)
    ).seat_means
    by_turn = played.reshape(num_seats, num_seeds, num_seats)

    def turn_of(policy, seat):
        return (seat - policy) % num_seats

    rows = [[by_turn[turn_of(policy, seat), :, seat] for seat in range(num_seats)] for policy in range(num_seats)]
    return np.moveaxis(np.array(rows), -1, 0)
