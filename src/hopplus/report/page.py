"""One HTML page about one run. The page is one file and needs no network.

Its Content-Security-Policy forbids loading anything.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from hopplus.report import curves, prediction, replay, summary, world
from hopplus.report.replay import Replay
from hopplus.runs import records
from hopplus.runs.records import Recorded
from hopplus_doctor.drawing import inline_svg
from hopplus_doctor.statistics import FEW_SEEDS, Interval, seed_interval
from hopplus_doctor.template_environment import template_environment

GROUP_TITLES = {
    "charts": "Other charts",
    "policy": "Policy",
    "wm": "World model",
    "moa": "Opponent models",
    "goal": "Goals",
    "trust": "Trust in the models",
    "imagined": "Imagined data",
    "real": "Real data",
    "count": "Counts",
    "buffer": "Buffers",
}
"""Headings of the known groups; the heading of any other group is its name."""
BY_CO_PLAYER = {"moa/ce_loss": "moa/ce_loss by co-player", "moa/top1": "moa/top1 by co-player"}
"""Metrics of pairs that are drawn, and the titles of their pictures."""
SPEED_TAG = "charts/steps_per_second"


@dataclass(frozen=True)
class Fact:
    """One entry of the headline."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure of the page, or only a caption if there is nothing to draw."""

    title: str
    svg: Markup | None
    caption: str = ""


@dataclass(frozen=True)
class Group:
    """The small pictures of all tags with the same first part."""

    key: str
    title: str
    pictures: list[Picture]


def page(run: Recorded, replays: Sequence[Replay], *, title: str | None = None, best: float | None = None) -> str:
    """The HTML of the whole page. `best` is the best possible mean return, if it is known."""
    groups = _groups(run)
    content = {
        "title": title or f"{run.config['agent']} on {run.config['game']}",
        "run": run,
        "facts": _facts(run),
        "learning": _learning(run, best),
        "learning_words": _learning_words(run),
        "seat_pictures": _seat_pictures(run),
        "verdict": [summary.seat_spread(run), summary.seat_trend(run)[1]],
        "policy": groups.pop("policy", Group("policy", GROUP_TITLES["policy"], [])),
        "groups": list(groups.values()),
        "caption": curves.curve_caption(run),
        "empty_words": _empty_words(run),
        "evaluation": _evaluation(run.evaluation),
        "doctor": _doctor(run.checkups),
        "measurements": [
            section
            for section in (
                _measured("others", "Evaluation of opponent models", run.others, prediction.section),
                _measured("world", "Evaluation of worlds", run.world, world.section),
            )
            if section
        ],
        "symbols": replay.symbols(),
        "symbol_half": replay.SYMBOL_HALF,
        "bricks": replay.brick_data(),
        "replays": [replay.replay_data(each) for each in replays],
    }
    return template_environment("hopplus.report").get_template("page.html").render(content)


def _facts(run: Recorded) -> list[Fact]:
    config = run.config
    facts = [
        Fact("Game", str(config["game"])),
        Fact("Agent", str(config["agent"])),
        Fact("Seeds", str(run.num_seeds), _planned(run.num_seeds, config["seeds"])),
        Fact("Steps per seed", f"{run.env_steps[-1]:,}", _planned(int(run.env_steps[-1]), run.planned_steps)),
        _return_fact(run),
    ]
    if more := run.population_steps:
        facts.insert(4, Fact("Steps of the population", f"{more:,}", "all members; they are real steps too"))
    if run.evaluation is not None:
        mean, greedy = (_number(run.evaluation.get(key)) for key in ("mean_return", "mean_return_greedy"))
        note = f"sampled after training; greedy {summary.number_words(greedy)}"
        facts.append(Fact("Return of the final policy", summary.number_words(mean), note))
    speeds = run.timing.get(SPEED_TAG, np.zeros(0))
    speeds = speeds[np.isfinite(speeds)]
    if len(speeds):
        facts.append(Fact("Steps per second", f"{np.median(speeds):,.0f}", "median over blocks"))
    return facts


