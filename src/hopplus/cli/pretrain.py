"""`hopplus pretrain`: train goal and opponent models on offline episodes, before any agent is trained."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hopplus.cli.verbs.pretrain import Pretrain
from hopplus.learning.offline import make_episodes, save
from hopplus.runs.pretraining import pretrain as pretrain_models


def run_pretraining(asked: Pretrain) -> int:
    """Pretrain, with progress."""
    asked.config.check()
    if asked.export:
        if asked.export.suffix != ".npz":
            raise ValueError(f"--export is {asked.export}; give a name that ends in .npz")
        made = make_episodes(asked.config.data)
        save(made, asked.export)
        print(f"wrote {asked.export}: {len(made.boards)} episodes, {made.num_samples} actions")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("preparing episodes", total=asked.config.epochs)

        def on_epoch(done: int, metrics: dict[str, float]) -> None:
            words = f"held-out top-1 {metrics['held_out/top1']:.3f}, cross-entropy {metrics['held_out/ce_loss']:.3f}"
            progress.update(bar, completed=done, description=words)
            if not progress.console.is_terminal:
                progress.console.print(f"epoch {done} of {asked.config.epochs}: {words}")

        pretrain_models(asked.config, asked.out, episodes=asked.episodes, on_epoch=on_epoch)
    print(f"next: hopplus train omg --pretrained {asked.out} --game {asked.config.data.game} --out runs/omg")
    return 0
