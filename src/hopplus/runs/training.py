"""The loop around the compiled program: run a block of updates, write its metrics, save checkpoints."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jaxtyping import PyTree

from hopplus.core.checks import NonFiniteRunError
from hopplus.core.devices import make_mesh, on_every
from hopplus.core.extensions import thing_of
from hopplus.core.streams import is_key, with_keys, without_keys
from hopplus.learning.config import LearnerConfig
from hopplus.learning.initial import init
from hopplus.learning.learner import layout, train_block
from hopplus.learning.state import LearnerState, Task
from hopplus.runs import capabilities
from hopplus.runs.checkpoints import Checkpoints, has_checkpoint
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CHECKPOINTS, describe, only_writer, open_folder
from hopplus.runs.hosts import agreed, is_first, together
from hopplus.runs.init_from import check_init_from, with_init_from
from hopplus.runs.metrics import Row, Writers, find_wandb, rows
from hopplus.runs.population import members_config, train_population, with_exact_population, with_population
from hopplus.runs.pretraining import check_pretrained, with_pretrained
from hopplus.runs.programs import compiled_block
from hopplus.runs.run import Run, load, run_of, state_shapes
from hopplus.runs.stopping import TAG, Stopping, ended_at
from hopplus.runs.world_pretraining import check_pretrained_world, with_pretrained_world

MOST_UPDATES, BLOCK_SECONDS = 32, 3.0
"""A block has as many updates as take about this long, so that progress shows and a kill loses little."""


@runtime_checkable
class Watcher(Protocol):
    """An observer of a run; the progress display is one."""

    def compiling(self, config: RunConfig, done: int) -> None: ...

    def block(self, row: Row, updates_done: int, steps_per_second: float) -> None: ...


OnCheckpoint = Callable[[int, LearnerState], Row | None]
"""Called with the updates done and the states at the beginning and at every checkpoint; a row that it returns is
written with the run's records. It must not change the states."""


@dataclass(frozen=True)
class Program:
    """The compiled training program of a run."""

    init: Any
    block: Any
    places: PyTree[NamedSharding]
    """The devices of each array of the states."""


def compile_program(config: LearnerConfig, task: Task, keys: jax.Array, run: RunConfig | None = None) -> Program:
    """Compile the program once, before training; a block consumes the states that it gets (donated buffers).

    With the settings of its `run` it is read from a file if it was compiled before.

    A block gets the states, how many updates it makes, and over how many schedules run: one program serves runs of any
    length.
    """
    everywhere = on_every(config.mesh)
    init_seeds = jax.vmap(lambda key: init(config, task, key=key))
    states = jax.eval_shape(init_seeds, keys)
    places = layout(config, states)
    block = jax.jit(
        lambda states, counts: train_block(config, task, states, counts, MOST_UPDATES),
        donate_argnums=0,
        in_shardings=(places, everywhere),
        out_shardings=(places, everywhere),
    )
    if task.game.is_compiled:
        first = jax.jit(init_seeds, in_shardings=everywhere, out_shardings=places)
    else:
        first = jax.jit(init_seeds)  # one device calls Python; `placed` distributes the states
    with ThreadPoolExecutor(1) as pool:  # XLA compiles the smaller program while Python traces the larger one
        started = pool.submit(first.lower(keys).compile)
        counts = jax.ShapeDtypeStruct((2,), jnp.int32)
        compiler = lambda: block.lower(states, counts).compile()  # noqa: E731
        compiled = compiled_block(run, states, counts, compiler) if run else compiler()
        return Program(started.result(), compiled, places)


def seed_keys(config: RunConfig) -> jax.Array:
    """A key for each seed; more seeds do not change the keys of the first ones."""
    base = jax.random.key(config.seed)
    return jax.vmap(lambda index: jax.random.fold_in(base, index))(jnp.arange(config.seeds))


def for_mesh(config: RunConfig, seeds: PyTree[jax.Array]) -> PyTree[jax.Array]:
    """The seeds, some of them twice where their number does not divide evenly among the devices."""
    extra = -config.seeds % config.learner.mesh.seeds
    return _on_host(lambda leaf: np.concatenate([leaf, leaf[:extra]]), seeds) if extra else seeds


