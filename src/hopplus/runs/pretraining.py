"""The folder of a pretraining, and how a run is initialised from it.

config.json      all settings, the version of hopplus and of the game's rules
metrics.jsonl    a line per epoch: every term of every loss, and how well held-out episodes are predicted
actions.csv      for every epoch and action, on held-out episodes: how often it was taken, precision, recall, F1
confusion.csv    for every epoch and pair of actions: how often the first was taken and the second predicted
checkpoints/     after every epoch; the same command resumes
"""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus import __version__
from hopplus.agents.opponents import OpponentModels
from hopplus.evaluation.prediction import actions_and_confusion
from hopplus.games.presets import make
from hopplus.learning.config import LearnerConfig
from hopplus.learning.offline import Episodes, make_episodes
from hopplus.learning.page_episodes import read_episodes
from hopplus.learning.pretrain_config import PretrainConfig
from hopplus.learning.pretraining import Material, PretrainState, Trainer, check_data, init, material, predict
from hopplus.learning.state import LearnerState
from hopplus.runs import capabilities
from hopplus.runs.checkpoints import Checkpoints
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CHECKPOINTS, CONFIG, METRICS, read_settings, write_json, write_whole
from hopplus.runs.formats import FORMAT, migrated_pretraining

ACTIONS, CONFUSION = "actions.csv", "confusion.csv"
ACTION_COLUMNS = ("support", "precision", "recall", "f1")
OnEpoch = Callable[[int, dict[str, float]], None]


def pretrain(
    config: PretrainConfig, out: Path, *, episodes: Path | None = None, on_epoch: OnEpoch | None = None
) -> OpponentModels:
    """Train into the folder, or resume the pretraining in it; `episodes` is a file with data."""
    config.check()
    check_data(config)
    game = make(config.data.game)
    if game.spec.sums_others:
        raise ValueError(
            f"--data.game {config.data.game} cannot be used for pretraining: its views sum the others; "
            "hop_plus learns its opponent models of such a game while it trains"
        )
    if missing := capabilities.missing(LearnerConfig(opponents=config.opponents), game):
        raise ValueError(f"--data.game {config.data.game} cannot be used for pretraining: {missing}")
    data = read_episodes(episodes, game) if episodes else None
    _open(out, config, episodes)
    checkpoints = Checkpoints(out / CHECKPOINTS)
    try:
        state = init(config, key=jax.random.key(config.data.seed))
        done = checkpoints.latest or 0
        lines = _lines(out)[:done]
        state = checkpoints.restore(done, _shapes(config)) if done else state
        if done == config.epochs:
            return state.opponents.params
        train, test = (material(config, game, part) for part in _split(config, data or make_episodes(config.data)))
        trainer = Trainer(config, train)
        while done < config.epochs:
            state, metrics = trainer.epoch(state)
            done += 1
            found = judge(config, state.opponents.params, test)
            metrics |= found.figures
            lines.append(json.dumps({"epoch": done} | metrics))
            write_whole(out / METRICS, "".join(f"{line}\n" for line in lines).encode())
            _write_tables(out, done, found)
            checkpoints.save(done, state)
            if on_epoch:
                on_epoch(done, metrics)
    finally:
        checkpoints.close()
    return state.opponents.params


def _shapes(config: PretrainConfig) -> Any:
    """The shapes of a checkpoint."""
    return jax.eval_shape(lambda: init(config, key=jax.random.key(0)))


def _split(config: PretrainConfig, data: Episodes) -> tuple[Episodes, Episodes]:
    parts = data.part(0, 1 - config.held_out), data.part(1 - config.held_out, 1)
    if not all(len(part.boards) for part in parts):
        raise ValueError(
            f"{len(data.boards)} episodes are too few to hold out a share of {config.held_out}; "
            "give more --data.samples or --episodes, or another --held-out"
        )
    return parts


@dataclass(frozen=True)
class Judged:
    """How well the models predict the actions of held-out episodes, with inferred goals."""

    figures: dict[str, float]
    by_action: list[dict[str, Any]]
    confusion: np.ndarray
    """Counts [taken, predicted]."""


def judge(config: PretrainConfig, models: OpponentModels, held_out: Material) -> Judged:
    """Score the models on episodes that they did not learn from."""
    on_board = np.asarray(held_out.data.valid)
    expected, actions = (
        np.asarray(each)[on_board] for each in (predict(config, models, held_out).expected, held_out.data.actions)
    )
    taken = np.take_along_axis(expected, actions[:, None], axis=-1)
    figures = {
        "held_out/top1": float(np.mean(expected.argmax(-1) == actions)),
        "held_out/top3": float(np.mean(np.sum(expected > taken, axis=-1) < 3)),
        "held_out/ce_loss": float(-np.mean(np.log(np.maximum(taken, 1e-8)))),
    }
    names = make(config.data.game).spec.action_names
    return Judged(figures, *actions_and_confusion(names, expected, actions))