def _planned(reached: int, planned: Any) -> str:
    """A note if a run has not reached its plan."""
    return f"of {planned:,} planned" if isinstance(planned, int) and reached < planned else ""


def _return_fact(run: Recorded) -> Fact:
    name, where = "Mean return", f"last {records.FINAL_SHARE:.0%} of training"
    if not _has_numbers(run, records.RETURN_TAG):
        return Fact(name, "-", "no episode has ended yet")
    interval = seed_interval(records.final_means(run, records.RETURN_TAG))
    if math.isnan(interval.low):
        return Fact(name, summary.number_words(interval.estimate), f"{where}; one seed, no interval")
    low, high = map(summary.number_words, (interval.low, interval.high))
    return Fact(name, summary.number_words(interval.estimate), f"{low} to {high}, 95% over seeds; {where}")


def _learning(run: Recorded, best: float | None) -> Picture:
    name = "Mean return over training"
    if not _has_numbers(run, records.RETURN_TAG):
        return Picture(name, None, "There is no return to draw: no episode has ended yet.")
    figure = curves.learning_curve({run.name: run}, best=best)
    if best is None:
        return Picture(name, _markup(figure, name), curves.curve_caption(run))
    return Picture(name, _markup(figure, name), f"{curves.curve_caption(run)} Dashed: the best possible mean return.")


def _learning_words(run: Recorded) -> str:
    """The lowest and the highest seed in words: a mean may hide a seed that failed."""
    if not _has_numbers(run, records.RETURN_TAG) or run.num_seeds == 1:
        return ""
    means = records.final_means(run, records.RETURN_TAG)
    if np.isnan(means).all():
        return ""
    low, high = (summary.number_words(float(each)) for each in (np.nanmin(means), np.nanmax(means)))
    where = f"Over the last {records.FINAL_SHARE:.0%} of training"
    words = f"{where} the lowest seed has a mean return of {low}, the highest of {high}."
    return f"{words} {_few_seeds(means.tolist())}" if run.num_seeds < FEW_SEEDS else words


def _few_seeds(values: Sequence[float]) -> str:
    """The values of few seeds in words: their interval is too short if some seeds fail."""
    shown = ", ".join(map(summary.number_words, values))
    return f"Seed by seed: {shown}. With fewer than {FEW_SEEDS} seeds, look at these and not at the interval alone."


def _seat_pictures(run: Recorded) -> list[Picture]:
    if not any(_has_numbers(run, tag) for tag in records.seat_tags(run)):
        return []
    over, end = "Return of each seat over training", "Return of each seat at the end of training"
    caption = "Means over seeds, with their 95% intervals as bands."
    if 1 < run.num_seeds < FEW_SEEDS:
        caption += " Thin lines: seeds."
    return [
        Picture(over, _markup(curves.seat_curves(run), over), caption),
        Picture(end, _markup(curves.seat_boxes(run), end), curves.BOX_CAPTION),
    ]


def _groups(run: Recorded) -> dict[str, Group]:
    """Small pictures of the tags without a section, grouped by the part before the first slash. Seats share a picture.

    Pairs of seats share one too, but only for the losses of opponent models: there would be too many lines.
    """
    families = dict.fromkeys(_family(tag) for tag in run.metrics)
    groups: dict[str, Group] = {}
    for family in families:
        if family in (records.RETURN_FAMILY, records.RETURN_TAG, ""):
            continue
        key = family.split("/", 1)[0]
        group = groups.setdefault(key, Group(key, GROUP_TITLES.get(key, key), []))
        group.pictures.append(_small_picture(run, family))
    return groups


def _family(tag: str) -> str:
    """The name of the picture that a tag is drawn in; empty if it is not drawn."""
    if match := records.PAIR.fullmatch(tag):
        return BY_CO_PLAYER.get(match[1], "")
    return match[1] if (match := records.SEAT.fullmatch(tag)) else tag


