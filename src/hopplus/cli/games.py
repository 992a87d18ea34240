"""`hopplus games`: list the games, their scripts and the agents that can learn them."""

from rich.console import Console

from hopplus.agents.named import NAMES
from hopplus.cli.tables import make_table
from hopplus.games.coplayers import scripts_for
from hopplus.games.presets import PRESETS
from hopplus.runs.capabilities import agents_for


def list_games() -> int:
    """Print a table of the games."""
    about = "description, scripted players, agents"
    table = make_table("games", "game", "seats", "board", "steps", about, whole=("game",))
    for name, preset in PRESETS.items():
        game = preset.make()
        spec = game.spec
        board = f"{spec.height}x{spec.width}" if spec.planes else "none"
        able = [agent for agent, missing in agents_for(game, name).items() if missing is None]
        agents = "all" if len(able) == len(NAMES) else ", ".join(able)
        lines = f"{preset.about}\n[dim]scripts: {', '.join(scripts_for(spec))}\nagents: {agents}[/]"
        table.add_row(name, str(spec.num_agents), board, str(spec.horizon), lines)
    Console().print(table)
    return 0
