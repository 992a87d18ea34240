"""What the studies of examples/notes found: results/notes_NAME.json for each study.

Run the studies first; a study resumes where it was stopped:

    hopplus study run examples/notes/value_loss.toml --out studies/notes/value_loss
    python benchmarks/notes_studies.py value_loss            one study
    python benchmarks/notes_studies.py                       all that are there
    python benchmarks/notes_studies.py value_loss --quick    print it, write nothing

Of each variant: return, value losses on real and imagined data, recall of the opponent model by action, returns by seat
with Page's test, the world's exactness over 1 to 10 steps (measured with `hopplus evaluate TRIAL --world` in the
studies that show it), and whether the return fell after its best. Final figures are means over the last fifth of
training, with 95% intervals over seeds.

Next: `python benchmarks/notes_troubles.py`, `python scripts/tables.py` and `python scripts/notes_pictures.py` write the
tables and pictures of docs/notes.md; `python benchmarks/notes_doctor.py` examines the trials.
"""

import argparse
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.runs.records import FINAL_SHARE, PAIR, RETURN_TAG, Recorded, read_run, seat_tags
from hopplus.runs.studies.study import Study, open_study
from hopplus.runs.studies.summary import answer
from hopplus_doctor.statistics import mean_of_known, page_trend, seed_band, seed_interval
from measure import PROGRAM, PROGRESS, interval_words, print_json, print_table, write_result
from rise_and_fall import stretches

POINTS = 40
LOSSES = {
    "value_loss": "policy/value_loss",
    "value_loss_real": "policy/value_loss_real",
    "value_loss_imagined": "policy/value_loss_imagined",
}
CURVES = {"return": RETURN_TAG, **LOSSES, "top1": "moa/top1", "ce_loss": "moa/ce_loss", "board_error": "wm/board_error"}
RECALL = "moa/recall/"
REACHED = 2.8
"""A return on 4x4 that players get only if all of them hunt stags."""
COLLAPSED = 0.05
"""An action whose recall is lower is never predicted."""
WITHOUT_PLANNING = {"one step, in the game": "none", "search, in the game": "none"}
"""The variant without planning, of each that plans in the game: the difference in time is the planner's."""
OF_WORLDS = ("value_loss", "rollouts", "sequence", "long")
"""The studies whose worlds are evaluated; of the others no page shows them."""


def final(run: Recorded, tag: str) -> np.ndarray:
    """The mean of each seed over the last fifth of training."""
    values = run.metrics[tag]
    return mean_of_known(values[-max(1, round(FINAL_SHARE * len(values))) :].T)


def curve(run: Recorded, tag: str) -> dict[str, list[float | None]]:
    """Mean and interval over seeds in equal parts of the run."""
    parts = np.array_split(np.arange(run.num_updates), min(POINTS, run.num_updates))
    band = seed_band(np.stack([mean_of_known(run.metrics[tag][part].T) for part in parts]))
    numbers = {"mean": band.mean, "low": band.low, "high": band.high}
    known = {name: [round(value, 4) if np.isfinite(value) else None for value in of] for name, of in numbers.items()}
    return {"steps": [int(run.env_steps[part[-1]]) for part in parts], **known}


def recall_of(run: Recorded, action: str) -> np.ndarray:
    """The recall of an action, [updates, seeds]: the mean over the co-players that took it."""
    tags = [tag for tag in run.metrics if (match := PAIR.fullmatch(tag)) and match[1] == f"{RECALL}{action}"]
    return mean_of_known(np.stack([run.metrics[tag] for tag in tags], axis=-1))


def with_recalls(run: Recorded) -> Recorded:
    """The run with the recall of each action as a mean over pairs of a seat and a co-player."""
    actions = {match[1].removeprefix(RECALL) for tag in run.metrics if (match := PAIR.fullmatch(tag))}
    known = {
        f"{RECALL}{action}": recall_of(run, action) for action in sorted(actions) if f"{RECALL}{action}" in run.metrics
    }
    return replace(run, metrics={**run.metrics, **known})


def steps_to(curve: dict[str, list[Any]]) -> int | None:
    """The steps after which the mean over seeds first reached that return; None if it never did."""
    reached = (steps for steps, mean in zip(curve["steps"], curve["mean"], strict=True) if mean and mean >= REACHED)
    return next(reached, None)


def lasts(run: Recorded) -> list[float]:
    """For each seed the last tenth of training over its best stretch of that length."""
    returns = run.metrics[RETURN_TAG].T
    return [stretches(replace(run, metrics={RETURN_TAG: seed[:, None]}))["last_over_best"] for seed in returns]


def microseconds(run: Recorded) -> float | None:
    """Of an environment step of one seed: the median over blocks of updates, without the first."""
    steps = np.diff(run.timing["env_steps"])
    return float(1e6 * np.median(run.timing["seconds"][1:] / (steps * run.num_seeds))) if len(steps) else None


