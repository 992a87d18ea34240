"""Does training treat every seat alike?

Exact checks come first: they name the part at fault. Tests of the seats' returns over seeds then show its effect.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from hopplus.doctor import rollout_checks, update_checks
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.evaluation.selfplay import play
from hopplus.games.coplayers import Lineup
from hopplus.runs.records import final_by_seat, seat_tags
from hopplus_doctor.answer import Finding, Picture, Significance
from hopplus_doctor.seat_returns import LEAST_SEEDS, MATTERS, over_mean, returns_of_seeds, stands_out

ASKS = "does training treat seats alike?"
UNEVEN = 0.25
"""The smallest difference of counts that matters, as a share of the mean. Episodes of uneven length differ by less."""
EPISODES = 250
MODULES = {"policy": "buffer", "episode_length": "buffer", "imagined": "imagination"}
"""The module to blame for uneven counts of this name; for other names, the module of that name."""


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


def final_returns(examined: ExaminedRun) -> Float64[np.ndarray, "seeds seats"]:
    """Mean returns over the last fifth of training, of the seeds that have returns of every seat."""
    blocks = final_by_seat(examined.recorded)
    return blocks[np.isfinite(blocks).all(axis=1)]


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
        suffix = f" of {role}" if len(roles) > 1 else ""
        yield from returns_of_seeds(blocks[:, seats], names, suffix, f"hopplus doctor game {examined.config.game}")


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
