"""`hopplus games`: what can be played, and by whom."""

from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from hopplus.games.coplayers import scripts_for
from hopplus.games.presets import PRESETS

GameName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GAME")]


def games() -> int:
    """List the games that have a name, and the scripted players of each."""
    table = Table(title="games", title_justify="left")
    table.add_column("game", no_wrap=True)
    for column in ("seats", "board", "steps", "scripted players, and what it is about"):
        table.add_column(column)
    for name, preset in PRESETS.items():
        spec = preset.make().spec
        board = f"{spec.height}x{spec.width}" if spec.planes else "none"
        players = ", ".join(scripts_for(spec))
        table.add_row(name, str(spec.num_agents), board, str(spec.horizon), f"{players}\n[dim]{preset.about}[/]")
    Console().print(table)
    return 0
