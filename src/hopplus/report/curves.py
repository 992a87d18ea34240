"""Curves and box plots, as matplotlib figures without global state.

Every seed is a thin line, their mean is bold, and the band is the 95% interval of that mean over seeds. The same figure
serves the page, with the page's colours, and the pictures of the README and the docs.
"""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from hopplus.evaluation.statistics import seed_band
from hopplus.games import draw
from hopplus.report import summary
from hopplus.runs import records
from hopplus.runs.records import Recorded

PAPER, INK, MUTED, RULE = "#fffdf8", "#2d2a26", "#857f76", "#e4dfd3"
PAGE_COLOURS = {INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)"}
"""CSS variables that replace these colours on the page, so that a figure can be read in dark mode too."""
WIDE, SMALL = (5.6, 3.2), (3.1, 2.0)
"""Sizes in inches."""
POINTS_SHOWN = 300
"""The greatest number of points of a curve: more cannot be seen, and make the page large."""
PICTURE_DPI = 200
LETTERS_PER_INCH = 15
"""Letters of a legend that fit into an inch."""
STEPS_LABEL = "environment steps per seed"
RETURN_LABEL = "mean return per episode"


def learning_curve(
    runs: Mapping[str, Recorded],
    tag: str = records.RETURN_TAG,
    *,
    best: float | None = None,
    best_label: str = "best possible",
    label: str | None = None,
    size: tuple[float, float] = WIDE,
) -> Figure:
    """The curves of one metric of named runs, with a horizontal line at `best` if it is given."""
    if not runs:
        raise ValueError("there is nothing to draw; give one run at least, as {name: run}")
    for name, run in runs.items():
        if tag not in run.metrics:
            raise ValueError(f"{name} has no metric {tag!r}; give one of {', '.join(sorted(run.metrics))}")
    sheet, axes = new_sheet(size)
    for index, (name, run) in enumerate(runs.items()):
        _draw_run(axes, run, tag, draw.player_colour(index), name, band_alpha=0.2)
    if best is not None:
        axes.axhline(best, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label=f"{best_label}: {best:g}")
    axes.set_ylabel(label or (RETURN_LABEL if tag == records.RETURN_TAG else tag))
    _name_steps(axes)
    if len(runs) > 1 or best is not None:
        add_legend(sheet, axes)
    return sheet


def seat_curves(run: Recorded, family: str = records.RETURN_FAMILY, *, size: tuple[float, float] = WIDE) -> Figure:
    """One metric of every seat: means over seeds with their intervals, in the colours of the players."""
    sheet, axes = new_sheet(size)
    for tag in _seats_or_complain(run, family):
        seat = summary.seat_index(tag)
        _draw_run(axes, run, tag, draw.player_colour(seat), draw.player_name(seat), band_alpha=0.08, seeds=False)
    axes.set_ylabel(RETURN_LABEL if family == records.RETURN_FAMILY else family)
    _name_steps(axes)
    add_legend(sheet, axes)
    return sheet


def small_curve(run: Recorded, tag: str) -> Figure:
    """A small picture of one metric. The page shows its title, where it can wrap."""
    sheet, axes = new_sheet(SMALL, points=8.0)
    _draw_run(axes, run, tag, draw.player_colour(0), tag, band_alpha=0.2)
    return sheet


def small_seat_curves(run: Recorded, family: str) -> Figure:
    """A small `seat_curves` without a legend; the colours are those of the players."""
    sheet, axes = new_sheet(SMALL, points=8.0)
    for tag in _seats_or_complain(run, family):
        _draw_run(axes, run, tag, draw.player_colour(summary.seat_index(tag)), tag, band_alpha=0.08, seeds=False)
    return sheet


