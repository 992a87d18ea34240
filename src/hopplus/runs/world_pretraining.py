"""A world that is pretrained on episodes of scripts: its folder, and how a run is initialised from it.

config.json      all settings, the version of hopplus and of the game's rules
metrics.jsonl    a line per epoch: how well held-out episodes are predicted
checkpoints/     after the last epoch
"""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from hopplus import __version__
from hopplus.evaluation.world import Record, judge_line_ups, recorder, sums_of_worlds, transitions_of
from hopplus.games.game import Game
from hopplus.games.lineups import read_policies
from hopplus.games.presets import make
from hopplus.learning.config import LearnerConfig
from hopplus.learning.offline import Cast
from hopplus.learning.pretrain_config import WorldPretrainConfig
from hopplus.learning.state import LearnerState
from hopplus.learning.worlds import fit
from hopplus.models import world
from hopplus.models.world import WorldModel
from hopplus.models.world_kinds import init_world
from hopplus.runs import capabilities
from hopplus.runs.checkpoints import Checkpoints
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CHECKPOINTS, CONFIG, METRICS, read_settings, write_json, write_whole
from hopplus.runs.formats import FORMAT
from hopplus.runs.pretraining import make_empty_folder, read_json

COMMAND = "hopplus pretrain --world --out"
EPISODES_AT_ONCE = 256
FIGURES = ("exact_next_state", "observation_mse", "reward_mse", "end_error", "paid_recall", "open_loop_exact")
OnEpoch = Callable[[int, dict[str, float]], None]


def pretrain_world(config: WorldPretrainConfig, out: Path, *, on_epoch: OnEpoch | None = None) -> WorldModel:
    """Train the members of a world into the folder; a complete one is loaded."""
    config.check()
    game = make(config.data.game)
    if missing := capabilities.missing(LearnerConfig(world=config.world), game):
        raise ValueError(f"--data.game {config.data.game} cannot be used for a world: {missing}")
    _open(out, config)
    if (out / CHECKPOINTS).exists():
        return load_world(out)[1]
    train, held_out = _episodes(config, game)
    data = transitions_of(train)
    members, lines = [], []
    score = partial(judge_line_ups, game.spec, records={"held out": held_out})
    loss = lambda params, transition: world.loss(params, game.spec, transition)  # noqa: E731
    for number, key in enumerate(jax.random.split(jax.random.key(config.data.seed), config.world.members)):
        init_key, fit_key = jax.random.split(key)

        def after_epoch(epoch: int, params: WorldModel, member: int = number) -> None:
            alone = jax.tree.map(lambda leaf: leaf[None], params)
            found = score(partial(sums_of_worlds, game.spec, alone))["held out"]
            metrics = {f"held_out/{name}": found[name] for name in FIGURES}
            lines.append(json.dumps({"member": member + 1, "epoch": epoch + 1} | metrics))
            write_whole(out / METRICS, "".join(f"{line}\n" for line in lines).encode())
            if on_epoch:
                on_epoch(member * config.epochs + epoch + 1, metrics)

        params = init_world(config.world, game.spec, key=init_key)
        recipe = {"learning_rate": params.learning_rate, "weight_decay": params.weight_decay}
        members.append(fit(loss, params, data, epochs=config.epochs, **recipe, key=fit_key, on_epoch=after_epoch))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    checkpoints = Checkpoints(out / CHECKPOINTS)
    try:
        checkpoints.save(config.epochs, stacked)
    finally:
        checkpoints.close()
    return stacked


def _episodes(config: WorldPretrainConfig, game: Game) -> tuple[Record, Record]:
    """Episodes of the scripts, to learn from and held out; `data.samples` counts transitions."""
    scripts = read_policies(config.data.types, game)
    draw_kinds = lambda key: jax.random.randint(key, (game.spec.num_agents,), 0, len(scripts), jnp.int32)  # noqa: E731
    play = recorder(game, lambda key: Cast(scripts, draw_kinds(key)), EPISODES_AT_ONCE)
    key, records, count = jax.random.key(config.data.seed + 1), [], 0
    while count < config.data.samples / (1 - config.held_out):
        records.append(jax.device_get(play(jax.random.fold_in(key, len(records)))))
        count += int(records[-1].valid.sum())
    together = jax.tree.map(lambda *leaves: np.concatenate(leaves), *records)
    cut = round(len(together.valid) * (1 - config.held_out))
    return tuple(jax.tree.map(lambda leaf, part=part: leaf[part], together) for part in (slice(cut), slice(cut, None)))


def _open(out: Path, config: WorldPretrainConfig) -> None:
    spec = make(config.data.game).spec
    about = {"format": FORMAT, "version": __version__, "game_name": spec.name, "game_version": spec.version}
    wanted = json.loads(json.dumps({"about": about, "world_settings": asdict(config)}))
    if (out / CONFIG).exists():
        if read_json(out / CONFIG).get("world_settings") != wanted["world_settings"]:
            raise ValueError(f"{out} holds something else; give the same settings, or another folder with --out")
        return
    make_empty_folder(out)
    write_json(out / CONFIG, wanted)


def load_world(folder: Path) -> tuple[WorldPretrainConfig, WorldModel]:
    """The settings of a pretrained world, and its members, stacked."""
    written = read_json(folder / CONFIG, COMMAND)
    if "world_settings" not in written:
        raise ValueError(f"{folder} holds no world; give the folder that `{COMMAND}` wrote")
    config = read_settings(WorldPretrainConfig, written["world_settings"])
    if not (folder / CHECKPOINTS).is_dir():
        raise ValueError(f"{folder} is not complete; run its `hopplus pretrain --world` to the end first")
    checkpoints = Checkpoints(folder / CHECKPOINTS, read_only=True)
    spec = make(config.data.game).spec
    init = lambda key: init_world(config.world, spec, key=key)  # noqa: E731
    shapes = jax.eval_shape(lambda: jax.vmap(init)(jax.random.split(jax.random.key(0), config.world.members)))
    try:
        if checkpoints.latest is None:
            raise ValueError(f"{folder} is not complete; run its `hopplus pretrain --world` to the end first")
        return config, checkpoints.restore(checkpoints.latest, shapes)
    finally:
        checkpoints.close()


def check_pretrained_world(config: RunConfig) -> None:
    """Raise if the pretrained world does not fit the run."""
    if config.pretrained_world is None:
        return
    pretraining, _ = load_world(Path(config.pretrained_world))
    same_board = make(pretraining.data.game).spec.interface == config.evaluation_game.spec.interface
    if pretraining.world != config.learner.world or not same_board:
        raise ValueError(
            f"--pretrained-world: {config.pretrained_world} is for {pretraining.data.game} with {pretraining.world}, "
            f"the run is for {config.game} with {config.learner.world}; give the same --world settings"
        )


def with_pretrained_world(config: RunConfig, states: LearnerState) -> LearnerState:
    """The states with a copy of the pretrained world in every learner of every seed."""
    own = states.learners.world
    if config.pretrained_world is None or own is None:
        return states
    _, members = load_world(Path(config.pretrained_world))
    params = jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape).astype(old.dtype), members, own.params)
    return replace(states, learners=replace(states.learners, world=replace(own, params=params)))
