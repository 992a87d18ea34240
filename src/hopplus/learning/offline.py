"""Offline episodes as a recipe: a game, who plays, a seed and a count. The same recipe is the same data, bit for bit.

Episodes of your own come in as an `.npz` file with the arrays of `Episodes`; those made here can go out as one.
"""

import zipfile
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.games.coplayers import Memory, Policy, read_policies
from hopplus.games.game import NO_ACTION, Game, Observation, ego_views
from hopplus.games.presets import make
from hopplus.games.rollout import play_episode

EPISODES_AT_ONCE = 512
REFERENCE_SAMPLES = 107_010
"""The size of the notes' data set."""


@dataclass(frozen=True)
class Recipe:
    """What a data set is made of."""

    game: str = "stag-hunt-8x8-obstacles"
    """A name from `hopplus games`, or MODULE:FACTORY."""
    types: tuple[str, ...] = ("nearest_stag", "nearest_hare")
    """The scripts that players are drawn from: each seat of each episode has one of them, all equally likely."""
    samples: int = REFERENCE_SAMPLES
    """How many actions of players on the board; the last episode is played to its end."""
    seed: int = 0
    """Where the random streams begin."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        if self.samples < 1:
            raise ValueError(f"--data.samples is {self.samples}; give 1 or more")
        if not self.types:
            raise ValueError("--data.types is empty; name one script or more, as in nearest_stag nearest_hare")
        self.scripts()

    def scripts(self) -> tuple[Policy, ...]:
        """The types as players."""
        spec = make(self.game).spec
        return tuple(policy for text in self.types for policy in read_policies(text, spec))


class Cast(eqx.Module):
    """A table of seats that are each one of a few scripts; who is who is data, so that one program plays them all."""

    scripts: tuple[Policy, ...]
    kinds: Int32[Array, " agents"]

    def start(self) -> Memory:
        one = tuple(script.start() for script in self.scripts)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(self.kinds), *leaf.shape)), one)

    def again(self, memory: Memory) -> Memory:
        return self.start()

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], memory: Memory
    ) -> tuple[Float32[Array, "agents actions"], Memory]:
        answers = [jax.vmap(script)(observations, legal, m) for script, m in zip(self.scripts, memory, strict=True)]
        each = jnp.stack([probabilities for probabilities, _ in answers])
        chosen = jnp.arange(len(self.scripts))[:, None, None] == self.kinds[None, :, None]
        return jnp.sum(jnp.where(chosen, each, 0.0), axis=0), tuple(remembered for _, remembered in answers)


class Episodes(eqx.Module):
    """Episodes as they were played, padded to one length; what is not `in_game` is no data."""

    boards: UInt8[Array, "*episodes steps height width planes"]
    """The planes with the players in seat order."""
    actions: Int32[Array, "*episodes steps agents"]
    rewards: Float32[Array, "*episodes steps agents"]
    in_game: Bool[Array, "*episodes steps agents"]
    """Before the step."""
    kinds: Int32[Array, "*episodes agents"]
    """Which of the types each seat was; -1 where nobody knows."""

    @property
    def num_samples(self) -> int:
        return int(np.sum(self.in_game))

    def part(self, low: float | int, high: float | int) -> "Episodes":
        """The episodes between two shares of all."""
        first, last = (round(share * len(self.boards)) for share in (low, high))
        return jax.tree.map(lambda leaf: leaf[first:last], self)


def make_episodes(recipe: Recipe) -> Episodes:
    """Play until there are enough samples."""
    game, scripts = make(recipe.game), recipe.scripts()
    play = jax.jit(jax.vmap(partial(_one_episode, game, scripts)))
    parts, found = [], 0
    while found < recipe.samples:
        key = jax.random.fold_in(jax.random.key(recipe.seed), len(parts))
        parts.append(jax.device_get(play(jax.random.split(key, EPISODES_AT_ONCE))))
        found += parts[-1].num_samples
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
    """One episode in which every seat is the script that it is told to be."""
    episode = play_episode(game, Cast(scripts, kinds), key=key)
    before = jax.tree.map(lambda leaf: leaf[:-1], episode.states)
    return Episodes(
        boards=jax.vmap(game.board)(before),
        actions=episode.actions,
        rewards=episode.rewards,
        in_game=~jax.vmap(game.terminated)(before),
        kinds=kinds,
    )


def views(game: Game, episodes: Episodes) -> tuple[Observation, Bool[Array, "episodes steps agents actions"]]:
    """What every seat saw, and what it might do."""

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
    """What each script would have done in the place of one player, step by step."""

    def one_step(memory, step):
        answers = [script(step[0], step[1], one) for script, one in zip(scripts, memory, strict=True)]
        return tuple(after for _, after in answers), jnp.stack([probabilities for probabilities, _ in answers])

    return jax.lax.scan(one_step, tuple(script.start() for script in scripts), (observations, legal))[1]


def save(episodes: Episodes, path: Path) -> None:
    """Write an `.npz` file that anybody can read with NumPy."""
    arrays: dict[str, Any] = {field.name: np.asarray(getattr(episodes, field.name)) for field in fields(episodes)}
    np.savez_compressed(path, **arrays)


def read(path: Path, game: Game) -> Episodes:
    """Read episodes from an `.npz` file; raises ValueError where they do not fit the game."""
    names = [field.name for field in fields(Episodes)]
    try:
        with np.load(path) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in names if name in stored}
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as an .npz file ({error}); give one with the arrays {names}") from None
    if "kinds" not in arrays and "actions" in arrays:
        arrays["kinds"] = np.full((len(arrays["actions"]), game.spec.num_agents), -1, np.int32)
    if missing := [name for name in names if name not in arrays]:
        raise ValueError(f"{path} has no array {missing[0]!r}; it needs {', '.join(names[:-1])} and may have kinds")
    _check_fits(path, arrays, game)
    kinds = {"boards": np.uint8, "rewards": np.float32, "in_game": bool}
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
    for name, fits in wanted.items():
        if arrays[name].shape != fits:
            raise ValueError(f"{name!r} in {path} has shape {arrays[name].shape}; {spec.name} needs {fits}")
    if not np.issubdtype(arrays["actions"].dtype, np.integer):
        raise ValueError(f"the actions in {path} are {arrays['actions'].dtype}; give whole numbers")
    played = arrays["actions"][arrays["in_game"].astype(bool)]
    if played.size == 0 or played.min() < 0 or played.max() >= spec.num_actions:
        raise ValueError(f"the actions in {path} are not all from 0 to {spec.num_actions - 1}, or there are none")
