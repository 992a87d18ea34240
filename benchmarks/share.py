"""Whether pages of `hopplus share` play as Python does: rules, scripts and agents, in node and in headless Chromium.

largest_difference   of an action probability or a belief, over all states
episodes_equal       the share of episodes whose states, rewards and ends are equal in every step
sampled_unequal      actions that differ though the random number is further than 1e-5 from a boundary
megabytes            of the page of hop_plus on 8x8
decision             milliseconds of a decision of hop_plus on 8x8 in Chromium, with the processor slowed down 4 times:
                     what it takes of the processor in the mean; and what passes, which other programs lengthen

The networks have the sizes of the default agents; their weights are random and large, so that policies and beliefs are
far from uniform. With --runs, trained agents are compared instead.

    python benchmarks/share.py                     1,050 episodes of each game; writes results/share*.json
    python benchmarks/share.py --games coins-3x3   this game only; the others stay in results/share.json as they are
    python benchmarks/share.py --page              the size and speed of the page only
    python benchmarks/share.py --quick             24 episodes of each game, node only
    python benchmarks/share.py --runs runs/first   the agents of these runs

Needs node; for Chromium also `npm install` in web/.
"""

import argparse
import base64
import json
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.lineups import read_policies, split
from hopplus.learning.initial import by_seat, init
from hopplus.runs.config import RunConfig
from hopplus.runs.run import Run, load
from hopplus.share.page import TEMPLATES, page_data, page_html
from hopplus.share.parity import record
from measure import PROGRESS, print_json, print_table, write_result

WEB = Path(__file__).parents[1] / "web"
CHROMIUM = Path("/usr/bin/chromium")
SLOWDOWN, TIMINGS = 4, 5
EPISODES, QUICK_EPISODES = 1050, 24
FILE, PAGE_FILE = Path("results/share.json"), Path("results/share_page.json")
SPREAD = 1.5
"""How many times as large as its inputs the outputs of a random layer are, about."""
BOARD = [
    ("hop_plus", "{0},{0},nearest_stag,patient_stag(3)", 0.15),
    ("omg", "{0},{0},{0},nearest_hare", 0.15),
    ("ppo", "{1},{2},{3},random", 0.15),
    ("ppo", "nearest_stag,patient_stag(3),nearest_hare,random", 0.55),
]
CASES: dict[str, list[tuple[str, str, float]]] = {
    "stag-hunt-4x4": BOARD,
    "stag-hunt-8x8": BOARD,
    "matrix-stag-hunt": [("ppo", "{1},{2}", 0.5), ("direct_om", "{1},random", 0.5)],
    "foraging-8x8": [
        ("hop_plus", "{1},{2},nearest_food,strongest_food", 0.15),
        ("omg", "{1},{2},{3},easy_food", 0.15),
        ("ppo", "{1},{2},easy_food,random", 0.15),
        ("ppo", "nearest_food,strongest_food,easy_food,random", 0.55),
    ],
    "coins-3x3": [
        ("hop_plus", "{1},{2}", 0.15),
        ("omg", "{1},any_coins", 0.15),
        ("ppo", "own_coins,{2}", 0.15),
        ("ppo", "own_coins,any_coins", 0.55),
    ],
}
"""For each game: agents, line-ups, and their shares of the episodes. {0} is the agent, {1} its first seat."""
Case = tuple[Callable[[], Run], str, float]
"""What makes a run, a line-up, and its share of the episodes."""
COMPARE = """
require(process.argv[1]);
const given = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
console.log(JSON.stringify(hopplus.compare(given.page, hopplus.decodeWeights(given.weights), given.episodes)));
"""


def random_run(agent: str, game: str, folder: Path) -> Run:
    """A run of the default settings that was not trained; its weights are random and large."""
    config = RunConfig.for_agent(agent, game=game, seeds=1)
    keys = jax.random.split(jax.random.key(0), 1)
    shapes = jax.eval_shape(jax.vmap(lambda key: init(config.learner, config.task, key=key)), keys).learners
    random = np.random.default_rng(0)

    def weights(of: Any) -> Any:
        return jax.tree.map(lambda leaf: random_array(leaf.shape, random), of)

    of_learners = weights(shapes.policy.params), weights(shapes.opponents.params)
    params, opponents = jax.vmap(partial(by_seat, config.task))(of_learners)
    return Run(folder / agent, config, 0, params, opponents, None)