def _write_tables(out: Path, epoch: int, found: Judged) -> None:
    """Add an epoch to the tables of actions; rows of later epochs, which are repeated after a stop, are dropped."""
    names = [row["name"] for row in found.by_action]
    of_actions = [(row["name"], *(row[column] for column in ACTION_COLUMNS)) for row in found.by_action]
    pairs = [
        (taken, predicted, int(found.confusion[one, other]))
        for one, taken in enumerate(names)
        for other, predicted in enumerate(names)
    ]
    tables = {
        ACTIONS: (("epoch", "action", *ACTION_COLUMNS), of_actions),
        CONFUSION: (("epoch", "taken", "predicted", "count"), pairs),
    }
    for name, (head, rows) in tables.items():
        path = out / name
        known = list(csv.reader(path.read_text().splitlines()))[1:] if epoch > 1 and path.exists() else []
        kept = [row for row in known if row and row[0].isdecimal() and int(row[0]) < epoch]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([head, *kept, *((epoch, *row) for row in rows)])
        write_whole(path, text.getvalue().encode())


def _describe(config: PretrainConfig, episodes: Path | None) -> dict[str, Any]:
    spec = make(config.data.game).spec
    about = {"format": FORMAT, "version": __version__, "game_name": spec.name, "game_version": spec.version}
    return {"about": about | {"episodes": str(episodes) if episodes else None}, "settings": asdict(config)}


def _open(out: Path, config: PretrainConfig, episodes: Path | None) -> None:
    wanted = json.loads(json.dumps(_describe(config, episodes)))
    if (out / CONFIG).exists():
        written = read_json(out / CONFIG)
        is_same = {**written.get("settings", {}), "epochs": config.epochs} == wanted["settings"]
        if written.get("settings", {}).get("epochs", 0) > config.epochs:
            raise ValueError(f"{out} holds a pretraining of more epochs; give --epochs {written['settings']['epochs']}")
        if not is_same or written["about"]["episodes"] != wanted["about"]["episodes"]:
            raise ValueError(
                f"{out} holds a pretraining with other settings; give the same settings, or another folder with --out"
            )
    else:
        make_empty_folder(out)
    write_json(out / CONFIG, wanted)


def make_empty_folder(out: Path) -> None:
    """Make the folder of a new pretraining; raises if there is something else in it."""
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise ValueError(f"{out} is not empty and holds no pretraining; give another folder with --out")
    out.mkdir(parents=True, exist_ok=True)


def read_json(path: Path, command: str = "hopplus pretrain --out") -> dict[str, Any]:
    """The settings of a pretraining, as the command has written them."""
    if not path.is_file():
        raise ValueError(f"{path.parent} has no {CONFIG}; give the folder that `{command}` wrote")
    try:
        return json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); pretrain again into another folder") from None


def _lines(out: Path) -> list[str]:
    return (out / METRICS).read_text().splitlines() if (out / METRICS).exists() else []


def load_pretrained(folder: Path) -> tuple[PretrainConfig, OpponentModels]:
    """The settings of a pretraining and its opponent models after the last epoch."""
    written = read_json(folder / CONFIG)
    if "settings" not in written:
        raise ValueError(f"{folder} holds no pretraining; give the folder that `hopplus pretrain --out` wrote")
    config = _read_settings(folder, migrated_pretraining(written, folder / CONFIG))
    checkpoints = Checkpoints(folder / CHECKPOINTS, read_only=True)
    try:
        if checkpoints.latest is None:
            raise ValueError(f"{folder} has no epoch yet; run its `hopplus pretrain` to the end first")
        state: PretrainState = checkpoints.restore(checkpoints.latest, _shapes(config))
    finally:
        checkpoints.close()
    return config, state.opponents.params


def _read_settings(folder: Path, written: dict[str, Any]) -> PretrainConfig:
    try:
        return read_settings(PretrainConfig, written["settings"])
    except ValueError as error:
        version = written.get("about", {}).get("version", __version__)
        use = "" if version == __version__ else f"use hopplus {version}, which wrote them, or "
        raise ValueError(
            f"{folder / CONFIG} holds settings that hopplus {__version__} cannot use ({error}); {use}pretrain again "
            "into another folder"
        ) from None


def check_pretrained(config: RunConfig) -> None:
    """Raise if the pretrained opponent models do not fit the run."""
    if config.pretrained is None:
        return
    pretraining, _ = load_pretrained(Path(config.pretrained))
    given, wanted = pretraining.opponents, config.learner.opponents
    same_others = replace(given.others, models=wanted.others.models) == wanted.others
    same_board = make(pretraining.data.game).spec.interface == config.evaluation_game.spec.interface
    if given.goals != wanted.goals or not same_others or not same_board:
        raise ValueError(
            f"--pretrained: the models in {config.pretrained} are for {pretraining.data.game} with {given}, the run is "
            f"for {config.game} with {wanted}; give the same goals and sizes"
        )


def with_pretrained(config: RunConfig, states: LearnerState) -> LearnerState:
    """The states with a copy of the pretrained opponent models in every seat of every seed."""
    if config.pretrained is None:
        return states
    _, models = load_pretrained(Path(config.pretrained))
    own = states.learners.opponents
    params = jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape).astype(old.dtype), models, own.params)
    return replace(states, learners=replace(states.learners, opponents=replace(own, params=params)))
