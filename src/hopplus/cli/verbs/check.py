"""`hopplus check`: does a game keep its promises, and is it fair?"""

from dataclasses import dataclass

from hopplus.cli.verbs.types import GameName, Switch


@dataclass(frozen=True)
class Check:
    """Check a game: does it keep the contract that learners rely on, does random play pay every seat alike, and which
    agents can learn it?

    Exit code 1 if a fault is found. An agent that cannot learn the game is not a fault."""

    game: GameName
    """A name from `hopplus games`; jaxmarl:NAME, jumanji:NAME or pettingzoo:MODULE.FACTORY; or MODULE:FACTORY
    for a game of your own."""
    episodes: int = 100_000
    """Episodes of random play for the fairness test; 0 skips it."""
    seed: int = 0
    """The seed of all random numbers."""
    json: Switch = False
    """Print one line of JSON instead of tables."""

    def __call__(self) -> int:
        from hopplus.cli.check import check_game

        return check_game(self)
