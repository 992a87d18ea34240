"""Offline episodes from a recipe: a game, scripts, a seed and a count. The same recipe gives the same bits.

Other episodes can be read from an `.npz` file with the arrays of `Episodes`; episodes made here can be written to one.
"""

import zipfile
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.games.coplayers import Policy, PolicyState
from hopplus.games.fields import Observation
from hopplus.games.game import NO_ACTION, Game, ego_views
from hopplus.games.lineups import read_policies
from hopplus.games.presets import make
from hopplus.games.rollout import play_episode
from hopplus.learning.pretrain_config import Recipe

EPISODES_AT_ONCE = 512


class Cast(eqx.Module):
    """A line-up in which each seat is one of a few scripts; which one is data, so that one program plays all."""

    scripts: tuple[Policy, ...]
    kinds: Int32[Array, " agents"]

    def init(self) -> PolicyState:
        one = tuple(script.init() for script in self.scripts)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(self.kinds), *leaf.shape)), one)

    def next_episode(self, state: PolicyState) -> PolicyState:
        return self.init()

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], state: PolicyState
    ) -> tuple[Float32[Array, "agents actions"], PolicyState]:
        answers = [jax.vmap(script)(observations, legal, m) for script, m in zip(self.scripts, state, strict=True)]
        each = jnp.stack([probabilities for probabilities, _ in answers])
        chosen = jnp.arange(len(self.scripts))[:, None, None] == self.kinds[None, :, None]
        return jnp.sum(jnp.where(chosen, each, 0.0), axis=0), tuple(after for _, after in answers)


class Episodes(eqx.Module):
    """Recorded episodes, padded to one length; steps that are not `in_game` are padding."""

    boards: UInt8[Array, "*episodes steps height width planes"]
    """The planes with the players in seat order."""
    actions: Int32[Array, "*episodes steps agents"]
    rewards: Float32[Array, "*episodes steps agents"]
    in_game: Bool[Array, "*episodes steps agents"]
    """Before the step."""
    kinds: Int32[Array, "*episodes agents"]
    """Which of the types each seat was; -1 where that is unknown."""
    events: Bool[Array, "*episodes steps events agents"] | None = None
    """Which events of the game happened to each seat; None where that was not recorded."""

    @property
    def num_samples(self) -> int:
        return int(np.sum(self.in_game))

    def part(self, low: float | int, high: float | int) -> "Episodes":
        """The episodes between two shares of the data set."""
        first, last = (round(share * len(self.boards)) for share in (low, high))
        return jax.tree.map(lambda leaf: leaf[first:last], self)


def scripts_of(recipe: Recipe) -> tuple[Policy, ...]:
    """The types of a recipe as players."""
    return read_policies(recipe.types, make(recipe.game))


def make_episodes(recipe: Recipe) -> Episodes:
    """The data set of a recipe."""
    game, scripts = make(recipe.game), scripts_of(recipe)
    play = jax.jit(jax.vmap(partial(_one_episode, game, scripts)))
    parts, count = [], 0
    while count < recipe.samples:
        key = jax.random.fold_in(jax.random.key(recipe.seed), len(parts))
        parts.append(jax.device_get(play(jax.random.split(key, EPISODES_AT_ONCE))))
        count += parts[-1].num_samples
    every = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    samples = np.cumsum(every.in_game.sum(axis=(1, 2)))
    return jax.tree.map(lambda leaf: leaf[: int(np.searchsorted(samples, recipe.samples)) + 1], every)


def _one_episode(game: Game, scripts: tuple[Policy, ...], key: Key[Array, ""]) -> Episodes:
    cast_key, play_key = jax.random.split(key)
    kinds = jax.random.randint(cast_key, (game.spec.num_agents,), 0, len(scripts), jnp.int32)
    return play_cast(game, scripts, kinds, key=play_key)


def play_cast(
    game: Game, scripts: tuple[Policy, ...], kinds: Int32[Array, " agents"], *, key: Key[Array, ""]
) -> Episodes:
    """One episode in which the seats play the scripts of these numbers."""
    episode = play_episode(game, Cast(scripts, kinds), key=key)
    before = jax.tree.map(lambda leaf: leaf[:-1], episode.states)
    after = jax.tree.map(lambda leaf: leaf[1:], episode.states)
    return Episodes(
        boards=jax.vmap(game.board)(before),
        actions=episode.actions,
        rewards=episode.rewards,
        in_game=~jax.vmap(game.terminated)(before),
        kinds=kinds,
        events=jax.vmap(game.events)(before, episode.actions, after, episode.rewards),
    )


