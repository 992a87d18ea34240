"""Pictures of what is in results/*.json."""

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from hopplus_doctor.drawing import INK, MUTED, PAPER
from hopplus_doctor.names import player_colour
from picture_parts.common import BEST, ends, label_cells, line_at, name_cells, panels, results, share_ends

AGENTS = ("ppo", "hop_plus")
VARIANTS = {"types": "kinds of prey, given", "hindsight labels": "kinds of prey, in hindsight", "padded": "padded"}
CHOSEN = "stag-hunt-8x8-obstacles"
"""The game of the pictures of opponent models."""


def learning_curve() -> Figure:
    """Every seed a thin line, the mean bold, and the band its interval, cut off where no return can be."""
    found = results("curves_4x4")
    sheet, (axes,) = panels()
    for agent in AGENTS:
        curve, colour = found["curves"][agent], player_colour(AGENTS.index(agent))
        steps = np.array(curve["steps"])
        low, high = (np.clip(curve[end], 0.0, BEST) for end in ("low", "high"))
        axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
        for seed in curve["seeds"]:
            axes.plot(steps, seed, color=colour, linewidth=0.7, alpha=0.4)
        axes.plot(steps, curve["mean"], color=colour, label=f"{agent}, {len(curve['seeds'])} seeds")
    line_at(axes, BEST, "best possible")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.set_ylim(0, BEST + 0.3)
    axes.set_xlabel("environment steps per seed (logarithmic)")
    axes.set_ylabel("mean return of training episodes")
    axes.legend(loc="lower right")
    return sheet


def arenas() -> Figure:
    """The final return of every seed, with arenas and without."""
    names = {"with arenas": "stag_hunt_8x8", "whole board only": "stag_hunt_8x8_no_arenas"}
    sheet, (axes,) = panels(width=4.4, height=2.8)
    for place, name in enumerate(names.values()):
        found = results(name)
        seeds = [one["sampled"] for one in found["per_seed"]]
        middle, reach = ends([found["interval"]])
        shifts = np.linspace(-0.15, 0.15, len(seeds))
        axes.bar(place, middle[0], width=0.5, color=player_colour(place), alpha=0.25)
        axes.plot(place + shifts, seeds, "o", color=player_colour(place))
        axes.errorbar(place, middle, np.minimum(reach, BEST - middle), color=INK, capsize=3, linewidth=1.2)
        axes.annotate(f"{middle[0]:.2f}", (place + 0.28, middle[0]), va="center", fontsize=8)
    line_at(axes, BEST, "best possible")
    line_at(axes, 1.0, "every player hunts hares")
    axes.set_xticks(
        range(len(names)), [f"{name}\n{results(file)['env_steps']:,} steps" for name, file in names.items()]
    )
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylim(0, BEST + 0.3)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("mean return, whole board")
    return sheet


def adaptation() -> Figure:
    """Each line-up a dot with its interval over seeds, the mean a bar, the worst by name."""
    sheet, (axes,) = panels(width=6.4, height=3.6)
    places = [(board, agent) for board in ("4x4", "8x8") for agent in AGENTS]
    for place, (board, agent) in enumerate(places):
        found = results(f"defaults_{board}_{agent}")["adaptation"]
        lineups = sorted(found["lineups"], key=lambda one: one["late"]["sampled"]["estimate"])
        middle, reach = ends([one["late"]["sampled"] for one in lineups])
        colour = player_colour(AGENTS.index(agent))
        at = place + np.linspace(-0.33, 0.33, len(middle))
        axes.bar(place, found["late"]["sampled"]["estimate"], width=0.8, color=colour, alpha=0.2)
        axes.errorbar(at, middle, reach, fmt="o", color=colour, markersize=2.6, elinewidth=0.7, alpha=0.9)
        text = f"{lineups[0]['lineup']}: {middle[0]:.2f}"
        lowest = float(np.min(middle - reach[0]))
        axes.annotate(text, (at[0], lowest), (-4, -12), textcoords="offset points", fontsize=8)
    line_at(axes, 1.0, "oracle")
    axes.axhline(0, color=MUTED, linewidth=1.0)
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.margins(y=0.1)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(places)), [f"{agent}, {board}" for board, agent in places])
    axes.set_ylabel("normalised return (0 random, 1 oracle)")
    axes.set_title("20 line-ups of scripts, from the worst (named) to the best; bar: their mean")
    return sheet


def pretrained() -> Figure:
    """Adaptation of omg whose models were pretrained on scripts, beside models that saw only self-play."""
    names = {"from self-play": "adaptation_4x4_omg", "pretrained on scripts": "adaptation_4x4_omg_pretrained"}
    sheet, (axes,) = panels(height=2.9)
    for index, (label, name) in enumerate(names.items()):
        found = results(name)
        middle, reach = ends([one["normalised"]["sampled"] for one in found["lineups"]])
        at = np.arange(len(middle)) + 0.16 * (2 * index - 1)
        label = f"{label}, {found['env_steps']:,} steps, {found['seeds']} seeds"
        axes.errorbar(at, middle, reach, fmt="o", color=player_colour(index), capsize=2, elinewidth=1.2, label=label)
        axes.set_xticks(range(len(middle)), [one["lineup"] for one in found["lineups"]])
    line_at(axes, 1.0, "oracle")
    line_at(axes, 0.0, "random")
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("co-players (N hunts stags, H hunts hares, R acts at random)")
    axes.set_ylabel("normalised return")
    sheet.legend(loc="outside upper left", fontsize=8)
    return sheet


