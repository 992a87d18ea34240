"""The page's section about opponent models, with pictures of a score and of beliefs over an episode.

A score is the result of `hopplus.evaluation.prediction.score`. Pictures show probabilities, because the most likely
action alone hides them: an action that is often predicted with 0.4 may never be the most likely one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hopplus.games import draw, pictures
from hopplus.games.draw import Frame
from hopplus.games.game import GameSpec
from hopplus.report.curves import WIDE
from hopplus_doctor.drawing import INK, MUTED, PAPER, RULE, add_legend, new_sheet, style_axes

Score = Mapping[str, Any]
CELL, LETTER = 0.42, 0.075
"""The size of a cell of a confusion matrix, where two digits must fit, and the width of a letter, in inches."""
WHITE_ON = 0.8
"""Cells with a larger share have white digits."""
GOAL_COLOURS = ("#8a5a2b", "#aaa397", "#e8dfc6", "#6aa5c9", "#7a9e5b", "#c47ba0", "#d9a441", "#5f6b8a")
PALE_BLUE, PALE_GREY = "#9cbef6", "#c6c0b6"
SLANTED = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", "parse_math": False}
"""The style of names of actions below a picture."""
BOARD_WIDTH, BOARD_PADDING, BELIEF_HEIGHT = 1.9, 0.1, 0.85
TOP_LABEL = "share of actions predicted (top-1)"
SCORE_KEYS = {"actions", "by_tenth", "calibration", "confusion", "mean_probabilities", "samples", "top1", "yardsticks"}
"""The keys of a score that the page can show."""
MODEL_KEYS = ("top1", "top3", "cross_entropy", "calibration_error", "top1_over_ceiling")
ACTION_KEYS = ("support", "share", "predicted_share", "precision", "recall", "recall_ceiling", "f1")
PAIR_KEYS = ("top1", "ceiling", "ratio")
YARDSTICK_CAPTION = (
    "Marginal: always predict the most frequent action. Last action: predict the player's action of the step before. "
    "Ceiling: the mean true probability of the most likely action, given everything that the predictor observes."
)
CONFUSION_CAPTION = "Rows: the true action. Left: the most likely action by the model. Right: its mean probabilities."
RELIABILITY_CAPTION = "On the dashed line the most likely action is right as often as its probability says."
PHASE_CAPTION = "A point is a tenth of the horizon. Dashed: the ceiling, if it is known."


def confusion(score: Score) -> Figure:
    """A row for each true action: the shares of the most likely actions, and the mean predicted probabilities."""
    names = [row["name"] for row in score["actions"]]
    counts = np.array(score["confusion"], np.float64)
    support = counts.sum(axis=1, keepdims=True)
    decided = np.divide(counts, support, out=np.full_like(counts, np.nan), where=support > 0)
    probabilities = np.array([row or [np.nan] * len(names) for row in score["mean_probabilities"]])
    side, room = CELL * len(names), LETTER * max(map(len, names))
    sheet = Figure(figsize=(2 * side + 0.8 + room, side + 0.7 + room), facecolor=PAPER, layout="constrained")
    left, right = sheet.subplots(1, 2, sharey=True)
    _draw_matrix(left, decided, names, "most likely action")
    _draw_matrix(right, probabilities, names, "mean probability")
    left.set_ylabel("true action")
    return sheet


def _draw_matrix(axes: Axes, shares: np.ndarray, names: Sequence[str], title: str) -> None:
    """Draw a matrix as rectangles, because the page loads no images; a dash if an action never occurs."""
    style_axes(axes)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), aspect="equal")
    for (row, column), share in np.ndenumerate(shares):
        known = bool(np.isfinite(share))
        colour = (draw.player_colour(0), min(float(share), 1.0)) if known else "none"
        axes.bar(column, 1.0, 1.0, row - 0.5, facecolor=colour, edgecolor=RULE, linewidth=0.6)
        ink = "white" if known and share > WHITE_ON else INK
        axes.text(column, row, f"{share:.2f}" if known else "-", color=ink, fontsize=8.0, ha="center", va="center")
    axes.set_xticks(range(len(names)), names, **SLANTED)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_title(title, fontsize=9.0, color=INK)


def reliability(score: Score) -> Figure:
    """The accuracy of the most likely action by its predicted probability; below, the number of samples."""
    calibration = score["calibration"]
    bins = [each for each in calibration["bins"] if each["count"]]
    sheet = Figure(figsize=(4.2, 4.2), facecolor=PAPER, layout="constrained")
    above, below = sheet.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    for axes in (above, below):
        style_axes(axes)
    above.plot([0, 1], [0, 1], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    pen = {"color": draw.player_colour(0), "linewidth": 2.0, "marker": "o", "markersize": 4, "clip_on": False}
    above.plot([each["confidence"] for each in bins], [each["accuracy"] for each in bins], **pen)
    above.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="how often it was right")
    above.set_title(
        f"expected calibration error {_three_digits(calibration['ece'])}", fontsize=9.0, color=INK, loc="left"
    )
    for each in bins:
        below.bar(each["low"], each["count"], 0.9 * (each["high"] - each["low"]), align="edge", color=PALE_BLUE)
    below.set(xlabel="probability of the most likely action", ylabel="samples")
    below.yaxis.get_major_locator().set_params(nbins=2)
    return sheet


def class_distribution(score: Score) -> Figure:
    """For each action: its share, its share as the most likely action, and its mean predicted probability."""
    rows = score["actions"]
    sheet, axes = new_sheet(WIDE)
    series = {"done": "share", "most likely action": "predicted_share", "mean probability": "mean_probability"}
    colours = (MUTED, draw.player_colour(0), PALE_BLUE)
    for index, ((label, key), colour) in enumerate(zip(series.items(), colours, strict=True)):
        positions = np.arange(len(rows)) + 0.27 * (index - 1)
        axes.bar(positions, [row[key] or 0.0 for row in rows], 0.25, color=colour, label=label)
    axes.set_xticks(range(len(rows)), [row["name"] for row in rows], **SLANTED)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("share of samples")
    add_legend(sheet, axes)
    return sheet


def yardsticks(scores: Mapping[str, Score]) -> Figure:
    """Top-1 accuracy of each model, beside predictors without a model and the ceiling."""
    marginal, last_action, ceiling = (
        _once({name: (score["yardsticks"][key] or {}).get("top1") for name, score in scores.items()}, words)
        for key, words in (("marginal", "marginal"), ("last_action", "last action"), ("ceiling", "ceiling"))
    )
    models = {name: score["top1"] for name, score in scores.items() if score["top1"] is not None}
    colours = {name: draw.player_colour(index) for index, name in enumerate(scores)}
    bars = {**marginal, **last_action, **models, **ceiling}
    sheet, axes = new_sheet((3.6 + LETTER * max([27, *map(len, bars)]), 0.75 + 0.32 * len(bars)))
    for position, (name, value) in enumerate(bars.items()):
        axes.barh(position, value, 0.68, color=colours.get(name, PALE_GREY), label=name)
        axes.text(value + 0.01, position, f"{value:.3f}", color=INK, fontsize=9.0, va="center")
    axes.set_yticks(range(len(bars)), list(bars), parse_math=False)
    axes.set(ylim=(len(bars) - 0.4, -0.6), xlabel=TOP_LABEL)
    _from_0_to_1(axes, end=1.1)
    axes.grid(visible=False, axis="y")
    return sheet


def _once(values: Mapping[str, Any], words: str) -> dict[str, Any]:
    """Name a yardstick that all models share once; otherwise add the names of the models to it."""
    known = {name: value for name, value in values.items() if value is not None}
    distinct = [value for index, value in enumerate(known.values()) if value not in list(known.values())[:index]]
    if len(distinct) < 2:
        return dict.fromkeys([words], distinct[0]) if distinct else {}
    return {f"{words}, {' and '.join(name for name in known if known[name] == value)}": value for value in distinct}


def by_phase(scores: Mapping[str, Score]) -> Figure:
    """Top-1 accuracy of each model by tenths of the horizon; the ceiling is dashed."""
    sheet, axes = new_sheet(WIDE)
    middles = [(part["low"] + part["high"]) / 2 for part in next(iter(scores.values()))["by_tenth"]]
    for index, (name, score) in enumerate(scores.items()):
        pen = {"color": draw.player_colour(index), "linewidth": 2.0, "marker": "o", "markersize": 4}
        axes.plot(middles, np.array([part["top1"] for part in score["by_tenth"]], np.float64), label=name, **pen)
    tops = {name: [part["ceiling"] for part in score["by_tenth"]] for name, score in scores.items()}
    known = {name: top for name, top in tops.items() if any(value is not None for value in top)}
    for index, (label, top) in enumerate(_once(known, "ceiling").items()):
        pen = {"color": MUTED, "linewidth": 1.2, "linestyle": (0, (4, 2 + 2 * index))}
        axes.plot(middles, np.array(top, np.float64), label=label, **pen)
    axes.set(ylim=(0, 1.02), xlabel="share of the horizon that has passed", ylabel=TOP_LABEL)
    _from_0_to_1(axes)
    add_legend(sheet, axes)
    return sheet


def _from_0_to_1(axes: Axes, end: float = 1.0) -> None:
    axes.xaxis.set_major_formatter("{x:.1f}")
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_xlim(0, end)


def belief_strip(
    spec: GameSpec,
    frames: Sequence[Frame],
    beliefs: Float[np.ndarray, "steps others goals"],
    goal_names: Sequence[str],
    seat_names: Sequence[str],
    at: Sequence[int],
) -> Figure:
    """The board at some frames of an episode, and below it the beliefs about each co-player's goal over all frames.

    `seat_names` names the co-players, one per row of beliefs. A name with player_2 gets that player's colour.
    """
    num_steps, num_others, num_goals = beliefs.shape
    if not 1 <= num_steps <= len(frames):
        raise ValueError(f"beliefs at {num_steps} of {len(frames)} frames; give one per frame, from the first on")
    if (len(goal_names), len(seat_names)) != (num_goals, num_others):
        raise ValueError(f"beliefs are about {num_goals} goals of {num_others} co-players; give one name for each")
    if not at or not all(0 <= index < len(frames) for index in at):
        raise ValueError(f"there are no frames {list(at)}; give indices from 0 to {len(frames) - 1}")
    board = BOARD_WIDTH * spec.height / spec.width + 0.3 if spec.planes else 0.0
    size = max(WIDE[0], (BOARD_WIDTH + 0.1) * len(at)), board + BELIEF_HEIGHT * num_others + 0.55
    sheet = Figure(figsize=size, facecolor=PAPER, layout="constrained")
    upper, lower = sheet.add_gridspec(2, 1, height_ratios=(max(board, 1e-3), BELIEF_HEIGHT * num_others))
    columns = upper.subgridspec(1, len(at))
    for column, index in enumerate(at if spec.planes else []):
        _draw_moment(sheet.add_subplot(columns[column]), spec, frames, index)
    times, marks = [frame.time for frame in frames[:num_steps]], [frames[index].time for index in at]
    panels = lower.subgridspec(num_others, 1).subplots(squeeze=False)[:, 0]
    for other, (axes, name) in enumerate(zip(panels, seat_names, strict=True)):
        _draw_belief(axes, times, beliefs[:, other], goal_names, name, marks)
        axes.tick_params(labelbottom=other == num_others - 1)
    panels[-1].set_xlabel("step")
    look = {"ncols": num_goals, "frameon": False, "fontsize": 9.0, "labelcolor": INK}
    sheet.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", **look)
    return sheet


def _draw_moment(axes: Axes, spec: GameSpec, frames: Sequence[Frame], index: int) -> None:
    """Draw the board, cut out of the picture of the frame."""
    picture = pictures.figure(spec, frames[index], frames[index - 1] if index else None)
    picture.set_dpi(pictures.PICTURE_DPI)
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    corners = pictures.layout_of(spec).on_sheet([(0, 0), (spec.width, spec.height)])
    padding = np.array([[-BOARD_PADDING], [BOARD_PADDING]])
    (left, top), (right, bottom) = ((corners + padding) * pictures.PICTURE_DPI).round().astype(int)
    axes.imshow(np.asarray(canvas.buffer_rgba())[top:bottom, left:right], interpolation="antialiased")
    axes.set_axis_off()
    axes.set_title(f"step {frames[index].time}", fontsize=9.0, color=INK)


def _draw_belief(
    axes: Axes, times: Sequence[int], belief: np.ndarray, goal_names: Sequence[str], name: str, marks: Sequence[int]
) -> None:
    style_axes(axes, points=8.0)
    axes.grid(visible=False)
    colours = [GOAL_COLOURS[goal % len(GOAL_COLOURS)] for goal in range(len(goal_names))]
    axes.stackplot(times, belief.T, labels=goal_names, colors=colours, edgecolor="white", linewidth=0.5)
    for mark in marks:
        axes.axvline(mark, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), clip_on=False, zorder=5)
    axes.set(xlim=(times[0], max(times[-1], times[0] + 1)), ylim=(0, 1), yticks=(0, 0.5, 1))
    seat = re.search(r"player_(\d+)", name)
    colour = draw.player_colour(int(seat[1]) - 1) if seat else INK
    axes.set_title(name, fontsize=9.0, color=colour, loc="left", pad=4.0, parse_math=False)


@dataclass(frozen=True)
class Drawing:
    """A figure for the page."""

    title: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class TextTable:
    """A table for the page; the first column names the row."""

    title: str
    head: list[str]
    rows: list[list[str]]


def section(content: Mapping[str, Any]) -> tuple[str, list[Drawing | TextTable]]:
    """The page's text, tables and pictures for `others.json`. Missing parts are left out, or a dash."""
    models = content.get("models") or {}
    scores = {
        name: score for name, score in models.items() if isinstance(score, Mapping) and score.keys() >= SCORE_KEYS
    }
    pairs = {f"{pair.get('player')} of {pair.get('other')}": pair for pair in content.get("pairs") or []}
    parts: list[Drawing | TextTable] = []
    if scores:
        name, first = next(iter(scores.items()))
        models = {each: {**score, "calibration_error": score["calibration"]["ece"]} for each, score in scores.items()}
        parts = [
            Drawing("Beside the yardsticks", yardsticks(scores), YARDSTICK_CAPTION),
            _table("Models", "model", MODEL_KEYS, models),
            _table(f"Actions, by {name}", "action", ACTION_KEYS, {row["name"]: row for row in first["actions"]}),
            Drawing(f"Predictions of {name} for each true action", confusion(first), CONFUSION_CAPTION),
            Drawing(f"Calibration of {name}", reliability(first), RELIABILITY_CAPTION),
            Drawing("Over the horizon", by_phase(scores), PHASE_CAPTION),
        ]
    if pairs:
        parts.append(_table("Pairs of players", "prediction", PAIR_KEYS, pairs))
    return _sentence(content, scores), parts


def _sentence(content: Mapping[str, Any], scores: Mapping[str, Score]) -> str:
    episodes = content.get("episodes")
    over = f" over {episodes:,} episodes" if isinstance(episodes, int) else ""
    words = f"Predictions of the next actions of the co-players ({content.get('co_players', '-')}){over}."
    if not scores:
        return f"{words} The file holds no score that can be shown."
    name, first = next(iter(scores.items()))
    words += f" {name} is right in {_three_digits(first['top1'])} of {first['samples']:,} samples"
    ceiling = first["yardsticks"]["ceiling"]
    if ceiling is None:
        return f"{words}; the ceiling is not known."
    return f"{words}; the best possible predictor is right in {_three_digits(ceiling['top1'])}."


def _table(title: str, first: str, keys: Sequence[str], rows: Mapping[str, Score]) -> TextTable:
    """A table with a column for each key of the file."""
    head = [first, *(key.replace("_", " ").replace("top", "top-") for key in keys)]
    return TextTable(
        title, head, [[name, *(_three_digits(row.get(key)) for key in keys)] for name, row in rows.items()]
    )


def _three_digits(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else "-"
