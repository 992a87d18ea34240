"""Is what a seat learns from what it saw, did and got? All findings are exact but that on goals, a judgement."""

from collections.abc import Iterator
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
    judged_equal,
    scale,
    share_words,
    shifted,
    unanswered,
)
from hopplus_doctor.recording import Recording

ASKS = "is what each seat learns from what it saw, did and got?"
PARTS = {
    "log_probabilities": "policy: log-probabilities",
    "probabilities": "policy: log-probabilities",
    "rewards": "rewards",
    "env_rewards": "rewards",
    "values": "critic",
    "last_values": "critic",
    "final_values": "critic",
    "advantages": "targets",
    "targets": "targets",
    "goals": "goals",
    "observations": "observations",
}
"""The part to blame if an array holds numbers that are not finite."""
CONSTANT = "broken if constant in one source or seat only, suspicious if constant everywhere"


def ask(recording: Recording) -> Iterator[Finding]:
    """Yield the findings."""
    yield finite(recording)
    yield from legal(recording)
    yield episodes(recording)
    yield from leaving(recording)
    yield memory(recording)
    yield from samples(recording)
    yield rewards(recording)
    yield from equal_rewards(recording)
    yield from goals(recording)


def finite(recording: Recording) -> Finding:
    """Are all numbers of steps that were played finite?"""
    for group in SOURCES:
        for name, part in PARTS.items():
            array = recording.get(group, name)
            if array is None:
                continue
            shape = array.shape[:4]
            played = in_game(recording, group, shape) if array.ndim >= 4 and name != "final_values" else None
            bad = ~np.isfinite(array)
            bad = bad.reshape(*shape, -1).any(-1) if array.ndim >= 4 else bad
            bad = bad if played is None else bad & played
            if name == "last_values":
                bad &= _goes_on(recording, group, bad.shape)
            if name == "final_values" and (cut := recording.get(group, "truncated")) is not None:
                bad &= cut
            if bad.any():
                seat = recording.seats[int(np.argwhere(bad)[0][1])]
                says = f"{group}/{name} of {seat} has {bad.sum():,} entries that are not finite, in steps it played"
                advice = f"look where {name} is computed; a loss or a reward may have overflowed"
                return Finding("finite numbers", part, "exact", "broken", says, next=advice)
    return Finding("finite numbers", "buffer", "exact", "fine", "every recorded number of a played step is finite")


def _goes_on(recording: Recording, group: str, shape: tuple[int, ...]) -> np.ndarray:
    """Whether a seat is in the game after the last step, so that the value there is used."""
    there, over = recording.get(group, "in_game"), ended(recording, group)
    goes_on = np.ones(shape, bool) if there is None else there[..., -1]
    return goes_on if over is None else goes_on & ~over[..., -1]


def legal(recording: Recording) -> Iterator[Finding]:
    """Is every action legal, and does every step have a legal action?"""
    for group in SOURCES:
        if group == "imagined" and recording.get(group, "actions") is None:
            continue
        if missing := absent(recording, group, "actions", "legal"):
            yield unanswered(f"legal actions, {group}", "legal masks", "exact", group, missing)
            continue
        actions, masks = recording.get(group, "actions"), recording.get(group, "legal")
        assert actions is not None and masks is not None
        played = in_game(recording, group, actions.shape)
        inside = (actions >= 0) & (actions < masks.shape[-1])
        chosen = np.take_along_axis(masks, np.where(inside, actions, 0)[..., None], -1)[..., 0] & inside
        yield judged_equal(
            recording,
            f"legal actions, {group}",
            "legal masks",
            by_seat(~chosen, played),
            wrong="{share} of the actions of {seat} are illegal by its mask",
            right="every action is legal by the mask of its step",
            advice="check that the mask is that of this step, seat and env, and that the policy gets it",
        )