def simulations() -> Figure:
    """Return by search budget, with intervals over seeds."""
    sheet, (axes,) = panels()
    for index, name in enumerate(("simulations_hop", "simulations_hop_plus")):
        found = results(name)
        middle, reach = ends([one["normalised"] for one in found["budgets"]])
        at = np.arange(len(middle)) + 0.06 * index
        label = f"{found['run'].rsplit('/', 1)[-1]}, search in the {found['model']}"
        axes.errorbar(at, middle, reach, color=player_colour(index), marker="o", capsize=2, elinewidth=1.2, label=label)
        axes.set_xticks(range(len(middle)), [one["budget"] for one in found["budgets"]])
    line_at(axes, 1.0, "oracle")
    axes.set_xlabel("simulations in each of 4 trees")
    axes.set_ylabel("normalised return")
    axes.legend(loc="lower right")
    return sheet


def crossplay() -> Figure:
    """Returns of pairs of agents, as shades and as numbers with their intervals."""
    found = results("crossplay")
    names = [name.rsplit("-", 1)[0] for name in found["players"]]
    values = np.array([[cell["estimate"] for cell in row] for row in found["returns"]])
    halves = [[max(cell["high"] - cell["estimate"], cell["estimate"] - cell["low"]) for cell in row]
              for row in found["returns"]]  # fmt: skip
    sheet, (axes,) = panels(width=5.0, height=3.6)
    low, high = float(values.min()) - 0.1, float(values.max())
    drawn = axes.imshow(values, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    texts = [[f"{value:.2f}\n± {half:.2f}" for value, half in zip(*pair, strict=True)]
             for pair in zip(values, halves, strict=True)]  # fmt: skip
    label_cells(axes, texts, (values - low) / (high - low))
    name_cells(axes, names, names, "agent in the first seat", "agent in the other seats")
    sheet.colorbar(drawn, ax=axes, label="mean return of the first seat").outline.set_visible(False)
    return sheet


def study() -> Figure:
    """The score of every variant of a study, and the difference that answers each question."""
    found = results("notes")
    sheet, (left, right) = panels(2, width=10.0, height=5.0)
    variants, answers = found["variants"], found["answers"]
    middle, reach = ends([one["score"] for one in variants])
    left.errorbar(middle, range(len(variants)), xerr=reach, fmt="o", color=player_colour(0), capsize=2, elinewidth=1.2)
    left.set_yticks(range(len(variants)), [fill(one["name"], 18) for one in variants])
    left.set_xlim(0, BEST + 0.1)
    left.axvline(BEST, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    left.set_xlabel("mean return of the last fifth, 95% interval")
    left.set_title(f"variants, {variants[0]['seeds']} seeds each, hopplus {found['version']}")
    for place, one in enumerate(answers):
        low, middle, high = (one["difference"][key] for key in ("low", "estimate", "high"))
        colour = player_colour(2) if low > 0 else player_colour(3) if high < 0 else MUTED
        right.errorbar(middle, place, xerr=[[middle - low], [high - middle]], fmt="o", color=colour, capsize=2)
        word = "not told apart" if low <= 0 <= high else "yes" if low > 0 else "no"
        text = f"{word}: {middle:+.3f} ({low:+.3f} to {high:+.3f})"
        ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.0}
        at: dict[str, Any] = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "bbox": ground}
        right.annotate(text, (0.0, place), fontsize=7.5, color=colour, **at)
    right.axvline(0, color=INK, linewidth=0.8)
    right.set_yticks(range(len(answers)), [fill(one["question"]["ask"], 30) for one in answers], fontsize=8)
    right.set_xlabel("difference of the question's metric, 95% interval")
    right.set_title("answers")
    for axes in (left, right):
        axes.set_ylim(len(axes.get_yticks()) - 0.5, -0.7)
        axes.grid(visible=False, axis="y")
    return sheet


