"""Draw the pictures of docs/notes.md from results/notes_*.json.

python scripts/notes_pictures.py              all pictures whose results are there
python scripts/notes_pictures.py seats goals  some of them

A band is the 95% interval over seeds, cut off where no return or recall can be: three seeds have wide intervals.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter

from hopplus.report import save_figure
from hopplus_doctor.drawing import INK, MUTED, PAPER, style_axes
from picture_parts.common import NotMeasuredError, results

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
COLOURS = [colormaps["tab10"](index) for index in range(10)]
Variants = dict[str, Any]
BEST = 3.0
"""The best mean return of a stag hunt with a stag and four hares."""
RETURNS = (0.0, BEST)
POINTS = 9.0


def panels(count: int, *, height: float = 3.0, width: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels side by side."""
    sheet = Figure(figsize=(width * count, height), facecolor=PAPER, layout="constrained")
    places = list(np.atleast_1d(sheet.subplots(1, count)))
    for axes in places:
        style_axes(axes, POINTS)
    return sheet, places


def name_steps(axes: Axes) -> None:
    axes.set_xlabel("environment steps per seed")
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 4, 5, 10]))


def use_log_scale(axes: Axes) -> None:
    """A logarithmic axis with numbers that can be read, also where it spans less than a factor of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_curves(
    axes: Axes, variants: Variants, name: str, label: str, *, limits: tuple[float, float] | None = None
) -> None:
    """One curve for each variant that recorded it, with its interval over seeds; without limits on a log scale."""
    for index, (variant, found) in enumerate(variants.items()):
        curve = found["curves"].get(name)
        if curve is None:
            continue
        steps, mean, low, high = (np.array(curve[key], float) for key in ("steps", "mean", "low", "high"))
        known = np.isfinite(mean)
        lowest, highest = limits or (np.min(mean[known], initial=np.inf) / 2, np.inf)
        axes.plot(steps[known], mean[known], color=COLOURS[index % len(COLOURS)], label=variant)
        band = np.clip(low, lowest, highest), np.clip(high, lowest, highest)
        axes.fill_between(steps, *band, color=COLOURS[index % len(COLOURS)], alpha=0.12, linewidth=0)
    name_steps(axes)
    axes.set_ylabel(label)
    if limits is None:
        use_log_scale(axes)


def draw_returns(axes: Axes, variants: Variants) -> None:
    """The return of each variant, below a line at the best possible."""
    axes.axhline(BEST, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.annotate(
        "best possible", (0.01, BEST), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
        color=MUTED, fontsize=8,
    )  # fmt: skip
    draw_curves(axes, variants, "return", "mean return", limits=RETURNS)
    axes.set_ylim(0, BEST + 0.25)


def with_legend(sheet: Figure, axes: Axes) -> Figure:
    handles, labels = axes.get_legend_handles_labels()
    longest = max(map(len, labels))
    columns = max(1, int(sheet.get_figwidth() * 13 / (longest + 6)))
    sheet.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=POINTS, labelcolor=INK
    )
    return sheet


def draw_bars(axes: Axes, variants: Variants, values: Callable[[Any], Any], label: str, *, names: bool = True) -> None:
    """A bar for each variant, and its seeds as dots where it has them."""
    for index, found in enumerate(variants.values()):
        value, colour = values(found), COLOURS[index % len(COLOURS)]
        seeds = np.atleast_1d(value if value is not None else np.nan)
        axes.barh(index, np.mean(seeds), color=colour, alpha=0.3)
        if len(seeds) > 1:
            axes.plot(seeds, np.full(len(seeds), index), "o", color=colour, markersize=4)
    axes.set_yticks(range(len(variants)), [fill(name, 30) for name in variants] if names else [""] * len(variants))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(label)


def value_loss(variants: Variants) -> Figure:
    """The value losses on real and on imagined data, and the return."""
    sheet, places = panels(3, height=4.2)
    draw_curves(places[0], variants, "value_loss_real", "value loss, real data")
    draw_curves(places[1], variants, "value_loss_imagined", "value loss, imagined data")
    draw_returns(places[2], variants)
    return with_legend(sheet, places[2])


def rollouts(variants: Variants) -> Figure:
    """The same by the length of rollouts, and how often a world's k-th board is exact."""
    sheet, places = panels(3, height=3.8)
    draw_curves(places[0], variants, "value_loss", "value loss, all data")
    draw_returns(places[1], variants)
    for index, (variant, found) in enumerate(variants.items()):
        if "world" in found:
            ahead = found["world"]["line_ups"]["all"]["by_steps"]
            steps, exact = ([one[key] for one in ahead] for key in ("steps", "exact"))
            places[2].plot(steps, exact, color=COLOURS[index % len(COLOURS)], marker="o", markersize=3, label=variant)
    places[2].set_xlabel("steps ahead")
    places[2].set_ylabel("share of boards that are exact")
    places[2].set_ylim(-0.02, 1.02)
    return with_legend(sheet, places[1])


def seats(variants: Variants) -> Figure:
    """Returns by seat: a box over seeds for each seat of each variant, and Page's test."""
    sheet, (axes,) = panels(1, height=4.2, width=10)
    for index, found in enumerate(variants.values()):
        by_seat = np.array(found["seats_by_seed"]).T
        count = len(by_seat)
        places = index + np.linspace(-0.3, 0.3, count)
        boxes = axes.boxplot(
            list(by_seat), positions=places, widths=0.5 / count, patch_artist=True, manage_ticks=False,
            medianprops={"color": INK}, flierprops={"markersize": 3},
        )  # fmt: skip
        for seat, box in enumerate(boxes["boxes"]):
            box.set_facecolor(COLOURS[seat])
            box.set_alpha(0.5)
        if index == 0:
            for seat, box in enumerate(boxes["boxes"]):
                box.set_label(f"player {seat + 1}")
        p_value = "no test" if found["trend"] is None else f"p {found['trend']['p_value']:.2f}"
        axes.annotate(
            p_value, (index, by_seat.max()), (0, 5), textcoords="offset points", ha="center", fontsize=POINTS, color=INK
        )
    axes.margins(y=0.12)
    axes.set_xticks(range(len(variants)), [fill(name, 16) for name in variants])
    axes.set_ylabel("return, last fifth of training")
    axes.set_title("A box holds the seeds of a player; p is Page's test for an order of the players", fontsize=POINTS)
    return with_legend(sheet, axes)


