"""How fast the games are: env steps/s of the 8x8 stag hunt with four seats, against bare code and other libraries.

    pip install -r benchmarks/requirements.txt
    python benchmarks/games.py            all of it, about four minutes on two cores
    python benchmarks/games.py --quick    the four ratios in 40 s
    python benchmarks/games.py --scaling  only how the cost grows with the seats
    python benchmarks/games.py --others   only coins, foraging and harvest against bare code; written to
                                          results/games_others.json

In every program all seats act at random among their legal actions, every seat's view is built in every step, episodes
that end are followed by fresh ones, and views, actions, rewards and ends of all steps are recorded.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import bare_stag_hunt as bare
from bare_games import compare_others
from hopplus.games.board import Board
from hopplus.games.game import Game
from hopplus.games.lineups import lineup
from hopplus.games.presets import make
from hopplus.games.rollout import EnvState, Step, init_env, rollout
from hopplus.games.stag_hunt import StagHunt, StagHuntState
from measure import (
    PROGRESS,
    Program,
    block_program,
    machine,
    measure,
    print_json,
    print_table,
    short,
    state_bytes,
    times_as_fast,
    write_result,
)
from peers import INSTALL, jaxmarl_game, jumanji_foraging

PACKAGES = ("hopplus", "jax", "jaxlib", "jumanji", "jaxmarl", "pettingzoo")
NEEDED = {"bare": 0.9, "jumanji": 5.0, "jaxmarl": 1.5, "pettingzoo": 100.0}
LARGEST = 4096
SCALING_SEATS = (2, 4, 8, 16, 32, 64)
SCALING_VIEW_BYTES = 16e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the four ratios, with shorter turns")
    parser.add_argument("--scaling", action="store_true", help="only the cost by number of seats")
    parser.add_argument("--others", action="store_true", help="only the other games against bare code")
    options = parser.parse_args()
    figures: dict[str, Any] = {"quick": options.quick}
    if not options.scaling:
        figures["others"] = compare_others(product, LARGEST, quick=options.quick)
    if not options.scaling and not options.others:
        check_bare_step()
        figures |= compare(sizes=(LARGEST,) if options.quick else (64, 512, LARGEST), quick=options.quick)
    if not options.quick and not options.others:
        figures["scaling"] = scale()
    if options.others and not options.quick:
        path = Path(__file__).resolve().parent.parent / "results" / "games_others.json"
        about = {"commands": ["python benchmarks/games.py --others"], "machine": machine(), "num_envs": LARGEST}
        write_result(path, {**about, "games": figures["others"]})
    print_json(figures, PACKAGES)


def product(num_envs: int, game: Game | None = None) -> Program:
    """The public rollout, many tables at once."""
    game = game or make("stag-hunt-8x8")
    players = lineup(",".join(["random"] * game.spec.num_agents), game)
    envs = jax.jit(jax.vmap(lambda key: init_env(game, players, key=key)))(env_keys(0, num_envs))
    envs = replace(envs, state=replace(envs.state, time=spread_times(num_envs, game.spec.horizon)))

    def recorded(step: Step) -> tuple[Array, ...]:
        return step.observation["planes"], step.actions, step.rewards, step.terminated_after

    def play(envs: EnvState, key: Array, num_steps: int) -> tuple[EnvState, Any]:
        def one_env(env: EnvState, key: Array) -> tuple[EnvState, Any]:
            return rollout(game, players, env, num_steps, key=key, record=recorded)

        return jax.vmap(one_env, out_axes=(0, 1))(envs, jax.random.split(key, num_envs))

    return block_program("hopplus", play, envs, num_envs=num_envs, agents=game.spec.num_agents)


def bare_scan(num_envs: int) -> Program:
    """The same physics by hand."""
    state = jax.jit(bare.reset, static_argnums=1)(jax.random.key(0), num_envs)
    state = state._replace(time=spread_times(num_envs))
    return block_program("bare scan", bare.play, state, num_envs=num_envs, agents=bare.PLAYERS)


def pettingzoo_bridge(_num_envs: int) -> Program:
    """One table, stepped from Python."""
    from hopplus.games.bridges.pettingzoo import parallel_env

    env = parallel_env(make("stag-hunt-8x8"))
    generator = np.random.default_rng(0)
    observations, _ = env.reset(seed=0)
    num_steps = 100

    def run() -> None:
        nonlocal observations
        for _ in range(num_steps):
            actions = {
                agent: generator.choice(np.flatnonzero(seen["action_mask"])) for agent, seen in observations.items()
            }
            observations, *_ = env.step(actions)
            if not env.agents:
                observations, _ = env.reset()

    return Program("PettingZoo bridge", run, num_steps, env.game_spec.num_agents)


def env_keys(seed: int, num_envs: int) -> Array:
    return jax.random.split(jax.random.key(seed), num_envs)


def spread_times(num_envs: int, horizon: int = bare.HORIZON) -> Array:
    """So that episodes do not all end in the same step: as in a training that has run for a while."""
    return jnp.arange(num_envs, dtype=jnp.int32) % horizon


def compare(sizes: tuple[int, ...], *, quick: bool) -> dict[str, Any]:
    """The table of programs by number of environments, and the ratios at the largest."""
    programs, missing = make_programs(sizes, quick=quick)
    measure([program for row in programs.values() for program in row.values()], rounds=5, seconds=0.1 if quick else 0.5)
    check_bare_rewards(programs["hopplus"][LARGEST], programs["bare scan"][LARGEST])
    rows = []
    for name, row in programs.items():
        rates = [row[size].steps_per_second if size in row else None for size in (1, *sizes)]
        rows.append([name, str(next(iter(row.values())).agents), *map(short, rates)])
    columns = ["program", "agents", *map(str, (1, *sizes))]
    print_table("env steps/s by number of environments, median of 5", columns, rows)
    for name, error in missing.items():
        PROGRESS.print(f"{name} was left out ({error}); to install it: {INSTALL}")
    ratios = ratios_of(programs)
    print_table(
        f"hopplus at {LARGEST} environments, times as fast as",
        ["program", "measured", "needed"],
        [[name, short(ratios[f"product_over_{name}"]), f">= {needed:g}"] for name, needed in NEEDED.items()],
    )
    raw = {
        name: {
            "agents": next(iter(row.values())).agents,
            "env_steps_per_second": {size: program.steps_per_second for size, program in row.items()},
            "at_most_envs": at_most_envs(row, programs["hopplus"]),
        }
        for name, row in programs.items()
    }
    return {**ratios, "programs": raw, "missing": missing}


def at_most_envs(row: dict[int, Program], ours: dict[int, Program]) -> dict[str, float]:
    """Rates of a program with the most environments that it was run with, and how many times as fast hopplus is."""
    program, product = row[max(row)], ours[max(ours)]
    return {
        "env_steps_per_second": program.steps_per_second,
        "agent_steps_per_second": program.agent_steps_per_second,
        "hopplus_over": product.agent_steps_per_second / program.agent_steps_per_second,
    }


def make_programs(sizes: tuple[int, ...], *, quick: bool) -> tuple[dict[str, dict[int, Program]], dict[str, str]]:
    """By row of the table and number of environments; and the rows that cannot be run, with the reason."""
    peer_sizes = (LARGEST,) if quick else sizes  # they take long to compile
    makers: dict[str, tuple[Callable[[int], Program], tuple[int, ...]]] = {
        "hopplus": (product, sizes),
        "bare scan": (bare_scan, sizes),
        "Jumanji foraging, grid": (lambda size: jumanji_foraging(size, grid_observation=True), peer_sizes),
        "JaxMARL coin_game": (lambda size: jaxmarl_game(size, game="coin_game"), peer_sizes),
        "PettingZoo bridge": (pettingzoo_bridge, (1,)),
    }
    if not quick:
        makers["Jumanji foraging, vector"] = (lambda size: jumanji_foraging(size, grid_observation=False), sizes)
        makers["JaxMARL storm_2p"] = (lambda size: jaxmarl_game(size, game="storm_2p"), sizes)
    programs, missing = {}, {}
    for name, (make_program, row_sizes) in makers.items():
        PROGRESS.print(f"setting up {name}")
        try:
            programs[name] = {size: make_program(size) for size in row_sizes}
        except ImportError as error:
            missing[name] = str(error)
    return programs, missing


def ratios_of(programs: dict[str, dict[int, Program]]) -> dict[str, float | None]:
    """Env steps/s over env steps/s; against JaxMARL, whose games have two agents, agent steps/s of its fastest game."""
    ours = programs["hopplus"][LARGEST]
    jaxmarl = [row[LARGEST] for name, row in programs.items() if name.startswith("JaxMARL")]
    fastest = max(jaxmarl, key=lambda program: program.agent_steps_per_second, default=None)

    def over(name: str, size: int = LARGEST) -> float | None:
        return times_as_fast(ours, programs[name][size]) if name in programs else None

    return {
        "product_over_bare": over("bare scan"),
        "product_over_jumanji": over("Jumanji foraging, grid"),
        "product_over_jaxmarl": fastest and times_as_fast(ours, fastest) * ours.agents / fastest.agents,
        "product_over_pettingzoo": over("PettingZoo bridge", 1),
    }


def scale() -> list[dict[str, float]]:
    """How the cost grows with the seats on a 16x16 board, with as many hares as players and a quarter as many stags."""
    games = [
        StagHunt(grid=Board(16, 16), num_players=seats, num_hares=seats, num_stags=max(1, seats // 4))
        for seats in SCALING_SEATS
    ]
    programs, figures = [], []
    for game in games:
        state = jax.eval_shape(lambda game=game: game.reset(key=jax.random.key(0)))
        view_bytes = state_bytes(jax.eval_shape(game.observe, state)["planes"])
        num_envs = int(min(LARGEST, max(8, SCALING_VIEW_BYTES // view_bytes)))
        PROGRESS.print(f"setting up {game.num_players} seats")
        programs.append(replace(product(num_envs, game), name=f"{game.num_players} seats"))
        figures.append(
            {"seats": game.num_players, "num_envs": num_envs, "state": state_bytes(state), "view": view_bytes}
        )
    measure(programs, rounds=5, seconds=0.3)
    for program, figure in zip(programs, figures, strict=True):
        figure["env_steps_per_second"] = program.steps_per_second
        figure["agent_steps_per_second"] = program.agent_steps_per_second
        figure["view_bytes_per_second"] = program.steps_per_second * figure["view"]
    columns = {
        "seats": "seats",
        "num_envs": "tables",
        "env_steps_per_second": "env steps/s",
        "agent_steps_per_second": "agent steps/s",
        "view_bytes_per_second": "view bytes/s",
        "state": "bytes of a state",
        "view": "bytes of its views",
    }
    rows = [[short(figure[column]) for column in columns] for figure in figures]
    print_table("a 16x16 stag hunt by number of seats", list(columns.values()), rows)
    return figures


def check_bare_step(num_envs: int = LARGEST) -> None:
    """From the same states with the same actions, the bare step must give what the product gives, bit for bit."""
    game = make("stag-hunt-8x8")

    @jax.jit
    def both(state: bare.State, key: Array) -> dict[str, tuple[Any, Any]]:
        actions = bare.draw_actions(bare.legal(state), bare.random_words(key, bare.PLAYERS, num_envs))
        after, rewards = bare.step(state, actions)
        ours = as_product_state(state)
        our_after, our_rewards = jax.vmap(game.step)(ours, actions.T, key=jax.random.split(key, num_envs))
        return {
            "views": (bare.views(state), jax.vmap(game.observe)(ours)["planes"]),
            "legal actions": (jnp.stack(bare.legal(state), axis=-1).swapaxes(0, 1), jax.vmap(game.legal)(ours)),
            "rewards": (rewards.T, our_rewards),
            "next states": (as_product_state(after), our_after),
        }

    for name, (by_hand, by_product) in both(crowded_states(num_envs), jax.random.key(0)).items():
        if not jax.tree.all(jax.tree.map(np.array_equal, by_hand, by_product)):
            raise SystemExit(f"the bare loop plays another game: its {name} differ from the product's")


def crowded_states(num_envs: int) -> bare.State:
    """Random states in which every other player stands on prey, so that much is hunted and caught."""
    generator = np.random.default_rng(0)
    cells = generator.permuted(np.tile(np.arange(bare.CELLS), (num_envs, 1)), axis=1)[:, : bare.PREY].T
    choice = generator.integers(bare.PREY, size=(bare.PLAYERS, num_envs))
    on_prey = np.take_along_axis(cells, choice, axis=0)
    anywhere = generator.integers(bare.CELLS, size=on_prey.shape)
    return bare.State(
        position=jnp.asarray(np.where(generator.random(on_prey.shape) < 0.5, on_prey, anywhere), jnp.int32),
        present=jnp.asarray(generator.random(on_prey.shape) < 0.8),
        last_actions=jnp.asarray(generator.integers(-1, 7, size=on_prey.shape), jnp.int32),
        prey_position=jnp.asarray(cells, jnp.int32),
        prey_alive=jnp.asarray(generator.random(cells.shape) < 0.8),
        walls=jnp.zeros((num_envs, bare.CELLS), bool),
        time=spread_times(num_envs),
    )


def as_product_state(state: bare.State) -> StagHuntState:
    return StagHuntState(
        position=state.position.T,
        present=state.present.T,
        last_actions=state.last_actions.T,
        prey_position=state.prey_position.T,
        prey_alive=state.prey_alive.T,
        walls=state.walls.reshape(-1, bare.SIDE, bare.SIDE),
        time=state.time,
        ends_at=jnp.full_like(state.time, bare.HORIZON),
    )


def check_bare_rewards(ours: Program, by_hand: Program, num_runs: int = 10) -> None:
    """Random play must earn as much by hand as in the product: mean returns at most five standard errors apart."""
    seats_axis = {ours.name: 2, by_hand.name: 1}
    means, errors = [], []
    for program in (ours, by_hand):
        runs = [jnp.sum(program.run()[2], axis=(0, seats_axis[program.name])) for _ in range(num_runs)]
        earned = sum(runs[1:], start=runs[0])
        means.append(float(jnp.mean(earned)))
        errors.append(float(jnp.std(earned)) / np.sqrt(earned.size))
    if abs(means[0] - means[1]) > 5 * np.hypot(*errors):
        raise SystemExit(f"random play earns {means[0]:.4f} in the product, but {means[1]:.4f} in the bare loop")


if __name__ == "__main__":
    main()
