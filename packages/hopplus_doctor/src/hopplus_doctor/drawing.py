"""What every picture shares: colours of seats, a sheet with axes, and figures as SVG or PNG, without global state."""

import io
import re
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

PAPER, INK, MUTED, RULE = "#fffdf8", "#2d2a26", "#857f76", "#e4dfd3"
PAGE_COLOURS = {INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)"}
"""CSS variables that replace these colours on the page, so that a figure can be read in dark mode too."""
PICTURE_DPI = 200
STYLE = Path(__file__).parent / "templates" / "hopplus.mplstyle"
"""The same style as a file of matplotlib, for pictures that are drawn without the functions below."""
LETTERS_PER_INCH = 15
"""Letters of a legend that fit into an inch."""


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
