"""How fast is search? Against bare mctx with the same networks and the same game, and against a plain Python tree.

hop's planner at many tables: from what its seat sees and believes to the value of every own action. The bare programs
are mctx's own policies, called on states and goals that are given, with the same networks and the same game step. The
Python program is one tree at one table with PyTorch networks (`torch_search`).

    python benchmarks/search.py            4x4 and 8x8, what it costs by simulations and trees
    python benchmarks/search.py --quick    4x4, one size
"""

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.presets import make
from hopplus.learning import minds
from hopplus.learning.minds import Player
from hopplus.learning.planner import Planner, draw_goals
from hopplus.models import actor_critic
from hopplus.models.goals import goal_size
from hopplus.planning.model import Model, follow, look
from hopplus.planning.search import ILLEGAL, SearchConfig, mctx
from hopplus.runs.agents import learner_of
from measure import Program, measure, print_json, print_table, short, times_as_fast
from torch_search import Search

TABLES, TREES, SIMULATIONS, DEPTH = 32, 4, 200, 12


def planner_of(agent: str, game_name: str, search: SearchConfig) -> Planner:
    """An untrained planner: what it costs does not depend on what it learned."""
    game, config = make(game_name), learner_of(agent)
    size = goal_size(config.mind.goals, game.spec)
    params = actor_critic.init(config.network, game.spec, size, key=jax.random.key(0))
    player = Player(params, minds.init(config.mind, game.spec, key=jax.random.key(1)), game, config.mind, greedy=True)
    return Planner(player, game, replace(config.planning, search=search), config.ppo.discount)


def situations(planner: Planner, tables: int) -> tuple[Any, Any, Any]:
    """Random first states in the planner's order, what it sees, and what it thinks."""
    game = planner.player.game
    states = jax.vmap(lambda key: game.reset(key=key))(jax.random.split(jax.random.key(2), tables))
    views = jax.vmap(lambda state: jax.tree.map(lambda leaf: leaf[0], game.observe(state)))(states)
    start = planner.start()
    impressions = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (tables, *leaf.shape)), start)
    return states, views, impressions


def product(planner: Planner, tables: int) -> Program:
    _, views, impressions = situations(planner, tables)
    plan = eqx.filter_jit(lambda planner, views, impressions: jax.vmap(planner.plan)(views, impressions).values)
    size = planner.planning.search
    name = f"hopplus, {size.trees} trees x {size.simulations}"
    run = lambda: jax.block_until_ready(plan(planner, views, impressions))  # noqa: E731
    return Program(name, run, tables * size.trees * size.simulations)


def bare(planner: Planner, tables: int, policy: Any, name: str) -> Program:
    """mctx's own policy on a batch of trees: states and goals are given, and nothing is averaged or remembered."""
    states, _, impressions = situations(planner, tables)
    size = planner.planning.search
    model = Model(planner.game, planner.judge, planner.foresee, planner.discount)
    draw = lambda impression, key: draw_goals(impression, size.trees, key=key)  # noqa: E731
    goals = jax.vmap(draw)(impressions, jax.random.split(jax.random.key(3), tables))
    repeat = lambda leaf: jnp.repeat(leaf, size.trees, axis=0)  # noqa: E731
    states, goals = jax.tree.map(repeat, states), goals.reshape(-1, *goals.shape[2:])

    def expand(_, key, actions, nodes):
        keys = jax.random.split(key, len(actions))
        after, outlook, edge = jax.vmap(lambda node, action, key: follow(model, node, action, key=key))(
            nodes, actions, keys
        )
        logits = jnp.where(outlook.legal, outlook.log_probabilities, ILLEGAL)
        found = mctx.RecurrentFnOutput(
            reward=edge.reward, discount=edge.discount, prior_logits=logits, value=outlook.value
        )
        return found, after

    @jax.jit
    def plan(states, goals, key):
        nodes, outlook = jax.vmap(partial(look, model))(states, goals)
        root = mctx.RootFnOutput(prior_logits=outlook.log_probabilities, value=outlook.value, embedding=nodes)
        found = policy(None, key, root, expand, size.simulations, max_depth=size.depth, invalid_actions=~outlook.legal)
        return found.action_weights

    count = iter(range(10**9))
    run = lambda: jax.block_until_ready(plan(states, goals, jax.random.key(next(count))))  # noqa: E731
    return Program(name, run, tables * size.trees * size.simulations)


def in_python(side: int, simulations: int) -> Program:
    search = Search(side)
    return Program(
        "Python and PyTorch, one tree", lambda: search.search(search.first(), simulations, DEPTH), simulations
    )


def compare(game_name: str, side: int, *, quick: bool) -> tuple[list[Program], dict[str, float]]:
    planner = planner_of("hop", game_name, SearchConfig(TREES, SIMULATIONS, DEPTH))
    timed = [
        product(planner, TABLES),
        bare(planner, TABLES, mctx.gumbel_muzero_policy, "mctx alone, gumbel_muzero_policy"),
        in_python(side, SIMULATIONS),
    ]
    if not quick:
        timed.append(bare(planner, TABLES, mctx.muzero_policy, "mctx alone, muzero_policy"))
    measure(timed, rounds=5 if quick else 9, seconds=0.7 if quick else 2.0)
    ratios = {each.name: times_as_fast(timed[0], each) for each in timed}
    rows = [(each.name, short(each.steps_per_second), f"{ratios[each.name]:.2f} x") for each in timed]
    title = f"{game_name}: simulations/s, {TABLES} tables x {TREES} trees x {SIMULATIONS} simulations"
    print_table(title, ("program", "simulations/s", "hopplus is"), rows)
    return timed, ratios


def costs(game_name: str, *, rounds: int, seconds: float) -> dict[str, float]:
    """Milliseconds for a decision of one seat, by agent, trees and simulations."""
    sizes = [(1, 64), (4, 8), (4, 32), (4, 64), (4, 200), (8, 64)]
    named = [(agent, *size) for agent in ("hop", "direct_om") for size in (sizes if agent == "hop" else sizes[3:4])]
    timed = [
        product(planner_of(agent, game_name, SearchConfig(size[0], size[1], DEPTH)), TABLES) for agent, *size in named
    ]
    measure(timed, rounds=rounds, seconds=seconds)
    found = {}
    for (agent, trees, simulations), program in zip(named, timed, strict=True):
        found[f"{agent}, {trees} x {simulations}"] = 1000 * trees * simulations / program.steps_per_second
    rows = [(name, f"{milliseconds:.2f}") for name, milliseconds in found.items()]
    print_table(f"{game_name}: what a decision of one seat costs", ("agent, trees x simulations", "ms"), rows)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4x4 only, five short rounds")
    quick = parser.parse_args().quick
    games = {}
    for name, side in (("stag-hunt-4x4", 4),) if quick else (("stag-hunt-4x4", 4), ("stag-hunt-8x8", 8)):
        timed, ratios = compare(name, side, quick=quick)
        bare_ratios = [ratio for program, ratio in ratios.items() if program.startswith("mctx")]
        games[name] = {
            "product_over_bare": min(bare_ratios),
            "product_over_python": ratios["Python and PyTorch, one tree"],
            "simulations_per_second": {each.name: each.steps_per_second for each in timed},
        }
        if not quick:
            games[name]["milliseconds"] = costs(name, rounds=5, seconds=1.0)
    first = games["stag-hunt-4x4"]
    ratios = {name: first[name] for name in ("product_over_bare", "product_over_python")}
    print_json({**ratios, "games": games}, ["jax", "mctx", "torch"])


if __name__ == "__main__":
    main()
