"""Draw cross-play as a heat map."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hopplus_doctor.drawing import INK, PAPER, new_sheet

DARK = 0.6
"""A cell above this share of the scale is dark, and its number is light."""


def heat_map(players: Sequence[str], returns: Sequence[Sequence[Mapping[str, Any]]]) -> Figure:
    """A heat map of mean returns. Rows: the player of the first seat. Columns: the player of all other seats."""
    values = np.array([[cell["estimate"] for cell in row] for row in returns], np.float64)
    side = 1.1 + 0.75 * len(players)
    sheet, axes = new_sheet((side + 0.6, side))
    low, high = float(values.min()), float(values.max())
    axes.imshow(values, cmap="YlGn", vmin=low, vmax=high + 1e-9)
    for row, column in np.ndindex(values.shape):
        share = (values[row, column] - low) / max(high - low, 1e-9)
        colour = PAPER if share > DARK else INK
        axes.text(column, row, f"{values[row, column]:.2f}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(players)), players, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(players)), players)
    axes.set_xlabel("in all other seats")
    axes.set_ylabel("first seat")
    axes.grid(visible=False)
    return sheet
