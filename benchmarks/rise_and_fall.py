"""Does a run rise and then fall? The last tenth of its training beside the best stretch of that length.

    python benchmarks/rise_and_fall.py runs/hop-4x4 runs/direct_om-4x4

Returns are those of training, of all seeds together. The best of many stretches is above the mean by chance alone.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.runs.command import train_command
from hopplus.runs.folder import read_config
from hopplus.runs.records import RETURN_TAG, Recorded, read_run
from measure import print_json, print_table

SHARE = 0.1


def stretches(run: Recorded) -> dict[str, Any]:
    """The mean return of the best stretch and of the last one, and the steps after which the best one ends."""
    returns = np.nanmean(run.metrics[RETURN_TAG], axis=1)
    length = max(1, round(SHARE * run.num_updates))
    means = np.convolve(returns, np.full(length, 1 / length), mode="valid")
    best = int(means.argmax())
    return {
        "updates": length,
        "best": float(means[best]),
        "best_at": int(run.env_steps[best + length - 1]),
        "last": float(means[-1]),
        "last_over_best": float(means[-1] / means[best]),
    }


def course(folder: Path) -> dict[str, Any]:
    """A run, its best stretch and its last one."""
    run = read_run(folder)
    return {
        "run": folder.name,
        "agent": run.config["agent"],
        "seeds": run.num_seeds,
        "env_steps": int(run.env_steps[-1]),
        **stretches(run),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders")
    folders = parser.parse_args().runs
    found = [course(folder) for folder in folders]
    rows = [(one["run"], f"{one['best']:.3f}", f"{one['last']:.3f}", f"{one['last_over_best']:.3f}") for one in found]
    print_table("mean return in training", ("run", "best tenth", "last tenth", "ratio"), rows)
    trained = [train_command(read_config(folder), folder) for folder in folders]
    print_json({"runs": found}, ["numpy"], before=trained)


if __name__ == "__main__":
    main()