def random_array(shape: tuple[int, ...], random: np.random.Generator) -> jax.Array:
    """Weights with which a layer's outputs are several times as large as its inputs."""
    deviation = SPREAD / max(shape[-2:]) ** 0.5 if len(shape) > 3 else 0.1
    return jnp.asarray(random.normal(scale=deviation, size=shape), jnp.float32)


def lineup_of(pattern: str, run: Run) -> str:
    """The line-up of a case."""
    name = run.folder.name
    return pattern.format(name, *(f"{name}:{seat % run.num_learning + 1}" for seat in range(run.game.spec.num_agents)))


def compare(run: Run, lineup: str, count: int, folder: Path, *, browser: bool, seed: int) -> list[dict[str, Any]]:
    """What node says of that many episodes, and what Chromium says of them."""
    data, weights = page_data([run], lineup=lineup)
    page = folder / "page.html"
    page.write_text(page_html(data, weights))
    episodes = record(run.game, policies(run, lineup), split(lineup), count, seed=seed)
    content = {"page": data, "weights": base64.b64encode(weights).decode(), "episodes": episodes}
    (folder / "given.json").write_text(json.dumps(content))
    line = ["node", "-e", COMPARE, str(TEMPLATES / "page.js"), str(folder / "given.json")]
    ended = subprocess.run(line, capture_output=True, text=True, check=True)
    found = [{"in": "node"} | json.loads(ended.stdout)]
    if browser:
        (folder / "episodes.json").write_text(json.dumps(episodes))
        found.append({"in": "chromium"} | drive("compare", page, folder / "episodes.json"))
    return found


def policies(run: Run, lineup: str) -> list[Any]:
    """The players of a line-up in Python."""
    players: list[Any] = []
    for seat, text in enumerate(split(lineup)):
        base, _, number = text.partition(":")
        if base == run.folder.name:
            players.append(run.policy(seat=int(number) - 1 if number else seat % run.num_learning))
        else:
            players += read_policies(text, run.game)
    return players