def episodes(recording: Recording) -> Finding:
    """Does a new episode begin exactly after an end? Per env: an episode ends for all seats before the next begins."""
    check, module = "ends and resets", "ends: masks"
    resets, over = recording.get("real", "resets"), ended(recording, "real")
    if resets is None or over is None:
        return unanswered(check, module, "exact", "real", absent(recording, "real", "terminated", "resets"))
    begins = np.any(resets, axis=1)
    if (resets != begins[:, None]).any():
        shares = by_seat(resets != begins[:, None], np.ones(resets.shape, bool))
        says, advice = (
            "{share} of the resets of {seat} are not those of its env",
            "record the env's resets for all seats",
        )
        return judged_equal(recording, check, module, shares, wrong=says, right="", advice=advice)
    there = in_game(recording, "real", over.shape)
    open_after = np.zeros(over.shape, bool)
    playing = there[..., 0]
    for step in range(over.shape[-1]):  # a seat is in an episode until its own end, and again after a reset
        playing = (playing | resets[..., step]) & ~over[..., step]
        open_after[..., step] = playing
    unfinished = open_after[..., :-1] & resets[..., 1:]
    all_over = ~np.any(open_after, axis=1) & np.any(over, axis=1)
    never = (all_over[..., :-1] & ~begins[..., 1:])[:, None] & over[..., :-1]
    wrong = np.concatenate([unfinished | never, np.zeros((*over.shape[:-1], 1), bool)], -1)
    env_ends = np.asarray(over.any(1))
    moved = {lag: (shifted(env_ends, 1 + lag)[..., 2:] == begins[..., 2:]).mean() for lag in (-1, 1)}
    late = max(moved, key=moved.__getitem__) if wrong.any() else 0
    words = {0: "", 1: ": resets come one step late", -1: ": ends are marked one step late"}
    hint = words[late] if late and moved[late] > 0.999 else ""
    if wrong.any() and not hint and recording.get("real", "truncated") is None:
        says = "episodes begin anew without an end before; they may have been cut off by a time limit"
        return unanswered(check, module, "exact", "real", ["truncated"], says)
    return judged_equal(
        recording,
        check,
        module,
        by_seat(wrong, over | shifted(resets, -1)),
        wrong=f"{{share}} of the ends and resets of {{seat}} do not fit each other{hint}",
        right="every new episode begins in the step after an end",
        advice="check which step holds the flag: terminated belongs to the step that ends, resets to the next one",
    )


def leaving(recording: Recording) -> Iterator[Finding]:
    """Is a seat out of the game after its own end, until a new episode begins?"""
    there, over, resets = recording.get("real", "in_game"), ended(recording, "real"), recording.get("real", "resets")
    if there is None or over is None or resets is None:
        return  # `samples` and `episodes` say which of them is missing
    after = shifted(over & there, 1) & ~resets
    yield judged_equal(
        recording,
        "leaving",
        "buffer: samples after leaving",
        by_seat(after & there, after),
        wrong="{share} of the ends of {seat} are followed by a step in which it still counts as in the game",
        right="after its own end no seat is in the game, until a new episode begins",
        advice="update who is in the game after the step, from the ends that the step returned",
    )


def memory(recording: Recording) -> Finding:
    """Is the recurrent state reset exactly where an episode begins?"""
    check, module = "recurrent resets", "memory: resets"
    cleared, resets = recording.get("real", "memory_resets"), recording.get("real", "resets")
    if cleared is None or resets is None:
        missing = absent(recording, "real", "memory_resets", "resets")
        words = "no recurrent resets are recorded; a policy without memory needs none"
        return unanswered(check, module, "exact", "real", missing, words)
    over, hint = ended(recording, "real"), ""
    if over is not None and (cleared != resets).any():
        candidates = {
            "the end of the step itself": over,
            "the reset of the step before": shifted(resets, 1),
            "the reset of the step after": shifted(resets, -1),
        }
        if resets.shape[1] > 1 and resets.shape[2] > 1:  # rows of envs and seats in the other order
            rows = resets.reshape(len(resets), -1, resets.shape[-1])
            turned = rows.reshape(len(resets), resets.shape[2], resets.shape[1], -1).swapaxes(1, 2)
            candidates["the resets of another env: seats and envs are in the other order"] = turned
        hint = next((f": it follows {words}" for words, flags in candidates.items() if (cleared == flags).all()), "")
    counted = cleared | resets
    return judged_equal(
        recording,
        check,
        module,
        by_seat(cleared != resets, counted),
        wrong=f"{{share}} of the resets of {{seat}}'s recurrent state are at another step than its episodes{hint}",
        right="the recurrent state is reset where an episode begins, and nowhere else",
        advice="reset the state before the first step of an episode, by the flag of that step",
    )


def samples(recording: Recording) -> Iterator[Finding]:
    """Does a seat learn from no step after it left, and from all steps before?"""
    for group in SOURCES:
        learned, there = recording.get(group, "learned"), recording.get(group, "in_game")
        check = f"samples, {group}"
        if learned is None or there is None:
            if group == "real":
                missing = absent(recording, group, "learned", "in_game")
                yield unanswered(check, "buffer: samples after leaving", "exact", group, missing)
            continue
        after = by_seat(learned & ~there, learned)
        if (after > 0).any() or group == "imagined":
            yield judged_equal(
                recording,
                check,
                "buffer: samples after leaving",
                after,
                wrong="{share} of the samples that {seat} learns from are steps after it had left",
                right="no seat learns from steps after it left",
                advice="mask the loss, and the advantages' mean, by the seats that are in the game",
            )
            continue
        yield judged_equal(
            recording,
            check,
            "buffer",
            by_seat(~learned, there),
            wrong="{share} of the steps that {seat} played are in no loss",
            right="every seat learns from all steps that it played, and from none after it left",
            advice="look at the mask of samples of that seat: is its buffer filled as often as the others'?",
        )


