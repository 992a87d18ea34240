"""What feeds the critic? Losses, rewards and targets of real and imagined data, and the part to blame."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from hopplus_doctor.answer import Finding, Picture, Verdict
from hopplus_doctor.ask import TOLERANCE, absent, in_game, scale, share_words, unanswered
from hopplus_doctor.model_questions import POOR, USELESS
from hopplus_doctor.recording import Recording
from hopplus_doctor.target_questions import Rollout, rollout_of

ASKS = "what feeds the critic: do imagined data resemble real data?"
FAR, VERY_FAR = 3.0, 10.0
"""Ratios of imagined to real: suspicious, broken."""
FARTHER = f"suspicious above {FAR:g} times, broken above {VERY_FAR:g} times"
BEYOND = 0.5
"""A reward is new if it lies outside of the real ones by more than this share of their range."""


def ask(recording: Recording) -> Iterator[Finding]:
    """Yield the findings."""
    if not recording.groups.get("imagined"):
        words = "no imagined data are recorded; not every agent imagines"
        yield unanswered(
            "imagined data", "imagination", "judgement", "imagined", ["rewards", "values", "targets"], words
        )
        return
    yield imagined_rewards(recording)
    yield attribution(recording)  # before those that any wrong part raises
    yield value_loss(recording)
    yield sizes(recording, "targets")


def imagined_rewards(recording: Recording) -> Finding:
    """Are imagined rewards in the range of real ones, and of their size?"""
    check, part = "imagined rewards", "imagined rewards"
    both = [recording.get(group, "rewards") for group in ("real", "imagined")]
    if both[0] is None or both[1] is None:
        group = "real" if both[0] is None else "imagined"
        return unanswered(check, part, "judgement", group, ["rewards"])
    real, imagined = (
        array[in_game(recording, group, array.shape) & np.isfinite(array)]
        for group, array in zip(("real", "imagined"), both, strict=True)
        if array is not None
    )
    threshold = (
        f"beyond the real range by {BEYOND:.0%} of it: broken over 10%, suspicious over 1%; broken if constant, "
        f"suspicious at {FAR:g} times the spread"
    )
    about = partial(Finding, check, part, "judgement", threshold=threshold)
    if not real.size or not imagined.size or np.ptp(real) == 0:
        return about("not enough evidence", "real rewards do not vary, or there are none")
    room = BEYOND * np.ptp(real)
    beyond = float(((imagined < real.min() - room) | (imagined > real.max() + room)).mean())
    ratio = float(imagined.std() / real.std())
    says = f"{share_words(beyond)} of the imagined rewards lie beyond the real ones; "
    says += f"mean {imagined.mean():.3g}, real {real.mean():.3g}"
    verdict: Verdict = (
        "broken" if beyond > 0.1 or np.ptp(imagined) == 0 else "suspicious" if beyond > 0.01 or ratio > FAR else "fine"
    )
    if np.ptp(imagined) == 0:
        says = f"all imagined rewards are {imagined[0]:.3g}; real ones are {real.min():.3g} to {real.max():.3g}"
    samples = {"real": _some(real), "imagined": _some(imagined)}
    picture = Picture("boxes", "rewards by source", tuple(samples), samples)
    return about(verdict, says, picture=picture, next="compare the world's predicted rewards with those that came")


def _some(values: np.ndarray) -> list[float]:
    return values[np.linspace(0, len(values) - 1, min(len(values), 500)).astype(int)].tolist()


def value_loss(recording: Recording) -> Finding:
    """Is the value loss on imagined data of the size of that on real data?"""
    check, part = "value loss by source", "imagination"
    one, other = (recording.get("updates", f"value_loss_{group}") for group in ("real", "imagined"))
    if one is None or other is None:
        one, other = (_squares(recording, group) for group in ("real", "imagined"))
    if one is None or other is None:
        return unanswered(check, part, "judgement", "updates", ["value_loss_real", "value_loss_imagined"])
    if not np.isfinite(one).any() or not np.isfinite(other).any():
        return unanswered(check, part, "judgement", "updates", [], "the value losses are not finite")
    real, imagined = float(np.nanmean(one)), float(np.nanmean(other))
    ratio = float(imagined / max(real, 1e-12))
    samples = {"real": one.ravel().tolist(), "imagined": other.ravel().tolist()}
    picture = Picture("boxes", "value loss by source", tuple(samples), samples)
    verdict: Verdict = "broken" if ratio > VERY_FAR else "suspicious" if ratio > FAR else "fine"
    about = partial(Finding, check, part, "judgement", threshold=FARTHER, picture=picture)
    says = f"value loss: imagined {imagined:.3g}, real {real:.3g}, {ratio:.2g} times"
    return about(verdict, says, next="ask where imagined rewards, ends and values come from")


def _squares(recording: Recording, group: str) -> np.ndarray | None:
    values, targets = recording.get(group, "values"), recording.get(group, "targets")
    if values is None or targets is None:
        return None
    there = in_game(recording, group, values.shape)
    squares = np.where(there, (targets - values) ** 2, 0.0)
    return squares.sum((2, 3)) / there.sum((2, 3)).clip(1)


def sizes(recording: Recording, name: str) -> Finding:
    """Is the mean absolute target of imagined data of the size of that of real data?"""
    check, part = f"{name} by source", "imagination"
    real, imagined = (recording.get(group, name) for group in ("real", "imagined"))
    if real is None or imagined is None:
        return unanswered(check, part, "judgement", "real" if real is None else "imagined", [name])
    means = {}
    for group, array in (("real", real), ("imagined", imagined)):
        known = in_game(recording, group, array.shape) & np.isfinite(array)
        means[group] = float(np.abs(array[known]).mean()) if known.any() else np.nan
    ratio = means["imagined"] / max(means["real"], 1e-9)
    verdict: Verdict = "broken" if ratio > VERY_FAR else "suspicious" if ratio > FAR else "fine"
    picture = Picture("bars", f"mean absolute {name}", tuple(means), {name: list(means.values())})
    about = partial(Finding, check, part, "judgement", threshold=FARTHER, picture=picture)
    says = f"mean absolute {name}: imagined {means['imagined']:.3g}, real {means['real']:.3g}, {ratio:.2g} times"
    return about(verdict, says, next="ask where imagined rewards, ends and values come from")


def attribution(recording: Recording) -> Finding:
    """Which part makes imagined targets wrong? They are recomputed with the true rewards, and with the true ends.

    The thresholds are those of the world's predictions: where rewards are rare, a world that explains most of their
    variance still has an error of more than half of the spread.
    """
    check, part = "attribution", "imagination"
    names = ("true_rewards", "true_terminated")
    threshold = (
        f"by the variance of true targets that is explained: suspicious below {POOR:.0%}, broken below {USELESS:.0%}"
    )
    rewards, ends = (recording.get("imagined", name) for name in names)
    rollout = rollout_of(recording, "imagined")
    if rewards is None or ends is None or rollout is None:
        missing = absent(recording, "imagined", *names)
        words = "" if missing else "imagined rewards, values and ends, the discount and lambda are needed"
        return unanswered(check, part, "judgement", "imagined", missing, words)
    true = replace(rollout, rewards=rewards, stops=ends, cuts=ends)
    made, right = _targets(rollout), _targets(true)
    known = np.isfinite(made) & np.isfinite(right) & in_game(recording, "imagined", made.shape)
    about = partial(Finding, check, kind="judgement", threshold=threshold)
    if not known.any():
        return about(module=part, verdict="not enough evidence", says="no imagined target can be recomputed")
    spread = max(float(right[known].std()), TOLERANCE * scale(right[known]))
    share = 1 - float(np.mean((made - right)[known] ** 2)) / spread**2
    left = {
        "imagined rewards": replace(rollout, rewards=rewards),
        "world: ends": replace(rollout, stops=ends, cuts=ends),
    }
    total = float(np.mean((made - right)[known] ** 2))
    gone = {
        name: 1 - float(np.mean((_targets(other) - right)[known] ** 2)) / max(total, 1e-12)
        for name, other in left.items()
    }
    most = max(gone, key=gone.__getitem__)
    verdict: Verdict = "broken" if share < USELESS else "suspicious" if share < POOR else "fine"
    says = f"imagined targets explain {share:.0%} of the variance of true ones"
    if verdict != "fine":
        says += f"; with the true part {gone[most]:.0%} of the squared error goes away"
    picture = Picture(
        "bars", "squared error that goes away with the true part", tuple(gone), {"share": list(gone.values())}
    )
    return about(module=most, verdict=verdict, says=says, picture=picture, next=f"check the {most} first")


def _targets(rollout: Rollout) -> np.ndarray:
    return rollout.values + rollout.advantages()