def views(game: Game, episodes: Episodes) -> tuple[Observation, Bool[Array, "episodes steps agents actions"]]:
    """The views of every seat, and its legal actions."""

    def one_episode(boards, actions, in_game):
        shifted = jnp.where(in_game, actions, NO_ACTION)[:-1]
        last = jnp.concatenate([jnp.full_like(actions[:1], NO_ACTION), shifted])
        times = jnp.arange(len(boards), dtype=jnp.int32)
        seen = jax.vmap(partial(ego_views, game.spec))(boards, in_game, times, last)
        return seen, jax.vmap(jax.vmap(game.legal_in_view))(seen)

    return jax.vmap(one_episode)(episodes.boards, episodes.actions, episodes.in_game)


def script_predictions(
    scripts: tuple[Policy, ...], observations: Observation, legal: Bool[Array, "steps actions"]
) -> Float32[Array, "steps scripts actions"]:
    """Each script's action probabilities in the place of one player, step by step."""

    def one_step(states, step):
        answers = [script(step[0], step[1], one) for script, one in zip(scripts, states, strict=True)]
        return tuple(after for _, after in answers), jnp.stack([probabilities for probabilities, _ in answers])

    return jax.lax.scan(one_step, tuple(script.init() for script in scripts), (observations, legal))[1]


def save(episodes: Episodes, path: Path) -> None:
    """Write an `.npz` file that NumPy can read."""
    known = {field.name: getattr(episodes, field.name) for field in fields(episodes)}
    arrays: dict[str, Any] = {name: np.asarray(array) for name, array in known.items() if array is not None}
    np.savez_compressed(path, **arrays)


def read(path: Path, game: Game) -> Episodes:
    """The episodes of an `.npz` file; raises ValueError if they do not fit the game."""
    names = [field.name for field in fields(Episodes)]
    try:
        with np.load(path) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in names if name in stored}
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as an .npz file ({error}); give one with the arrays {names}") from None
    if "kinds" not in arrays and "actions" in arrays:
        arrays["kinds"] = np.full((len(arrays["actions"]), game.spec.num_agents), -1, np.int32)
    if missing := [name for name in names if name not in {*arrays, "events"}]:
        raise ValueError(
            f"{path} has no array {missing[0]!r}; it needs {', '.join(names[:-2])} and may have kinds and events"
        )
    _check_fits(path, arrays, game)
    kinds = {"boards": np.uint8, "rewards": np.float32, "in_game": bool, "events": bool}
    return Episodes(**{name: jnp.asarray(array, kinds.get(name, np.int32)) for name, array in arrays.items()})


def _check_fits(path: Path, arrays: dict[str, np.ndarray], game: Game) -> None:
    spec = game.spec
    shape = arrays["actions"].shape
    if len(shape) != 3 or shape[1] > spec.horizon or shape[2] != spec.num_agents:
        raise ValueError(
            f"the actions in {path} have shape {shape}; {spec.name} needs [episodes, steps, {spec.num_agents}] "
            f"with at most {spec.horizon} steps"
        )
    board = (*shape[:2], spec.height, spec.width, len(spec.planes))
    wanted = {"boards": board, "rewards": shape, "in_game": shape, "kinds": (shape[0], shape[2])}
    if "events" in arrays:
        wanted["events"] = (*shape[:2], len(spec.events), shape[2])
    for name, fits in wanted.items():
        if arrays[name].shape != fits:
            raise ValueError(f"{name!r} in {path} has shape {arrays[name].shape}; {spec.name} needs {fits}")
    if not np.issubdtype(arrays["actions"].dtype, np.integer):
        raise ValueError(f"the actions in {path} are {arrays['actions'].dtype}; give whole numbers")
    played = arrays["actions"][arrays["in_game"].astype(bool)]
    if played.size == 0 or played.min() < 0 or played.max() >= spec.num_actions:
        raise ValueError(f"the actions in {path} are not all from 0 to {spec.num_actions - 1}, or there are none")
