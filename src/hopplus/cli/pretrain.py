"""`hopplus pretrain`: learn goals and a model of the others from offline episodes, before any agent plays."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hopplus.learning.offline import make_episodes, save
from hopplus.learning.pretraining import PretrainConfig
from hopplus.runs.pretraining import pretrain as pretrain_models

DEFAULTS = PretrainConfig()


def pretrain(
    out: Path,
    config: Annotated[PretrainConfig, tyro.conf.arg(name="")] = DEFAULTS,
    episodes: Path | None = None,
    export: Path | None = None,
) -> int:
    """Learn goals, and what players do who have them, from episodes of scripted players.

    The episodes are a recipe (--data.game, --data.types, --data.samples, --data.seed) and are played anew each time.
    The same command again goes on after the last epoch. `hopplus train omg --pretrained OUT` begins with these models.

    Args:
        out: The folder: settings, a line of metrics per epoch, checkpoints.
        config: The settings.
        episodes: Learn from this .npz file instead: boards, actions, rewards, in_game, and kinds where they are known.
        export: Also write the recipe's episodes as such a file.
    """
    config.check()
    if export:
        if export.suffix != ".npz":
            raise ValueError(f"--export is {export}; give a name that ends in .npz")
        made = make_episodes(config.data)
        save(made, export)
        print(f"wrote {export}: {len(made.boards)} episodes, {made.num_samples} actions")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("preparing episodes", total=config.epochs)

        def on_epoch(done: int, metrics: dict[str, float]) -> None:
            words = f"held-out top-1 {metrics['held_out/top1']:.3f}, cross-entropy {metrics['held_out/ce_loss']:.3f}"
            progress.update(bar, completed=done, description=words)
            if not progress.console.is_terminal:
                progress.console.print(f"epoch {done} of {config.epochs}: {words}")

        pretrain_models(config, out, episodes=episodes, on_epoch=on_epoch)
    print(f"next: hopplus train omg --pretrained {out} --game {config.data.game} --out runs/omg")
    return 0
