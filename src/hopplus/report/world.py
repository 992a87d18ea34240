"""The page's section about a learned world, with pictures of predicted and true boards.

Pictures show probabilities, not rounded boards: a player in two cells with probabilities .6 and .4 appears in both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus.games import draw
from hopplus.report.curves import WIDE
from hopplus.report.prediction import WHITE_ON, Drawing, TextTable
from hopplus_doctor.drawing import INK, PAPER, RULE, add_legend, new_sheet, style_axes

PLANE_SIZE = 1.05
CERTAIN = 0.005
"""Probabilities nearer to 0 or 1 than this are drawn without a number."""
FIGURES = {
    "exact_next_state": "exact next state",
    "observation_mse": "observation MSE",
    "reward_mse": "reward MSE",
    "end_error": "wrong ends",
    "paid_recall": "paid steps right",
    "open_loop_exact": "5 steps exact",
    "transitions": "transitions",
}
ROWS = {"before": "before", "told": "predicted", "true": "true"}
CAPTION = (
    "Of the steps with a reward, those whose prediction was the least certain. A cell shows the predicted probability "
    "of the plane there; cells near 0 or 1 have no number."
)

AHEAD = (
    "The world predicts from its own predictions, with the true joint actions. A point counts the starts from which "
    "every board up to there is right, cell for cell."
)


def predicted(example: Mapping[str, Any], planes: Sequence[str]) -> Figure:
    """One step: each plane before it, as predicted, and as it was."""
    boards = {row: np.asarray(example[key], np.float64) for key, row in ROWS.items()}
    size = (PLANE_SIZE * len(planes) + 0.6, PLANE_SIZE * len(boards) + 0.5)
    sheet = Figure(figsize=size, facecolor=PAPER, layout="constrained")
    grid = sheet.subplots(len(boards), len(planes), squeeze=False)
    for (row, board), line in zip(boards.items(), grid, strict=True):
        for index, (name, axes) in enumerate(zip(planes, line, strict=True)):
            _draw_plane(axes, board[..., index])
            if row == "before":
                axes.set_title(name.replace("_", " "), fontsize=8.0, color=INK)
        line[0].set_ylabel(row, fontsize=8.0, color=INK)
    return sheet


def steps_ahead(scores: Mapping[str, Mapping[str, Any]]) -> Figure:
    """For each line-up: how often the world is right for so many steps on its own predictions."""
    sheet, axes = new_sheet(WIDE)
    for index, (name, score) in enumerate(scores.items()):
        steps = [one["steps"] for one in score["by_steps"]]
        exact = [one["exact"] for one in score["by_steps"]]
        axes.plot(steps, exact, color=draw.player_colour(index), marker="o", markersize=3, label=name)
    axes.set(ylim=(-0.02, 1.02), xlabel="steps ahead", ylabel="share of boards that are exact")
    axes.xaxis.set_major_formatter("{x:.0f}")
    add_legend(sheet, axes)
    return sheet


def _draw_plane(axes: Axes, cells: np.ndarray) -> None:
    """Draw a plane as rectangles, because the page loads no images."""
    style_axes(axes)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    height, width = cells.shape
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
    for (row, column), share in np.ndenumerate(cells):
        colour = (draw.player_colour(0), float(np.clip(share, 0, 1)))
        axes.bar(column, 1.0, 1.0, row - 0.5, facecolor=colour, edgecolor=RULE, linewidth=0.5)
        if CERTAIN < share < 1 - CERTAIN:
            ink = "white" if share > WHITE_ON else INK
            axes.text(column, row, f"{share:.2f}"[1:], color=ink, fontsize=6.5, ha="center", va="center")


def section(content: Mapping[str, Any]) -> tuple[str, list[Drawing | TextTable]]:
    """The page's text, tables and pictures for `world.json`."""
    scores, planes = content.get("line_ups") or {}, content.get("planes") or []
    impossible = content.get("impossible_drawn") or {}
    parts: list[Drawing | TextTable] = []
    if scores:
        rows = [[name, *(_words(score.get(key)) for key in FIGURES)] for name, score in scores.items()]
        parts.append(TextTable("On real episodes", ["line-up", *FIGURES.values()], rows))
        by_plane = [
            [name, *(_words(score["plane_mse"].get(plane)) for plane in planes)] for name, score in scores.items()
        ]
        parts.append(TextTable("Squared error of each plane", ["line-up", *planes], by_plane))
    if scores and all("by_steps" in score for score in scores.values()):
        parts.append(Drawing("Steps ahead", steps_ahead(scores), AHEAD))
    for number, example in enumerate(content.get("examples") or [], start=1):
        actions = ", ".join(example["actions"])
        parts.append(Drawing(f"Predicted and true, {number}: {actions}", predicted(example, planes), CAPTION))
    counts = ", ".join(f"{count} {what}" for what, count in impossible.items())
    return f"Predictions of the learned worlds on new episodes. Impossible outcomes: {counts}.", parts


def _words(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return "-"
    return f"{value:.4f}" if value > 0.01 else f"{value:.1e}"
