"""What feeds the critic? Value losses by source, real against imagined rewards and targets, and what is to blame."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from hopplus.doctor import imagining, playing
from hopplus.doctor.answer import Finding, Picture, Verdict
from hopplus.doctor.attribution import Attribution, attribute
from hopplus.doctor.case import Case
from hopplus.evaluation.statistics import Interval, bootstrap, seed_interval
from hopplus.runs.records import final_by_seat, final_means

ASKS = "what feeds the critic?"
TO_BLAME = {
    "reward": "imagined rewards",
    "transition": "world: board",
    "termination": "world: ends",
    "co-players": "others",
    "goals": "goals",
}
LARGE, VERY_LARGE = 0.75, 1.5
"""Errors of imagined targets, over the spread of true returns: suspicious, broken. By guessing their mean one has 1."""
FAR, VERY_FAR = 3.0, 10.0
"""Ratios of imagined over real value losses."""


def ask(case: Case) -> Iterator[Finding]:
    """One finding after the other."""
    yield from playing.targets(case)
    yield explained_variance(case)
    if not case.learner.imagination.is_used:
        yield Finding("imagined play", "imagination", "fine", "this agent imagines nothing: its critic sees real data")
        return
    for about in (imagining.rewards, imagining.legal, imagining.goals, imagining.ends):
        if found := about(case):
            yield found
    yield from sources(case)
    if case.is_symmetric and not case.learner.planning.is_used:
        yield blame(attribute(case))


def explained_variance(case: Case) -> Finding:
    """How much of what can be explained the critic explains on real data, over the last fifth of training."""
    by_seat = final_by_seat(case.recorded, "policy/explained_variance")
    effect = seed_interval(by_seat.mean(axis=1))
    samples = dict(zip(case.seats, by_seat.T.tolist(), strict=True))
    picture = Picture("boxes", "explained variance of each seat's critic, by seed", case.seats, samples)
    verdict: Verdict = "suspicious" if effect.high < 0 else "fine"
    says = f"the critics explain {effect.estimate:.0%} of the variance of their real targets at the end of training"
    return Finding("explained variance", "critic", verdict, says, effect, "of the variance", picture=picture)


def sources(case: Case) -> Iterator[Finding]:
    """Real against imagined: value losses, rewards, targets, of the last fifth of training."""
    compared = {
        "value loss": ("policy/value_loss_real", "policy/value_loss_imagined"),
        "mean reward": ("real/reward_mean", "imagined/reward_mean"),
        "mean target": ("real/return_mean", "imagined/return_mean"),
    }
    for name, families in compared.items():
        real, imagined = (_by_seed(case, family) for family in families)
        known = np.isfinite(real) & np.isfinite(imagined)
        if not known.any():
            words = "no imagined step was trusted at the end of training, so nothing imagined reached the critic"
            yield Finding(name, "imagination", "not enough evidence", words, next=f"hopplus doctor world {case.folder}")
            continue
        samples = {"real": real[known].tolist(), "imagined": imagined[known].tolist()}
        picture = Picture("boxes", f"{name} at the end of training, by seed", tuple(samples), samples)
        yield _compared(case, name, real[known], imagined[known], picture)


def _by_seed(case: Case, family: str) -> np.ndarray:
    return final_means(case.recorded, family) if family in case.recorded.metrics else np.full(1, np.nan)


def _compared(case: Case, name: str, real: np.ndarray, imagined: np.ndarray, picture: Picture) -> Finding:
    ratio = lambda one, other: np.mean(one, -1) / np.maximum(np.abs(np.mean(other, -1)), 1e-9)  # noqa: E731
    effect = bootstrap(ratio, imagined, real)
    about = partial(Finding, name, "imagination", effect=effect, unit="times the real one", picture=picture)
    verdict: Verdict = "broken" if effect.estimate > VERY_FAR else "suspicious" if effect.estimate > FAR else "fine"
    return about(
        verdict,
        f"{name}: imagined {imagined.mean():.3g}, real {real.mean():.3g}, {effect.estimate:.2g} times",
        next=f"hopplus doctor world {case.folder}",
    )


def blame(found: Attribution) -> Finding:
    """The part whose truth takes most of the error of imagined targets away."""
    parts = tuple(found.shares)
    shares = [found.shares[part] for part in parts]
    picture = Picture(
        "bars",
        "error of imagined targets that goes away when a part is swapped for the truth",
        parts,
        {"share": [share.estimate for share in shares]},
        "of the squared error",
        {"share": [share.low for share in shares]},
        {"share": [share.high for share in shares]},
    )
    most = max(parts, key=lambda part: found.shares[part].estimate)
    error = found.error
    verdict: Verdict = "broken" if error.low > VERY_LARGE else "suspicious" if error.low > LARGE else "fine"
    words = f"imagined targets are off by {error.estimate:.0%} of the spread of true returns"
    if verdict != "fine" or error.low > 0.1:
        words += f"; {_told(most, found.shares[most])}"
    about = partial(Finding, "attribution", TO_BLAME[most], verdict, words, error, "of the spread of returns")
    return about(picture=picture, next=None if verdict == "fine" else f"look at the {most} first")


def _told(part: str, share: Interval) -> str:
    return f"with the true {part} {share.estimate:.0%} ({share.low:.0%} to {share.high:.0%}) of that goes away"