def drive(*line: Any) -> dict[str, Any]:
    """The answer of `web/drive.mjs`."""
    command = ["node", str(WEB / "drive.mjs"), *map(str, line)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def summary(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All comparisons of a game in one program, together."""
    episodes = sum(part["episodes"] for part in parts)
    return {
        "states": sum(part["states"] for part in parts),
        "episodes": episodes,
        "episodes_equal": sum(part["episodes_equal"] for part in parts) / episodes,
        "largest_difference": max(max(part["largest_difference"].values()) for part in parts),
        "sampled": sum(part["sampled"] for part in parts),
        "sampled_unequal": sum(part["sampled_unequal"] for part in parts),
        "requests": sum(part.get("requests", 0) for part in parts),
    }


def measure_page(run: Run, folder: Path) -> dict[str, Any]:
    """The size of a page, and how long a decision takes: the median of several measurements."""
    page = folder / "page.html"
    page.write_text(page_html(*page_data([run])))
    found: dict[str, Any] = {"megabytes": round(page.stat().st_size / 1e6, 3)}
    if has_browser():
        times = [drive("time", page, SLOWDOWN) for _ in range(TIMINGS)]
        names = ("decisions", "mean_processor", "median", "ninety_fifth", "largest")
        found["decision"] = {"slowdown": SLOWDOWN, "measurements": TIMINGS, "load": os.getloadavg()[0]}
        found["decision"] |= {name: median(one[name] for one in times) for name in names}
        found["requests"] = sum(one["requests"] for one in times)
    return found


def has_browser() -> bool:
    """Whether Chromium and its driver are there."""
    return CHROMIUM.exists() and (WEB / "node_modules" / "puppeteer-core").is_dir()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few episodes, node only")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="trained runs in place of random networks")
    parser.add_argument("--episodes", type=int, help="episodes of each game")
    parser.add_argument("--page", action="store_true", help="only the size and speed of the page")
    parser.add_argument("--games", nargs="*", choices=CASES, default=list(CASES), help="these games only")
    asked = parser.parse_args()
    if shutil.which("node") is None:
        parser.error("node is needed")
    if asked.page:
        only_page()
        return
    count = asked.episodes or (QUICK_EPISODES if asked.quick else EPISODES)
    is_kept = not asked.quick and not asked.runs
    stored = json.loads(FILE.read_text()) if is_kept and FILE.exists() else {}
    figures: dict[str, Any] = {"games": stored.get("games", {})}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for game, of_game in cases_of(asked.runs, asked.games, folder).items():
            found, page = measured(game, of_game, count, folder, browser=has_browser() and not asked.quick)
            figures["games"] |= {game: found}
            if page:
                figures["largest_page"] = page
            if is_kept:
                games = " ".join(figures["games"])
                write_result(FILE, {"commands": [f"python benchmarks/share.py --games {games}"], **totals(figures)})
            if is_kept and page:
                write_result(PAGE_FILE, {"commands": [f"python benchmarks/share.py --games {game}"], **page})
    print_parity(figures)
    print_json(totals(figures), ("jax", "numpy"))


def only_page() -> None:
    """Measure the page of hop_plus on the largest board."""
    with TemporaryDirectory() as name:
        found = measure_page(random_run("hop_plus", "stag-hunt-8x8", Path(name)), Path(name))
    write_result(PAGE_FILE, {"commands": ["python benchmarks/share.py --page"], **found})
    print_json(found, ("jax",))


def totals(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures of all games together, then those of each."""
    every = [one for game in figures["games"].values() for one in game.values()]
    return {
        "largest_difference": max(one["largest_difference"] for one in every),
        "episodes_equal": min(one["episodes_equal"] for one in every),
        "sampled_unequal": sum(one["sampled_unequal"] for one in every),
        "requests": sum(one["requests"] for one in every),
        **figures,
    }


def print_parity(figures: dict[str, Any]) -> None:
    """One row for each game and program."""
    rows = [
        (
            f"{game}, {place}",
            f"{one['states']:,}",
            f"{one['largest_difference']:.1e}",
            f"{one['episodes']:,}",
            f"{100 * one['episodes_equal']:.4g}%",
            f"{one['sampled']:,}",
            str(one["sampled_unequal"]),
        )
        for game, of_game in figures["games"].items()
        for place, one in of_game.items()
    ]
    columns = ("game", "states", "largest difference", "episodes", "equal", "actions sampled", "unequal")
    print_table("The page and Python", columns, rows)


def cases_of(runs: Sequence[Path], games: Sequence[str], folder: Path) -> dict[str, list[Case]]:
    """For every game, what makes each run, and its line-up."""
    if not runs:
        return {
            game: [(partial(random_run, agent, game, folder), pattern, part) for agent, pattern, part in CASES[game]]
            for game in games
        }
    cases: dict[str, list[Case]] = {}
    for run in map(load, runs):
        seats = ",".join("{" + str(seat + 1) + "}" for seat in range(run.game.spec.num_agents))
        cases.setdefault(str(run.config.game), []).append((partial(load, run.folder), seats, 1.0))
    return cases


def measured(
    game: str, of_game: Sequence[Case], count: int, folder: Path, *, browser: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The comparisons of one game in each program, and the page of hop_plus on the largest board."""
    parts: list[dict[str, Any]] = []
    page, whole = None, sum(part for *_, part in of_game)
    for number, (make_run, pattern, part) in enumerate(of_game):
        run, share = make_run(), math.ceil(count * part / whole / 2) * 2
        parts += compare(run, lineup_of(pattern, run), share, folder, browser=browser, seed=10_000 * number)
        if game == "stag-hunt-8x8" and run.config.agent == "hop_plus":
            page = measure_page(run, folder)
        PROGRESS.print(f"{game}, {lineup_of(pattern, run)}: {share} episodes")
    places = dict.fromkeys(part["in"] for part in parts)
    return {place: summary([part for part in parts if part["in"] == place]) for place in places}, page


if __name__ == "__main__":
    main()
