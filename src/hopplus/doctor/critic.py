"""What feeds the critic? Value losses, rewards and targets of real and imagined data, and the part to blame."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from hopplus.doctor import imagined_rollout_checks, rollout_checks
from hopplus.doctor.attribution import Attribution, attribute, can_attribute
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.doctor.progress import LONGER, learned
from hopplus.runs.records import Recorded, final_by_seat, final_means, seat_tags
from hopplus_doctor.answer import Finding, Picture, Verdict
from hopplus_doctor.statistics import Interval, mean_of_known, ratio_interval, seed_interval

ASKS = "what feeds the critic?"
TO_BLAME = {
    "reward": "imagined rewards",
    "transition": "world: board",
    "termination": "world: ends",
    "co-players": "others",
    "goals": "goals",
}
EXPLAINED = "policy/explained_variance"
FIFTHS = 5
LARGE, VERY_LARGE = 0.75, 1.5
"""Errors of imagined targets over the spread of true returns: suspicious, broken. A constant guess has 1."""
FAR, VERY_FAR = 3.0, 10.0
"""Ratios of imagined to real value losses, rewards or targets: suspicious, broken."""
EXPLAINS = "fine above 0, suspicious below 0 unless it still rises, by the 95% interval over seeds"
FARTHER = f"suspicious above {FAR:g} times, broken above {VERY_FAR:g}, by the 95% interval over seeds"
OFF = f"suspicious above {LARGE:.0%}, broken above {VERY_LARGE:.0%}, by the 95% interval"


def ask(examined: ExaminedRun) -> Iterator[Finding]:
    """Yield the findings."""
    yield from rollout_checks.targets(examined)
    yield learned(examined.recorded)
    yield explained_variance(examined)
    if not examined.learner.imagination.is_used:
        yield Finding(
            "imagined rollouts",
            "imagination",
            "exact",
            "fine",
            "this agent has no imagination: its critic sees real data",
        )
        return
    checks = imagined_rollout_checks
    for check in (checks.rewards, checks.legal, checks.goals, checks.ends):
        if finding := check(examined):
            yield finding
    yield from sources(examined)
    if examined.is_symmetric and can_attribute(examined) and not examined.learner.planning.is_used:
        yield blame(attribute(examined))


def explained_variance(examined: ExaminedRun) -> Finding:
    """The critics' explained variance on real data, over the last fifth of training."""
    by_seat = final_by_seat(examined.recorded, EXPLAINED)
    effect = seed_interval(by_seat.mean(axis=1))
    samples = dict(zip(examined.seats, by_seat.T.tolist(), strict=True))
    picture = Picture("boxes", "explained variance of each seat's critic, by seed", examined.seats, samples)
    verdict: Verdict = "suspicious" if effect.high < 0 else "fine" if effect.low > 0 else "not enough evidence"
    says = f"the critics explain {effect.estimate:.0%} of the variance of their real targets at the end of training"
    if verdict == "suspicious" and is_rising(examined.recorded):
        verdict, says = "not enough evidence", f"{says}, but the share was still rising when the run ended"
    about = partial(Finding, "explained variance", "critic", "judgement", threshold=EXPLAINS)
    return about(verdict, says, effect, "of the variance", picture=picture, more=LONGER)


def is_rising(recorded: Recorded) -> bool:
    """Whether the explained variance of the last fifth of training is above that of the fifth before, by its interval
    over seeds. Fewer updates than fifths cannot tell."""
    tags = seat_tags(recorded, EXPLAINED) or [EXPLAINED]
    by_update = np.stack([recorded.metrics[tag] for tag in tags]).mean(axis=0)
    if len(by_update) < FIFTHS:
        return True
    *_, before, last = (mean_of_known(part.T) for part in np.array_split(by_update, FIFTHS))
    return seed_interval(last - before).low > 0


def sources(examined: ExaminedRun) -> Iterator[Finding]:
    """Compare real and imagined value losses, rewards and targets over the last fifth of training."""
    compared = {
        "value loss": ("policy/value_loss_real", "policy/value_loss_imagined"),
        "mean reward": ("real/reward_mean", "imagined/reward_mean"),
        "mean target": ("real/return_mean", "imagined/return_mean"),
    }
    for name, families in compared.items():
        real, imagined = (_by_seed(examined, family) for family in families)
        known = np.isfinite(real) & np.isfinite(imagined)
        if not known.any():
            words = "no imagined step was trusted at the end of training, so the critic saw no imagined data"
            about = partial(Finding, name, "imagination", "judgement", threshold=FARTHER)
            yield about("not enough evidence", words, next=f"hopplus doctor world {examined.folder}")
            continue
        samples = {"real": real[known].tolist(), "imagined": imagined[known].tolist()}
        picture = Picture("boxes", f"{name} at the end of training, by seed", tuple(samples), samples)
        yield _compared(examined, name, real[known], imagined[known], picture)


def _by_seed(examined: ExaminedRun, family: str) -> np.ndarray:
    return final_means(examined.recorded, family) if family in examined.recorded.metrics else np.full(1, np.nan)


def _compared(examined: ExaminedRun, name: str, real: np.ndarray, imagined: np.ndarray, picture: Picture) -> Finding:
    effect = ratio_interval(imagined, real)
    about = partial(Finding, name, "imagination", "judgement", threshold=FARTHER, effect=effect, picture=picture)
    return about(
        _how_far(effect),
        f"{name}: imagined {imagined.mean():.3g}, real {real.mean():.3g}, {effect.estimate:.2g} times",
        unit="times the real one",
        next=f"hopplus doctor world {examined.folder}",
    )


def _how_far(ratio: Interval) -> Verdict:
    """By the size of the ratio, whatever its sign. One seed has no interval; then the ratio itself decides."""
    size = abs(ratio.estimate)
    at_least = size if np.isnan(ratio.low) else max(ratio.low, -ratio.high, 0.0)
    if at_least > FAR:
        return "broken" if at_least > VERY_FAR else "suspicious"
    return "not enough evidence" if size > FAR else "fine"


def blame(attribution: Attribution) -> Finding:
    """Blame the part that, replaced by the true one, removes most of the error of imagined targets."""
    parts = tuple(attribution.shares)
    shares = [attribution.shares[part] for part in parts]
    picture = Picture(
        "bars",
        "error of imagined targets that goes away with the true part",
        parts,
        {"share": [share.estimate for share in shares]},
        "of the squared error",
        {"share": [share.low for share in shares]},
        {"share": [share.high for share in shares]},
    )
    most = max(parts, key=lambda part: attribution.shares[part].estimate)
    error = attribution.error
    verdict: Verdict = "broken" if error.low > VERY_LARGE else "suspicious" if error.low > LARGE else "fine"
    words = f"imagined targets are off by {error.estimate:.0%} of the spread of true returns"
    if verdict != "fine" or error.low > 0.1:
        words += f"; {_share_words(most, attribution.shares[most])}"
    about = partial(Finding, "attribution", TO_BLAME[most], "judgement", verdict, words, error, picture=picture)
    advice = None if verdict == "fine" else f"check the {most} first"
    return about(unit="of the spread of returns", next=advice, threshold=OFF)


def _share_words(part: str, share: Interval) -> str:
    return f"with the true {part} {share.estimate:.0%} ({share.low:.0%} to {share.high:.0%}) of that goes away"
