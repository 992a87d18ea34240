"""Do advantages and targets follow from rewards, values, ends, discount and lambda? Recomputed by a loop over time:

    surprise_t = reward_t + discount * next_value_t - value_t        next_value_t = 0 after an end
    advantage_t = surprise_t + discount * lambda * advantage_(t+1)   0 across an end
    target_t = value_t + advantage_t

A learner of action values has lambda 0, and the value of a state is that of the best legal action. If numbers do not
follow, a list of known mistakes is tried, and the one that explains the recorded numbers is named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hopplus_doctor.answer import Finding, Picture
from hopplus_doctor.ask import (
    SOURCES,
    TOLERANCE,
    absent,
    by_seat,
    ended,
    in_game,
    scale,
    share_words,
    shifted,
    unanswered,
)
from hopplus_doctor.recording import Recording

ASKS = "do advantages and targets follow from the rewards?"
EXPLAINS = 0.98
"""A mistake explains wrong numbers if it reproduces at least this share of them."""


@dataclass(frozen=True)
class Rollout:
    """What targets are made of; every array is [updates, seats, envs, time], the last value without time."""

    rewards: np.ndarray
    values: np.ndarray
    stops: np.ndarray
    """Nothing is bootstrapped after this step."""
    cuts: np.ndarray
    """The advantage does not reach across this step."""
    bootstraps: np.ndarray
    """The value after the step, where an episode is cut off; NaN where it is unknown."""
    last_values: np.ndarray
    discount: float
    gae_lambda: float
    sums_end: np.ndarray | None = None
    """Where the sum of surprises ends, if not at all cuts."""

    def advantages(self) -> np.ndarray:
        """The advantages; NaN where something that they need is unknown."""
        next_value, advantage = self.last_values, np.zeros(self.last_values.shape)
        found = np.empty(self.rewards.shape)
        for step in reversed(range(self.rewards.shape[-1])):
            is_cut, stops = self.cuts[..., step], self.stops[..., step]
            after = np.where(stops, 0.0, np.where(is_cut, self.bootstraps[..., step], next_value))
            surprise = self.rewards[..., step] + self.discount * after - self.values[..., step]
            ends_here = is_cut if self.sums_end is None else self.sums_end[..., step]
            carried = np.where(ends_here, 0.0, self.discount * self.gae_lambda * advantage)
            advantage = surprise + carried
            found[..., step] = advantage
            next_value = self.values[..., step]
        return found


def ask(recording: Recording) -> Iterator[Finding]:
    """Yield the findings."""
    for group in SOURCES:
        if (
            group == "real"
            or recording.get(group, "targets") is not None
            or recording.get(group, "advantages") is not None
        ):
            yield targets(recording, group)
    yield consistent(recording)


def rollout_of(recording: Recording, group: str) -> Rollout | None:
    """What the targets of a source are made of; None if something is missing."""
    values, rewards = recording.get(group, "values"), recording.get(group, "rewards")
    terminated, settings = recording.get(group, "terminated"), recording.settings
    gae_lambda = settings.gae_lambda
    if values is None:
        values, gae_lambda = best_values(recording, group), 0.0
    if values is None or rewards is None or terminated is None:
        return None
    if settings.discount is None or gae_lambda is None:
        return None
    last, truncated = recording.get(group, "last_values"), recording.get(group, "truncated")
    final = recording.get(group, "final_values")
    unknown = np.full(values.shape, np.nan)
    if truncated is None:  # an episode that begins anew without an end may have been cut off: its value is not known
        resets = recording.get(group, "resets")
        truncated = np.zeros(values.shape, bool) if resets is None else shifted(resets, -1)
        if (truncated & ~terminated).any():  # so the last step may have been cut off too
            truncated[..., -1] = True
            final = (
                unknown
                if final is None
                else np.where(np.arange(values.shape[-1]) < values.shape[-1] - 1, final, np.nan)
            )
    truncated = truncated & ~terminated
    there = recording.get(group, "in_game")
    if there is not None:  # a seat that left plays no step in between; its own end is marked
        terminated = terminated | (there & ~np.concatenate([there[..., 1:], there[..., -1:]], -1) & ~truncated)
    return Rollout(
        rewards,
        values,
        terminated,
        terminated | truncated,
        unknown if final is None else final,
        unknown[..., 0] if last is None else last,
        settings.discount,
        gae_lambda,
    )


def best_values(recording: Recording, group: str, *, masked: bool = True) -> np.ndarray | None:
    """The value of the best action of every step; by the learner's choice of it, if that was recorded."""
    values, masks = recording.get(group, "action_values"), recording.get(group, "legal")
    chosen = recording.get(group, "best_actions")
    if values is None:
        return None
    if chosen is not None and masked:
        return np.take_along_axis(values, np.clip(chosen, 0, values.shape[-1] - 1)[..., None], -1)[..., 0]
    return np.where(masks, values, -np.inf).max(-1) if masks is not None and masked else values.max(-1)


