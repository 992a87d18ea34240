"""`hopplus play`: watch a line-up play, or play one seat at the keyboard."""

from dataclasses import dataclass
from pathlib import Path

from hopplus.cli.verbs.types import GameName


@dataclass(frozen=True)
class Play:
    """Play one episode in the terminal, and save it as a picture with --out."""

    game: GameName = "stag-hunt-8x8"
    """A name from `hopplus games`; jaxmarl:NAME, jumanji:NAME or pettingzoo:MODULE.FACTORY; or MODULE:FACTORY
    for a game of your own."""
    seats: str | None = None
    """The players of the seats, in order, as in
    nearest_stag,patient_stag(3),noisy(nearest_hare,0.1),random. A run folder, as in runs/a, seats its trained player
    (runs/a:2 that of its second seat), and shows what it believes: its co-players' goals, or their next actions. A seat
    called `keyboard` is yours: arrows or wasd move, e hunts or removes, space stays, digits choose an action, q
    quits."""
    seed: int = 0
    """The seed of the spawns and of all random numbers."""
    out: Path | None = None
    """A file for the episode: .gif is an animation; .png and .svg show the last step."""
    seconds: float = 0.4
    """Seconds for which each step is shown."""

    def __call__(self) -> int:
        from hopplus.cli.play import play_once

        return play_once(self)
