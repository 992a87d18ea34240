"""Does each seat's policy learn from its own samples, with its own random numbers and its own scale?"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import norm

from hopplus_doctor.answer import Finding, Picture, Significance
from hopplus_doctor.ask import absent, in_game, judged_equal, share_words, unanswered
from hopplus_doctor.recording import Recording
from hopplus_doctor.statistics import Interval

ASKS = "does each seat's policy learn from its own samples?"
RATIO = 1e-3
"""The first minibatch's log-probabilities may differ by this much, by rounding."""
ALIKE = 1e-3
"""Two scales of advantages are the same if they differ by less than this share."""
LINEAR = 1e-3
"""Normalised advantages must lie this near to a line, in standard deviations."""
CORRELATED = 0.2
"""The smallest correlation of two seats' random numbers that matters."""
LEAST_STEPS = 100


def ask(recording: Recording) -> Iterator[Finding]:
    """Yield the findings."""
    yield streams(recording)
    yield sampled(recording)
    yield probabilities(recording)
    yield ratio(recording)
    yield normalisation(recording)
    yield clipping(recording)


def streams(recording: Recording) -> Finding:
    """Has every seat a random stream of its own, and a new one in every update?"""
    check, module = "random streams", "random streams"
    ids = recording.get("updates", "stream_ids")
    if ids is None:
        return unanswered(check, module, "exact", "updates", ["stream_ids"])
    for first in range(ids.shape[1]):
        for second in range(first + 1, ids.shape[1]):
            if (ids[:, first] == ids[:, second]).any():
                names = f"{recording.seats[first]} and {recording.seats[second]}"
                share = share_words(float((ids[:, first] == ids[:, second]).mean()))
                says = f"{names} sample with the same random stream in {share} of the updates"
                return Finding(check, module, "exact", "broken", says, next="seed each seat's generator differently")
    if len(ids) > 1 and (ids == ids[:1]).all(axis=0).any():
        seat = recording.seats[int((ids == ids[:1]).all(axis=0).argmax())]
        says = f"{seat} begins every recorded update with the same random stream"
        return Finding(check, module, "exact", "broken", says, next="go on with the generator, or fold in the update")
    return Finding(check, module, "exact", "fine", "every seat has a random stream of its own")


def sampled(recording: Recording) -> Finding:
    """Are the draws of any two seats independent?

    Given what was seen, a draw falls with probability p(a) into the interval of its action, below which lies the
    probability of smaller actions. Its middle has the mean 1/2, so the products of two seats' middles, less 1/2, have
    the mean 0 if the draws are independent.
    """
    check, module = "same random numbers", "random streams"
    policy, actions = recording.get("real", "probabilities"), recording.get("real", "actions")
    if policy is None or actions is None:
        return unanswered(check, module, "test", "real", absent(recording, "real", "probabilities", "actions"))
    taken = np.clip(actions, 0, policy.shape[-1] - 1)[..., None]
    below = np.take_along_axis(np.cumsum(policy, -1), taken, -1)[..., 0]
    middle = below - np.take_along_axis(policy, taken, -1)[..., 0] / 2 - 0.5
    there = in_game(recording, "real", actions.shape) & np.isfinite(middle)
    worst, num_pairs = (0.0, 1.0, "", Interval(0.0, 0.0, 0.0)), 0
    for first in range(len(recording.seats)):
        for second in range(first + 1, len(recording.seats)):
            both = there[:, first] & there[:, second]
            one, other = middle[:, first][both], middle[:, second][both]
            spread = float(np.sqrt(np.sum(one**2 * other**2)))
            if both.sum() < LEAST_STEPS or spread == 0:
                continue
            num_pairs += 1
            size = float(np.sqrt(np.sum(one**2) * np.sum(other**2)))
            score, estimate = float(np.sum(one * other)) / spread, float(np.sum(one * other)) / size
            half = float(norm.isf(0.0025)) * spread / size
            if abs(score) > worst[0]:
                words = f"{recording.seats[first]} and {recording.seats[second]}"
                worst = (
                    abs(score),
                    2 * float(norm.sf(abs(score))),
                    words,
                    Interval(estimate, estimate - half, estimate + half),
                )
    if not num_pairs:
        says = f"no two seats have {LEAST_STEPS} random steps together"
        return Finding(check, module, "test", "not enough evidence", says, next="record more updates or envs")
    _, p_value, names, effect = worst
    says = f"the draws of {names} have a correlation of {effect.estimate:+.2f}; independent draws have 0"
    test = Significance(min(1.0, num_pairs * p_value), CORRELATED)
    advice = "give every seat a random generator of its own, with another seed"
    return Finding(check, module, "test", "fine", says, effect, "correlation", test, next=advice)


