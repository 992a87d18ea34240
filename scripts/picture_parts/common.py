"""What all pictures of the docs share."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus_doctor.drawing import INK, MUTED

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
BEST = 3.0
"""The best mean return of a stag hunt with a stag and four hares."""
DASHED = (0, (4, 3))


class NotMeasuredError(Exception):
    """The data of a picture is not there; the text says which command makes it."""


def results(name: str) -> Any:
    """The content of results/NAME.json."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        raise NotMeasuredError(f"results/{name}.json is not there")
    return json.loads(path.read_text(encoding="utf-8"))


def panels(count: int = 1, *, width: float = 5.6, height: float = 3.2, **more: Any) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels side by side, `width` and `height` inches in all."""
    sheet = Figure(figsize=(width, height))
    return sheet, list(np.atleast_1d(sheet.subplots(1, count, **more)))


def line_at(axes: Axes, value: float, text: str = "") -> None:
    """A dashed horizontal line, with a text above its left end."""
    axes.axhline(value, color=MUTED, linewidth=1.0, linestyle=DASHED, zorder=1)
    if text:
        axes.annotate(
            text,
            (0.01, value),
            (0, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=MUTED,
            fontsize=8,
        )


def ends(intervals: Sequence[Mapping[str, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Estimates, and the distances to both ends of their intervals, as `errorbar` takes them."""
    middle, low, high = (np.array([one[key] for one in intervals], float) for key in ("estimate", "low", "high"))
    return middle, np.stack([middle - low, high - middle])


def share_ends(count: np.ndarray, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of 95% intervals of shares (Wilson, 1927); they never leave 0 to 1."""
    z, shares = 1.96, count / of
    middle = (shares + z**2 / (2 * of)) / (1 + z**2 / of)
    half = z * np.sqrt(shares * (1 - shares) / of + z**2 / (4 * of**2)) / (1 + z**2 / of)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def label_cells(axes: Axes, texts: Sequence[Sequence[str]], shades: np.ndarray, *, size: float = 8.0) -> None:
    """Texts in the cells of a heat map, white where the shade (0 to 1) is dark."""
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            colour = "white" if shades[row, column] > 0.6 else INK
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)


def name_cells(axes: Axes, rows: Sequence[str], columns: Sequence[str], row_label: str, column_label: str) -> None:
    """The names and labels of a heat map's axes."""
    axes.grid(visible=False)
    axes.set_yticks(range(len(rows)), rows)
    slanted: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(columns)), columns, **(slanted if max(map(len, columns)) > 8 else {}))
    axes.set_ylabel(row_label)
    axes.set_xlabel(column_label)