def small_pair_curves(run: Recorded, family: str) -> Figure:
    """A small picture of one metric of co-players: a line for each seat about each co-player, in the colour of the
    co-player. Means over seeds."""
    sheet, axes = new_sheet(SMALL, points=8.0)
    for tag in pair_tags(run, family):
        colour = draw.player_colour(summary.co_player_index(tag))
        steps, values = shown_curve(run, tag)
        _draw_line(axes, steps, seed_band(values).mean, color=colour, linewidth=1.0, alpha=0.8, label=tag)
    axes.margins(x=0.01)
    return sheet


def pair_tags(run: Recorded, family: str) -> list[str]:
    """The tags of a family that end in player_1_of_2 and the like."""
    return [tag for tag in run.metrics if (match := records.PAIR.fullmatch(tag)) and match[1] == family]


def seat_boxes(run: Recorded, *, size: tuple[float, float] = WIDE) -> Figure:
    """Box plots of each seat's returns over the last fifth of training; `BOX_CAPTION` explains a box."""
    tags = _seats_or_complain(run, records.RETURN_FAMILY)
    sheet, axes = new_sheet(size)
    final = records.final_updates(run)
    for position, tag in enumerate(tags):
        values = run.metrics[tag][final]
        _draw_box(axes, position, values[np.isfinite(values)], draw.player_colour(summary.seat_index(tag)))
        means = records.final_means(run, tag)
        spread = np.linspace(-0.09, 0.09, len(means)) if len(means) > 1 else np.zeros(1)
        axes.scatter(position + spread, means, s=16, color=INK, edgecolors="none", zorder=4)
    axes.set_xticks(range(len(tags)), [tag.rsplit("/", 1)[1] for tag in tags])
    if len(tags) > 6:
        axes.tick_params(axis="x", labelrotation=45)
    axes.set_xlim(-0.6, len(tags) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(RETURN_LABEL)
    return sheet


BOX_CAPTION = (
    f"The last {records.FINAL_SHARE:.0%} of training. A box has one point per update and seed: the seat's mean return "
    "in that update. It holds the middle half of the points, and the line in it is their median. The whiskers reach "
    "the farthest points within one and a half times the box's height; points beyond are not drawn. The dots are the "
    "means of the seeds; the trend test compares them."
)


def curve_caption(run: Recorded) -> str:
    """The caption that explains the curves of a run."""
    window, num_seeds = summary.display_window(run.num_updates), run.num_seeds
    if num_seeds > 1:
        seeds = f"Thin lines: the {num_seeds} seeds. Bold: their mean."
        lines = f"{seeds} Band: the mean's 95% interval over seeds (Student's t)."
    else:
        lines = "One seed, so there is no interval."
    if window == 1:
        return f"{lines} Not smoothed."
    return (
        f"{lines} Smoothed for display: each point is the mean of {window} of the {run.num_updates} updates around it."
    )


def inline_svg(figure: Figure, name: str) -> str:
    """A figure as an <svg> element for the page: transparent, in the page's colours and fonts, described by `name`.

    Matplotlib's names of groups are dropped, because every figure of a page would repeat them.
    """
    text = _svg(figure, name, transparent=True)
    text = text[text.index("<svg") :]
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(
        r'<svg width="[^"]*" height="[^"]*"', f'<svg role="img" aria-label="{_attribute(name)}"', text, count=1
    )
    for colour, variable in PAGE_COLOURS.items():
        text = text.replace(colour, variable)
    return text


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG or SVG, by the suffix of the path."""
    suffix = Path(path).suffix.lower()
    if suffix == ".png":
        figure.savefig(path, dpi=PICTURE_DPI)
    elif suffix == ".svg":
        Path(path).write_text(_svg(figure, "hopplus", transparent=False), encoding="utf-8")
    else:
        raise ValueError(f"cannot save {str(path)!r}; give a path that ends in .png or .svg")


def _svg(figure: Figure, salt: str, *, transparent: bool) -> str:
    """The figure as SVG text. It is reproducible: it has no date and no random names."""
    stream = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(stream, format="svg", transparent=transparent, metadata=nothing)
    return stream.getvalue()


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _seats_or_complain(run: Recorded, family: str) -> list[str]:
    tags = records.seat_tags(run, family)
    if not tags:
        raise ValueError(f"{run.name} has no {family}/player_1; give a family of metrics that is recorded per seat")
    return tags


def new_sheet(size: tuple[float, float], points: float = 9.0) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, for a quantity over steps."""
    sheet = Figure(figsize=size, facecolor=PAPER, layout="constrained")
    axes = sheet.add_subplot()
    style_axes(axes, points)
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    return sheet, axes


def style_axes(axes: Axes, points: float = 9.0) -> None:
    """Apply the style that all pictures of the report share."""
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(RULE)
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=points, length=3)
    axes.grid(color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.label.set(color=MUTED, fontsize=points)
    axes.yaxis.label.set(color=MUTED, fontsize=points)


def _name_steps(axes: Axes) -> None:
    axes.set_xlabel(STEPS_LABEL)


def add_legend(sheet: Figure, axes: Axes) -> None:
    """Add a legend above the axes. The figure grows with its rows, so that the curves keep their size."""
    handles, labels = axes.get_legend_handles_labels()
    num_columns = max(1, int(sheet.get_figwidth() * LETTERS_PER_INCH / (max(map(len, labels)) + 6)))
    num_rows = -(-len(labels) // num_columns)
    sheet.set_figheight(sheet.get_figheight() + 0.2 * (num_rows - 1))
    sheet.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=min(num_columns, len(labels)),
        frameon=False,
        fontsize=9.0,
        labelcolor=INK,
        handlelength=2.0,
        columnspacing=1.4,
    )


def _draw_run(
    axes: Axes, run: Recorded, tag: str, colour: str, name: str, *, band_alpha: float, seeds: bool = True
) -> None:
    """Draw the mean as one labelled line, and seeds and band without a label. Lines skip updates that are NaN."""
    steps, values = shown_curve(run, tag)
    if seeds and run.num_seeds > 1:
        for seed in values.T:
            _draw_line(axes, steps, seed, color=colour, linewidth=0.7, alpha=0.4, zorder=2, label="_seed")
    band = seed_band(values)
    known = np.isfinite(band.low)
    shade = {"color": colour, "alpha": band_alpha, "linewidth": 0, "zorder": 2}
    axes.fill_between(steps[known], band.low[known], band.high[known], **shade)
    _draw_line(axes, steps, band.mean, color=colour, linewidth=2.0, zorder=3, label=name)
    axes.margins(x=0.01)


def _draw_line(axes: Axes, steps: np.ndarray, values: np.ndarray, **pen: Any) -> None:
    known = np.isfinite(values)
    marker = "o" if known.sum() == 1 else None
    axes.plot(steps[known], values[known], marker=marker, markersize=3, solid_capstyle="round", **pen)


def shown_curve(run: Recorded, tag: str) -> tuple[Float64[np.ndarray, " points"], Float64[np.ndarray, "points seeds"]]:
    """Environment steps and the values of each seed there, smoothed and reduced to `POINTS_SHOWN` points."""
    values = summary.smooth(run.metrics[tag], summary.display_window(run.num_updates))
    last = run.num_updates - 1
    shown = np.unique(np.linspace(0, last, min(POINTS_SHOWN, run.num_updates)).round().astype(int))
    return run.env_steps[shown].astype(np.float64), values[shown]


def _draw_box(axes: Axes, position: int, values: np.ndarray, colour: str) -> None:
    if len(values) == 0:
        return
    line = {"color": colour, "linewidth": 1.2}
    axes.boxplot(
        [values],
        positions=[position],
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": (colour, 0.25), "edgecolor": colour, "linewidth": 1.2},
        medianprops={"color": colour, "linewidth": 2.2},
        whiskerprops=line,
        capprops=line,
    )