def probabilities(recording: Recording) -> Finding:
    """Are the recorded log-probabilities those of the policy, and is no illegal action possible?"""
    check, module = "log-probabilities", "policy: log-probabilities"
    policy, actions, logs = (recording.get("real", n) for n in ("probabilities", "actions", "log_probabilities"))
    if policy is None or actions is None or logs is None:
        missing = absent(recording, "real", "probabilities", "actions", "log_probabilities")
        return unanswered(check, module, "exact", "real", missing)
    there = in_game(recording, "real", actions.shape)
    masks = recording.get("real", "legal")
    if masks is not None and masks.shape == policy.shape:
        illegal = np.where(masks, 0.0, policy).max(-1) > RATIO
        if (illegal & there).any():
            return judged_equal(
                recording,
                check,
                "legal masks",
                (illegal & there).sum((0, 2, 3)) / there.sum((0, 2, 3)).clip(1),
                wrong="in {share} of the steps of {seat} illegal actions have a probability",
                right="",
                advice="apply the mask to the logits, with a large negative number, before the softmax",
            )
    chosen = np.take_along_axis(policy, np.clip(actions, 0, policy.shape[-1] - 1)[..., None], -1)[..., 0]
    off = np.abs(np.log(np.maximum(chosen, 1e-30)) - logs) > 10 * RATIO
    return judged_equal(
        recording,
        check,
        module,
        (off & there).sum((0, 2, 3)) / there.sum((0, 2, 3)).clip(1),
        wrong="{share} of the log-probabilities of {seat} are not those of its recorded policy",
        right="every log-probability is that of the recorded policy",
        advice="record the log-probability of the action that was played, from the policy that sampled it",
    )


def ratio(recording: Recording) -> Finding:
    """Is PPO's ratio 1 before the first gradient step?"""
    check, module = "first ratio", "policy: log-probabilities"
    names = ("log_probabilities", "new_log_probabilities")
    old, new = (recording.get("minibatch", name) for name in names)
    if old is None or new is None:
        return unanswered(check, module, "exact", "minibatch", absent(recording, "minibatch", *names))
    known = np.isfinite(old) & np.isfinite(new)
    off = np.abs(np.where(known, new - old, 0.0)) > RATIO
    hint = ""
    if off.any():
        gaps = (new - old)[off]
        hint = ": the loss gives them less probability" if (gaps < 0).all() else ""
    return judged_equal(
        recording,
        check,
        module,
        off.sum((0, 2)) / known.sum((0, 2)).clip(1),
        wrong=f"before any step, {{share}} of the samples of {{seat}} have a ratio that is not 1{hint}",
        right="before any step, every sample has the ratio 1",
        advice="give the loss what the policy read: the same observation, legal mask, goals, and memory, in one order",
    )


