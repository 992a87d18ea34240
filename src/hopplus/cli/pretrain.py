"""`hopplus pretrain`: train goal and opponent models on offline episodes, before any agent is trained."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hopplus.cli.verbs.pretrain import Pretrain
from hopplus.learning.offline import make_episodes, save
from hopplus.learning.pretrain_config import WorldPretrainConfig
from hopplus.runs.pretraining import pretrain as pretrain_models
from hopplus.runs.world_pretraining import pretrain_world

SHOWN = {
    "held_out/top1": "top-1",
    "held_out/ce_loss": "cross-entropy",
    "held_out/exact_next_state": "exact next states",
    "held_out/open_loop_exact": "5 steps exact",
}
"""The metrics that progress shows, and their words."""


def run_pretraining(asked: Pretrain) -> int:
    """Pretrain, with progress."""
    asked.config.check()
    if asked.only_world and (asked.episodes or asked.export):
        raise ValueError("--world makes its own episodes; leave --episodes and --export out")
    if asked.export:
        if asked.export.suffix != ".npz":
            raise ValueError(f"--export is {asked.export}; give a name that ends in .npz")
        made = make_episodes(asked.config.data)
        save(made, asked.export)
        print(f"wrote {asked.export}: {len(made.boards)} episodes, {made.num_samples} actions")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    game, epochs = asked.config.data.game, asked.config.epochs * (asked.world.members if asked.only_world else 1)
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("preparing episodes", total=epochs)

        def on_epoch(done: int, metrics: dict[str, float]) -> None:
            known = [f"{name} {metrics[tag]:.3f}" for tag, name in SHOWN.items() if tag in metrics]
            words = f"held-out {', '.join(known)}"
            progress.update(bar, completed=done, description=words)
            if not progress.console.is_terminal:
                progress.console.print(f"epoch {done} of {epochs}: {words}")

        if asked.only_world:
            config = asked.config
            settings = WorldPretrainConfig(config.data, asked.world, config.epochs, config.held_out)
            pretrain_world(settings, asked.out, on_epoch=on_epoch)
        else:
            pretrain_models(asked.config, asked.out, episodes=asked.episodes, on_epoch=on_epoch)
    flag = "hop_plus --pretrained-world" if asked.only_world else "omg --pretrained"
    print(f"next: hopplus train {flag} {asked.out} --game {game}")
    return 0
