"""Draw the learning curves that README and docs show, from run folders that were trained by the commands in the docs.

python scripts/pictures.py runs
"""

import sys
from pathlib import Path

from hopplus.report import learning_curve, read_run, save_figure

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"


def main(runs: Path) -> None:
    small = {"4x4": read_run(runs / "stag-hunt-4x4")}
    save_figure(
        learning_curve(small, best=3.0, label="mean return of training episodes"), PICTURES / "learning_curve.png"
    )
    large = {
        "8x8, arenas": read_run(runs / "stag-hunt-8x8"),
        "8x8, whole board": read_run(runs / "stag-hunt-8x8-no-arenas"),
    }
    save_figure(learning_curve(large, best=3.0, label="mean return of training episodes"), PICTURES / "arenas.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
