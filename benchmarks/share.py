"""Whether pages of `hopplus share` play as Python does: rules, scripts and agents, in node and in headless Chromium.

largest_difference   of an action probability or a belief, over all states
episodes_equal       the share of episodes whose states, rewards and ends are equal in every step
sampled_unequal      actions that differ though the random number is further than 1e-5 from a boundary
megabytes            of the page of hop_plus on 8x8
decision             milliseconds of a decision of hop_plus on 8x8 in Chromium, with the processor slowed down 4 times

The networks have the sizes of the default agents; their weights are random and large, so that policies and beliefs are
far from uniform. With --runs, trained agents are compared instead.

    python benchmarks/share.py                     1,050 episodes of each game; about half an hour on two cores
    python benchmarks/share.py --quick             24 episodes of each game, node only; about two minutes
    python benchmarks/share.py --runs runs/first   the agents of these runs

Needs node; for Chromium also `npm install` in web/.
"""

import argparse
import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.games.lineups import read_policies, split
from hopplus.learning.learner import init
from hopplus.runs.config import RunConfig
from hopplus.runs.run import Run, load, run_of
from hopplus.share.page import TEMPLATES, page_data, page_html
from hopplus.share.parity import record
from measure import PROGRESS, print_json

WEB = Path(__file__).parents[1] / "web"
CHROMIUM = Path("/usr/bin/chromium")
SLOWDOWN, TOLERANCE = 4, 1e-5
EPISODES, QUICK_EPISODES, AT_ONCE = 1050, 24, 70
SPREAD = 4.0
"""The factor on random weights."""
BOARD = [
    ("hop_plus", "{0},{0},nearest_stag,patient_stag(3)"),
    ("omg", "{0},{0},{0},nearest_hare"),
    ("ppo", "{1},{2},{3},random"),
]
CASES: dict[str, list[tuple[str, str]]] = {
    "stag-hunt-4x4": BOARD,
    "stag-hunt-8x8": BOARD,
    "matrix-stag-hunt": [("ppo", "{1},{2}"), ("direct_om", "{1},random")],
}
"""For each game, agents and line-ups: {0} is the agent, {1} its first seat."""
Case = tuple[Callable[[], Run], str]
"""What makes a run, and a line-up."""
COMPARE = """
require(process.argv[1]);
const given = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
console.log(JSON.stringify(hopplus.compare(given.page, hopplus.decodeWeights(given.weights), given.episodes)));
"""


def random_run(agent: str, game: str, folder: Path) -> Run:
    """A run of the default settings that was not trained; its weights are random and large."""
    config = RunConfig.for_agent(agent, game=game, seeds=1)
    keys = jax.random.split(jax.random.key(0), 1)
    state = jax.jit(jax.vmap(lambda key: init(config.learner, config.task, key=key)))(keys)
    run = run_of(folder / agent, config, 0, state.learners)
    leaves, tree = jax.tree.flatten((run.params, run.opponents))
    noise = jax.random.split(jax.random.key(1), len(leaves))
    wider = [SPREAD * leaf + 0.1 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, noise, strict=True)]
    params, opponents = jax.tree.unflatten(tree, [leaf.astype(jnp.float32) for leaf in wider])
    return Run(run.folder, config, 0, params, opponents, None)


def lineup_of(pattern: str, run: Run) -> str:
    """The line-up of a case."""
    name = run.folder.name
    return pattern.format(name, *(f"{name}:{seat % run.num_learning + 1}" for seat in range(run.game.spec.num_agents)))


def compare(run: Run, lineup: str, count: int, folder: Path, *, browser: bool, seed: int) -> list[dict[str, Any]]:
    """What node says of that many episodes, and what Chromium says of them."""
    data, weights = page_data([run], lineup=lineup)
    players, found = policies(run, lineup), []
    page = folder / "page.html"
    page.write_text(page_html(data, weights))
    for start in range(0, count, AT_ONCE):
        episodes = record(run.game, players, split(lineup), min(AT_ONCE, count - start), seed=seed + start)
        content = {"page": data, "weights": base64.b64encode(weights).decode(), "episodes": episodes}
        (folder / "given.json").write_text(json.dumps(content))
        line = ["node", "-e", COMPARE, str(TEMPLATES / "page.js"), str(folder / "given.json")]
        found.append(
            {"in": "node"} | json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        )
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
    """The size of a page, and how long a decision takes."""
    page = folder / "page.html"
    page.write_text(page_html(*page_data([run])))
    found: dict[str, Any] = {"megabytes": round(page.stat().st_size / 1e6, 3)}
    return found | ({"decision": drive("time", page, SLOWDOWN)} if has_browser() else {})


def has_browser() -> bool:
    """Whether Chromium and its driver are there."""
    return CHROMIUM.exists() and (WEB / "node_modules" / "puppeteer-core").is_dir()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few episodes, node only")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="trained runs in place of random networks")
    parser.add_argument("--episodes", type=int, help="episodes of each game")
    asked = parser.parse_args()
    if shutil.which("node") is None:
        parser.error("node is needed")
    count = asked.episodes or (QUICK_EPISODES if asked.quick else EPISODES)
    browser = has_browser() and not asked.quick
    with TemporaryDirectory() as name:
        folder = Path(name)
        results, largest_page = by_game(asked.runs, count, folder, browser=browser)
    every = [one for game in results.values() for one in game.values()]
    print_json(
        {
            "largest_difference": max(one["largest_difference"] for one in every),
            "episodes_equal": min(one["episodes_equal"] for one in every),
            "sampled_unequal": sum(one["sampled_unequal"] for one in every),
            "largest_page": largest_page,
            "games": results,
        },
        ("jax", "numpy"),
    )


def cases_of(runs: Sequence[Path], folder: Path) -> dict[str, list[Case]]:
    """For every game, what makes each run, and its line-up."""
    if not runs:
        return {
            game: [(partial(random_run, agent, game, folder), pattern) for agent, pattern in of_game]
            for game, of_game in CASES.items()
        }
    cases: dict[str, list[Case]] = {}
    for run in map(load, runs):
        seats = ",".join("{" + str(seat + 1) + "}" for seat in range(run.game.spec.num_agents))
        cases.setdefault(str(run.config.game), []).append((partial(load, run.folder), seats))
    return cases


def by_game(runs: Sequence[Path], count: int, folder: Path, *, browser: bool) -> tuple[dict[str, Any], Any]:
    """The comparisons of every game, and the page of hop_plus on the largest board."""
    results, largest_page = {}, None
    for game, of_game in cases_of(runs, folder).items():
        parts: list[dict[str, Any]] = []
        for number, (make_run, pattern) in enumerate(of_game):
            run = make_run()
            share = -(-count // len(of_game))
            parts += compare(run, lineup_of(pattern, run), share, folder, browser=browser, seed=10_000 * number)
            if game == "stag-hunt-8x8" and run.config.agent == "hop_plus":
                largest_page = measure_page(run, folder)
            PROGRESS.print(f"{game}, {run.config.agent}: {share} episodes")
        places = dict.fromkeys(part["in"] for part in parts)
        results[game] = {place: summary([part for part in parts if part["in"] == place]) for place in places}
    return results, largest_page


if __name__ == "__main__":
    main()
