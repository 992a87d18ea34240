"""`hopplus share`: one HTML file on which people play with trained agents. It needs no network, and may use none.

The rules of the game, the scripts and the networks of the agents run in the page; `web/` has their sources.
"""

import base64
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import equinox as eqx
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hopplus import __version__
from hopplus.games.draw import player_colour
from hopplus.games.lineups import split
from hopplus.report.replay import symbols
from hopplus.runs.run import Run, load
from hopplus.share.agents import Weights, page_agent
from hopplus.share.games import SCRIPTS, page_game

PERSON = "person"
SEAT = re.compile(r"(.+?)(?::(\d+))?")
TEMPLATES = files("hopplus.share") / "templates"


def share(runs: Sequence[Run | Path | str], out: Path | str, *, seed: int = 0, lineup: str | None = None) -> Path:
    """Write a page with the agents of one run or more of the same game. `lineup` names the players at the start."""
    loaded = [run if isinstance(run, Run) else load(run) for run in runs]
    data, weights = page_data(loaded, seed=seed, lineup=lineup)
    Path(out).write_text(page_html(data, weights), encoding="utf-8")
    return Path(out)


def page_data(runs: Sequence[Run], *, seed: int = 0, lineup: str | None = None) -> tuple[dict[str, Any], bytes]:
    """What a page holds besides its script: JSON, and the weights as float32 numbers."""
    first, *rest = runs
    for other in rest:
        if not eqx.tree_equal(other.game, first.game):
            raise ValueError(
                f"{other.folder} plays {other.config.game}, not {first.config.game}; share one game a page"
            )
    game, weights = page_game(first.game, str(first.config.game)), Weights()
    names = _names(runs)
    agents = [page_agent(run, name, weights, seed=seed) for run, name in zip(runs, names, strict=True)]
    num_agents = first.game.spec.num_agents
    scripts = list(SCRIPTS[game["kind"]])
    seats = _seats(agents[0], num_agents) if lineup is None else split(lineup)
    known = {PERSON, *scripts} | {agent["name"] for agent in agents}
    if wrong := [seat for seat in seats if _base(seat) not in known and seat not in known]:
        raise ValueError(f"--lineup: {wrong[0]} is none of {', '.join(sorted(known))}")
    if len(seats) != num_agents:
        raise ValueError(f"--lineup names {len(seats)} players; {first.config.game} has {num_agents} seats")
    data = {
        "game": game,
        "scripts": scripts,
        "agents": agents,
        "lineup": seats,
        "version": __version__,
        "colours": [player_colour(seat) for seat in range(num_agents)],
        "symbols": [
            symbol for symbol in symbols() if any(symbol["name"] == each["name"] for each in game["spec"]["planes"])
        ],
    }
    return data, weights.to_bytes()


def _names(runs: Sequence[Run]) -> list[str]:
    names = [re.sub(r"[^\w.-]", "_", run.folder.name) or "agent" for run in runs]
    if len(set(names)) < len(names) or {PERSON, "random"} & set(names):
        raise ValueError("two runs have the same name, or one is called person or random; rename a folder")
    return names


def _seats(agent: dict[str, Any], num_agents: int) -> list[str]:
    """A person in the first seat, the agent in the others; with a number where each seat has its own parameters."""
    name, sets = agent["name"], agent["sets"]
    others = (name if sets == 1 else f"{name}:{seat % sets + 1}" for seat in range(1, num_agents))
    return [PERSON, *others]


def _base(seat: str) -> str:
    match = SEAT.fullmatch(seat)
    return match[1] if match else seat


def page_html(data: dict[str, Any], weights: bytes) -> str:
    """The page as HTML."""
    environment = Environment(
        loader=PackageLoader("hopplus.share", "templates"), autoescape=True, undefined=StrictUndefined
    )
    game, names = data["game"]["name"], ", ".join(agent["name"] for agent in data["agents"])
    return environment.get_template("page.html").render(
        title=f"Play with trained agents: {game}",
        about=f"{game} · {names} · hopplus {data['version']}",
        css=Markup(_template("share.css")),
        data=Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")),
        weights=base64.b64encode(weights).decode(),
        script=Markup(_template("page.js")),
    )


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
