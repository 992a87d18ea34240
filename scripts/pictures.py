"""Draw every picture of README and docs: one command, one style (hopplus_doctor/templates/hopplus.mplstyle).

python scripts/pictures.py                   all pictures, into docs/pictures
python scripts/pictures.py study crossplay   some of them
python scripts/pictures.py --list            their names, and where each comes from

Most are drawn from results/*.json in a second. Boards are played by scripts (seconds). `beliefs` pretrains models for a
minute. Pages of the doctor and of a report are shown by a headless Chromium, and need it. A picture whose data is not
there is left as it is, and the script names the commands that make the data.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from matplotlib import style
from matplotlib.figure import Figure

import notes_pictures
from docs_site import drawing
from hopplus.report import save_figure
from hopplus_doctor.drawing import STYLE
from picture_parts import from_results, of_examinations, of_games, of_pages
from picture_parts.common import NotMeasuredError

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
FIGURES: dict[str, Callable[[], Figure]] = {
    "adaptation.png": from_results.adaptation,
    "arenas.png": from_results.arenas,
    "beliefs.png": of_games.beliefs,
    "crossplay.png": from_results.crossplay,
    "goal_losses.png": from_results.goal_losses,
    "learning_curve.png": from_results.learning_curve,
    "others_confusion.png": from_results.others_confusion,
    "others_reliability.png": from_results.others_reliability,
    "others_yardsticks.png": from_results.others_yardsticks,
    "player_1_policies.png": of_examinations.player_1_policies,
    "player_1_returns.png": of_examinations.player_1_returns,
    "power.png": from_results.power,
    "pretrained.png": from_results.pretrained,
    "simulations.png": from_results.simulations,
    "study.png": from_results.study,
    "value_loss_attribution.png": of_examinations.value_loss_attribution,
    "value_loss_sources.png": of_examinations.value_loss_sources,
}
"""Pictures that matplotlib draws in the style of the file."""
FILES: dict[str, Callable[[Path], None]] = {
    "architecture.svg": lambda path: drawing.save(path),
    "coins.png": of_games.coins,
    "doctor_desktop.png": of_pages.doctor,
    "foraging.png": of_games.foraging,
    "gallery_coins.gif": partial(of_games.gallery, "coins-3x3", "own_coins,any_coins", 1),
    "gallery_foraging.gif": partial(
        of_games.gallery, "foraging-8x8", "nearest_food,strongest_food,easy_food,nearest_food", 2
    ),
    "gallery_harvest.gif": partial(of_games.gallery, "harvest-8x8-beam", "sustainable,greedy,zapper,greedy", 0),
    "gallery_snowdrift.gif": partial(
        of_games.gallery, "snowdrift-8x8", "nearest_drift,nearest_drift,nearest_drift,idler", 5
    ),
    "gallery_stag_hunt.gif": partial(
        of_games.gallery, "stag-hunt-4x4", "nearest_stag,nearest_stag,nearest_hare,random", 3
    ),
    "gallery_trained.gif": of_pages.trained,
    "harvest.png": of_games.harvest,
    "replay_mind.png": of_pages.replay,
    "snowdrift.png": of_games.snowdrift,
    "stag_hunt.gif": of_games.stag_hunt,
}
"""Pictures that are written by another part: drawings of boards, and pages."""
NOTES = {f"notes_{name}.png": name for name in notes_pictures.DRAWN}
"""Pictures of the studies of docs/notes.md."""
MADE = {*FIGURES, *FILES, *NOTES}


def draw(name: str, path: Path) -> None:
    """Draw one picture; raises NotMeasuredError where its data is not there."""
    if name in FIGURES:
        with style.context(STYLE):
            save_figure(FIGURES[name](), path)
    elif name in FILES:
        FILES[name](path)
    else:
        notes_pictures.draw(NOTES[name], path)


def main(wanted: Sequence[str], folder: Path = PICTURES) -> int:
    names = {name.rsplit(".", 1)[0]: name for name in sorted(MADE)}
    if wanted and wanted[0] == "--list":
        print("\n".join(sorted(MADE)))
        return 0
    if unknown := {*wanted} - {*names}:
        print(f"there is no picture {', '.join(sorted(unknown))}; give some of {', '.join(names)}", file=sys.stderr)
        return 2
    for short, name in names.items():
        if wanted and short not in wanted:
            continue
        try:
            draw(name, folder / name)
            print(name)
        except NotMeasuredError as error:
            print(f"{name}: left as it is: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
