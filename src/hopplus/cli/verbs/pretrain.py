"""`hopplus pretrain`: train goal and opponent models on offline episodes, before any agent is trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.learning.pretrain_config import PretrainConfig

DEFAULTS = PretrainConfig()


@dataclass(frozen=True)
class Pretrain:
    """Train goal and opponent models on episodes of scripted players.

    The episodes are generated from --data.game, --data.types, --data.samples and --data.seed. The same command resumes
    after the last epoch. `hopplus train omg --pretrained OUT` starts with these models."""

    out: Path
    """The folder for settings, metrics of each epoch, and checkpoints."""
    config: Annotated[PretrainConfig, tyro.conf.arg(name="")] = DEFAULTS
    """The settings."""
    episodes: Path | None = None
    """Train on this .npz file instead. Its arrays: boards, actions, rewards, in_game, and optionally kinds."""
    export: Path | None = None
    """Also write the generated episodes to such a file."""

    def __call__(self) -> int:
        from hopplus.cli.pretrain import run_pretraining

        return run_pretraining(self)