def bars(variants: Variants) -> Figure:
    """The final return of each variant, seeds as dots, and the curves of the return."""
    sheet, (left, right) = panels(2, height=4.2, width=5.0)
    draw_bars(left, variants, lambda found: found["by_seed"], "mean return, last fifth of training")
    left.set_xlim(0, BEST)
    draw_returns(right, variants)
    return sheet


def planning(variants: Variants) -> Figure:
    """The same, and what a run took."""
    sheet, places = panels(3, height=3.6)
    draw_bars(places[0], variants, lambda found: found["by_seed"], "mean return, last fifth")
    places[0].set_xlim(0, BEST)
    draw_returns(places[1], variants)
    draw_bars(places[2], variants, lambda found: found["minutes"], "minutes of all seeds", names=False)
    return sheet


def sequence(variants: Variants) -> Figure:
    """Every row of the sequence: return, value loss, spread of the seats, minutes."""
    sheet, places = panels(4, height=0.42 * len(variants) + 1.0, width=2.9)
    rows = {
        "mean return": lambda found: found["by_seed"],
        "value loss, all data": lambda found: found["value_loss_by_seed"],
        "spread of seats": lambda found: found["spread_of_seats"],
        "minutes": lambda found: found["minutes"],
    }
    for axes, (label, values) in zip(places, rows.items(), strict=True):
        draw_bars(axes, variants, values, label, names=axes is places[0])
    places[0].set_xlim(0, BEST)
    return sheet


def long(variants: Variants) -> Figure:
    """Return, value losses and recall of one long run."""
    sheet, places = panels(3, height=3.6)
    draw_returns(places[0], variants)
    found = next(iter(variants.values()))
    names = {"real data": "value_loss_real", "imagined data": "value_loss_imagined"}
    draw_many(places[1], found, names)
    use_log_scale(places[1])
    places[1].set_ylabel("value loss")
    places[1].legend(frameon=False, fontsize=POINTS, labelcolor=INK)
    draw_many(places[2], found, recalls_of(found))
    places[2].set_ylabel("recall of the opponent model")
    places[2].set_ylim(-0.02, 1.02)
    return with_legend(sheet, places[2])


def recalls_of(found: dict[str, Any]) -> dict[str, str]:
    """The curves of recall by the action that they are of."""
    names = [name for name in found["curves"] if name.startswith("recall of ")]
    return {name.removeprefix("recall of ").replace("_", " "): name for name in names}


def draw_many(axes: Axes, found: dict[str, Any], names: dict[str, str]) -> None:
    """Several curves of one variant."""
    for index, (label, name) in enumerate(names.items()):
        curve = found["curves"][name]
        mean = np.array(curve["mean"], float)
        known = np.isfinite(mean)
        steps = np.array(curve["steps"])[known]
        axes.plot(steps, mean[known], color=COLOURS[index % len(COLOURS)], label=label)
    name_steps(axes)


def recall(variants: Variants) -> Figure:
    """The recall of each action over training, one panel for each variant that has opponent models."""
    known = {name: found for name, found in variants.items() if "recall" in found}
    sheet, places = panels(len(known), height=3.6)
    for axes, (variant, found) in zip(places, known.items(), strict=True):
        draw_many(axes, found, recalls_of(found))
        axes.set_title(fill(variant, 40), fontsize=POINTS)
        axes.set_ylim(-0.02, 1.02)
        axes.axhline(0, color=MUTED, linewidth=0.8)
    places[0].set_ylabel("recall of the opponent model")
    return with_legend(sheet, places[0])


DRAWN: dict[str, tuple[str, Callable[[Variants], Figure], Sequence[str]]] = {
    "value_loss": ("value_loss", value_loss, ()),
    "recall": ("value_loss", recall, ("real data only", "critic on all", "critic on weighted")),
    "rollouts": ("rollouts", rollouts, ()),
    "seats": ("seats", seats, ()),
    "goals": ("goals", bars, ()),
    "planning": ("planning", planning, ()),
    "sequence": ("sequence", sequence, ()),
    "long": ("long", long, ()),
}
"""Of each picture: the study, how it is drawn, and its variants; all if none is named."""


def draw(name: str, path: Path) -> None:
    """Draw one picture of a study; raises NotMeasuredError where it has not run."""
    study, drawn, only = DRAWN[name]
    try:
        variants = results(f"notes_{study}")["variants"]
    except NotMeasuredError as error:
        raise NotMeasuredError(f"{error}; python benchmarks/notes_studies.py {study} writes it") from None
    save_figure(drawn({each: found for each, found in variants.items() if not only or each in only}), path)


def main(wanted: Sequence[str]) -> None:
    for name in wanted or DRAWN:
        if name not in DRAWN:
            raise SystemExit(f"there is no picture {name}; give some of {', '.join(DRAWN)}")
        try:
            draw(name, PICTURES / f"notes_{name}.png")
        except NotMeasuredError as error:
            print(error)


if __name__ == "__main__":
    main(sys.argv[1:])
