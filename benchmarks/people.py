"""Episodes of people, from a page to an opponent model, with a script in the place of the person.

The script plays the page in node (500 episodes) and, where Chromium is, in the browser with real keys (20 episodes).
Every seat hunts stags or hares, drawn anew for each episode. The saved files are read back. An opponent model is
pretrained on 300 of the episodes and judged on the other 200:

top1_over_ceiling   the share of the predictable that it predicts: the probability of its likeliest action over that of
                    the best possible guess of somebody who knows both scripts, but not who plays which; the interval
                    is a bootstrap over episodes

    python benchmarks/people.py            writes results/people.json; about five minutes on two cores
    python benchmarks/people.py --quick    40 episodes, 2 epochs, no browser
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax.numpy as jnp
import numpy as np

from hopplus.agents.config import OpponentsConfig
from hopplus.evaluation.ceiling import best_predictions
from hopplus.games.presets import make
from hopplus.learning.offline import scripts_of
from hopplus.learning.page_episodes import read_page_episodes
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.learning.pretraining import material, predict
from hopplus.models.config import GoalsConfig, OthersConfig
from hopplus.runs.pretraining import pretrain
from hopplus.share.page import page_data, page_html
from measure import PROGRESS, print_json, write_result
from share import drive, has_browser, random_run

GAME, RESAMPLES = "stag-hunt-4x4", 5_000
FILE = Path("results/people.json")


def settings(epochs: int) -> PretrainConfig:
    """Hindsight goals, learned from 3 of every 5 episodes; of so few, a wider network learns by heart."""
    opponents = OpponentsConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="shared", hidden=4, keys=16))
    return PretrainConfig(data=Recipe(game=GAME), opponents=opponents, epochs=epochs, held_out=0.4)


def judge(config: PretrainConfig, models: Any, path: Path) -> dict[str, Any]:
    """The model's share of the ceiling on the episodes that it did not learn from."""
    game = make(config.data.game)
    held_out = read_page_episodes(path, game).episodes.part(1 - config.held_out, 1)
    data = material(config, game, held_out)
    expected = np.asarray(predict(config, models, data).expected)
    seen = data.inputs.observation, data.inputs.legal, held_out.actions, held_out.in_game
    kinds = jnp.zeros_like(held_out.kinds)  # of no use to a predictor that infers them
    best = np.asarray(best_predictions(scripts_of(config.data), kinds, *seen).inferred)
    on_board = np.asarray(held_out.in_game)
    chosen = np.take_along_axis(best, expected.argmax(-1)[..., None], axis=-1)[..., 0]
    got, most = (np.where(on_board, each, 0).sum(axis=(1, 2)) for each in (chosen, best.max(-1)))
    rows = np.random.default_rng(0).integers(len(got), size=(RESAMPLES, len(got)))
    low, high = np.quantile(got[rows].sum(axis=1) / most[rows].sum(axis=1), [0.025, 0.975])
    right = expected.argmax(-1) == np.asarray(held_out.actions)
    return {
        "episodes": len(got),
        "samples": int(on_board.sum()),
        "top1": float(right[on_board].mean()),
        "ceiling": float(best.max(-1)[on_board].mean()),
        "top1_over_ceiling": {"estimate": float(got.sum() / most.sum()), "low": float(low), "high": float(high)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few episodes, no browser")
    asked = parser.parse_args()
    count, epochs = (40, 2) if asked.quick else (500, 40)
    with TemporaryDirectory() as name:
        folder = Path(name)
        page = folder / "page.html"
        page.write_text(page_html(*page_data([random_run("ppo", GAME, folder)])))
        drive("node", page, folder, count)
        figures: dict[str, Any] = {}
        if has_browser() and not asked.quick:
            played = drive("browser", page, folder, 20)
            read = read_page_episodes(folder / "browser.json", make(GAME))
            figures["browser"] = played | {"read_back": len(read.seats)}
        PROGRESS.print(f"{count} episodes were played and are read back")
        config = settings(epochs)
        models = pretrain(config, folder / "models", episodes=folder / "node.json")
        figures["node"] = {"played": count, **judge(config, models, folder / "node.json")}
    if not asked.quick:
        write_result(FILE, {"commands": ["python benchmarks/people.py"], **figures})
    print_json(figures, ("jax", "numpy"))


if __name__ == "__main__":
    main()