def without_copies(config: RunConfig, seeds: PyTree[jax.Array]) -> PyTree[jax.Array]:
    """The seeds of the run, without those that `for_mesh` has added."""
    copies = config.seeds % config.learner.mesh.seeds
    return _on_host(lambda leaf: leaf[: config.seeds], seeds) if copies else seeds


def _on_host(change: Callable[[np.ndarray], np.ndarray], seeds: PyTree[jax.Array]) -> PyTree[jax.Array]:
    """Every array changed by NumPy: JAX would compile a program for each of them, also in `jnp.asarray`."""
    changed = jax.tree.map(lambda leaf: change(np.asarray(leaf)), without_keys(seeds))
    return with_keys(seeds, jax.device_put(changed))


def train(
    config: RunConfig,
    out: Path | str,
    *,
    watcher: Watcher | None = None,
    patience: float = 0.0,
    on_checkpoint: OnCheckpoint | None = None,
) -> Run:
    """Train into the folder, or resume the run in it; a resumed run gives the same bits if the game is compiled.

    If another process still trains into the folder, wait `patience` seconds for it to end.
    """
    out = Path(out)
    config = with_exact_population(config, out)
    task = config.task
    if missing := capabilities.missing(config.learner, task.game):
        agent, game = config.agent, config.game
        raise ValueError(f"{agent} cannot learn {game}: {missing}. `hopplus check {game}` says which agents can")
    if not task.game.is_compiled and config.learner.envs % config.learner.mesh.envs:
        raise ValueError(
            f"--envs is {config.learner.envs}, and --mesh.envs is {config.learner.mesh.envs}: Python steps the "
            f"environments of {config.game}, each device its share; give --envs that --mesh.envs divides"
        )
    if config.seeds % config.learner.mesh.seeds and jax.process_count() > 1:
        raise ValueError(
            f"--seeds is {config.seeds}, and --mesh.seeds is {config.learner.mesh.seeds}: with several hosts the seeds "
            "must divide evenly; give other --seeds"
        )
    if config.learner.population.is_used and config.learner.population.run is None:
        members_config(config)  # raises if the members cannot be trained
        if jax.process_count() > 1:
            raise ValueError("a population is trained on one host; do so first, and name that run by --population.run")
    make_mesh(config.learner.mesh)  # raises before the folder is made and before the compiler runs
    if config.wandb:
        find_wandb()
    if not has_checkpoint(out / CHECKPOINTS):  # which holds all that the other runs gave
        check_init_from(config)
        check_pretrained(config)
        check_pretrained_world(config)
    open_folder(out, config, write=is_first())
    with only_writer(out, patience) if is_first() else nullcontext():
        checkpoints = Checkpoints(out / CHECKPOINTS)
        try:
            done = checkpoints.latest or 0
            if done < config.num_updates and ended_at(out) is None:
                if not done:
                    train_population(config, out, partial(train, watcher=watcher))
                if watcher:
                    watcher.compiling(config, done)
                with together():
                    done, states = _train_from(config, task, out, done, checkpoints, watcher, on_checkpoint)
                if jax.process_count() == 1:
                    learned = jax.device_put(jax.device_get((states.learners, states.population)))
                    return run_of(out, config, done, *learned)
        finally:
            checkpoints.close()
    return load(out, **{name: thing_of(getattr(config, name)) for name in ("agent", "game", "co_players")})


def _train_from(
    config: RunConfig,
    task: Task,
    out: Path,
    done: int,
    checkpoints: Checkpoints,
    watcher: Watcher | None,
    on_checkpoint: OnCheckpoint | None,
) -> tuple[int, LearnerState]:
    """Train on from update `done`; the updates done, and the last states."""
    restored = checkpoints.restore(done, state_shapes(config)) if done else None
    writers = Writers(out, config, done, describe(config)) if is_first() else None
    try:
        keys = for_mesh(config, seed_keys(config))
        program = compile_program(config.learner, task, keys, config)
        if restored is None:
            states = without_copies(config, jax.block_until_ready(program.init(keys)))
            restored = with_pretrained_world(config, with_pretrained(config, with_init_from(config, states)))
            restored = with_population(config, out, restored)
        stopping = Stopping(config, out, done)
        states = placed(for_mesh(config, restored), program.places)
        return _run(config, program, states, done, checkpoints, writers, watcher, stopping, on_checkpoint)
    finally:
        if writers:
            writers.close()