def goal_losses() -> Figure:
    """The terms of the three losses of the goal encoder over epochs."""
    losses = results("goal_losses")["curves"]["16 dimensions"]
    terms = {
        "goal/reconstruction": "reconstruction, per cell",
        "goal/action": "action",
        "goal/prior_kl": "KL of the prior",
    }
    sheet, places = panels(3, width=8.4, height=2.9)
    for axes, (term, name) in zip(places, terms.items(), strict=True):
        for index, (loss, curve) in enumerate(losses.items()):
            values, style = [epoch[term] for epoch in curve], ("-", "--", "-.")[index]
            axes.plot(range(1, len(curve) + 1), values, style, label=f"trained on {loss}")
        axes.set_title(name)
        axes.set_xlabel("epoch")
        axes.set_ylabel("nats")
        axes.set_ylim(bottom=0)
    sheet.legend(*places[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return sheet


def _variants() -> dict[str, Any]:
    return {name: one["inferred"] for name, one in results("others")["games"][CHOSEN]["variants"].items()}


def others_yardsticks() -> Figure:
    """How often the most likely action was taken, by variant, between the yardsticks."""
    variants = _variants()
    first = next(iter(variants.values()))
    sheet, (axes,) = panels(height=2.9)
    rows = [("most frequent action", first["yardsticks"]["marginal"]["top1"], first["samples"], MUTED)]
    rows += [("the last action again", first["yardsticks"]["last_action"]["top1"], first["samples"], MUTED)]
    rows += [(f"model: {name}", one["top1"], one["samples"], player_colour(0)) for name, one in variants.items()]
    for place, (_, share, samples, colour) in enumerate(rows):
        low, high = share_ends(np.array([share * samples]), np.array([samples]))
        axes.barh(place, share, color=colour, alpha=0.35, height=0.7)
        axes.hlines(place, low, high, color=INK, linewidth=1.4)
        axes.annotate(f"{share:.3f}", (0.01, place), va="center", fontsize=8)
    ceiling = first["yardsticks"]["ceiling"]["top1"]
    axes.axvline(ceiling, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.annotate(
        f"Bayes ceiling {ceiling:.3f}", (ceiling, -0.55), (-4, 0), textcoords="offset points", ha="right", fontsize=8
    )
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.4, -1.0)
    axes.set_xlim(0, 1)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("share of actions predicted (top-1), with 95% interval")
    return sheet


def others_reliability() -> Figure:
    """Predicted probabilities against how often they come true, with intervals, and how many there are."""
    bins = [one for one in _variants()["types"]["calibration"]["bins"] if one["count"]]
    said, true, count = (np.array([one[key] for one in bins], float) for key in ("confidence", "accuracy", "count"))
    low, high = share_ends(true * count, count)
    sheet, (axes, below) = _stacked()
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    reach = np.clip(np.stack([true - low, high - true]), 0, None)
    axes.errorbar(said, true, reach, fmt="o", color=player_colour(0), capsize=2, elinewidth=1.2)
    axes.set_xlim(0, 1.03)
    axes.set_ylim(0, 1.03)
    axes.set_ylabel("share that came true")
    axes.set_title("dashed: perfectly calibrated; bars: 95% intervals")
    below.bar(said, count, width=0.03, color=player_colour(0), alpha=0.4)
    below.set_yscale("log")
    below.set_ylabel("actions")
    below.set_xlabel("probability of the most likely action")
    return sheet


def _stacked() -> tuple[Figure, Any]:
    sheet = Figure(figsize=(4.4, 4.2))
    return sheet, sheet.subplots(2, 1, sharex=True, height_ratios=(3, 1))


def others_confusion() -> Figure:
    """What was done and what was predicted, as decisions and as mean probabilities."""
    score = _variants()["types"]
    names = [one["name"] for one in score["actions"]]
    taken = [index for index, row in enumerate(score["confusion"]) if sum(row)]
    decided = np.array([score["confusion"][index] for index in taken], float)
    decided /= decided.sum(axis=1, keepdims=True)
    mean = np.array([score["mean_probabilities"][index] for index in taken], float)
    sheet, places = panels(2, width=9.2, height=3.9, sharey=True)
    titles = ("predicted action (share)", "mean predicted probability")
    drawn = None
    for axes, values, title in zip(places, (decided, mean), titles, strict=True):
        drawn = axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        texts = [[f"{value:.2f}" if value >= 0.005 else "" for value in row] for row in values]
        label_cells(axes, texts, values)
        name_cells(axes, [names[index] for index in taken], names, "action taken", "predicted")
        axes.set_title(title)
    places[1].set_ylabel("")
    assert drawn is not None
    sheet.colorbar(drawn, ax=places, label="share or probability").outline.set_visible(False)
    return sheet


def power() -> Figure:
    """How often a planted advantage is found, by game and budget."""
    found = results("power")
    sheet, (axes,) = panels(height=3.4)
    for index, (name, game) in enumerate(found["games"].items()):
        for (budget, one), marker, style in zip(game["budgets"].items(), "o^", (":", "-"), strict=True):
            label = f"{name}, {budget} s: {one['episodes']:,} episodes"
            axes.plot(list(one["found"].values()), style, marker=marker, color=player_colour(index), label=label)
    first = next(iter(found["games"].values()))
    shares = list(next(iter(first["budgets"].values()))["found"])
    line_at(axes, 0.95, "95%")
    axes.set_xticks(range(len(shares)), [f"{float(share):.1%}".replace(".0%", "%") for share in shares])
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("planted advantage of a seat, of the mean return")
    axes.set_ylabel("share of repeats that find it")
    sheet.legend(loc="outside upper left", ncols=1, fontsize=8)
    return sheet