def targets(recording: Recording, group: str) -> Finding:
    """Are the recorded advantages, or targets, those that follow?"""
    check, module = f"targets, {group}", "targets"
    rollout = rollout_of(recording, group)
    name = "advantages" if recording.get(group, "advantages") is not None else "targets"
    recorded = recording.get(group, name)
    if rollout is None or recorded is None:
        missing = absent(recording, group, "rewards", "values", "terminated", "advantages")
        if missing:
            return unanswered(check, module, "exact", group, missing)
        words = "the discount and lambda are not known; give Recorder(discount=..., gae_lambda=...)"
        return unanswered(check, module, "exact", group, [], words)
    expected = _made(rollout, name)
    played = in_game(recording, group, recorded.shape)
    counted = played & np.isfinite(expected)
    if not counted.any():
        words = f"no {name} of the rollouts can be recomputed without the value after the last step"
        return unanswered(check, module, "exact", group, ["last_values"], words)
    size = scale(expected[counted], rollout.rewards, rollout.values)
    wrong = by_seat(np.abs(recorded - expected) > TOLERANCE * size, counted)
    says = f"all {counted.sum():,} {name} that can be recomputed follow from the rewards"
    picture = Picture("bars", f"{name} that are wrong, by seat", recording.seats, {"wrong": wrong.tolist()})
    about = partial(Finding, check, kind="exact", picture=picture)
    if not (wrong > 0).any():
        return about(module=module, verdict="fine", says=says)
    seat = int(np.argmax(wrong))
    says = f"{share_words(wrong[seat])} of the {name} of {recording.seats[seat]} do not follow from its rewards"
    found = explanation(recording, group, rollout, recorded, played, seat, size) or located(
        rollout, name, recorded, size
    )
    if found is None:
        advice = "compare the loop that computes advantages with the equation, step by step"
        return about(module=module, verdict="broken", says=says, next=advice)
    module, words = found
    return about(module=module, verdict="broken", says=f"{says}; {words}", next="correct that and record again")


def explanation(
    recording: Recording, group: str, rollout: Rollout, recorded: np.ndarray, played: np.ndarray, seat: int, size: float
) -> tuple[str, str] | None:
    """The part and the words of the known mistake that explains the numbers of a seat; None if none does."""
    best, found = EXPLAINS, None
    name = "advantages" if recording.get(group, "advantages") is not None else "targets"
    if name == "advantages" and (words := _rescaled(recording, group, played, seat)):
        return "critic: scale of values", words
    for (module, words), other in mistakes(recording, group, rollout, seat).items():
        expected = _made(other, name)[:, seat]
        counted = played[:, seat] & np.isfinite(expected)
        if not counted.any():
            continue
        share = float((np.abs(recorded[:, seat] - expected) <= TOLERANCE * size)[counted].mean())
        if share > best or (share == best and found is None):
            best, found = share, (module, words)
    return found


def _made(rollout: Rollout, name: str) -> np.ndarray:
    """The advantages or the targets of a rollout."""
    return rollout.advantages() + (rollout.values if name == "targets" else 0.0)


