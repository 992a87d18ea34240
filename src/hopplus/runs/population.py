"""The population of a best response: runs of self-play, each at its start, halfway and at its end.

An ordinary run in the folder `population` of the best response trains the members, one for each of its seeds. While it
trains, `snapshots` keeps their policies; when it is complete, those that co-players are drawn from are put together:

population.npz    the policies of every member at its checkpoints, member by member
population.json   the updates of these checkpoints and the mean return around each
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from hopplus.agents.population import Population
from hopplus.core.mesh import usual_mesh
from hopplus.learning.config import OF_MEMBER, PopulationConfig
from hopplus.learning.state import LearnerState
from hopplus.runs.checkpoints import by_name
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CONFIG, read_config, write_json, write_whole
from hopplus.runs.records import POPULATION, RETURN_TAG, read_run
from hopplus.runs.run import Run
from hopplus_doctor.statistics import mean_of_known

POLICIES, ABOUT, SNAPSHOTS = "population.npz", "population.json", "snapshots"
NUM_SNAPSHOTS = 50
"""How often the members' policies are kept while they train."""
SEED_APART = 1_000_003
"""The distance of the seeds of a population and of its best response: no member starts from the same parameters."""


def members_config(config: RunConfig) -> RunConfig:
    """The run that trains the members: the same agent in self-play, all seats with one policy."""
    population, learner = config.learner.population, config.learner
    num_updates = population.steps // learner.steps_per_update
    return replace(
        config,
        agent="ppo" if config.agent == "fcp" else config.agent,
        seeds=population.members,
        steps=population.steps,
        seed=(config.seed + SEED_APART) % 2**32,
        checkpoint_every=max(1, num_updates // NUM_SNAPSHOTS),
        early_stop=0,
        wandb=None,
        init_from=None,
        learner=replace(
            learner,
            sharing="shared",
            schedule=None,
            population=PopulationConfig(),
            mesh=usual_mesh(population.members, learner.mesh.size),
        ),
    )


def with_exact_population(config: RunConfig, out: Path) -> RunConfig:
    """The settings with the steps that the members of the population really have, and with their number.

    Those that --population.run names say both themselves; raises if they do not fit.
    """
    given = config.learner.population
    if not given.is_used:
        return config
    if given.run is None:
        exact = replace(given, steps=config.learner.population_steps // given.members)
        return replace(config, learner=replace(config.learner, population=exact))
    folder = _given_folder(Path(given.run))
    if folder is None and (out / CONFIG).exists():  # the checkpoints of this run hold all that it needs
        written = read_config(out).learner.population
        if written.run == given.run:
            return replace(config, learner=replace(config.learner, population=written))
    if folder is None:
        raise ValueError(
            f"--population.run: {given.run} holds no complete population; give a run of fcp, or leave it out, and a "
            "population is trained first"
        )
    members = read_config(folder)
    if not eqx.tree_equal(config.evaluation_game, members.evaluation_game):
        raise ValueError(f"--population.run: {given.run} plays {members.game}, not {config.game}; give another run")
    for name in ("network", "opponents"):
        own, others = getattr(config.learner, name), getattr(members.learner, name)
        if own != others:
            raise ValueError(f"--population.run: {given.run} has {others}, this run {own}; give the same settings")
    steps = members.num_updates * members.learner.steps_per_update
    resolved = PopulationConfig(members.seeds, steps, given.run)
    return replace(config, learner=replace(config.learner, population=resolved))


def train_population(config: RunConfig, out: Path, train: Callable[..., Any]) -> None:
    """Train the members of a run's population into its folder, or go on with it; nothing if it is complete or given."""
    population = config.learner.population
    folder = out / POPULATION
    if not population.is_used or population.run is not None or (folder / POLICIES).exists():
        return
    members = members_config(config)
    train(members, folder, on_checkpoint=lambda done, states: _keep(folder / SNAPSHOTS, done, states))
    _put_together(folder, members)


def with_population(config: RunConfig, out: Path, states: LearnerState) -> LearnerState:
    """The states with the trained policies as co-players, the same for every seed."""
    population = config.learner.population
    if not population.is_used:
        return states
    folder = out / POPULATION if population.run is None else _given_folder(Path(population.run))
    assert folder is not None and states.population is not None
    with np.load(folder / POLICIES) as stored:
        arrays = {name: stored[name] for name in stored.files}
    like = by_name(states.population)
    leaves = [jnp.broadcast_to(jnp.asarray(arrays[name], leaf.dtype), leaf.shape) for name, leaf in like.items()]
    filled: Population = jax.tree.unflatten(jax.tree.structure(states.population), leaves)
    return replace(states, population=filled)


def _given_folder(run: Path) -> Path | None:
    """The folder with the policies of a population: that of a run of fcp, or the folder itself."""
    return next((folder for folder in (run / POPULATION, run) if (folder / POLICIES).is_file()), None)


def _keep(folder: Path, done: int, states: LearnerState) -> None:
    """Keep the policies of all members as they are after this update."""
    folder.mkdir(exist_ok=True)
    learners = states.learners
    policies = Population(learners.policy.params, learners.opponents.params)
    _save(folder / f"{done}.npz", {name: np.asarray(leaf)[:, 0] for name, leaf in by_name(policies).items()})


def _put_together(folder: Path, config: RunConfig) -> None:
    """Choose the checkpoints of each member, and write their policies."""
    kept = sorted(int(path.stem) for path in (folder / SNAPSHOTS).glob("*.npz"))
    returns = returns_around(read_run(folder).metrics[RETURN_TAG], np.array(kept), config.checkpoint_every)
    chosen = [choose(of_member) for of_member in returns.T]
    snapshots = {}
    for place in sorted({place for places in chosen for place in places}):
        with np.load(folder / SNAPSHOTS / f"{kept[place]}.npz") as stored:
            snapshots[place] = {name: stored[name] for name in stored.files}
    arrays = {
        name: np.stack([snapshots[place][name][member] for member, places in enumerate(chosen) for place in places])
        for name in next(iter(snapshots.values()))
    }
    about = [
        {
            name: {"update": kept[place], "return": round(float(returns[place, member]), 4)}
            for name, place in zip(OF_MEMBER, places, strict=True)
        }
        for member, places in enumerate(chosen)
    ]
    write_json(folder / ABOUT, {"members": about})
    _save(folder / POLICIES, arrays)
    shutil.rmtree(folder / SNAPSHOTS)


def returns_around(
    returns: Float64[np.ndarray, "updates members"], kept: np.ndarray, every: int
) -> Float64[np.ndarray, "kept members"]:
    """The mean return of each member in the updates around those that were kept; the one before where none ended."""
    reach = max(1, every // 2)
    rows = [mean_of_known(returns[max(0, update - reach) : update + reach].T) for update in kept]
    for before, row in pairwise(rows):
        row[np.isnan(row)] = before[np.isnan(row)]
    return np.nan_to_num(np.stack(rows))


def choose(returns: Float64[np.ndarray, " kept"]) -> tuple[int, int, int]:
    """The places of the first policy, of that whose return is nearest to halfway, and of the last."""
    last = len(returns) - 1
    between = range(1, last) if last > 1 else range(last + 1)
    halfway = (returns[0] + returns[last]) / 2
    return 0, min(between, key=lambda place: abs(returns[place] - halfway)), last


def population_words(run: Run) -> str:
    """The mean return of the members at each checkpoint, in words."""
    folder = run.folder / POPULATION
    if run.config.learner.population.run is not None:
        return f"those of {run.config.learner.population.run}"
    members = json.loads((folder / ABOUT).read_text())["members"]
    means = {name: np.mean([one[name]["return"] for one in members]) for name in OF_MEMBER}
    return "mean returns " + ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())


def _save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    content = BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_whole(path, content.getvalue())
