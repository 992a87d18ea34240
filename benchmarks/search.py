"""How fast is search? Against bare mctx with the same networks and the same game, and against a plain Python tree.

hop's planner in many environments: from what its seat sees and believes to the value of every own action. The bare
programs are mctx's own policies, called on given states and goals, with the same networks and the same game step. The
Python program is one tree in one environment with PyTorch networks (`torch_search`): a tree there cannot use a second
core; here, environments are distributed over the cores for all programs that run on JAX.

    python benchmarks/search.py            4x4 and 8x8; costs by simulations, trees and seats; where time goes
    python benchmarks/search.py --quick    4x4, one size
"""

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.agents.planner import Planner
from hopplus.core.devices import use_cores
from hopplus.core.mesh import num_cores
from hopplus.core.numerics import MASKED
from hopplus.games.presets import make
from hopplus.games.stag_hunt import StagHunt
from hopplus.planning.config import SearchConfig
from hopplus.planning.model import make_node, step
from hopplus.planning.search import mctx
from measure import Program, measure, print_json, print_table, short, times_as_fast
from search_parts import (
    DEPTH,
    ENVS,
    SIMULATIONS,
    TREES,
    given_trees,
    model_of,
    on_cores,
    parts_of,
    planner_of,
    shares,
    situations,
)
from torch_search import Search


def product(planner: Planner) -> Program:
    _, views, beliefs = situations(planner)
    plan = on_cores(lambda planner, parts: jax.vmap(planner.plan)(*parts).values, planner)
    size = planner.planning.search
    name = f"hopplus, {size.trees} trees x {size.simulations}"
    return Program(name, lambda: plan((views, beliefs)), ENVS * size.trees * size.simulations)


def bare(planner: Planner, policy: Any, name: str) -> Program:
    """mctx's own policy on a batch of trees: states and goals are given, and nothing is averaged or remembered."""
    size = planner.planning.search

    def plan(planner, parts):
        states, goals, numbers = parts
        model = model_of(planner)

        def expand(_, key, actions, nodes):
            keys = jax.random.split(key, len(actions))
            each = jax.vmap(lambda node, action, key: step(model, node, action, key=key))
            after, evaluation, edge = each(nodes, actions, keys)
            logits = jnp.where(evaluation.legal, evaluation.log_probabilities, MASKED)
            found = mctx.RecurrentFnOutput(
                reward=edge.reward, discount=edge.discount, prior_logits=logits, value=evaluation.value
            )
            return found, after

        nodes, evaluation = jax.vmap(partial(make_node, model))(states, goals)
        root = mctx.RootFnOutput(prior_logits=evaluation.log_probabilities, value=evaluation.value, embedding=nodes)
        key = jax.random.key(numbers[0])
        found = policy(
            None, key, root, expand, size.simulations, max_depth=size.depth, invalid_actions=~evaluation.legal
        )
        return found.action_weights

    compiled = on_cores(plan, planner)
    states, goals = given_trees(planner)
    count = iter(range(10**9))
    run = lambda: compiled((states, goals, jnp.full(len(goals), next(count), jnp.uint32)))  # noqa: E731
    return Program(name, run, ENVS * size.trees * size.simulations)


def in_python(side: int, simulations: int) -> Program:
    search = Search(side)
    return Program(
        "Python and PyTorch, one tree", lambda: search.search(search.first(), simulations, DEPTH), simulations
    )


def compare(game_name: str, side: int, *, quick: bool) -> tuple[list[Program], dict[str, float]]:
    planner = planner_of("hop", make(game_name), SearchConfig(TREES, SIMULATIONS, DEPTH))
    timed = [
        product(planner),
        bare(planner, mctx.gumbel_muzero_policy, "mctx alone, gumbel_muzero_policy"),
        in_python(side, SIMULATIONS),
    ]
    if not quick:
        timed.append(bare(planner, mctx.muzero_policy, "mctx alone, muzero_policy"))
    measure(timed, rounds=5 if quick else 9, seconds=0.4 if quick else 2.0)
    ratios = {each.name: times_as_fast(timed[0], each) for each in timed}
    rows = [(each.name, short(each.steps_per_second), f"{ratios[each.name]:.2f} x") for each in timed]
    title = f"{game_name}: simulations/s, {ENVS} environments x {TREES} trees x {SIMULATIONS} simulations"
    print_table(title, ("program", "simulations/s", "hopplus is"), rows)
    return timed, ratios


def costs(game_name: str, *, rounds: int, seconds: float) -> dict[str, float]:
    """Milliseconds for a decision of one seat, by agent, trees, simulations and number of players."""
    usual = make(game_name)
    assert isinstance(usual, StagHunt)
    sizes = [(1, 64), (4, 8), (4, 32), (4, 64), (4, 200), (8, 64)]
    named = {f"hop, {trees} x {simulations}": ("hop", usual, trees, simulations) for trees, simulations in sizes}
    named["direct_om, 4 x 64"] = ("direct_om", usual, 4, 64)
    named |= {f"hop, 4 x 64, {seats} players": ("hop", replace(usual, num_players=seats), 4, 64) for seats in (2, 3, 6)}
    timed = [
        product(planner_of(agent, game, SearchConfig(trees, simulations, DEPTH)))
        for agent, game, trees, simulations in named.values()
    ]
    measure(timed, rounds=rounds, seconds=seconds)
    found = {
        name: 1000 * trees * simulations / program.steps_per_second
        for (name, (_, _, trees, simulations)), program in zip(named.items(), timed, strict=True)
    }
    rows = [(name, f"{milliseconds:.2f}") for name, milliseconds in found.items()]
    title = f"{game_name}: cost of a decision of one seat, 4 players unless stated"
    print_table(title, ("agent, trees x simulations", "ms"), rows)
    return found


def phases(agent: str, game_name: str, *, rounds: int, seconds: float) -> dict[str, float]:
    """The share of each phase in the time of a search."""
    planner = planner_of(agent, make(game_name), SearchConfig(TREES, SIMULATIONS, DEPTH))
    timed = [product(planner), *parts_of(planner)]
    measure(timed, rounds=rounds, seconds=seconds)
    found = shares(*(1 / each.steps_per_second for each in timed))
    rows = [(name, f"{share:.0%}") for name, share in found.items()]
    print_table(f"{agent} on {game_name}: where the time of a search goes", ("phase", "share"), rows)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4x4 only, five short rounds")
    quick = parser.parse_args().quick
    use_cores(num_cores())
    games = {}
    for name, side in (("stag-hunt-4x4", 4),) if quick else (("stag-hunt-4x4", 4), ("stag-hunt-8x8", 8)):
        timed, ratios = compare(name, side, quick=quick)
        bare_ratios = [ratio for program, ratio in ratios.items() if program.startswith("mctx")]
        games[name] = {
            "product_over_bare": min(bare_ratios),
            "product_over_python": ratios["Python and PyTorch, one tree"],
            "simulations_per_second": {each.name: each.steps_per_second for each in timed},
            "times_as_fast": ratios,
        }
        if not quick:
            games[name]["milliseconds"] = costs(name, rounds=5, seconds=1.0)
            games[name]["phases"] = {
                agent: phases(agent, name, rounds=5, seconds=1.0) for agent in ("hop", "direct_om")
            }
    first = games["stag-hunt-4x4"]
    ratios = {name: first[name] for name in ("product_over_bare", "product_over_python")}
    print_json({**ratios, "games": games}, ["jax", "mctx", "torch"])


if __name__ == "__main__":
    main()