def _rescaled(recording: Recording, group: str, played: np.ndarray, seat: int) -> str:
    """Words, if what lies between targets and advantages is a scaled and shifted copy of the values; otherwise none."""
    goal, advantages, values = (recording.get(group, name) for name in ("targets", "advantages", "values"))
    if goal is None or advantages is None or values is None:
        return ""
    factors = []
    for update in range(len(values)):
        known = played[update, seat] & np.isfinite(goal - advantages + values)[update, seat]
        one, other = values[update, seat][known], (goal - advantages)[update, seat][known]
        if len(one) < 4 or one.std() < TOLERANCE * scale(one):
            continue
        slope, shift = np.polyfit(one, other, 1)
        if np.abs(slope * one + shift - other).max() > TOLERANCE * scale(one, other):
            return ""
        factors.append((slope, shift))
    if not factors or all(abs(slope - 1) < 0.01 and abs(shift) < 0.01 for slope, shift in factors):
        return ""
    slope, shift = factors[-1]
    return f"what is subtracted from the targets is {slope:.3g} times the recorded values, {shift:+.3g}"


def located(rollout: Rollout, name: str, recorded: np.ndarray, size: float) -> tuple[str, str] | None:
    """Where the recorded numbers go wrong, if only at ends of one kind: found from the surprises that they imply."""
    advantages = recorded - (rollout.values if name == "targets" else 0.0)
    carried = np.concatenate([advantages[..., 1:], np.zeros_like(advantages[..., :1])], -1)
    decay = rollout.discount * rollout.gae_lambda
    implied = advantages - np.where(rollout.cuts, 0.0, decay * carried)
    expected = replace(rollout, gae_lambda=0.0).advantages()
    wrong = np.isfinite(expected) & (np.abs(implied - expected) > TOLERANCE * size)
    last = np.zeros_like(wrong)
    last[..., -1] = True
    places = {
        ("ends: time limits", "they are wrong only where a time limit cuts an episode off"): rollout.cuts
        & ~rollout.stops,
        ("ends: bootstrapping", "they are wrong only where an episode ends"): rollout.stops,
        ("targets", "they are wrong only at the last step of the rollout"): last,
    }
    return next((place for place, flags in places.items() if wrong.any() and not (wrong & ~flags).any()), None)


def mistakes(recording: Recording, group: str, rollout: Rollout, seat: int) -> Mapping[tuple[str, str], Rollout]:
    """Known mistakes, as rollouts that make them."""
    nothing = np.zeros_like(rollout.stops)
    over = ended(recording, group)
    over = rollout.stops if over is None else over
    past = "ends: bootstrapping"
    tried = {
        (past, "they bootstrap past ends of episodes"): replace(rollout, stops=nothing, cuts=nothing),
        (past, "an end cuts the advantage, but the next episode's value is added"): replace(
            rollout, stops=nothing, cuts=nothing | rollout.cuts, bootstraps=_next_values(rollout)
        ),
        ("ends: masks", "they use the end of the step after"): _with_ends(rollout, shifted(over, -1)),
        ("ends: masks", "they use the end of the step before"): _with_ends(rollout, shifted(over, 1)),
        ("ends: advantages across episodes", "advantages reach from one episode into the one before"): replace(
            rollout, cuts=nothing, bootstraps=rollout.bootstraps
        ),
        ("ends: advantages across episodes", "the sum of an advantage goes on into the next episode"): replace(
            rollout, sums_end=nothing
        ),
        ("ends: advantages across episodes", "the sum of an advantage goes on across time limits"): replace(
            rollout, sums_end=rollout.stops
        ),
        ("ends: time limits", "time limits count as ends of the game"): _with_ends(rollout, over),
        ("ends: time limits", "after a time limit the next episode's value is added"): replace(
            rollout, bootstraps=_next_values(rollout)
        ),
        ("ends: time limits", "after a time limit the step's own value is added"): replace(
            rollout, bootstraps=rollout.values
        ),
        ("targets: discount", "no discount was used"): replace(rollout, discount=1.0),
        ("targets: lambda", "lambda was 1"): replace(rollout, gae_lambda=1.0),
        ("targets: lambda", "lambda was 0"): replace(rollout, gae_lambda=0.0),
        ("targets: discount", "the discount was used for lambda too"): replace(rollout, gae_lambda=rollout.discount),
        ("targets", "the value after the rollout was taken as 0"): replace(
            rollout, last_values=np.zeros_like(rollout.last_values)
        ),
        ("rewards", "the mean reward of all seats was used"): _with_rewards(rollout, rollout.rewards.mean(1)),
        ("rewards", "the sum of all seats' rewards was used"): _with_rewards(rollout, rollout.rewards.sum(1)),
        ("rewards", "the reward of the step before was used"): replace(rollout, rewards=_later(rollout.rewards)),
    }
    if recording.get(group, "values") is None:
        tried |= _mistakes_of_action_values(recording, group, rollout)
    for other, name in enumerate(recording.seats):
        if other != seat:
            tried["rewards", f"the rewards of {name} were used"] = _with_rewards(rollout, rollout.rewards[:, other])
            same = np.broadcast_to(rollout.values[:, other, None], rollout.values.shape)
            last = np.broadcast_to(rollout.last_values[:, other, None], rollout.last_values.shape)
            tried["critic", f"the values of {name} were used"] = replace(rollout, values=same, last_values=last)
    return tried


