"""What the benchmarks share: programs that are timed in turns, a table on the screen, one JSON line at the end."""

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hopplus.cli.figures import to_json

PROGRESS = Console(stderr=True)
BLOCK_BYTES, BLOCK_ENV_STEPS, BLOCK_STEPS = 120e6, 2**17, 128
"""A block of steps is as long as all three allow: bytes that it records, steps of single environments, steps."""

PROGRAM = [sys.executable, "-c", "from hopplus.cli.main import entry; entry()"]
"""`hopplus` of the package that the benchmark imports."""
WALL_CLOCK = "wall_clock.json"
"""In a run folder that a benchmark made: the seconds of the whole command."""

Block = Callable[[Any, Any, int], tuple[Any, Any]]
"""(state, key, number of steps) -> (state, what was recorded of each step, stacked along time)."""


@dataclass
class Program:
    """Something that can be run again and again, and how much one run does."""

    name: str
    run: Callable[[], Any]
    """Returns once the work is done."""
    steps_per_run: int
    """Environment steps: one step of all seats of one environment is one."""
    agents: int = 1
    runs_per_round: int = 1
    rates: list[float] = field(default_factory=list)

    @property
    def steps_per_second(self) -> float:
        return median(self.rates)

    @property
    def agent_steps_per_second(self) -> float:
        return self.agents * self.steps_per_second


_phase = ["starting"]


def phase(name: str) -> None:
    """Note what the benchmark does now."""
    _phase[0] = name


def give_up_after(seconds: float) -> None:
    """End the program if it takes longer than that, with the phase that it was in."""

    def give_up() -> None:
        print(f"no result after {seconds:.0f} s; the phase was: {_phase[0]}", file=sys.stderr, flush=True)
        os._exit(3)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()


def block_program(name: str, play: Block, state: Any, *, num_envs: int, agents: int) -> Program:
    """Compile `play` for a block of steps, and hand it its own last results back, run after run.

    Everything that a block records comes back stacked along time, as a learner would want it, so no part of it can be
    optimised away. The stack of the run before is given back (donated) as the memory for the next one: else the time
    to get fresh pages from the system would be measured.
    """
    one_step = jax.eval_shape(lambda state, key: play(state, key, 1), state, jax.random.key(0))[1]
    bytes_per_step = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(one_step))
    num_steps = max(1, int(min(BLOCK_STEPS, BLOCK_ENV_STEPS // num_envs, BLOCK_BYTES // bytes_per_step)))
    recorded = jax.eval_shape(lambda state, key: play(state, key, num_steps), state, jax.random.key(0))[1]

    @partial(jax.jit, donate_argnums=(0, 1), keep_unused=True)
    def block(state: Any, recorded_before: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:
        del recorded_before
        key, block_key = jax.random.split(key)
        state, recorded = play(state, block_key, num_steps)
        return strongly_typed(state), strongly_typed(recorded), key

    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), recorded)
    carry = (strongly_typed(state), empty, jax.random.key(1))

    def run() -> Any:
        nonlocal carry
        carry = jax.block_until_ready(block(*carry))
        return carry[1]

    return Program(name, run, num_envs * num_steps, agents)


def strongly_typed(tree: Any) -> Any:
    """Without JAX's mark of a Python scalar's type: results that have it would be compiled for anew as arguments."""

    def strong(leaf: jax.Array) -> jax.Array:
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return leaf if is_key else jax.lax.convert_element_type(leaf, leaf.dtype)

    return jax.tree.map(strong, tree)


def measure(programs: Sequence[Program], *, rounds: int, seconds: float) -> None:
    """Fill in the rates: in every round each program has its turn of about so many seconds."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=PROGRESS, transient=True) as progress:
        task = progress.add_task("", total=len(programs) * (rounds + 1))
        for program in programs:
            phase(f"compiling {program.name}")
            progress.update(task, description=_phase[0])
            program.run()
            started = time.perf_counter()
            program.run()
            program.runs_per_round = max(1, round(seconds / (time.perf_counter() - started)))
            progress.advance(task)
        for _ in range(rounds):
            for program in programs:
                phase(f"measuring {program.name}")
                progress.update(task, description=_phase[0])
                started = time.perf_counter()
                for _ in range(program.runs_per_round):
                    program.run()
                elapsed = time.perf_counter() - started
                program.rates.append(program.runs_per_round * program.steps_per_run / elapsed)
                progress.advance(task)


def times_as_fast(program: Program, other: Program) -> float:
    """The median over rounds of the ratio within a round: what else the machine was doing then slowed both."""
    return median(rate / other_rate for rate, other_rate in zip(program.rates, other.rates, strict=True))


def timed_training(typed: str, out: Path) -> float:
    """Seconds of `hopplus train` with an empty compilation cache. If the folder is there already, of the time before.

    A folder of a command that did not end must be deleted first: to resume it would take less time.
    """
    if not (out / WALL_CLOCK).exists():
        if out.exists():
            raise SystemExit(f"{out} holds a run without {WALL_CLOCK}: its command did not end; delete the folder")
        PROGRESS.print(f"hopplus train {typed} --out {out}", soft_wrap=True)
        with TemporaryDirectory() as cache:
            started = time.perf_counter()
            command = [*PROGRAM, "--cache", cache, "train", *typed.split(), "--out", str(out)]
            subprocess.run(command, check=True, env={**os.environ, "JAX_COMPILATION_CACHE_DIR": ""}, stdout=sys.stderr)
        (out / WALL_CLOCK).write_text(json.dumps({"seconds": time.perf_counter() - started}))
    return json.loads((out / WALL_CLOCK).read_text())["seconds"]


def evaluated(run: Path, flags: Sequence[str]) -> dict[str, Any]:
    """What `hopplus evaluate` found of a run with these flags."""
    command = [*PROGRAM, "evaluate", str(run), *flags, "--json"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def state_bytes(state: Any) -> int:
    """The memory that the arrays of a pytree take."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(lambda: state)))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; the first column is text, the others are figures."""
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def interval_words(interval: Mapping[str, float], digits: int) -> str:
    """A mean and its interval, as in 2.88 (2.87 to 2.89)."""
    estimate, low, high = (f"{interval[name]:.{digits}f}" for name in ("estimate", "low", "high"))
    return f"{estimate} ({low} to {high})"


def short(figure: float | None) -> str:
    """Three digits, as in 1.73 M."""
    if figure is None:
        return "-"
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if figure >= unit:
            return f"{figure / unit:.3g}{name}"
    return f"{figure:.3g}"


def print_json(
    figures: dict[str, Any], packages: Sequence[str], *, before: Sequence[str] = (), command: str | None = None
) -> None:
    """Print the last line of stdout: the figures, rounded, the commands that they came from, and the versions.

    `before` are commands that must have been run before this one.
    """
    commands = [*before, command or " ".join(["python", *sys.argv])]
    about = {"commands": commands, "version": version_of("hopplus")}
    about |= {"machine": machine(), "versions": versions(packages)}
    print(json.dumps(to_json({**about, **figures})))
    sys.stdout.flush()


def write_result(path: Path, figures: dict[str, Any]) -> None:
    """Write a file of results/: rounded, and with the version. `figures` has the commands that they came from."""
    path.write_text(json.dumps(to_json({"version": version_of("hopplus"), **figures})) + "\n")


def machine() -> dict[str, Any]:
    return {"cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0], "device": jax.devices()[0].platform}


def versions(packages: Sequence[str]) -> dict[str, str | None]:
    found = {"python": platform.python_version()}
    return found | {package: version_of(package) for package in packages}


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
