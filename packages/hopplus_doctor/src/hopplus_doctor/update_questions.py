"""Is every module of every seat updated, and by its own data? And do the seats of several seeds differ?"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from hopplus_doctor.answer import Finding, Picture
from hopplus_doctor.ask import absent, ended, in_game, share_words, unanswered
from hopplus_doctor.recording import Recording
from hopplus_doctor.seat_returns import LEAST_SEEDS, returns_of_seeds

ASKS = "is every module of every seat updated?"
SEATS_ASK = "do the returns of seats differ over seeds?"
FINAL_SHARE = 0.2
"""The last share of the recorded updates, whose returns are compared."""


def ask(recording: Recording) -> Iterator[Finding]:
    """Yield the findings of one recording."""
    names = ("checksums_before", "checksums_after")
    before, after = (recording.get("updates", name) for name in names)
    if before is None or after is None or not recording.modules:
        missing = absent(recording, "updates", *names)
        words = "" if missing else "the modules have no names; give Recorder(modules=[...])"
        yield unanswered("updates", "modules", "exact", "updates", missing, words)
        return
    for place, module in enumerate(recording.modules):
        yield _updated(recording, module, (before != after)[:, place])
        if len(recording.seats) > 1:
            yield _own(recording, module, before[:, place], after[:, place])


def _updated(recording: Recording, module: str, changed: np.ndarray) -> Finding:
    shares = changed.mean(axis=0)
    picture = Picture("bars", f"updates that change {module}", recording.seats, {"share": shares.tolist()})
    about = partial(Finding, f"updates of {module}", module, "exact", picture=picture)
    if changed.all():
        return about("fine", f"every recorded update changes {module} of every seat")
    seat = int(np.argmin(shares))
    says = (
        f"{share_words(1 - shares[seat])} of the recorded updates leave {module} of {recording.seats[seat]} unchanged"
    )
    advice = f"check that the optimiser of {recording.seats[seat]} holds {module}, and that its step is run"
    if (changed == changed[:, :1]).all() and changed.any():
        words = f"{says}, as those of every seat: {module} may be updated less often"
        return about("not enough evidence", words, next="record updates in which it learns, or correct the schedule")
    return about("broken", says, next=advice)


def _own(recording: Recording, module: str, before: np.ndarray, after: np.ndarray) -> Finding:
    """Seats with parameters of their own never have the same parameters after they learned from different data."""
    check, seats = f"parameters of {module}", recording.seats
    pairs = [(a, b) for a in range(before.shape[1]) for b in range(a + 1, before.shape[1])]
    same = [pair for pair in pairs if (after[:, pair[0]] == after[:, pair[1]]).all()]
    shared = recording.settings.shared_parameters
    about = partial(Finding, check, module, "exact")
    if shared is None and same:
        names = f"{seats[same[0][0]]} and {seats[same[0][1]]}" if len(same) < len(pairs) else "all seats"
        words = f"{names} have the same parameters of {module}; whether they are meant to is not known"
        advice = "give Recorder(shared_parameters=True), or False, or the groups that share: [[seat, seat], [seat]]"
        return about("not enough evidence", words, next=advice)
    meant = [pair for pair in pairs if _are_meant_to_share(shared, seats[pair[0]], seats[pair[1]])]
    if apart := [pair for pair in meant if pair not in same]:
        names = f"{seats[apart[0][0]]} and {seats[apart[0][1]]}"
        words = f"{names} have different parameters of {module}, though the settings say that they share them"
        advice = "check that both read and update the same object"
        if same:
            advice += "; if only some seats share, give Recorder(shared_parameters=[[seat, seat], [seat]])"
        return about("broken", words, next=advice)
    if alike := [pair for pair in same if pair not in meant]:
        names = f"{seats[alike[0][0]]} and {seats[alike[0][1]]}"
        words = f"{names} have the same parameters of {module} after every recorded update"
        advice = "make a network for each seat (a list of one object holds it many times)"
        return about("broken", words, next=f"{advice}, or say in shared_parameters which seats share")
    if meant:
        of = "all seats" if len(meant) == len(pairs) else "the seats of each group"
        return about("fine", f"{of} share the parameters of {module}, as the settings say")
    return about("fine", f"every seat has parameters of {module} of its own")


def _are_meant_to_share(shared: bool | Sequence[Sequence[str]] | None, one: str, other: str) -> bool:
    if shared is None or isinstance(shared, bool):
        return bool(shared)
    return any(one in group and other in group for group in shared)


def seat_returns(recordings: Sequence[Recording]) -> Iterator[Finding]:
    """Findings about the seats' returns over seeds; each recording is a seed."""
    first = recordings[0]
    check, module = "returns", "seats"
    if len(first.seats) < 2 or any(recording.seats != first.seats for recording in recordings):
        words = "the recordings do not have the same two or more seats"
        yield unanswered(check, module, "test", "updates", [], words)
        return
    if first.settings.symmetric is not True:
        words = "whether the seats have one role is not known; give Recorder(symmetric=True) if they do"
        yield unanswered(check, module, "test", "updates", [], words)
        return
    rows = np.array([final_returns(recording) for recording in recordings])
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) < LEAST_SEEDS:
        words = f"{len(rows)} seeds have returns of every seat; the test needs {LEAST_SEEDS} or more"
        advice = "record several seeds and name all their folders: hopplus-doctor recording FOLDER FOLDER FOLDER"
        yield Finding(check, module, "test", "not enough evidence", words, next=advice)
        return
    advice = "examine the environment: hopplus-doctor game --env MODULE:FACTORY"
    yield from returns_of_seeds(rows, first.seats, "", advice)


def final_returns(recording: Recording) -> np.ndarray:
    """Each seat's mean return over the last fifth of the recorded updates; NaN if it is unknown."""
    returns = recording.get("updates", "returns")
    if returns is None:
        returns = _returns_of_episodes(recording)
    last = returns[-max(1, round(FINAL_SHARE * len(returns))) :]
    known = np.isfinite(last)
    return np.divide(
        np.where(known, last, 0.0).sum(0), known.sum(0), out=np.full(last.shape[1], np.nan), where=known.any(0)
    )


def _returns_of_episodes(recording: Recording) -> np.ndarray:
    """The mean return of whole episodes of every update and seat, from rewards, resets and ends."""
    unknown = np.full((len(recording.updates), len(recording.seats)), np.nan)
    rewards, over = recording.get("real", "rewards"), ended(recording, "real")
    resets = recording.get("real", "resets")
    if rewards is None or over is None or resets is None:
        return unknown
    rewards = np.where(in_game(recording, "real", rewards.shape) & np.isfinite(rewards), rewards, 0.0)
    total, count = np.zeros((2, *unknown.shape))
    running, is_whole = np.zeros(rewards.shape[:3]), np.zeros(rewards.shape[:3], bool)
    for step in range(rewards.shape[-1]):
        running = np.where(resets[..., step], 0.0, running) + rewards[..., step]
        is_whole |= resets[..., step]
        ends = over[..., step] & is_whole
        total += np.where(ends, running, 0.0).sum(-1)
        count += ends.sum(-1)
        is_whole &= ~ends
    return np.divide(total, count, out=unknown, where=count > 0)
