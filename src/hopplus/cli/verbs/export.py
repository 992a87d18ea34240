"""`hopplus export`: a trained agent for people who do not have hopplus."""

from dataclasses import dataclass
from pathlib import Path

from hopplus.cli.verbs.types import RunPath


@dataclass(frozen=True)
class Export:
    """Write weights as safetensors, the policy as a program that JAX alone can load, and a model card.

    The card states what `hopplus evaluate` and `hopplus doctor` wrote into the run folder; run them first. A run that
    the doctor calls broken says so at the top of its card."""

    run: RunPath
    """A run folder."""
    out: Path | None = None
    """A new folder for the export. None: the run folder's name with -export."""
    seed: int = 0
    """Which seed of the run."""
    licence: str = "apache-2.0"
    """The licence of the weights, as model hubs name it; the choice is yours."""

    def __call__(self) -> int:
        from hopplus.cli.share import write_export

        return write_export(self)
