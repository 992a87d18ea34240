"""Draw the pictures of the doctor's findings.

Figures are narrow, so that they can be read on a phone. The page, which can wrap text, shows title, unit and legend. An
unknown number is drawn as a question mark, never as zero.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus_doctor.answer import Picture
from hopplus_doctor.drawing import INK, MUTED, RULE, inline_svg, new_sheet
from hopplus_doctor.names import player_colour

WIDTH, HEIGHT = 4.4, 2.3
"""The size of a figure in inches."""
CELL_WIDTH, CELL_HEIGHT, LETTER = 0.62, 0.34, 0.075
"""The size of a matrix cell, where a number must fit, and the width of a letter, in inches."""
LETTERS_SIDE_BY_SIDE = 44
"""Labels that are longer together are slanted."""
LONGEST = 28
"""Labels with more letters are cut."""
NAMED, DOTTED = 16, 36
"""With more labels not all are shown; with more points or samples no dots are drawn."""
STRONGEST = 0.65
"""The greatest opacity of a cell, so that digits can be read on it, on the light page and on the dark page."""
POSITIVE, NEGATIVE = "#1f6feb", "#c92a2a"
UNKNOWN = "?"
DASHES = ("solid", (0, (5, 2)), (0, (3, 2)), (0, (1.5, 1.5)))
"""Line styles. Lines that coincide, as those of equal seats, can all be seen."""
SLANTED = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}


@dataclass(frozen=True)
class Drawn:
    """A picture for the page."""

    title: str
    unit: str
    svg: Markup
    inches: float
    """The width of the figure; the page shows it at about this size."""
    legend: tuple[tuple[str, str], ...]
    """Names of series and their colours; empty if there is only one."""


def drawn(picture: Picture | None) -> Drawn | None:
    """Draw a picture; None if it is empty. Matplotlib and `inline_svg` escape its text."""
    if picture is None or not picture.labels or not picture.series:
        return None
    sheet = WAYS[picture.kind](picture)
    has_legend = picture.kind in ("bars", "lines") and len(picture.series) > 1
    legend = tuple((name, player_colour(index)) for index, name in enumerate(picture.series) if has_legend)
    svg = Markup(inline_svg(sheet, picture.title))
    return Drawn(picture.title, picture.unit, svg, float(sheet.get_figwidth()), legend)


def bars(picture: Picture) -> Figure:
    """A group of bars for each label, with intervals if the picture has them."""
    sheet, axes = _sheet(picture)
    width = 0.8 / max(1, len(picture.series))
    is_numbered = _numbers_fit(picture)
    for index, (name, entries) in enumerate(picture.series.items()):
        values = numbers(entries)
        lows, highs = (numbers(ends.get(name, entries)) for ends in (picture.low, picture.high))
        places = np.arange(len(values)) + width * (index - (len(picture.series) - 1) / 2)
        axes.bar(places, np.nan_to_num(values), 0.9 * width, color=player_colour(index))
        axes.vlines(places, lows, highs, color=INK, linewidth=1.4)
        for place, value, low, high in zip(places, values, lows, highs, strict=True):
            if is_numbered or np.isnan(value):
                _write_number(axes, place, value, np.fmin(low, value), np.fmax(high, value))
    _name_places(axes, picture.labels)
    axes.margins(y=0.16)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    return sheet


def boxes(picture: Picture) -> Figure:
    """For each label a box of the middle half of its samples and, if they are few, the samples as dots."""
    sheet, axes = _sheet(picture)
    known = [values[np.isfinite(values)] for values in (numbers(picture.series.get(one, ())) for one in picture.labels)]
    line = {"color": MUTED, "linewidth": 1.0}
    median = {"color": INK, "linewidth": 2.0}
    look: dict[str, Any] = {"boxprops": line, "whiskerprops": line, "capprops": line, "medianprops": median}
    axes.boxplot(known, positions=range(len(known)), widths=0.55, showfliers=False, manage_ticks=False, **look)
    for place, values in enumerate(known):
        if not len(values):
            axes.text(place, 0.5, UNKNOWN, color=MUTED, ha="center", transform=axes.get_xaxis_transform())
        spread = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(len(values))
        if len(values) <= DOTTED:
            axes.scatter(place + spread, values, s=14, color=player_colour(place), edgecolors="none", zorder=3)
    _name_places(axes, picture.labels)
    return sheet


def lines(picture: Picture) -> Figure:
    """A line for each series: over time if the labels are increasing numbers, otherwise from label to label."""
    sheet, axes = _sheet(picture)
    times = _times(picture.labels)
    marker = "o" if len(picture.labels) <= DOTTED else ""
    for index, entries in enumerate(picture.series.values()):
        values = numbers(entries)
        known = np.isfinite(values)
        places = np.arange(len(values)) if times is None else times
        pen = {"color": player_colour(index), "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.8}
        axes.plot(places[known], values[known], marker=marker, markersize=3.5, **pen)
    if times is None:
        _name_places(axes, picture.labels)
    elif np.abs(times).max() < 1000:
        axes.xaxis.set_major_formatter("{x:g}")
    return sheet


def matrix(picture: Picture) -> Figure:
    """A cell for each row and column: stronger colours are farther from zero, and negative numbers are red.

    If all numbers are similar, the colour scale starts at the smallest. Cells are rectangles, because the page loads no
    images.
    """
    rows, columns = _labels(picture.labels), _labels(picture.series)
    values = np.stack([numbers(entries) for entries in picture.series.values()], axis=1)
    is_slanted = max(map(len, columns)) * LETTER > CELL_WIDTH
    room_beside = 0.3 + LETTER * max(map(len, rows), default=0)
    room_below = 0.4 + (0.7 * LETTER * max(map(len, columns)) if is_slanted else 0.0)
    size = room_beside + CELL_WIDTH * len(columns), room_below + CELL_HEIGHT * len(rows)
    sheet, axes = new_sheet((max(size[0], WIDTH / 2), size[1]))
    known = np.abs(values[np.isfinite(values)])
    most, least = np.max(known, initial=1e-12), np.min(known, initial=np.inf)
    pale = least if least > most / 2 else 0.0
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    for (row, column), value in np.ndenumerate(values):
        strength = STRONGEST * (abs(value) - pale) / max(most - pale, 1e-12) if np.isfinite(value) else 0.0
        colour = (NEGATIVE if value < 0 else POSITIVE, strength)
        axes.bar(column, 1.0, 1.0, row - 0.5, facecolor=colour, edgecolor=RULE, linewidth=0.6)
        axes.text(column, row, short_number(value), color=INK, fontsize=8.0, ha="center", va="center")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks(range(len(columns)), columns, parse_math=False, **(SLANTED if is_slanted else {}))
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    return sheet


def numbers(entries: Sequence[Any]) -> np.ndarray:
    """The entries as floats, with NaN for None and for infinity."""
    values = np.array([np.nan if entry is None else entry for entry in entries], np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def short_number(number: float) -> str:
    """A number with three significant digits and no trailing zeros."""
    if not np.isfinite(number):
        return UNKNOWN
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _sheet(picture: Picture) -> tuple[Figure, Axes]:
    labels = _labels(picture.labels)
    room = 0.7 * LETTER * max(map(len, labels), default=0) if _is_slanted(labels) else 0.0
    return new_sheet((WIDTH, HEIGHT + room))


def _labels(labels: Iterable[str]) -> list[str]:
    return [label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…" for label in labels]


def _is_slanted(labels: Sequence[str]) -> bool:
    return len(labels) <= NAMED and sum(len(label) + 2 for label in labels) > LETTERS_SIDE_BY_SIDE


def _name_places(axes: Axes, names: Sequence[str]) -> None:
    labels = _labels(names)
    named = range(0, len(labels), -(-len(labels) // NAMED) or 1)
    look = SLANTED if _is_slanted(labels) else {}
    axes.set_xticks(list(named), [labels[place] for place in named], parse_math=False, **look)
    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.grid(visible=False, axis="x")


def _numbers_fit(picture: Picture) -> bool:
    """Whether a number fits above each bar."""
    values = [value for entries in picture.series.values() for value in numbers(entries)]
    longest = max((len(short_number(value)) + 1 for value in values), default=0)
    return len(values) * longest * LETTER < WIDTH - 0.6


def _write_number(axes: Axes, place: float, value: float, low: float, high: float) -> None:
    """Write a number beyond the end of a bar and of its interval."""
    if np.isnan(value):
        axes.annotate(UNKNOWN, (place, 0), (0, 3), textcoords="offset points", color=MUTED, ha="center")
        return
    end, shift, side = (low, -3, "top") if value < 0 else (high, 3, "bottom")
    look = {"textcoords": "offset points", "color": INK, "fontsize": 8.0, "ha": "center", "va": side}
    axes.annotate(short_number(value), (place, end), (0, shift), **look)


def _times(labels: Sequence[str]) -> np.ndarray | None:
    try:
        times = np.array(labels, np.float64)
    except ValueError:
        return None
    return times if len(times) > 1 and (np.diff(times) > 0).all() else None


WAYS: dict[str, Callable[[Picture], Figure]] = {"bars": bars, "boxes": boxes, "lines": lines, "matrix": matrix}
"""The function that draws each kind of picture."""
