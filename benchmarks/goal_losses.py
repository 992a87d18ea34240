"""The three losses of the prior over goals, side by side: every term, and how well actions are then predicted.

Reconstruction is a mean over all cells of the board, the action's cross-entropy is of one choice among seven: their
sizes cannot be compared, so each is shown by itself, whether or not the loss contains it.

    python benchmarks/goal_losses.py [--quick]
"""

import argparse
from dataclasses import replace
from typing import Any

import jax
from rich.progress import track

from hopplus.agents.config import OpponentsConfig
from hopplus.games.presets import make
from hopplus.learning.config import ModellingConfig
from hopplus.learning.offline import make_episodes
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.learning.pretraining import Trainer, init, material
from hopplus.models.config import GoalsConfig, OthersConfig
from hopplus.runs.pretraining import judge
from measure import print_json, print_table

LOSSES = ("reconstruction", "action", "both")
KINDS = {"16 dimensions": ("continuous", 16), "8 dimensions": ("continuous", 8), "4 symbols": ("discrete", 4)}
TERMS = ("goal/reconstruction", "goal/action", "goal/prior_kl", "goal/mismatch", "held_out/top1", "held_out/ce_loss")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one kind of goal, few samples and epochs")
    quick = parser.parse_args().quick
    data = Recipe(game="stag-hunt-4x4", samples=5_000 if quick else 30_000)
    epochs, game = 2 if quick else 10, make(data.game)
    episodes = make_episodes(data)
    chosen = [(name, loss) for name in list(KINDS)[: 1 if quick else None] for loss in LOSSES]
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {} for name in KINDS}
    for name, loss in track(chosen, description="pretraining", transient=True):
        found[name][loss] = pretrain(data, game, episodes, name, loss, epochs)
    rows = [
        (name, loss, *(f"{curve[-1][term]:.3f}" for term in TERMS))
        for name, curves in found.items()
        for loss, curve in curves.items()
    ]
    columns = ("goals", "loss", "rebuild", "action", "KL", "mismatch", "top-1", "CE")
    print_table(f"{data.game}: {episodes.num_samples:,} samples, {epochs} epochs", columns, rows)
    print_json({"samples": episodes.num_samples, "epochs": epochs, "curves": found}, ["jax"])


def pretrain(data: Recipe, game: Any, episodes: Any, name: str, loss: Any, epochs: int) -> list[dict[str, float]]:
    """The terms after each epoch."""
    kind, size = KINDS[name]
    goals: Any = GoalsConfig(kind=kind, size=size)  # pyright: ignore[reportArgumentType]
    settings = PretrainConfig(data=data, opponents=OpponentsConfig(goals, OthersConfig(models="shared")), epochs=epochs)
    config = replace(settings, modelling=ModellingConfig(prior_loss=loss))
    train, held_out = (material(config, game, episodes.part(*share)) for share in ((0, 0.9), (0.9, 1)))
    trainer, state = Trainer(config, train), init(config, key=jax.random.key(0))
    history = []
    for _ in range(epochs):
        state, terms = trainer.epoch(state)
        history.append(terms | judge(config, state.opponents.params, held_out).figures)
    return history


if __name__ == "__main__":
    main()
