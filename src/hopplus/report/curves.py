"""Curves and box plots, as matplotlib figures without global state.

Every seed is a thin line, their mean is bold, and the band is the 95% interval of that mean over seeds. The same figure
serves the page, with the page's colours, and the pictures of the README and the docs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus.games import draw
from hopplus.report import summary
from hopplus.runs import records
from hopplus.runs.records import Recorded
from hopplus_doctor.drawing import INK, MUTED, add_legend, new_sheet
from hopplus_doctor.statistics import FEW_SEEDS, seed_band

WIDE, SMALL = (5.6, 3.2), (3.1, 2.0)
"""Sizes in inches."""
POINTS_SHOWN = 300
"""The greatest number of points of a curve: more cannot be seen, and make the page large."""
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
        _draw_run(
            axes,
            run,
            tag,
            draw.player_colour(seat),
            draw.player_name(seat),
            band_alpha=0.08,
            seeds=run.num_seeds < FEW_SEEDS,
        )
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
        _draw_run(
            axes,
            run,
            tag,
            draw.player_colour(summary.seat_index(tag)),
            tag,
            band_alpha=0.08,
            seeds=run.num_seeds < FEW_SEEDS,
        )
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
        lines = f"{seeds} Band: the mean's 95% interval over seeds."
    else:
        lines = "One seed, so there is no interval."
    if window == 1:
        return f"{lines} Not smoothed."
    return (
        f"{lines} Smoothed for display: each point is the mean of {window} of the {run.num_updates} updates around it."
    )


def _seats_or_complain(run: Recorded, family: str) -> list[str]:
    tags = records.seat_tags(run, family)
    if not tags:
        raise ValueError(f"{run.name} has no {family}/player_1; give a family of metrics that is recorded per seat")
    return tags


def _name_steps(axes: Axes) -> None:
    axes.set_xlabel(STEPS_LABEL)


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