def rewards(recording: Recording) -> Finding:
    """Are the rewards that a seat learns from those that the environment paid it?"""
    check = "rewards"
    used, paid = recording.get("real", "rewards"), recording.get("real", "env_rewards")
    if used is None or paid is None:
        missing = absent(recording, "real", "rewards", "env_rewards")
        return unanswered(check, "rewards", "exact", "real", missing)
    played = in_game(recording, "real", used.shape)
    off = np.abs(used - paid) > TOLERANCE * scale(paid)
    hint = ""
    if (off & played).any():
        hint = _which_rewards(recording, used, paid, played)
    return judged_equal(
        recording,
        check,
        "rewards",
        by_seat(off, played),
        wrong=f"{{share}} of the rewards that {{seat}} learns from are not those that the environment paid it{hint}",
        right="every seat learns from the rewards that the environment paid it",
        advice="check where rewards are put into the buffer: does every seat get its own, of the same step?",
    )


def _which_rewards(recording: Recording, used: np.ndarray, paid: np.ndarray, played: np.ndarray) -> str:
    worst = int(np.argmax(by_seat(np.abs(used - paid) > TOLERANCE * scale(paid), played)))
    mine, mask = used[:, worst], played[:, worst]
    candidates = {f"those of {name}": paid[:, seat] for seat, name in enumerate(recording.seats) if seat != worst}
    candidates |= {"the mean of all seats": paid.mean(1), "the sum of all seats": paid.sum(1)}
    later = np.zeros_like(mine)
    later[..., 1:] = paid[:, worst, :, :-1]
    candidates["those of the step before"] = later
    for words, other in candidates.items():
        if (np.abs(mine - other) <= TOLERANCE * scale(paid))[mask].mean() > 0.98:
            return f": they are {words}"
    return ""


def equal_rewards(recording: Recording) -> Iterator[Finding]:
    """Do several seats hold the very same rewards, though rewards are not meant to be shared?"""
    for group in SOURCES:
        values = recording.get(group, "rewards")
        if values is None or len(recording.seats) < 2 or recording.settings.shared_rewards:
            continue
        check = f"equal rewards, {group}"
        pays = [seat for seat in range(len(recording.seats)) if np.ptp(np.nan_to_num(values[:, seat])) > 0]
        twins = [
            (a, b) for a in pays for b in pays if a < b and np.array_equal(values[:, a], values[:, b], equal_nan=True)
        ]
        if not twins:
            yield Finding(check, "rewards", "exact", "fine", "no two seats hold the same rewards in all steps")
        elif recording.settings.shared_rewards is None:
            names = " and ".join(recording.seats[seat] for seat in twins[0])
            says = f"{names} hold the same rewards in all steps; whether they are meant to is not known"
            advice = "give Recorder(shared_rewards=True) for a team game, and False if each seat has its own"
            yield Finding(check, "rewards", "exact", "not enough evidence", says, next=advice)
        else:
            names = " and ".join(recording.seats[seat] for seat in twins[0])
            says = f"{names} hold the same rewards in all steps, though rewards are not shared"
            advice = "check where rewards are put into the buffer: does every seat get its own?"
            yield Finding(check, "rewards", "exact", "broken", says, next=advice)


def goals(recording: Recording) -> Iterator[Finding]:
    """Are goals there in every source and seat, and do they vary?"""
    spread = {}
    for group in SOURCES:
        array = recording.get(group, "goals")
        if array is None:
            continue
        played = in_game(recording, group, array.shape[:4])
        for seat, name in enumerate(recording.seats):
            chosen = array[:, seat][played[:, seat]]
            spread[group, name] = float(np.ptp(chosen, axis=0).max()) if len(chosen) else np.nan
    if not spread:
        yield unanswered(
            "goals", "goals", "judgement", "real", ["goals"], "no goals are recorded; not every agent has goals"
        )
        return
    still = [key for key, size in spread.items() if not size > 1e-6]
    labels = tuple(f"{name}, {group}" for group, name in spread)
    picture = Picture("bars", "range of the goals", labels, {"range": list(spread.values())})
    about = partial(Finding, "goals", "goals", "judgement", threshold=CONSTANT, picture=picture)
    if not still:
        yield about("fine", "goals vary in every source and seat")
        return
    group, name = still[0]
    array = recording.get(group, "goals")
    assert array is not None
    is_zero = not np.nan_to_num(array[:, recording.seats.index(name)]).any()
    says = f"the goals of {name} in {group} data are {'zero' if is_zero else 'constant'}"
    if len(still) == len(spread):
        yield about("suspicious", f"{says}, as those of every seat", next="check whether goals are inferred at all")
        return
    says += f"; {share_words(1 - len(still) / len(spread))} of the sources and seats have goals that vary"
    yield about("broken", says, next=f"check where goals are put into the {group} buffer of {name}")
