"""Pictures of boards, played by scripts, and of what models believe on them."""

from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from hopplus.agents.config import OpponentsConfig
from hopplus.games import lineup
from hopplus.games.draw import Frame, catches, frames, off_board
from hopplus.games.pictures import save_gif, save_picture
from hopplus.games.presets import make
from hopplus.games.rollout import play_episode
from hopplus.learning.offline import Cast, make_episodes, play_cast, scripts_of
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.learning.pretraining import Trainer, init, material, predict
from hopplus.models.config import GoalsConfig, OthersConfig
from hopplus.report import prediction

COINS, FORAGING, SNOWDRIFT = (4, 4), (6, 10), (5, -1)
"""A seed and a step of its episode: one that shows what the page says."""
STAG_HUNT, HARVEST = 24, 0
GALLERY_FRAMES = 15


def played(game_name: str, players: str, seed: int) -> list[Frame]:
    """The frames of an episode of scripts."""
    game = make(game_name)
    return frames(game, jax.jit(lambda key: play_episode(game, lineup(players, game), key=key))(jax.random.key(seed)))


def _step(game: str, players: str, seed: int, step: int, path: Path) -> None:
    shown = played(game, players, seed)
    save_picture(make(game).spec, shown[step], path, shown[step - 1], players.split(","))


def coins(path: Path) -> None:
    _step("coins-3x3", "any_coins,any_coins", *COINS, path)


def foraging(path: Path) -> None:
    _step("foraging-8x8", "strongest_food,strongest_food,easy_food,easy_food", *FORAGING, path)


def harvest(path: Path) -> None:
    """The first step in which two players eat and one is away."""
    players = "sustainable,greedy,zapper,greedy"
    spec, shown = make("harvest-8x8-beam").spec, played("harvest-8x8-beam", players, HARVEST)
    for before, after in pairwise(shown):
        if len(catches(spec, before, after)) >= 2 and off_board(spec, after).any():
            return save_picture(spec, after, path, before, players.split(","))
    raise RuntimeError(f"no such step with the seed {HARVEST}; take another")


def snowdrift(path: Path) -> None:
    """The last drift; three remove, one only profits."""
    _step("snowdrift-8x8", "nearest_drift,nearest_drift,nearest_drift,idler", *SNOWDRIFT, path)


def stag_hunt(path: Path) -> None:
    """Four scripts: two catch the stag, one takes a hare, one gives up waiting."""
    players = "nearest_stag,patient_stag(3),nearest_hare,nearest_stag"
    save_gif(make("stag-hunt-8x8").spec, played("stag-hunt-8x8", players, STAG_HUNT), path, players.split(","))


def gallery(game: str, players: str, seed: int, path: Path) -> None:
    """The first steps of an episode of scripts."""
    save_gif(make(game).spec, played(game, players, seed)[:GALLERY_FRAMES], path, players.split(","))


def beliefs() -> Figure:
    """Two stag hunters and two hare hunters, and the beliefs of models that saw 30,000 samples."""
    game_name = "stag-hunt-8x8"
    models = OpponentsConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="shared", keys=16))
    config = PretrainConfig(data=Recipe(game=game_name, samples=30_000), opponents=models, labels="types")
    game, scripts = make(game_name), scripts_of(config.data)
    trainer = Trainer(config, material(config, game, make_episodes(config.data)))
    state = init(config, key=jax.random.key(0))
    for _ in range(3):
        state, _ = trainer.epoch(state)
    kinds, key = jnp.array([0, 1, 0, 1], jnp.int32), jax.random.key(7)
    episode = play_episode(game, Cast(scripts, kinds), key=key)
    recorded = jax.tree.map(lambda leaf: np.asarray(leaf)[None], play_cast(game, scripts, kinds, key=key))
    believed = predict(config, state.opponents.params, material(config, game, recorded)).beliefs[0]
    shown = frames(game, jax.device_get(episode))
    num_steps = int(np.asarray(recorded.in_game)[0].any(axis=-1).sum())
    moments = sorted({0, num_steps // 3, 2 * num_steps // 3, num_steps - 1})
    names = [f"player_{seat + 1}: {config.data.types[int(kind)]}" for seat, kind in enumerate(kinds)]
    goals = ("hunts stags", "hunts hares", "other")
    return prediction.belief_strip(game.spec, shown, np.asarray(believed)[:num_steps], goals, names, moments)