def of_variant(run: Recorded) -> dict[str, Any]:
    """The figures of one variant."""
    run = with_recalls(run)
    curves = {name: curve(run, tag) for name, tag in CURVES.items() if tag in run.metrics}
    recall = {tag.removeprefix(RECALL): tag for tag in run.metrics if tag.startswith(RECALL) and tag.count("/") == 2}
    curves |= {f"recall of {action}": curve(run, tag) for action, tag in recall.items()}
    seats = np.stack([final(run, tag) for tag in seat_tags(run)], axis=1)
    found = {
        "seeds": run.num_seeds,
        "env_steps": int(run.env_steps[-1]),
        "minutes": float(run.timing["seconds"].sum() / 60),
        "microseconds": microseconds(run),
        "return": asdict(seed_interval(final(run, RETURN_TAG))),
        "by_seed": final(run, RETURN_TAG).tolist(),
        "steps_to_2.8": steps_to(curves["return"]),
        **{name: asdict(seed_interval(final(run, tag))) for name, tag in LOSSES.items() if tag in run.metrics},
        "value_loss_by_seed": final(run, LOSSES["value_loss"]).tolist(),
        "seats": [asdict(seed_interval(seat)) for seat in seats.T],
        "seats_by_seed": seats.tolist(),
        "spread_of_seats": float(np.ptp(seats.mean(axis=0))),
        "trend": asdict(page_trend(seats)) if run.num_seeds > 1 else None,
        **stretches(run),
        "last_over_best_by_seed": lasts(run),
        "curves": curves,
    }
    if recall:
        finals = {action: asdict(seed_interval(final(run, tag))) for action, tag in recall.items()}
        never = [action for action, interval in finals.items() if interval["estimate"] < COLLAPSED]
        found |= {"recall": finals, "never_predicted": never, "top1": asdict(seed_interval(final(run, "moa/top1")))}
    if run.world is not None:
        found["world"] = {name: part for name, part in run.world.items() if name != "examples"}
    return found


def is_judged(run: Recorded) -> bool:
    """Whether its worlds were evaluated, with all figures that are needed."""
    return run.world is not None and "vanished" in run.world["line_ups"]["all"]


def summary(study: Study, folder: Path, *, with_worlds: bool) -> dict[str, Any]:
    """What a study found; trials that are not done are left out."""
    variants: dict[str, Any] = {}
    for trial in study.all_trials():
        place = folder / trial.place
        if not trial.is_done(folder):
            PROGRESS.print(f"{place} is not done")
            continue
        if with_worlds and trial.config.learner.world.is_used and not is_judged(read_run(place)):
            subprocess.run([*PROGRAM, "evaluate", str(place), "--world"], check=True, stdout=sys.stderr)
        variants[trial.variant] = of_variant(read_run(place))
    for variant, base in WITHOUT_PLANNING.items():
        if variant in variants and base in variants:
            more = variants[variant]["microseconds"] - variants[base]["microseconds"]
            variants[variant]["planning_microseconds"] = more
    answers = [answer(study, folder, question) for question in study.questions]
    return {
        "about": study.about,
        "variants": variants,
        "answers": [
            {
                "ask": one.question.ask,
                "compare": one.question.compare,
                "difference": asdict(one.difference),
                "probability": asdict(one.probability),
                "verdict": one.verdict,
            }
            for one in answers
            if one is not None
        ],
    }


def print_summary(name: str, found: dict[str, Any]) -> None:
    rows = []
    for variant, one in found["variants"].items():
        trend, known = one["trend"], lambda name, one=one: interval_words(one[name], 2) if name in one else "-"
        rows.append(
            (
                variant,
                known("return"),
                known("value_loss_real"),
                known("value_loss_imagined"),
                "-" if trend is None else f"{trend['direction']}, p {trend['p_value']:.2f}",
                f"{one['last_over_best']:.2f}",
                ", ".join(one["never_predicted"]) if "never_predicted" in one else "-",
                f"{one['minutes']:.0f}",
            )
        )
    heads = (
        "variant",
        "return",
        "value loss, real",
        "value loss, imagined",
        "seats",
        "last over best",
        "actions never predicted",
        "minutes",
    )
    print_table(f"{name}: {found['about']}", heads, rows)
    for one in found["answers"]:
        print(f"{one['ask']} {one['verdict']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="studies; all that are there if none is named")
    parser.add_argument("--studies", type=Path, default=Path("studies/notes"), help="the folder of the studies")
    parser.add_argument("--quick", action="store_true", help="print it, write nothing, measure no world")
    given = parser.parse_args()
    names = given.names or sorted(path.name for path in given.studies.iterdir() if path.is_dir())
    summaries = {}
    for name in names:
        folder = given.studies / name
        found = summary(open_study(folder), folder, with_worlds=name in OF_WORLDS and not given.quick)
        print_summary(name, found)
        command = f"hopplus study run examples/notes/{name}.toml --out studies/notes/{name}"
        if not given.quick:
            commands = [command, f"python benchmarks/notes_studies.py {name}"]
            write_result(Path(f"results/notes_{name}.json"), {"commands": commands, **found})
        summaries[name] = {variant: one["return"]["estimate"] for variant, one in found["variants"].items()}
    print_json({"returns": summaries}, ["jax"])


if __name__ == "__main__":
    main()
