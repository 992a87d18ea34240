"""Draw the pictures of docs/notes.md from results/notes_*.json.

python scripts/notes_pictures.py              all pictures whose results are there
python scripts/notes_pictures.py seats goals  some of them
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus.report import save_figure
from hopplus_doctor.drawing import MUTED

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
COLOURS = [colormaps["tab10"](index) for index in range(10)]
Variants = dict[str, Any]


def panels(count: int, *, height: float = 3.0) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels side by side."""
    sheet = Figure(figsize=(4.2 * count, height), layout="constrained")
    return sheet, list(np.atleast_1d(sheet.subplots(1, count)))


def draw_curves(axes: Axes, variants: Variants, name: str, label: str, *, log: bool = False) -> None:
    """One curve for each variant that recorded it, with its interval over seeds."""
    for index, (variant, found) in enumerate(variants.items()):
        curve = found["curves"].get(name)
        if curve is None:
            continue
        steps, mean, low, high = (np.array(curve[key], float) for key in ("steps", "mean", "low", "high"))
        axes.plot(steps, mean, color=COLOURS[index % len(COLOURS)], label=variant)
        axes.fill_between(steps, low, high, color=COLOURS[index % len(COLOURS)], alpha=0.15, linewidth=0)
    axes.set_xlabel("environment steps")
    axes.set_ylabel(label)
    if log:
        axes.set_yscale("log")


def with_legend(sheet: Figure, axes: Axes) -> Figure:
    sheet.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return sheet


def value_loss(variants: Variants) -> Figure:
    """The value losses on real and on imagined data, and the return."""
    sheet, places = panels(3, height=3.8)
    draw_curves(places[0], variants, "value_loss_real", "value loss, real data", log=True)
    draw_curves(places[1], variants, "value_loss_imagined", "value loss, imagined data", log=True)
    draw_curves(places[2], variants, "return", "mean return")
    return with_legend(sheet, places[0])


def rollouts(variants: Variants) -> Figure:
    """The same by the length of rollouts, and how often a world's k-th board is exact."""
    sheet, places = panels(3, height=3.8)
    draw_curves(places[0], variants, "value_loss_real", "value loss, real data", log=True)
    draw_curves(places[1], variants, "return", "mean return")
    for index, (variant, found) in enumerate(variants.items()):
        if "world" in found:
            ahead = found["world"]["line_ups"]["all"]["by_steps"]
            steps, exact = ([one[key] for one in ahead] for key in ("steps", "exact"))
            places[2].plot(steps, exact, color=COLOURS[index % len(COLOURS)], marker="o", markersize=3, label=variant)
    places[2].set_xlabel("steps ahead")
    places[2].set_ylabel("boards that are exact")
    places[2].set_ylim(0, 1.02)
    return with_legend(sheet, places[0])


def seats(variants: Variants) -> Figure:
    """Returns by seat: a box over seeds for each seat of each variant, and Page's test."""
    sheet = Figure(figsize=(10, 3.6), layout="constrained")
    axes = sheet.subplots()
    for index, found in enumerate(variants.values()):
        by_seat = np.array(found["seats_by_seed"]).T
        count = len(by_seat)
        places = index + np.linspace(-0.3, 0.3, count)
        boxes = axes.boxplot(list(by_seat), positions=places, widths=0.5 / count, patch_artist=True, manage_ticks=False)
        for seat, box in enumerate(boxes["boxes"]):
            box.set_facecolor(COLOURS[seat])
            box.set_alpha(0.5)
        p_value = found["trend"]["p_value"]
        axes.annotate(
            f"p {p_value:.2f}", (index, by_seat.max()), (0, 4), textcoords="offset points", ha="center", fontsize=8
        )
    axes.set_xticks(range(len(variants)), [fill(name, 16) for name in variants], fontsize=8)
    axes.set_ylabel("return of players 1 to 4")
    axes.set_title("Boxes are seeds; p is Page's test for an order of the seats", fontsize=9)
    return sheet


def bars(variants: Variants) -> Figure:
    """The final return of each variant, seeds as dots, and the curves of the return."""
    sheet, (left, right) = panels(2, height=3.8)
    for index, found in enumerate(variants.values()):
        interval, colour = found["return"], COLOURS[index % len(COLOURS)]
        left.barh(index, interval["estimate"], color=colour, alpha=0.3)
        left.plot(found["by_seed"], [index] * len(found["by_seed"]), "o", color=colour, markersize=4)
    left.set_yticks(range(len(variants)), [fill(name, 24) for name in variants], fontsize=8)
    left.invert_yaxis()
    left.set_xlabel("mean return, last fifth of training")
    draw_curves(right, variants, "return", "mean return")
    return sheet


def long(variants: Variants) -> Figure:
    """Return, value losses and recall of one long run."""
    sheet, places = panels(3, height=3.6)
    draw_curves(places[0], variants, "return", "mean return")
    found = next(iter(variants.values()))
    names = {"value loss, real": "value_loss_real", "value loss, imagined": "value_loss_imagined"}
    draw_many(places[1], found, names)
    places[1].set_yscale("log")
    recalls = {name.removeprefix("recall of "): name for name in found["curves"] if name.startswith("recall of ")}
    draw_many(places[2], found, recalls)
    places[2].set_ylabel("recall of the opponent model")
    for axes in places[1:]:
        axes.legend(frameon=False, fontsize=7)
    return sheet


def draw_many(axes: Axes, found: dict[str, Any], names: dict[str, str]) -> None:
    """Several curves of one variant."""
    for index, (label, name) in enumerate(names.items()):
        curve = found["curves"][name]
        axes.plot(curve["steps"], np.array(curve["mean"], float), color=COLOURS[index % len(COLOURS)], label=label)
    axes.set_xlabel("environment steps")


def recall(variants: Variants) -> Figure:
    """The recall of each action over training, one panel for each variant that has opponent models."""
    known = {name: found for name, found in variants.items() if "recall" in found}
    sheet, places = panels(len(known), height=3.2)
    for axes, (variant, found) in zip(places, known.items(), strict=True):
        names = {name.removeprefix("recall of "): name for name in found["curves"] if name.startswith("recall of ")}
        draw_many(axes, found, names)
        axes.set_title(fill(variant, 40), fontsize=9)
        axes.set_ylim(-0.02, 1.02)
        axes.axhline(0, color=MUTED, linewidth=0.8)
    places[0].set_ylabel("recall")
    return with_legend(sheet, places[0])


DRAWN: dict[str, tuple[str, Callable[[Variants], Figure], Sequence[str]]] = {
    "value_loss": ("value_loss", value_loss, ()),
    "recall": ("value_loss", recall, ("real data only", "critic on all", "critic on weighted")),
    "rollouts": ("rollouts", rollouts, ()),
    "seats": ("seats", seats, ()),
    "goals": ("goals", bars, ()),
    "planning": ("planning", bars, ()),
    "long": ("long", long, ()),
}
"""Of each picture: the study, how it is drawn, and its variants; all if none is named."""


def main(wanted: Sequence[str]) -> None:
    for name in wanted or DRAWN:
        study, drawn, only = DRAWN[name]
        path = ROOT / "results" / f"notes_{study}.json"
        if not path.exists():
            print(f"{path.name} is not there; python benchmarks/notes_studies.py {study} writes it")
            continue
        variants = json.loads(path.read_text())["variants"]
        chosen = {each: found for each, found in variants.items() if not only or each in only}
        save_figure(drawn(chosen), PICTURES / f"notes_{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
