"""`hopplus pretrain`: train goal and opponent models on offline episodes, before any agent is trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.cli.verbs.types import Switch
from hopplus.learning.pretrain_config import PretrainConfig
from hopplus.models.config import WorldConfig

DEFAULTS, WORLD = PretrainConfig(), WorldConfig(members=1)


@dataclass(frozen=True)
class Pretrain:
    """Train goal and opponent models, or a world, on episodes of scripted players.

    The episodes are generated from --data.game, --data.types, --data.samples and --data.seed. The same command resumes
    after the last epoch. `hopplus train omg --pretrained OUT` starts with these models. With --world it is a world that
    learns, and `hopplus train hop_plus --pretrained-world OUT` starts with it."""

    out: Path
    """The folder for settings, metrics of each epoch, and checkpoints."""
    config: Annotated[PretrainConfig, tyro.conf.arg(name="")] = DEFAULTS
    """The settings."""
    only_world: Annotated[Switch, tyro.conf.arg(name="world")] = False
    """Train a world in place of opponent models."""
    world: WorldConfig = WORLD
    """With --world."""
    episodes: Path | None = None
    """Train on this file instead: episodes that people saved from a page of `hopplus share` (.json), or an .npz file
    with the arrays boards, actions, rewards, in_game, and optionally kinds."""
    export: Path | None = None
    """Also write the generated episodes to such a file."""

    def __call__(self) -> int:
        from hopplus.cli.pretrain import run_pretraining

        return run_pretraining(self)
