"""One HTML page about a study: its questions and answers, the curves, and the command of every variant."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup
from matplotlib.figure import Figure

from hopplus.games import draw
from hopplus.report.curves import learning_curve
from hopplus.runs.command import train_command
from hopplus.runs.records import Recorded
from hopplus.runs.studies import Study
from hopplus.runs.studies.study import RETURNS
from hopplus.runs.studies.summary import Answer, VariantSummary, performance_profile, read_curve, state_of
from hopplus_doctor.drawing import INK, MUTED, add_legend, inline_svg, new_sheet, save_figure
from hopplus_doctor.template_environment import template_environment


@dataclass(frozen=True)
class Drawn:
    """The curves of a metric, of all variants that record it."""

    metric: str
    svg: Markup


def study_page(
    study: Study,
    folder: Path,
    variants: Sequence[VariantSummary],
    answers: Sequence[Answer],
    *,
    best: float | None = None,
) -> str:
    """The HTML of the whole page. `best` is the return that the optimality gaps were measured to, if it was given."""
    metrics = list(dict.fromkeys([RETURNS, *(question.metric for question in study.questions)]))
    states = [(trial, *state_of(trial, folder)) for trial in study.all_trials()]
    content = {
        "study": study,
        "variants": variants,
        "answers": answers,
        "scores": Markup(inline_svg(score_picture(variants), "final returns by variant")),
        "best": max(one.highest for one in variants) if best is None else best,
        "best_is_seen": best is None,
        "profiles": Markup(inline_svg(profile_picture(variants), "performance profiles")),
        "curves": [_drawn(study, folder, metric) for metric in metrics],
        "states": states,
        "commands": {name: train_command(config, Path("RUN")) for name, config in study.variants.items()},
        "folder": folder.name,
    }
    environment: Environment = template_environment("hopplus.report")
    return environment.get_template("study.html").render(content)


def _drawn(study: Study, folder: Path, metric: str) -> Drawn:
    figure = learning_curve(_runs(study, folder, metric), metric)
    return Drawn(metric, Markup(inline_svg(figure, f"{metric} by variant")))


def _runs(study: Study, folder: Path, metric: str) -> dict[str, Recorded]:
    """Each variant as one run with the seeds of all its trials. Variants without the metric are left out."""
    runs = {}
    for name, config in study.variants.items():
        try:
            curve = read_curve(study, folder, name, metric)
        except ValueError:
            continue
        if curve is not None:
            about = {"agent": config.agent, "game": config.game, "seeds": curve.values.shape[1], "steps": config.steps}
            runs[name] = Recorded(name, about, curve.env_steps, {metric: curve.values}, {}, None)
    return runs


def score_picture(variants: Sequence[VariantSummary]) -> Figure:
    """The mean of every variant with its interval, and the seeds."""
    sheet, axes = new_sheet((5.6, 0.9 + 0.32 * len(variants)))
    for row, variant in enumerate(variants):
        colour = draw.player_colour(row)
        axes.plot(variant.scores, [row + 0.28] * variant.seeds, "|", color=MUTED, markersize=6, zorder=2)
        axes.plot([variant.score.low, variant.score.high], [row, row], color=colour, linewidth=5, alpha=0.5, zorder=3)
        axes.plot([variant.score.estimate], [row], marker="o", color=INK, markersize=4, zorder=4)
    axes.set_yticks(range(len(variants)), [variant.name for variant in variants])
    axes.set_ylim(len(variants) - 0.5, -0.5)
    axes.set_xlabel("mean return per episode, last fifth of training")
    return sheet


def profile_picture(variants: Sequence[VariantSummary]) -> Figure:
    """Performance profiles: for every return, the share of a variant's seeds that reach it."""
    sheet, axes = new_sheet((5.6, 2.8))
    lowest, highest = (pick(getattr(one, end) for one in variants) for pick, end in ((min, "lowest"), (max, "highest")))
    margin = 0.05 * (highest - lowest) or 0.05
    for row, variant in enumerate(variants):
        scores, shares = performance_profile(variant.scores)
        steps = [lowest - margin, *scores, highest + margin]
        axes.step(steps, [1.0, *shares, 0.0], where="pre", color=draw.player_colour(row), label=variant.name)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(lowest - margin, highest + margin)
    axes.set_xlabel("return over the last fifth of training")
    axes.set_ylabel("share of seeds that reach it")
    add_legend(sheet, axes)
    return sheet


def study_picture(study: Study, folder: Path, path: Path) -> None:
    """Save the learning curves of all variants as a picture."""
    save_figure(learning_curve(_runs(study, folder, RETURNS), RETURNS, size=(6.4, 3.8)), path)
