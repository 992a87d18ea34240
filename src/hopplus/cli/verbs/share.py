"""`hopplus share`: a page on which people play with trained agents."""

from dataclasses import dataclass
from pathlib import Path

from hopplus.cli.verbs.types import RunPath


@dataclass(frozen=True)
class Share:
    """Write one HTML file on which people play with the agents of a run. It needs no network and uses none.

    It opens with a double click, also on a phone. A person takes any seat, sees what the agents believe, predict and
    intend, steps back, replays, and saves episodes for `hopplus pretrain --episodes`."""

    run: RunPath
    """A run folder."""
    out: Path | None = None
    """The file for the page. None: share.html in the run folder."""
    more: tuple[Path, ...] = ()
    """Further runs of the same game, whose agents can take seats too."""
    lineup: str | None = None
    """Who sits where at the start, as in person,nearest_stag,first:2,random, where first:2 is the second seat of the
    run folder `first`. None: a person, then the run's agents. The page can change it."""
    seed: int = 0
    """Which seed of the runs."""

    def __call__(self) -> int:
        from hopplus.cli.share import write_page

        return write_page(self)
