"""The files of a run folder, and the check that a folder fits a set of settings.

config.json      the format of the folder, all settings, the version of hopplus and of the game's rules
metrics.jsonl    a line per update; every tag has one number per seed; kills and resumes do not change its bytes
timing.jsonl     a line per block of updates: how long it took
checkups.jsonl   what the doctor said at checkpoints, of a run with --doctor-every
evaluation.json  the last result of `hopplus evaluate`, in self-play
adaptation.json  the last result of `hopplus evaluate --adaptation`: the frozen agent with every line-up of scripts
others.json      how well the opponent models predict, if that was measured
world.json       how well the learned world predicts, if that was measured
population/      of fcp: the run of the population, with population.npz and population.json (runs/population.py)
ended.json       the last update of a run that --early-stop ended
report.html      the page of `hopplus report`
doctor.html      the page of `hopplus doctor`; doctor.json holds the same findings
checkpoints/     written by orbax; each is complete or absent
tensorboard/     the metrics as events, a folder per seed
lock             held by the process that trains
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import IO, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from hopplus import __version__
from hopplus.core.extensions import OBJECT
from hopplus.runs.config import RunConfig
from hopplus.runs.formats import FORMAT, format_of, migrated_settings

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None

CONFIG, METRICS, TIMING, EVALUATION = "config.json", "metrics.jsonl", "timing.jsonl", "evaluation.json"
OTHERS, WORLD = "others.json", "world.json"
ADAPTATION, CHECKUPS = "adaptation.json", "checkups.jsonl"
CHECKPOINTS, TENSORBOARD, LOCK = "checkpoints", "tensorboard", "lock"
DESCRIBED = {"format", "version", "game_name", "game_version"}
"""Keys of `config.json` besides the settings."""
PUT_BACK = "put the file back as it was, or train again into another folder"
ACCEPTED = {object: (str,), bool: (bool,), int: (int,), float: (int, float), str: (str,), NoneType: (NoneType,)}
MAY_CHANGE = {"version", "steps", "wandb", "checkpoint_every", "learner.mesh.seeds", "learner.mesh.envs"}
"""Settings that may differ when a run is resumed; `steps` only if no schedule depends on the length of the run."""


def describe(config: RunConfig) -> dict[str, Any]:
    """The content of `config.json`."""
    spec = config.evaluation_game.spec
    about = {"format": FORMAT, "version": __version__, "game_name": spec.name, "game_version": spec.version}
    return {**about, **asdict(config)}


def open_folder(folder: Path, config: RunConfig, *, write: bool = True) -> None:
    """Make the folder, or check that it holds a run of these settings; with `write` False, only check."""
    wanted = json.loads(json.dumps(describe(config)))
    if (folder / CONFIG).exists():
        read_config(folder)
        written = read_written(folder)
        if (number := format_of(written, folder / CONFIG)) < FORMAT:
            version = written["version"]
            raise ValueError(
                f"{folder} has format {number}, written by hopplus {version}; this version reads it, but resumes only "
                f"format {FORMAT}; resume it with hopplus {version}, or train again into another folder"
            )
        _check_same(folder, written, wanted)
    elif write:
        _make_folder(folder)
    if write:
        write_json(folder / CONFIG, wanted)


def _make_folder(folder: Path) -> None:
    if folder.is_file():
        raise ValueError(f"{folder} is a file; give a folder for the run with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot make the folder {folder} ({error.strerror}); give another with --out") from None
    half_written = _temporary(folder / CONFIG)  # by a run that was killed at its very start
    if any(path != half_written for path in folder.iterdir()):
        raise ValueError(f"{folder} is not empty and holds no run; give another folder with --out")


@contextmanager
def only_writer(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of the folder; wait `patience` seconds for another process that holds it.

    The system releases the lock of a process that dies.
    """
    with (folder / LOCK).open("a") as file:
        until = time.monotonic() + patience
        while not _locked(file):
            if time.monotonic() > until:
                raise ValueError(f"another process trains into {folder}; wait until it is done, or give another --out")
            time.sleep(0.2)
        yield


def _locked(file: IO[str]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_description(folder: Path) -> dict[str, Any]:
    """The content of `config.json` as a dict, in the format of today."""
    return migrated_settings(read_written(folder), folder / CONFIG)


def read_written(folder: Path) -> dict[str, Any]:
    """The content of `config.json` as it was written."""
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(
            f"{folder} has no {CONFIG}; is it a run folder? give the folder that `hopplus train --out` wrote"
        )
    try:
        description = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); {PUT_BACK}") from None
    if not isinstance(description, dict) or not description.keys() >= DESCRIBED - {"format"}:
        raise ValueError(f"{path} is not the settings of a run; {PUT_BACK}")
    return description