def _small_picture(run: Recorded, family: str) -> Picture:
    if family in BY_CO_PLAYER.values():
        of_pairs = next(name for name, title in BY_CO_PLAYER.items() if title == family)
        figure = curves.small_pair_curves(run, of_pairs)
        return Picture(family, _markup(figure, family), "a line per pair, in the colours of the co-players")
    if family not in run.metrics:
        figure = curves.small_seat_curves(run, family)
        return Picture(family, _markup(figure, family), "per seat, in the colours of the players")
    if not _has_numbers(run, family):
        return Picture(family, None, "no numbers")
    return Picture(family, _markup(curves.small_curve(run, family), family))


def _empty_words(run: Recorded) -> str:
    """A note about losses that are not finite, because curves leave them out."""
    counts = {
        tag: int((~np.isfinite(values)).sum()) for tag, values in run.metrics.items() if tag.startswith("policy/")
    }
    tags = [f"{tag} ({count} of {run.metrics[tag].size})" for tag, count in counts.items() if count]
    return f"Entries that are not finite are not drawn: {', '.join(tags)}." if tags else ""


def _evaluation(evaluation: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A sentence and a row per seat; a missing number is a dash."""
    if evaluation is None:
        return None
    episodes = evaluation.get("episodes")
    over = f" over {episodes:,} episodes" if isinstance(episodes, int) else ""
    mean, greedy = (_number(evaluation.get(key)) for key in ("mean_return", "mean_return_greedy"))
    words = (
        f"The final policy has a mean return of {summary.number_words(mean)}{over} with sampled actions, and of "
        f"{summary.number_words(greedy)} with greedy ones. In brackets: 95% intervals."
    )
    by_seed = [_number(row.get("sampled")) for row in evaluation.get("per_seed", []) if isinstance(row, dict)]
    if 1 < len(by_seed) < FEW_SEEDS:
        words += f" Sampled, {_few_seeds(by_seed).replace('Seed', 'seed', 1)}"
    rows = [
        {
            "seat": str(row.get("seat", "-")),
            **{how: summary.interval_words(_interval(row.get(how))) for how in ("sampled", "greedy")},
        }
        for row in evaluation.get("per_seat", [])
        if isinstance(row, dict)
    ]
    return {"words": words, "rows": rows}


def _doctor(checkups: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the doctor said while the run was training: a sentence, and each finding where it first came."""
    if not checkups:
        return None
    first: dict[tuple[str, str], tuple[str, str, str]] = {}
    for row in checkups:
        for finding in row.get("findings", []):
            words = f"{finding['says']}. Next: {finding['next']}" if finding.get("next") else finding["says"]
            said = (f"update {row['update']}", f"{finding['verdict']}: {finding['module']}", words)
            first.setdefault((finding["check"], finding["verdict"]), said)
    said = "nothing was suspicious or broken" if not first else f"{len(first)} findings, each where it first came"
    words = f"Asked at {len(checkups)} checkpoints, in {checkups[-1]['share']:.1%} of the time: {said}."
    return {"words": words, "rows": list(first.values())}


def _measured(
    anchor: str, title: str, content: Mapping[str, Any] | None, section: Callable[[Mapping[str, Any]], Any]
) -> dict[str, Any] | None:
    """A section of the page: a sentence, the command that made it, and its tables and pictures."""
    if content is None:
        return None
    words, parts = section(content)
    source = {"command": content["commands"][-1]} if content.get("commands") else {}
    source |= {"version": str(content["version"])} if "version" in content else {}
    return {"id": anchor, "title": title, "words": words, "source": source, "parts": [_drawn(part) for part in parts]}


def _drawn(part: prediction.Drawing | prediction.TextTable) -> Picture | prediction.TextTable:
    if isinstance(part, prediction.TextTable):
        return part
    return Picture(part.title, _markup(part.figure, part.title), part.caption)


def _interval(value: Any) -> Interval:
    entries = value if isinstance(value, dict) else {}
    return Interval(*(_number(entries.get(key)) for key in ("estimate", "low", "high")))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _has_numbers(run: Recorded, tag: str) -> bool:
    return tag in run.metrics and bool(np.isfinite(run.metrics[tag]).any())


def _markup(figure: Any, name: str) -> Markup:
    """A figure for the page. Matplotlib and `inline_svg` escape its text."""
    return Markup(inline_svg(figure, name))
