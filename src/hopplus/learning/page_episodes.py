"""Episodes that people saved from a page of `hopplus share`, as arrays.

The file is JSON: line-ups, first states, actions and rewards; of a game whose steps draw random numbers also the keys
that they were drawn with. Nothing in it is trusted. Every episode is played again
by the game's own rules, and its rewards and its end must come out as they were saved.
"""

import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from hopplus.games.game import NO_ACTION, Game
from hopplus.learning.offline import Episodes, read

FORMAT, VERSION = "hopplus-episodes", 1
LARGEST_FILE = 200_000_000
SAME_REWARD = 1e-5
INT32 = 2**31
NO_KEYS = [[0, 0]]
"""The key of a step that draws nothing."""
PERSON = "person"
"""The name of a seat that a person played."""


@dataclass(frozen=True)
class PageEpisodes:
    """Episodes, and who sat where."""

    episodes: Episodes
    seats: tuple[tuple[str, ...], ...]
    """[episodes][agents]: the name of a script, `person`, or a run with the number of its seat."""


def read_episodes(path: Path, game: Game) -> Episodes:
    """The episodes of a file: of a page if its name ends in .json, otherwise the arrays of an `.npz` file."""
    return read_page_episodes(path, game).episodes if path.suffix == ".json" else read(path, game)


def read_page_episodes(path: Path, game: Game) -> PageEpisodes:
    """The episodes of a file; raises ValueError if it is damaged, or its episodes are not those of this game."""
    try:
        saved = _episodes_of(_parsed(path), game)
        states = [_first_state(one["first"], game) for one in saved]
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}; give a file that a page of `hopplus share` saved") from None
    first = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    actions = _padded([one["actions"] for one in saved], game, NO_ACTION, np.int32)
    rewards = _padded([one["rewards"] for one in saved], game, 0.0, np.float32)
    keys = _padded([one.get("keys") or NO_KEYS * len(one["actions"]) for one in saved], game, 0, np.uint32, 2)
    boards, in_game, paid, is_over, events = jax.device_get(_replay(game, first, actions, keys))
    _check(path, game, boards, actions, rewards, in_game, paid, is_over)
    kinds = np.full((len(saved), game.spec.num_agents), -1, np.int32)
    steps = max(len(one["actions"]) for one in saved)
    arrays = (jnp.asarray(each[:, :steps]) for each in (boards, np.maximum(actions, 0), rewards, in_game))
    episodes = Episodes(*arrays, kinds=jnp.asarray(kinds), events=jnp.asarray(events[:, :steps]))
    return PageEpisodes(episodes, tuple(tuple(one["seats"]) for one in saved))