def read_settings(kind: Any, written: Any) -> Any:
    """Settings from their JSON form; raises ValueError if one is missing, unknown or of another type."""
    return _read(kind, written, "")


def read_config(folder: Path, **objects: Any) -> RunConfig:
    """The settings of a run; raises if another version of hopplus or of the game's rules wrote them.

    `objects` are agent, game or co-players as Python objects, in place of their names.
    """
    description = read_description(folder)
    try:
        settings = {name: description[name] for name in description.keys() - DESCRIBED}
        config = _read(RunConfig, settings, "", {name: given for name, given in objects.items() if given is not None})
        spec = config.evaluation_game.spec
    except ValueError as error:
        if OBJECT in str(error):  # a run of Python objects without a name
            raise ValueError(f"{folder}: {error}") from None
        version = description["version"]
        what_to_do = PUT_BACK
        if version != __version__:
            what_to_do = f"use hopplus {version}, which wrote them, or train again into another folder"
        raise ValueError(
            f"{folder / CONFIG} holds settings that hopplus {__version__} cannot use ({error}); {what_to_do}"
        ) from None
    if (spec.name, spec.version) != (description["game_name"], description["game_version"]):
        raise ValueError(
            f"{folder} was trained on version {description['game_version']} of {description['game_name']}, but this "
            f"hopplus has version {spec.version} of {spec.name}; use hopplus {description['version']}, or train again "
            "into another folder"
        )
    return config


def _read(kind: Any, value: Any, name: str, objects: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """A JSON value as the annotation asks for; raises ValueError if it does not fit. `objects` replace fields."""
    origin, options = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        given = value.keys() if isinstance(value, dict) else {"no settings"}
        if wrong := sorted(given ^ hints.keys()):
            raise ValueError(f"{'missing' if wrong[0] in hints else 'unknown'}: {name}{wrong[0]}")
        fields = {field: _read(hint, value[field], f"{name}{field}.") for field, hint in hints.items()}
        return cast(type, kind)(**{**fields, **objects})
    if origin in (Union, UnionType):
        for option in options:
            with suppress(ValueError):
                return _read(option, value, name)
    elif origin is tuple and isinstance(value, list):
        kinds = options[:1] * len(value) if options[-1] is ... else options
        if len(kinds) == len(value):
            return tuple(_read(kind, part, name) for kind, part in zip(kinds, value, strict=True))
    elif type(value) in ACCEPTED.get(kind, ()) or (origin is Literal and value in options):
        return value
    raise ValueError(f"{name.rstrip('.')} is {value!r}")


def _check_same(folder: Path, written: dict[str, Any], wanted: dict[str, Any]) -> None:
    written, wanted = _flat(written), _flat(wanted)
    for name in sorted(wanted):
        if name not in MAY_CHANGE and written[name] != wanted[name]:
            flag = f"--{name.removeprefix('learner.').removeprefix('opponents.').replace('_', '-')}"
            raise ValueError(
                f"{folder} holds a run with {flag} {written[name]}, not {wanted[name]}; "
                "give the same settings to resume it, or another folder with --out"
            )
    steps = written["steps"]
    if wanted["steps"] < steps:
        raise ValueError(f"{folder} holds a run of {steps} steps; give as many with --steps, or more to continue it")
    if wanted["steps"] != steps and (annealed := _annealed(wanted)):
        raise ValueError(
            f"{folder} holds a run in which {annealed} over its {steps} steps, so it cannot become longer; give "
            f"--steps {steps}, or another folder with --out. Runs with --schedule can be continued"
        )


def _annealed(flat: dict[str, Any]) -> str | None:
    """The schedule that depends on the length of the run, in words; None if there is none."""
    if flat["learner.schedule"] is not None:
        return None
    if flat["learner.ppo.entropy_coefficient"] != flat["learner.ppo.final_entropy_coefficient"]:
        return "the entropy bonus falls (unless --ppo.final-entropy-coefficient is the same as the first)"
    if flat["learner.opponents.others.models"] != "none":
        return "the learning rate of the opponent models falls"
    if flat["learner.world.members"] > 0:
        return "the learning rate of the world falls"
    return None


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with `write_whole`."""
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all: a kill leaves the old file."""
    _temporary(path).write_bytes(content)
    os.replace(_temporary(path), path)


def _temporary(path: Path) -> Path:
    """The path that a file is written to before it is moved to its place."""
    return path.with_suffix(".tmp")