def normalisation(recording: Recording) -> Finding:
    """Are advantages normalised over what the settings say? A line is fitted to each seat's advantages."""
    check, module = "normalisation", "policy: normalisation"
    raw, used = recording.get("minibatch", "advantages"), recording.get("minibatch", "normalised_advantages")
    meant = recording.settings.normalise_advantages
    if raw is None or used is None or meant is None:
        missing = absent(recording, "minibatch", "advantages", "normalised_advantages")
        words = "" if missing else "give Recorder(normalise_advantages=...): all, seat or none"
        return unanswered(check, module, "exact", "minibatch", missing, words)
    slopes, shifts = np.full((2, *raw.shape[:2]), np.nan)
    for place in np.ndindex(*raw.shape[:2]):
        known = np.isfinite(raw[place]) & np.isfinite(used[place])
        one, other = raw[place][known], used[place][known]
        if len(one) < 4 or one.std() < 1e-6:
            continue
        slope = float(((one - one.mean()) * (other - other.mean())).sum() / ((one - one.mean()) ** 2).sum())
        off = np.abs(other - other.mean() - slope * (one - one.mean())).max()
        if off > LINEAR * max(1.0, float(other.std())):
            seat = recording.seats[place[1]]
            says = f"the normalised advantages of {seat} are no scaled and shifted copies of its advantages"
            return Finding(check, module, "exact", "broken", says, next="check that samples of both are in one order")
        slopes[place], shifts[place] = slope, other.mean() - slope * one.mean()
    by = {
        name: np.nanmean(slopes[:, seat]) if np.isfinite(slopes[:, seat]).any() else None
        for seat, name in enumerate(recording.seats)
    }
    picture = Picture("bars", "scale of the advantages of each seat", recording.seats, {"scale": list(by.values())})
    about = partial(Finding, check, module, "exact", picture=picture)
    known = np.isfinite(slopes).all(axis=1)
    if not known.any() or slopes.shape[1] < 2:
        return about("not enough evidence", "no minibatch has advantages of two seats that vary")
    slopes, shifts = slopes[known], shifts[known]
    plain = np.abs(slopes - 1).max() < ALIKE and np.abs(shifts).max() < ALIKE
    together = (np.ptp(slopes, axis=1) <= ALIKE * np.abs(slopes).max(1)).all() and (
        np.ptp(shifts, axis=1) <= ALIKE * np.maximum(1.0, np.abs(shifts).max(1))
    ).all()
    found = "none" if plain else "all" if together else "seat"
    words = {"none": "not at all", "all": "over all seats together", "seat": "over each seat alone"}
    says = f"advantages are normalised {words[found]}"
    if found == meant:
        return about("fine", f"{says}, as the settings say")
    return about(
        "broken", f"{says}; the settings say {words[meant]}", next="take mean and deviation over the right axes"
    )


def clipping(recording: Recording) -> Finding:
    """Are gradients clipped over what the settings say?"""
    check, module = "clipping", "policy: gradient clipping"
    before, after = (recording.get("updates", name) for name in ("gradient_norms", "clipped_gradient_norms"))
    most, meant = recording.settings.max_gradient_norm, recording.settings.clip_gradients
    if before is None or after is None or most is None or meant is None:
        missing = absent(recording, "updates", "gradient_norms", "clipped_gradient_norms")
        words = "" if missing else "give Recorder(max_gradient_norm=..., clip_gradients=...)"
        return unanswered(check, module, "exact", "updates", missing, words)
    together = np.broadcast_to(np.sqrt((before**2).sum(1, keepdims=True)), before.shape)
    ways = {
        "seat": before * np.minimum(1.0, most / np.maximum(before, 1e-12)),
        "all": before * np.minimum(1.0, most / np.maximum(together, 1e-12)),
        "none": before,
    }
    size = np.maximum(before, 1e-9)
    fits = {way: bool((np.abs(after - expected) <= 0.01 * size).all()) for way, expected in ways.items()}
    if fits[meant]:
        return Finding(check, module, "exact", "fine", f"gradients are clipped as the settings say ({meant})")
    found = next((way for way, fit in fits.items() if fit), None)
    words = {"seat": "over each seat alone", "all": "over all seats together, which couples them", "none": "not at all"}
    says = f"gradients are clipped {words[found]}" if found else "the clipped norms follow from no kind of clipping"
    advice = "clip the gradient of each seat by its own norm" if meant == "seat" else "clip as the settings say"
    return Finding(check, module, "exact", "broken", f"{says}; the settings say {meant}", next=advice)
