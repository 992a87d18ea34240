"""`hopplus export`: a trained agent as a folder for people who do not have hopplus.

README.md             the model card
config.json           settings of the run, fields of an observation, names of actions; checksums of the other files
model.safetensors     the weights of one seed: policy, opponent models and world
init.jax_export       the programs of the policy; see `share.program`
next_episode.jax_export
policy.jax_export

No file holds code of hopplus or of Python. `read_export` checks everything before it returns anything.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export

from hopplus import __version__
from hopplus.games.fields import Field
from hopplus.runs.checkpoints import by_name
from hopplus.runs.folder import CONFIG, read_written, write_json, write_whole
from hopplus.runs.run import Run, load
from hopplus.share.card import CardData, model_card
from hopplus.share.program import DTYPES, PROGRAMS, read_programs, serialise
from hopplus.share.weights import read_safetensors, write_safetensors

FORMAT = 1
CARD, WEIGHTS = "README.md", "model.safetensors"
PROGRAM_FILES = {name: f"{name}.jax_export" for name in PROGRAMS}
LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


@dataclass(frozen=True)
class Exported:
    """An export that was read: settings, weights by name, and the programs, none of which has been run."""

    config: dict[str, Any]
    weights: dict[str, np.ndarray]
    programs: Mapping[str, jax_export.Exported]

    @property
    def init(self) -> Callable[..., Any]:
        """`state = init(seat)`."""
        return self.programs["init"].call

    @property
    def next_episode(self) -> Callable[..., Any]:
        """`state = next_episode(state)`."""
        return self.programs["next_episode"].call

    @property
    def policy(self) -> Callable[..., Any]:
        """`probabilities, state = policy(seat, observation, legal, state)`."""
        return self.programs["policy"].call


def export(run: Run | Path | str, out: Path | str, *, seed: int = 0, licence: str = "apache-2.0") -> Path:
    """Write the export of one seed of a run into a new or empty folder."""
    run, out = run if isinstance(run, Run) else load(run), Path(out)
    if not LICENCE.fullmatch(licence):
        raise ValueError(f"--licence is {licence!r}; give the name that model hubs use, as in apache-2.0 or cc-by-4.0")
    if out.is_file() or (out.is_dir() and any(path.name != CARD for path in out.iterdir())):
        raise ValueError(f"{out} is not empty; give another folder with --out")
    weights, programs = weights_of(run, seed), serialise(run, seed)
    out.mkdir(parents=True, exist_ok=True)
    about = {"library": "hopplus", "version": __version__, "game": str(run.config.game), "seed": str(seed)}
    write_safetensors(out / WEIGHTS, weights, about)
    for name, content in programs.items():
        write_whole(out / PROGRAM_FILES[name], content)
    files = [WEIGHTS, *PROGRAM_FILES.values()]
    write_json(out / CONFIG, _config(run, seed) | {"sha256": {name: _checksum(out / name) for name in files}})
    sizes = {name: (out / name).stat().st_size for name in files}
    (out / CARD).write_text(model_card(CardData.of(run, seed, licence, sizes)), encoding="utf-8")
    return out


def weights_of(run: Run, seed: int) -> dict[str, np.ndarray]:
    """The weights of one seed by name; the first axis is that of the seats that learned, of a world its members."""
    if not 0 <= seed < run.config.seeds:
        raise ValueError(f"{run.folder} has no seed {seed}; its seeds are 0 to {run.config.seeds - 1}")
    parts = {"policy": run.params, "opponents": run.opponents, "world": run.worlds}
    named = {f"{part}.{name}": leaf for part, tree in parts.items() for name, leaf in by_name(tree).items()}
    return {name: np.asarray(leaf[seed]) for name, leaf in named.items()}


def _config(run: Run, seed: int) -> dict[str, Any]:
    spec = run.game.spec
    return {
        "export_format": FORMAT,
        "hopplus": __version__,
        "jax": jax.__version__,
        "agent": run.config.agent,
        "game": run.config.game,
        "game_name": spec.name,
        "game_version": spec.version,
        "num_agents": spec.num_agents,
        "num_learning": run.num_learning,
        "action_names": list(spec.action_names),
        "horizon": spec.horizon,
        "observation": [_field(field) for field in spec.observation],
        "seed": seed,
        "env_steps": run.num_updates * run.config.learner.steps_per_update,
        **({"population_env_steps": more} if (more := run.config.learner.population_steps) else {}),
        "run": read_written(run.folder),
    }


def _field(field: Field) -> dict[str, Any]:
    described = asdict(field) | {"dtype": np.dtype(DTYPES[field.kind]).name}
    return json.loads(json.dumps(described))


def _checksum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def read_export(folder: Path | str) -> Exported:
    """Read an export; raises ValueError if a file is missing, damaged, or does not fit the others.

    Nothing of it is run here. A checksum finds damage, not malice: whether to trust the sender is yours to decide.
    """
    folder = Path(folder)
    config = _read_config(folder)
    for name, wanted in config["sha256"].items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{folder} has no {name}; export the run again")
        if _checksum(path) != wanted:
            raise ValueError(f"{path} is not the file that was exported: its checksum differs; export the run again")
    weights, _ = read_safetensors(folder / WEIGHTS)
    if not weights or not all(name.split(".")[0] in ("policy", "opponents", "world") for name in weights):
        raise ValueError(f"{folder / WEIGHTS} does not hold the weights of an agent; export the run again")
    programs = read_programs({name: (folder / file).read_bytes() for name, file in PROGRAM_FILES.items()})
    _check_programs(folder, config, programs)
    return Exported(config, weights, programs)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(path.read_bytes().decode())
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); give a folder of `hopplus export`") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON file ({error}); export the run again") from None
    if not isinstance(config, dict) or config.get("export_format") != FORMAT:
        number = config.get("export_format") if isinstance(config, dict) else None
        raise ValueError(f"{path} has the format {number!r}; this version of hopplus reads format {FORMAT}")
    sums = config.get("sha256")
    if not isinstance(sums, dict) or set(sums) != {WEIGHTS, *PROGRAM_FILES.values()}:
        raise ValueError(f"{path} does not list the checksums of its files; export the run again")
    if not all(type(config.get(name)) is int and config[name] > 0 for name in ("num_agents", "num_learning")):
        raise ValueError(f"{path} does not say how many agents there are; export the run again")
    names, fields = config.get("action_names"), config.get("observation")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{path} does not name the actions; export the run again")
    if not isinstance(fields, list) or not fields or not all(map(_is_field, fields)):
        raise ValueError(f"{path} does not describe the observation; export the run again")
    return config


def _is_field(field: Any) -> bool:
    return (
        isinstance(field, dict)
        and isinstance(field.get("name"), str)
        and field.get("kind") in DTYPES
        and isinstance(field.get("shape"), list)
        and all(type(size) is int and 0 < size < 2**20 for size in field["shape"])
    )


def _check_programs(folder: Path, config: dict[str, Any], programs: Mapping[str, jax_export.Exported]) -> None:
    """Raise if the policy does not take the observation of the settings, or the programs have no common state."""
    policy, init = programs["policy"], programs["init"]
    try:
        (seat, observation, legal, state), _ = jax.tree.unflatten(policy.in_tree, policy.in_avals)
        given = {name: (*aval.shape[1:], aval.dtype) for name, aval in observation.items()}
        wanted = {field["name"]: (*field["shape"], jnp.dtype(DTYPES[field["kind"]])) for field in config["observation"]}
        probabilities, after = jax.tree.unflatten(policy.out_tree, policy.out_avals)
        states = [state, after, jax.tree.unflatten(init.out_tree, init.out_avals)]
        shapes = [{name: (aval.shape[1:], aval.dtype) for name, aval in one.items()} for one in states]
        num_actions = len(config["action_names"])
        fits = given == wanted and legal.shape[1:] == probabilities.shape[1:] == (num_actions,)
        fits = fits and seat.shape[1:] == () and shapes[0] == shapes[1] == shapes[2]
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"the programs in {folder} are not those of a policy ({error}); export the run again"
        ) from None
    if not fits:
        raise ValueError(f"the programs in {folder} do not fit its {CONFIG}; export the run again")


def suggested_folder(run: Path) -> Path:
    """Where an export is written if no folder is named."""
    return Path(os.path.normpath(run)).with_name(f"{Path(os.path.normpath(run)).name}-export")
