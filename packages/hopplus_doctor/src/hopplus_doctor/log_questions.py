"""Questions about logs alone. Curves say less than recordings: most findings are judgements, and say so."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from hopplus_doctor.answer import Answer, Examination, Finding, Picture, Verdict, settled
from hopplus_doctor.examination import PROGRAM
from hopplus_doctor.logs import Curve, read_logs
from hopplus_doctor.seat_returns import LEAST_SEEDS, returns_of_seeds
from hopplus_doctor.source_questions import FAR, FARTHER, VERY_FAR
from hopplus_doctor.statistics import seed_interval
from hopplus_doctor.tags import Meaning, guess, read_mapping, to_toml
from hopplus_doctor.version import __version__

FIRST_SHARE, FINAL_SHARE = 0.05, 0.2
"""The parts of training that count as its beginning and its end."""
CHANGED = 0.1
"""The smallest change of the return that counts, as a share of the larger one."""
CLIPPED, MOVED = 0.5, 0.2
"""A clip fraction, and a KL divergence, above which updates are too large."""
COLLAPSED = 0.02
"""The share of the first entropy below which a policy has collapsed."""
PARTS = {
    "value_loss": "critic",
    "explained_variance": "critic",
    "others_loss": "others",
    "world_loss": "world",
    "return": "rewards",
}
MAY_BE_UNKNOWN = ("return", "explained_variance")
"""Roles that have no number in some updates: no episode ended, or the targets did not vary."""
MAPPED = "mapped"
Logs = Mapping[str, Curve]
Meanings = Mapping[str, Meaning | None]


def examine_logs(
    folders: Sequence[Path], tags: Path | None = None, *, program: str = PROGRAM
) -> tuple[Examination, str]:
    """Examine the logs of one or more seeds. Returns the examination and the mapping of tags as TOML.

    `tags` is a TOML file with the mapping. If it is not there, the guessed mapping is written to it.
    """
    if not folders:
        raise ValueError("name the folder of a log")
    logs = [read_logs(folder) for folder in folders]
    known = {tag for log in logs for tag in log}
    mapping = read_mapping(tags, known) if tags is not None and tags.is_file() else guess(known)
    text = to_toml(mapping)
    if tags is not None and not tags.exists():
        tags.write_text(text, encoding="utf-8")
    asked = {
        "numbers": ("are all numbers finite?", finite(logs, mapping)),
        "progress": ("has the run learned anything?", progress(logs, mapping)),
        "policy": ("are the updates of the policy of a sound size?", policy(logs, mapping)),
        "critic": ("what feeds the critic?", critic(logs, mapping)),
        "seats": ("does training treat seats alike?", seats(logs, mapping)),
    }
    answers = [Answer(name, asks, tuple(findings)) for name, (asks, findings) in asked.items()]
    command = " ".join([program, "logs", *map(str, folders)]) + (f" --tags {tags}" if tags else "")
    return Examination(str(folders[0]), command, __version__, settled(answers), PROGRAM), text


def curves_of(logs: Sequence[Logs], mapping: Meanings, role: str) -> dict[str | None, list[Curve]]:
    """For each seat (None: all together) the curves of a role, one for each seed that has it.

    Where several tags of a log mean the same, the first of the mapping counts.
    """
    tags: dict[str | None, list[str]] = {}
    for tag, meaning in mapping.items():
        if meaning is not None and meaning.role == role:
            tags.setdefault(meaning.seat, []).append(tag)
    found = {
        seat: [next((log[tag] for tag in of_seat if tag in log), None) for log in logs]
        for seat, of_seat in tags.items()
    }
    return {seat: [curve for curve in curves if curve is not None] for seat, curves in found.items()}


def last(curve: Curve) -> float:
    """The mean of the finite values of the last fifth."""
    return _mean(curve.values[-max(1, round(FINAL_SHARE * len(curve.values))) :])


def first(curve: Curve) -> float:
    """The mean of the finite values of the beginning."""
    return _mean(curve.values[: max(1, round(FIRST_SHARE * len(curve.values)))])


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def _unmapped(check: str, module: str, *roles: str) -> Finding:
    words = f"no tag is mapped to {' or '.join(roles)}"
    advice = "edit the mapping: --tags tags.toml"
    return Finding(check, module, "judgement", "not enough evidence", words, next=advice, threshold="none: no such tag")


def finite(logs: Sequence[Logs], mapping: Meanings) -> Iterator[Finding]:
    """Are all logged numbers of a known role finite?"""
    if not any(mapping.values()):
        yield _unmapped("finite numbers", "logs", "any role")
        return
    for tag, meaning in mapping.items():
        for log in logs:
            if meaning is None or tag not in log:
                continue
            bad = ~np.isfinite(log[tag].values)
            # a mean over no episodes, or a share of no variance, is NaN; only one that stays so, or inf, is a fault
            stays = bad[-max(1, len(bad) // 10) :].all() or np.isinf(log[tag].values).any()
            if bad.any() and (meaning.role not in MAY_BE_UNKNOWN or stays):
                part = PARTS.get(meaning.role.split("_real")[0].split("_imagined")[0], "policy")
                step = log[tag].steps[int(bad.argmax())]
                says = f"{tag} is not finite from step {step:,.0f} on, in {bad.mean():.0%} of its entries"
                advice = "lower the learning rate, clip gradients, and look for a division or a logarithm of 0"
                yield Finding(f"finite {tag}", part, "exact", "broken", says, next=advice)
                return
    yield Finding("finite numbers", "logs", "exact", "fine", "all logged numbers are finite")


def progress(logs: Sequence[Logs], mapping: Meanings) -> Iterator[Finding]:
    """Has the return changed? This raises no alarm."""
    found = curves_of(logs, mapping, "return")
    if not found:
        yield _unmapped("progress", "policy", "return")
        return
    curves = found.get(None) or next(iter(found.values()))
    begins, ends = np.array([[first(curve), last(curve)] for curve in curves]).T
    threshold = f"fine if the return changes by {CHANGED:.0%} or more and the interval over seeds leaves out 0"
    about = partial(
        Finding, "progress", "policy", "judgement", threshold=threshold, more="train for longer, or more seeds"
    )
    known = np.isfinite(begins) & np.isfinite(ends)
    if not known.any() or min(len(curve.values) for curve in curves) < 10:
        yield about("not enough evidence", "the logs are too short to compare the end with the beginning")
        return
    begins, ends = begins[known], ends[known]
    size = max(abs(begins.mean()), abs(ends.mean()), 1e-9)
    effect = seed_interval((ends - begins) / size)
    samples = {"beginning": begins.tolist(), "last fifth": ends.tolist()}
    picture = Picture("boxes", "mean return by seed", tuple(samples), samples, "return")
    says = f"mean return {ends.mean():.3g} at the end, {begins.mean():.3g} in the beginning"
    sure = np.isfinite([effect.low, effect.high]).all() and 0.0 not in effect and abs(effect.estimate) >= CHANGED
    yield about("fine" if sure else "not enough evidence", says, effect, "of the return", picture=picture)


def policy(logs: Sequence[Logs], mapping: Meanings) -> Iterator[Finding]:
    """Clip fractions, KL divergences and entropies."""
    for role, most in (("clip_fraction", CLIPPED), ("approx_kl", MOVED)):
        found = {
            seat: np.nanmean([last(c) for c in curves])
            for seat, curves in curves_of(logs, mapping, role).items()
            if curves
        }
        if not found:
            yield _unmapped(role.replace("_", " "), "policy", role)
            continue
        seat = max(found, key=found.__getitem__)
        about = partial(Finding, role.replace("_", " "), "policy", "judgement", threshold=f"suspicious above {most:g}")
        says = f"{role.replace('_', ' ')} {found[seat]:.3g} at the end{f' for {seat}' if seat else ''}"
        advice = "lower the learning rate, or use fewer epochs"
        yield about("suspicious" if found[seat] > most else "fine", says, next=advice)
    entropies = curves_of(logs, mapping, "entropy")
    if not entropies:
        yield _unmapped("entropy", "policy", "entropy")
        return
    left = {}
    for seat, curves in entropies.items():
        # some trainers log the loss of the entropy, which has the other sign
        shares = [abs(last(curve)) / max(abs(first(curve)), 1e-9) for curve in curves]
        left[seat] = float(np.nanmean(shares))
    seat = min(left, key=left.__getitem__)
    about = partial(
        Finding, "entropy", "policy", "judgement", threshold=f"suspicious below {COLLAPSED:.0%} of the first"
    )
    says = f"the entropy{f' of {seat}' if seat else ''} ends at {left[seat]:.0%} of that of the beginning"
    verdict: Verdict = "suspicious" if left[seat] < COLLAPSED else "fine"
    yield about(verdict, says, next="if the return is low, raise the entropy coefficient")


def critic(logs: Sequence[Logs], mapping: Meanings) -> Iterator[Finding]:
    """Explained variance, and value losses by source."""
    found = [curve for curves in curves_of(logs, mapping, "explained_variance").values() for curve in curves]
    if not found:
        yield _unmapped("explained variance", "critic", "explained_variance")
    else:
        values = np.array([last(curve) for curve in found])
        verdict: Verdict = (
            "suspicious" if (values < 0).all() else "fine" if (values > 0).all() else "not enough evidence"
        )
        about = partial(Finding, "explained variance", "critic", "judgement", threshold="suspicious if all are below 0")
        yield about(
            verdict, f"the critics explain {values.mean():.0%} of the variance at the end", next="record the targets"
        )
    real, imagined = (curves_of(logs, mapping, f"value_loss_{source}") for source in ("real", "imagined"))
    if not real or not imagined:
        yield _unmapped("value loss by source", "imagination", "value_loss_real", "value_loss_imagined")
        return
    means = [float(np.nanmean([last(c) for curves in each.values() for c in curves])) for each in (real, imagined)]
    ratio = means[1] / max(means[0], 1e-12)
    verdict = "broken" if ratio > VERY_FAR else "suspicious" if ratio > FAR else "fine"
    says = f"value loss: imagined {means[1]:.3g}, real {means[0]:.3g}, {ratio:.2g} times"
    about = partial(Finding, "value loss by source", "imagination", "judgement", threshold=FARTHER)
    yield about(verdict, says, next="record the run, and ask hopplus-doctor recording")


def seats(logs: Sequence[Logs], mapping: Meanings) -> Iterator[Finding]:
    """Equal counts for every seat, and returns over seeds."""
    for role in ("updates", "samples"):
        by_seat = {seat: curves for seat, curves in curves_of(logs, mapping, role).items() if seat and curves}
        if len(by_seat) < 2:
            continue
        totals = {seat: float(np.nansum([np.nanmean(c.values) for c in curves])) for seat, curves in by_seat.items()}
        low, high = min(totals, key=totals.__getitem__), max(totals, key=totals.__getitem__)
        picture = Picture("bars", f"{role} of each seat", tuple(totals), {role: list(totals.values())})
        about = partial(Finding, role, "buffer" if role == "samples" else "modules", "judgement", picture=picture)
        about = partial(about, threshold="broken if a seat has less than half of another's")
        verdict: Verdict = "broken" if totals[low] < 0.5 * totals[high] else "fine"
        yield about(
            verdict, f"{low} has {totals[low]:.4g} {role}, {high} {totals[high]:.4g}", next=f"look at {low}'s buffer"
        )
    found = {seat: curves for seat, curves in curves_of(logs, mapping, "return").items() if seat}
    whole = len(found) > 1 and all(len(curves) == len(logs) for curves in found.values())
    if not whole or len(logs) < LEAST_SEEDS:
        says = (
            f"returns of two or more seats, of {LEAST_SEEDS} seeds or more, are needed; name the folders of all seeds"
        )
        more = f"name the folders of {LEAST_SEEDS} seeds or more"
        yield Finding("returns", "seats", "test", "not enough evidence", says, next=more)
        return
    rows = np.array([[last(curve) for curve in curves] for curves in found.values()]).T
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) < LEAST_SEEDS:
        yield Finding("returns", "seats", "test", "not enough evidence", "too few seeds have returns of every seat")
        return
    advice = "if the seats have one role, examine the environment: hopplus-doctor game --env MODULE:FACTORY"
    yield from returns_of_seeds(rows, tuple(str(seat) for seat in found), "", advice)