def _mistakes_of_action_values(recording: Recording, group: str, rollout: Rollout) -> dict[tuple[str, str], Rollout]:
    """Mistakes of a learner of action values: illegal ones count, or the wrong one is taken for the best."""
    values, masks = recording.get(group, "action_values"), recording.get(group, "legal")
    assert values is not None
    best, others = recording.get(group, "best_actions"), best_values(recording, group, masked=False)
    assert others is not None
    tried = {("legal masks", "the best value was taken over illegal actions too"): replace(rollout, values=others)}
    if best is None:
        best = (values if masks is None else np.where(masks, values, -np.inf)).argmax(-1)
    before = np.concatenate([best[..., :1], best[..., :-1]], -1)
    late = np.take_along_axis(values, np.clip(before, 0, values.shape[-1] - 1)[..., None], -1)[..., 0]
    words = "the next state is valued with the action that is best in the state before"
    tried["targets: best action", words] = replace(rollout, values=late)
    return tried


def _with_ends(rollout: Rollout, ends: np.ndarray) -> Rollout:
    return replace(rollout, stops=ends, cuts=ends)


def _with_rewards(rollout: Rollout, rewards: np.ndarray) -> Rollout:
    return replace(rollout, rewards=np.broadcast_to(rewards[:, None], rollout.rewards.shape))


def _next_values(rollout: Rollout) -> np.ndarray:
    return np.concatenate([rollout.values[..., 1:], rollout.last_values[..., None]], -1)


def _later(rewards: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros_like(rewards[..., :1]), rewards[..., :-1]], -1)


def consistent(recording: Recording) -> Finding:
    """Are targets the sum of values and advantages, if both are recorded?"""
    check, names = "targets and advantages", ("targets", "advantages", "values")
    if missing := absent(recording, "real", *names):
        return unanswered(check, "targets", "exact", "real", missing)
    goal, advantages, values = (recording.get("real", name) for name in names)
    assert goal is not None and advantages is not None and values is not None
    played = in_game(recording, "real", values.shape)
    with np.errstate(invalid="ignore"):
        wrong = by_seat(np.abs(goal - advantages - values) > TOLERANCE * scale(goal, values), played)
    if not (wrong > 0).any():
        return Finding(check, "targets", "exact", "fine", "every target is the value plus the advantage")
    seat = int(np.argmax(wrong))
    says = f"{share_words(wrong[seat])} of the targets of {recording.seats[seat]} are not its value plus its advantage"
    advice = "check whether targets are made from advantages that were already normalised, or from another seat's"
    return Finding(check, "targets", "exact", "broken", says, next=advice)