def _parsed(path: Path) -> Any:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE:,} bytes")
        return json.loads(path.read_bytes().decode())
    except OSError as error:
        raise ValueError(str(error.strerror)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _episodes_of(content: Any, game: Game) -> list[dict[str, Any]]:
    """The list of episodes, each of which has the four entries with plain values of the right kind."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"it does not say that its format is {FORMAT}")
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise ValueError(f"it has version {content.get('version')!r} of its format, and this hopplus reads {VERSION}")
    spec, stated = game.spec, (content.get("game_name"), content.get("game_version"))
    if stated != (spec.name, spec.version):
        raise ValueError(
            f"it holds episodes of {stated[0]!r}, version {stated[1]!r}, not of {spec.name} {spec.version}"
        )
    saved = content.get("episodes")
    if not isinstance(saved, list) or not saved:
        raise ValueError("it holds no episodes")
    for number, one in enumerate(saved):
        if not isinstance(one, dict) or not {"seats", "first", "actions", "rewards"} <= one.keys():
            raise ValueError(f"episode {number} has not the entries seats, first, actions and rewards")
        if not _is_row(one["seats"], spec.num_agents, str):
            raise ValueError(f"episode {number} does not name a player for each of {spec.num_agents} seats")
        for name, kinds in (("actions", (int,)), ("rewards", (int, float))):
            rows = one[name]
            if not isinstance(rows, list) or not all(_is_row(row, spec.num_agents, *kinds) for row in rows):
                raise ValueError(f"the {name} of episode {number} are not a row of {spec.num_agents} numbers per step")
        if not 1 <= len(one["actions"]) == len(one["rewards"]) <= spec.horizon:
            raise ValueError(f"episode {number} has not as many actions as rewards, or more than {spec.horizon} steps")
        if not all(NO_ACTION <= action < spec.num_actions for row in one["actions"] for action in row):
            raise ValueError(f"episode {number} has an action that {spec.name} does not have")
        if not _are_keys(one.get("keys"), len(one["actions"])):
            raise ValueError(f"the keys of episode {number} are not two whole numbers below {2 * INT32:,} per step")
        if not all(math.isfinite(reward) for row in one["rewards"] for reward in row):
            raise ValueError(f"episode {number} has a reward that is no number")
    return saved


def _are_keys(keys: Any, steps: int) -> bool:
    """Whether there are none, or two words for each step."""
    if keys is None:
        return True
    is_list = isinstance(keys, list) and len(keys) == steps and all(_is_row(key, 2, int) for key in keys)
    return is_list and all(0 <= word < 2 * INT32 for key in keys for word in key)


def _is_row(row: Any, length: int, *kinds: type) -> bool:
    return isinstance(row, list) and len(row) == length and all(type(one) in kinds for one in row)


def _first_state(saved: Any, game: Game) -> PyTree[np.ndarray]:
    """A state of the game from its fields by name."""
    shapes = jax.eval_shape(lambda: game.reset(key=jax.random.key(0)))
    leaves, tree = jax.tree_util.tree_flatten_with_path(shapes)
    names = [".".join(jax.tree_util.keystr((key,), simple=True) for key in path) for path, _ in leaves]
    if not isinstance(saved, dict) or set(saved) != set(names):
        raise ValueError(f"a first state has not the entries {', '.join(names)}")
    found = [_leaf(name, saved[name], leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]
    return jax.tree.unflatten(tree, found)


def _leaf(name: str, saved: Any, like: jax.ShapeDtypeStruct) -> np.ndarray:
    flat = saved if isinstance(saved, list) else [saved]
    if isinstance(saved, list) != (like.ndim > 0) or len(flat) != math.prod(like.shape):
        raise ValueError(f"{name} of a first state has not the shape {like.shape}")
    is_flag = like.dtype == bool
    kind = bool if is_flag else int
    if not all(type(one) is kind and -INT32 <= one < INT32 for one in flat):
        raise ValueError(f"{name} of a first state is not of {'flags' if is_flag else 'whole numbers'}")
    return np.array(flat, like.dtype).reshape(like.shape)


def _padded(rows: list[list[Any]], game: Game, filler: float | int, dtype: Any, width: int | None = None) -> np.ndarray:
    """[episodes, horizon, agents], or another width."""
    padded = np.full((len(rows), game.spec.horizon, width or game.spec.num_agents), filler, dtype)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded


@partial(jax.jit, static_argnums=0)
def _replay(game: Game, first: PyTree[Array], actions: Array, keys: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Boards and who is in the game before each step; what it pays, whether all have left after it, and its events."""

    def one_step(state, step):
        chosen, words = step
        over = game.terminated(state)
        # A seat that has left has no action; the rules ignore what stands in its place.
        chosen = jnp.maximum(chosen, 0)
        after, rewards = game.step(state, chosen, key=jax.random.wrap_key_data(words))
        events = game.events(state, chosen, after, rewards)
        return after, (game.board(state), ~over, rewards, jnp.all(game.terminated(after)), events)

    return jax.vmap(lambda state, *steps: jax.lax.scan(one_step, state, steps)[1])(first, actions, keys)


def _check(
    path: Path,
    game: Game,
    boards: np.ndarray,
    actions: np.ndarray,
    rewards: np.ndarray,
    in_game: np.ndarray,
    paid: np.ndarray,
    is_over: np.ndarray,
) -> None:
    """Raise if an episode does not come out as it was saved."""
    walkers = boards[:, 0, ..., : game.spec.num_walkers].sum(axis=(1, 2)) if game.spec.num_walkers else np.ones((1, 1))
    faults = {
        "does not start with every player on the board": ~np.all(walkers == 1, axis=-1) | ~in_game[:, 0].all(axis=-1),
        "has actions of players that have left, or none of players that have not": ((actions >= 0) != in_game).any(
            axis=(1, 2)
        ),
        "does not pay these rewards": (abs(rewards - np.where(in_game, paid, 0)) > SAME_REWARD).any(axis=(1, 2)),
        "does not come to its end": ~is_over.any(axis=1),
    }
    for words, wrong in faults.items():
        if wrong.any():
            number = int(wrong.argmax())
            raise ValueError(f"{path}: by the rules of {game.spec.name} episode {number} {words}; play it anew")