def placed(states: LearnerState, places: PyTree[NamedSharding]) -> LearnerState:
    """The states with every array on its devices; each host has all arrays and puts its share on its own devices."""

    def place(leaf: jax.Array, sharding: NamedSharding) -> jax.Array:
        if not leaf.is_fully_addressable or leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
            return leaf
        if is_key(leaf):
            return jax.random.wrap_key_data(place(jax.random.key_data(leaf), sharding))
        content = np.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, sharding, lambda index: content[index])

    return jax.tree.map(place, states, places)


def _run(
    config: RunConfig,
    program: Program,
    states: LearnerState,
    done: int,
    checkpoints: Checkpoints,
    writers: Writers | None,
    watcher: Watcher | None,
    stopping: Stopping,
    on_checkpoint: OnCheckpoint | None,
) -> tuple[int, LearnerState]:
    wanted = 1
    everywhere = on_every(config.learner.mesh)
    if on_checkpoint and jax.process_count() == 1:
        on_checkpoint(done, without_copies(config, states))
    while done < config.num_updates and not stopping.is_over():
        to_checkpoint = config.checkpoint_every - done % config.checkpoint_every
        to_decision = stopping.to_boundary(done, MOST_UPDATES)
        num_updates = min(wanted, to_checkpoint, to_decision, config.num_updates - done, MOST_UPDATES)
        started = time.perf_counter()
        counts = jax.device_put(np.array([num_updates, config.schedule_updates], np.int32), everywhere)
        states, metrics = program.block(states, counts)
        metrics = {name: values[:, : config.seeds] for name, values in jax.device_get(metrics).items()}
        seconds = time.perf_counter() - started
        _check_finite(metrics["policy/finite"][:num_updates], done, checkpoints)
        per_update = config.learner.steps_per_update
        row: Row = {}
        rate = num_updates * per_update * config.seeds / seconds
        if writers:
            for row in rows(metrics, done, num_updates, per_update):
                writers.write(row)
            end = done + num_updates
            timing = {"update": end, "env_steps": end * per_update, "seconds": seconds, "charts/steps_per_second": rate}
            writers.write_timing(timing)
            writers.flush()
        for one in rows({TAG: metrics[TAG]}, done, num_updates, per_update) if TAG in metrics else ():
            stopping.add(one)
        done += num_updates
        if done % config.checkpoint_every == 0 or done == config.num_updates or stopping.is_over():
            checkpoints.save(done, without_copies(config, states))
            if on_checkpoint and writers and jax.process_count() == 1:
                asked = on_checkpoint(done, without_copies(config, states))
                if asked is not None:
                    writers.write_doctor(asked)
        if watcher:
            watcher.block(row, done, rate)
        wanted = agreed(max(1, round(BLOCK_SECONDS * num_updates / seconds)))
    if done < config.num_updates and writers:
        stopping.end(done)
    return done, without_copies(config, states)


def _check_finite(finite: np.ndarray, done: int, checkpoints: Checkpoints) -> None:
    """Raise before a checkpoint with parameters that are not finite replaces a good one."""
    if finite.all():
        return
    update, seed, learner = (int(where[0]) for where in np.nonzero(finite == 0))
    last = checkpoints.latest
    kept = f"the checkpoint of update {last} is kept in {checkpoints.folder}" if last else "there was no checkpoint yet"
    raise NonFiniteRunError(
        f"the parameters of learner {learner + 1} in seed {seed} are not finite after update {done + update + 1}; "
        f"{kept}. Try a lower --ppo.learning-rate, and `hopplus check` on a game of your own"
    )
