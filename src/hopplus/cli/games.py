"""`hopplus games`: what can be played, and by whom."""

import importlib
import sys
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from hopplus.games.coplayers import scripts_for
from hopplus.games.game import Game
from hopplus.games.presets import PRESETS, make

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


def load_game(name: str) -> Game:
    """A preset by its name, or anybody's game as `module:factory`, looked for in this folder too."""
    if ":" not in name:
        return make(name)
    module_name, _, factory_name = name.partition(":")
    sys.path.insert(0, "")
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"cannot load the game {name!r}: {error}; give MODULE:FACTORY that can be imported from here"
        ) from None
    finally:
        sys.path.remove("")
    game = factory()
    if not isinstance(game, Game):
        raise ValueError(f"{name!r} gives a {type(game).__name__}, which is no hopplus.games.Game")
    return game
