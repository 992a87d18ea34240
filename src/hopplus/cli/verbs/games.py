"""`hopplus games`: list the games, their scripts and the agents that can learn them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Games:
    """List the named games, with the scripted players of each and the agents that can learn it."""

    def __call__(self) -> int:
        from hopplus.cli.games import list_games

        return list_games()
