"""Keep the learning curves of runs, for the picture of the recommended agent beside ppo.

    hopplus train ppo --seeds 2 --steps 500000 --out runs/first
    hopplus train hop_plus --seeds 3 --steps 40000 --schedule 120000 --out runs/curve-hop_plus-4x4
    python benchmarks/curves.py ppo=runs/first hop_plus=runs/curve-hop_plus-4x4 --out results/curves_4x4.json
    python scripts/pictures.py learning_curve

A run that is stopped earlier, or whose --steps are fewer, has the beginning of the same curve. Curves are smoothed and
reduced to some 100 points, as on the page of `hopplus report`.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.report.curves import shown_curve
from hopplus.runs.records import RETURN_TAG, Recorded, read_run
from hopplus_doctor.statistics import seed_band
from measure import write_result

POINTS = 100


def curve(run: Recorded) -> dict[str, Any]:
    """The return of training episodes: of every seed, the mean, and the interval of the mean over seeds."""
    steps, values = shown_curve(run, RETURN_TAG)
    kept = np.unique(np.linspace(0, len(steps) - 1, POINTS).round().astype(int))
    steps, values = steps[kept], values[kept]
    known = np.isfinite(values).all(axis=1)
    steps, values = steps[known], values[known]
    band = seed_band(values)
    rounded = {"mean": band.mean, "low": band.low, "high": band.high}
    numbers = {name: np.round(each, 4).tolist() for name, each in rounded.items()}
    return {"steps": steps.astype(int).tolist(), **numbers, "seeds": np.round(values.T, 4).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    curves, commands = {}, []
    for text in given.runs:
        name, _, folder = text.partition("=")
        run = read_run(Path(folder))
        curves[name] = curve(run)
        settings, steps = run.config, int(run.env_steps[-1])
        schedule = settings["learner"]["schedule"] or settings["steps"]
        is_beginning = schedule > steps + run.env_steps[0]
        beginning = f" --schedule {schedule}" if is_beginning else ""
        train = f"hopplus train {settings['agent']} --game {settings['game']} --seeds {settings['seeds']}"
        commands.append(f"{train} --steps {steps}{beginning} --out {folder}")
        print(f"{name}: {len(curves[name]['steps'])} points, last mean return {curves[name]['mean'][-1]:.3f}")
    commands.append(f"python benchmarks/curves.py {' '.join(given.runs)} --out {given.out}")
    write_result(given.out, {"commands": commands, "curves": curves})


if __name__ == "__main__":
    main()
