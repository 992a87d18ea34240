"""What an agent step of harvest costs with 4 to 64 seats: the game alone, ppo, and hop_plus with shared models.

    python benchmarks/seats.py            4, 8, 16, 32 and 64 seats, about 20 minutes on one core
    python benchmarks/seats.py --quick    4 and 64 seats, short turns, some minutes
    python benchmarks/seats.py --doctor   train hop_plus with 64 seats for a few updates, and ask the doctor about seats

The board is 16x16, and views sum the others. Every program has as many agents in all: 128, so 32 environments of 4
seats or 2 of 64. An agent step is a step of one seat; for ppo and hop_plus its part of a whole update. Results are
written to results/seats.json, of the doctor to results/seats_doctor.json.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import jax

from games import product
from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup
from hopplus.games.harvest import Harvest
from hopplus.learning import learner
from hopplus.learning.config import LearnerConfig
from hopplus.learning.initial import init
from hopplus.learning.state import Task
from hopplus.runs.agents import learner_of
from measure import PROGRAM, PROGRESS, Program, measure, print_json, print_table, state_bytes, write_result

SEATS = (4, 8, 16, 32, 64)
AGENTS = 128
GAME = "harvest-16x16-64"
LIMITS = {"game": 2.0, "ppo": 2.0, "hop_plus": 4.0}
RESULTS = Path(__file__).resolve().parent.parent / "results"


def game_of(seats: int) -> Harvest:
    return Harvest(grid=Board(16, 16), num_players=seats, others="summed")


def training(agent: str, seats: int) -> Program:
    """Whole updates of an agent with its default settings for many seats."""
    settings = learner_of(agent, LearnerConfig(sharing="shared"), game=GAME)
    config = replace(settings, envs=AGENTS // seats)
    task = Task(game_of(seats), Lineup(()), 1_000)
    state = jax.jit(lambda key: init(config, task, key=key))(jax.random.key(0))
    update = jax.jit(lambda state: learner.train_step(config, task, state)[0])

    def run() -> Any:
        nonlocal state
        state = jax.block_until_ready(update(state))

    return Program(f"{agent}, {seats} seats", run, config.envs * config.rollout_steps, seats)


def playing(seats: int) -> Program:
    """The game alone, with players that act at random."""
    return replace(product(AGENTS // seats, game_of(seats)), name=f"the game, {seats} seats", agents=seats)


def costs(sizes: tuple[int, ...], *, quick: bool) -> dict[str, Any]:
    """Microseconds of an agent step by number of seats, and how they grow; each round measures all of them."""
    programs = {"game": {}, "ppo": {}, "hop_plus": {}}
    for seats in sizes:
        PROGRESS.print(f"setting up {seats} seats")
        programs["game"][seats] = playing(seats)
        programs["ppo"][seats] = training("ppo", seats)
        programs["hop_plus"][seats] = training("hop_plus", seats)
    every = [program for by_seats in programs.values() for program in by_seats.values()]
    measure(every, rounds=3 if quick else 5, seconds=1.0 if quick else 3.0)
    growth = {
        name: median(
            few / many
            for few, many in zip(
                (rate * sizes[0] for rate in by_seats[sizes[0]].rates),
                (rate * sizes[-1] for rate in by_seats[sizes[-1]].rates),
                strict=True,
            )
        )
        for name, by_seats in programs.items()
    }
    micros = {
        seats: {name: 1e6 / by_seats[seats].agent_steps_per_second for name, by_seats in programs.items()}
        for seats in sizes
    }
    return {"growth": growth, "seats": {seats: micros[seats] | bytes_of(seats) for seats in sizes}}


def bytes_of(seats: int) -> dict[str, int]:
    """Of one environment: its state, and the views of all seats."""
    game = game_of(seats)
    state = jax.eval_shape(lambda: game.reset(key=jax.random.key(0)))
    views = jax.eval_shape(game.observe, state)
    return {"state": state_bytes(state), "views": state_bytes(views)}


def show(found: dict[str, Any]) -> None:
    rows = [
        (str(seats), *(f"{one[name]:.1f}" for name in LIMITS), str(one["state"]), str(one["views"]))
        for seats, one in found["seats"].items()
    ]
    heads = ("seats", "game, us", "ppo, us", "hop_plus, us", "bytes of a state", "of its views")
    print_table("an agent step of harvest on 16x16", heads, rows)
    for name, growth in found["growth"].items():
        print(f"{name}: {growth:.2f} times from the fewest to the most seats (at most {LIMITS[name]:g})")


def doctored(updates: int = 4) -> dict[str, Any]:
    """What the doctor says about the seats of a short run with 64 of them."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        steps = learner_of("hop_plus", game=GAME).steps_per_update * updates
        typed = ["train", "hop_plus", "--game", GAME, "--seeds", "2", "--steps", str(steps), "--out", str(run)]
        for command in (typed, ["doctor", "seats", str(run)]):
            PROGRESS.print(f"hopplus {' '.join(command)}", soft_wrap=True)
            subprocess.run([*PROGRAM, *command], check=False, stdout=sys.stderr)
        found = json.loads((run / "doctor_seats.json").read_text())
    findings = [finding for answer in found["answers"] for finding in answer["findings"]]
    kept = ("check", "verdict", "kind", "says")
    return {"verdict": found["verdict"], "findings": [{name: one[name] for name in kept} for one in findings]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 and 64 seats, short turns; writes nothing")
    parser.add_argument("--doctor", action="store_true", help="only what the doctor says about the seats of a run")
    given = parser.parse_args()
    if given.doctor:
        found = doctored()
        rows = [(one["check"], one["verdict"], one["kind"], one["says"]) for one in found["findings"]]
        print_table(f"the doctor about 64 seats: {found['verdict']}", ("check", "verdict", "kind", "says"), rows)
        if not given.quick:
            write_result(RESULTS / "seats_doctor.json", {"commands": ["python benchmarks/seats.py --doctor"], **found})
        print_json({"verdict": found["verdict"]}, ["jax"])
        return
    found = costs((SEATS[0], SEATS[-1]) if given.quick else SEATS, quick=given.quick)
    show(found)
    if not given.quick:
        write_result(RESULTS / "seats.json", {"commands": ["python benchmarks/seats.py"], **found})
    print_json(found, ["jax"])


if __name__ == "__main__":
    main()
