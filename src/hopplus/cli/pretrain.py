"""`hopplus pretrain`: train goal and opponent models on offline episodes, before any agent is trained."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hopplus.learning.offline import make_episodes, save
from hopplus.learning.pretrain_config import PretrainConfig
from hopplus.runs.pretraining import pretrain as pretrain_models

DEFAULTS = PretrainConfig()


def pretrain(
    out: Path,
    config: Annotated[PretrainConfig, tyro.conf.arg(name="")] = DEFAULTS,
    episodes: Path | None = None,
    export: Path | None = None,
) -> int:
    """Train goal and opponent models on episodes of scripted players.

    The episodes are generated from --data.game, --data.types, --data.samples and --data.seed. The same command resumes
    after the last epoch. `hopplus train omg --pretrained OUT` starts with these models.

    Args:
        out: The folder for settings, metrics of each epoch, and checkpoints.
        config: The settings.
        episodes: Train on this .npz file instead. Its arrays: boards, actions, rewards, in_game, and optionally kinds.
        export: Also write the generated episodes to such a file.
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
