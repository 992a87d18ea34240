"""Does each seat see a world of its own that changes, and do episodes begin as they should? Where are the players?

What must be equal is exact. Whether an observation may stay the same for a whole episode is a judgement. Whether two
envs begin the same episodes is a test: from the starts of one env it is known how often two starts are equal by chance.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import binom

from hopplus_doctor.answer import Finding
from hopplus_doctor.ask import by_seat, in_game, judged_equal, share_words, unanswered
from hopplus_doctor.recording import Recording

ASKS = "does each seat see its own part of a world that changes, and is every episode a new one?"
LEAST_STEPS = 50
"""Steps within episodes; with fewer, an observation may stay the same by chance."""
FALSE_ALARM = 1e-6
"""The level of the test for envs that begin the same episodes."""
STILL = f"broken if none of {LEAST_STEPS} or more steps changes it, though it differs between episodes, envs or updates"
REPEATED = "broken if every env begins all of its 3 or more episodes alike, though envs differ"
SMALLEST = 0.9
"""If a start of another env is among those of an env with this probability by chance, starts tell nothing."""


def ask(recording: Recording) -> Iterator[Finding]:
    """Yield the findings."""
    yield from own_views(recording)
    yield changing(recording)
    yield from starts(recording)
    yield from players(recording)
    yield from cells(recording)


def own_views(recording: Recording) -> Iterator[Finding]:
    """Do two seats see the very same in all steps, though each is meant to see its own?"""
    views, meant = recording.get("real", "observations"), recording.settings.shared_observations
    if views is None or len(recording.seats) < 2 or meant:
        return
    there = in_game(recording, "real", views.shape[:4])
    pairs = [(a, b) for a in range(len(recording.seats)) for b in range(a + 1, len(recording.seats))]
    both = {(a, b): there[:, a] & there[:, b] for a, b in pairs}
    twins = [
        (a, b)
        for a, b in pairs
        if both[a, b].sum() > 1 and np.array_equal(views[:, a][both[a, b]], views[:, b][both[a, b]])
    ]
    about = partial(Finding, "own observations", "observations", "exact")
    if not twins:
        yield about("fine", "no two seats see the same in all steps")
        return
    names = " and ".join(recording.seats[seat] for seat in twins[0])
    if np.ptp(views[:, twins[0][0]][both[twins[0]]], axis=0).max() == 0:
        yield about("not enough evidence", f"{names} see the same, and it never changes")
    elif meant is None:
        says = f"{names} see the same in all steps; whether they are meant to is not known"
        advice = "give Recorder(shared_observations=True) if everyone sees the same, and False if not"
        yield about("not enough evidence", says, next=advice)
    else:
        says = f"{names} see the same in all {both[twins[0]].sum():,} steps, though each is meant to see its own"
        advice = "check that the function that makes an observation uses the agent that it is asked for"
        yield about("broken", says, next=advice)


def changing(recording: Recording) -> Finding:
    """Does what a seat sees change within an episode?"""
    check, module = "changing observations", "observations"
    views, resets = recording.get("real", "observations"), recording.get("real", "resets")
    if views is None:
        words = "no observations are recorded; a few of their numbers, or a hash, are enough"
        return unanswered(check, module, "judgement", "real", ["observations"], words)
    about = partial(Finding, check, module, "judgement", threshold=STILL)
    if views.shape[3] < 2:
        return about("not enough evidence", "rollouts have one step")
    there = in_game(recording, "real", views.shape[:4])
    within = there[..., 1:] & there[..., :-1]
    if resets is not None:
        within = within & ~resets[..., 1:]
    moved = (views[..., 1:, :] != views[..., :-1, :]).any(-1) & within
    counts, shares = within.sum((0, 2, 3)), by_seat(moved, within)
    still = [seat for seat in range(len(shares)) if counts[seat] >= LEAST_STEPS and shares[seat] == 0]
    if counts.max() < LEAST_STEPS:
        return about("not enough evidence", f"{counts.max()} steps within episodes; {LEAST_STEPS} are needed")
    if not still:
        return about("fine", f"within an episode {share_words(float(shares.mean()))} of the steps change what is seen")
    seat = still[0]
    if np.ptp(views[:, seat][there[:, seat]], axis=0).max() == 0:
        return about("not enough evidence", f"what {recording.seats[seat]} sees is constant, as in a matrix game")
    says = f"none of {counts[seat]:,} steps within episodes changes what {recording.seats[seat]} sees"
    advice = "store copies: an environment may change the array that it returned"
    return about("broken", says, next=advice)


def starts(recording: Recording) -> Iterator[Finding]:
    """Is every episode of an env a new one, and do no two envs play the same episodes?"""
    module = "random streams: envs"
    views, resets = recording.get("real", "observations"), recording.get("real", "resets")
    if views is None or resets is None:
        return  # `changing` and the question about data say which of them is missing
    first = _starts(views, resets)
    repeated = partial(Finding, "repeated episodes", module, "judgement", threshold=REPEATED)
    several = [env for env in first if len(env) >= 3]
    if not several or len(first) < 2:
        yield repeated("not enough evidence", "no two envs begin three or more episodes in the recorded updates")
        return
    distinct = {start for env in first for start in env}
    alike = [env for env in several if len(set(env)) == 1]
    if len(distinct) == 1:
        yield repeated("not enough evidence", "all episodes begin alike, as in a game with one start")
        return
    if len(alike) == len(several):
        says = f"all {len(several[0])} episodes of an env begin alike, and those of other envs do not"
        advice = "seed an env once; a reset without a seed must go on with its random numbers"
        yield repeated("broken", says, next=advice)
        return
    yield repeated("fine", f"{len(distinct):,} different starts in {sum(map(len, first)):,} episodes")
    yield _same_starts(first)


def _starts(views: np.ndarray, resets: np.ndarray) -> list[list[bytes]]:
    """For each env the first observations of all seats, in the order of episodes."""
    found: list[list[bytes]] = [[] for _ in range(views.shape[2])]
    for update, env, step in np.argwhere(resets.any(1)):
        found[env].append(np.ascontiguousarray(views[update, :, env, step]).tobytes())
    return found


def _same_starts(first: list[list[bytes]]) -> Finding:
    """Are the starts of two envs equal more often than two starts of one env?"""
    level = f"broken below p = {FALSE_ALARM:.0e}, not adjusted"
    about = partial(Finding, "same episodes", "random streams: envs", "test", threshold=level)
    pairs = equal = 0
    for env in first:
        counts = np.unique(np.array(env, object), return_counts=True)[1] if env else np.zeros(0)
        pairs, equal = pairs + len(env) * (len(env) - 1) // 2, equal + int((counts * (counts - 1) // 2).sum())
    chance = (equal + 3) / max(pairs, 1)  # three more: of rare events none may have been seen
    worst, names, share = 1.0, (0, 0), 0.0
    tried = usable = 0
    for one in range(len(first)):
        for other in range(len(first)):
            if one == other or len(first[other]) < 3:
                continue
            known = set(first[one])
            hits = sum(start in known for start in first[other])
            by_chance = min(1.0, len(known) * chance)
            tried, usable = tried + 1, usable + (by_chance < SMALLEST)
            p_value = float(binom.sf(hits - 1, len(first[other]), by_chance)) if hits else 1.0
            if p_value < worst:
                worst, names, share = p_value, (one, other), hits / len(first[other])
    if not usable:
        return about("not enough evidence", "too few different starts to tell envs apart; record more updates")
    worst = min(1.0, worst * tried)
    if worst >= FALSE_ALARM:
        return about("fine", f"no two of {len(first)} envs begin the same episodes (p = {worst:.2g})")
    says = f"{share_words(share)} of the episodes of env {names[1]} begin as one of env {names[0]} (p = {worst:.1e})"
    return about("broken", says, next="give every env a seed of its own, also copies of one env")


def players(recording: Recording) -> Iterator[Finding]:
    """Does an observation of the whole board show as many players as are in the game?"""
    seen, there = recording.get("real", "players_seen"), recording.get("real", "in_game")
    if seen is None:
        return
    there = np.ones(seen.shape, bool) if there is None else there
    number = np.broadcast_to(there.sum(1, keepdims=True), seen.shape)
    fewer = bool(((seen < number) & there).any())
    yield judged_equal(
        recording,
        "players in observations",
        "observations",
        by_seat(seen != number, there),
        wrong="{share} of the observations of {seat} show "
        + ("fewer" if fewer else "more")
        + " players than there are",
        right="every observation shows as many players as are in the game",
        advice="draw all players again from their final places; erasing one may erase who has come to its cell",
    )


def cells(recording: Recording) -> Iterator[Finding]:
    """Do two players never stand on one cell, and never pass through each other, where the rules forbid it?"""
    places, resets = recording.get("real", "places"), recording.get("real", "resets")
    if places is None:
        return
    there = in_game(recording, "real", places.shape)
    shape = (*places.shape[:1], *places.shape[2:])
    together, swapped = np.zeros((2, *places.shape), bool)
    going_on = np.zeros(shape, bool)
    going_on[..., 1:] = True if resets is None else ~resets[..., 1:].any(1)
    for one in range(places.shape[1]):
        for other in range(one):
            both = there[:, one] & there[:, other]
            met = both & (places[:, one] == places[:, other])
            together[:, [one, other]] |= met[:, None]
            before = np.roll(places, 1, axis=-1)
            crossed = (places[:, one] == before[:, other]) & (places[:, other] == before[:, one]) & ~met
            crossed &= both & np.roll(both, 1, axis=-1) & going_on & (before[:, one] != places[:, one])
            swapped[:, [one, other]] |= crossed[:, None]
    rules = (
        ("one player on a cell", recording.settings.one_per_cell is True, together, "stand on another player's cell"),
        ("exchanged cells", recording.settings.swaps is False, swapped, "exchange cells with another player"),
    )
    for check, is_asked, wrong, words in rules:
        if is_asked:
            yield judged_equal(
                recording,
                check,
                "game: moves",
                by_seat(wrong, there),
                wrong="{share} of the steps of {seat} " + words + ", which the rules forbid",
                right="it never happens",
                advice="look at how moves onto one cell are settled: who stays must count, and all moves at once",
            )
