"""What the world of cells predicts: a distribution for each thing on the board, and how an outcome is drawn."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.core.numerics import choice_cross_entropy, flag_cross_entropy
from hopplus.games.board import random_words
from hopplus.games.game import GameSpec
from hopplus.games.rollout import sample_actions, uniforms_from_words
from hopplus.models import world_rewards
from hopplus.models.world import (
    NUM_STEPS,
    STANDS,
    Outcome,
    WorldPrediction,
    move_walkers,
    on_board,
    option_taken,
    shifted,
    shows_who_left,
)


class Prediction(WorldPrediction):
    """Distributions, as masked logits. A drawn outcome is always a possible one."""

    walkers: Float32[Array, "agents options"]
    """Up, down, left, right, stands, gone."""
    sets: Float32[Array, "height width sets"]
    """Of the cell being on, of sets whose cells are independent."""
    rewards: Float32[Array, "agents places"]
    ended: Float32[Array, " agents"]
    things: Float32[Array, "things cells"] | None = None
    """Of each set that is always in one cell."""
    comes: Float32[Array, " agents"] | None = None
    """Of a player coming back that is away."""
    homes: Float32[Array, "agents cells"] | None = None
    """Of the cell where it comes back."""
    counters: Float32[Array, "agents counters values"] | None = None

    def draw(self, spec, now, *, key):
        chosen = _chosen(self, key)
        before = now.board[..., : spec.num_walkers]
        walkers = move_walkers(before, chosen.walkers)
        if chosen.comes is not None and chosen.homes is not None:
            comes = chosen.comes & ~on_board(before)
            walkers = jnp.where(comes, _one_cell(spec, chosen.homes), walkers)
        board = jnp.concatenate([walkers, now.board[..., spec.num_walkers :]], axis=-1)
        board = board.at[..., set_planes(spec)].set(chosen.cells.astype(jnp.uint8))
        if chosen.things is not None:
            board = board.at[..., thing_planes(spec)].set(_one_cell(spec, chosen.things))
        if chosen.counters is not None:
            board = board.at[..., counter_planes(spec)].set(_counted(spec, chosen.counters))
        if (traits := category_planes(spec)).size:
            board = board.at[..., traits].set(_carried(now.board, walkers, traits))
        ended = now.ended | chosen.ends
        if shows_who_left(spec):
            ended |= ~on_board(walkers)
        rewards = world_rewards.reward_at(spec, chosen.rewards)
        if key is None:
            rewards = world_rewards.likeliest(spec, self.rewards)
        return Outcome(board=board, rewards=jnp.where(now.ended, 0.0, rewards), ended=ended)

    def expected_board(self, spec, now):
        before = now.board[..., : spec.num_walkers].astype(jnp.float32)
        chances = jax.nn.softmax(self.walkers)
        walkers = before * chances[:, STANDS]
        for move in range(NUM_STEPS):
            walkers += shifted(before, move ^ 1) * chances[:, move]
        if self.comes is not None and self.homes is not None:
            away = ~on_board(now.board[..., : spec.num_walkers])
            comes = jnp.where(away, jax.nn.sigmoid(self.comes), 0.0)
            walkers += _on_cells(spec, comes[:, None] * jax.nn.softmax(self.homes))
        board = jnp.concatenate([walkers, now.board[..., spec.num_walkers :].astype(jnp.float32)], axis=-1)
        board = board.at[..., set_planes(spec)].set(jax.nn.sigmoid(self.sets))
        if self.things is not None:
            board = board.at[..., thing_planes(spec)].set(_on_cells(spec, jax.nn.softmax(self.things)))
        if self.counters is not None:
            more = 1 - jnp.cumsum(jax.nn.softmax(self.counters), axis=-1)[..., :-1]
            shown = jnp.moveaxis(more, 0, 1).reshape(-1, more.shape[-1])
            board = board.at[..., counter_planes(spec)].set(_on_cells(spec, shown))
        if (traits := category_planes(spec)).size:
            board = board.at[..., traits].set(jnp.minimum(_carried(now.board, walkers, traits), 1.0))
        return board

    def losses(self, spec, transition):
        """Negative log-likelihoods, over walkers and seats that are in the game."""
        now, after = transition.now, transition.after
        before, then = (each.board[..., : spec.num_walkers] for each in (now, after))
        present = on_board(before)
        walkers = jnp.sum(choice_cross_entropy(self.walkers, option_taken(before, then)) * present)
        if self.comes is not None and self.homes is not None:
            came = on_board(then) & ~present
            walkers += jnp.sum(flag_cross_entropy(self.comes, came.astype(jnp.float32)) * ~present)
            walkers += jnp.sum(choice_cross_entropy(self.homes, _cell_of(then)) * came)
        if self.counters is not None:
            walkers += jnp.sum(choice_cross_entropy(self.counters, counts_of(spec, after.board)))
        on = after.board[..., set_planes(spec)].astype(jnp.float32)
        sets = jnp.sum(flag_cross_entropy(self.sets, on))
        if self.things is not None:
            sets += jnp.sum(choice_cross_entropy(self.things, _cell_of(after.board[..., thing_planes(spec)])))
        ended = after.ended.astype(jnp.float32)
        playing = (~now.ended).astype(jnp.float32)
        return {
            "walkers": walkers,
            "sets": sets,
            "reward": jnp.sum(world_rewards.surprise(spec, self.rewards, after.rewards) * playing),
            "ended": jnp.sum(flag_cross_entropy(self.ended, ended) * playing),
        }


def kinds_of(spec: GameSpec, kind: str) -> list[list[int]]:
    """The planes of a kind: those of the players together, for each thing that they have; every other one alone."""
    first_shared = spec.num_agents * spec.num_blocks
    starts = [*range(spec.num_agents, first_shared, spec.num_agents), *range(first_shared, len(spec.planes))]
    groups = [list(range(start, start + (spec.num_agents if start < first_shared else 1))) for start in starts]
    return [group for group in groups if spec.planes[group[0]].kind == kind]


def set_kinds(spec: GameSpec) -> list[list[int]]:
    """The sets whose cells are independent."""
    return [group for group in kinds_of(spec, "set") if not spec.planes[group[0]].one_cell]


def thing_kinds(spec: GameSpec) -> list[list[int]]:
    """The sets that are always in one cell."""
    return [group for group in kinds_of(spec, "set") if spec.planes[group[0]].one_cell]


def set_planes(spec: GameSpec) -> np.ndarray:
    return _all_of(set_kinds(spec))


def thing_planes(spec: GameSpec) -> np.ndarray:
    return _all_of(thing_kinds(spec))


def category_planes(spec: GameSpec) -> np.ndarray:
    return _all_of(kinds_of(spec, "category"))


def counter_planes(spec: GameSpec) -> np.ndarray:
    """[counters, agents], flattened."""
    return _all_of(kinds_of(spec, "counter"))


def _all_of(groups: list[list[int]]) -> np.ndarray:
    return np.array([plane for group in groups for plane in group], int)


def num_values(spec: GameSpec) -> int:
    """A counter is shown by as many cells."""
    return spec.height * spec.width + 1


class _Chosen(eqx.Module):
    """One outcome: options of the walkers, places of rewards, who has ended, which cells are on, and so on."""

    walkers: Int32[Array, " agents"]
    rewards: Int32[Array, " agents"]
    ends: Bool[Array, " agents"]
    cells: Bool[Array, "height width sets"]
    things: Int32[Array, " things"] | None
    comes: Bool[Array, " agents"] | None
    homes: Int32[Array, " agents"] | None
    counters: Int32[Array, "agents counters"] | None


def _chosen(predicted: Prediction, key: Key[Array, ""] | None) -> _Chosen:
    """The likeliest outcome, or a drawn one."""
    pick, flip = (_best, lambda logits: logits > 0) if key is None else _draws(predicted, key)
    some = lambda choose, logits: None if logits is None else choose(logits)  # noqa: E731
    return _Chosen(
        walkers=pick(predicted.walkers),
        rewards=pick(predicted.rewards),
        ends=flip(predicted.ended),
        cells=flip(predicted.sets),
        things=some(pick, predicted.things),
        comes=some(flip, predicted.comes),
        homes=some(pick, predicted.homes),
        counters=some(pick, predicted.counters),
    )


def _best(logits: Float32[Array, "*rows options"]) -> Int32[Array, "*rows"]:
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def _draws(predicted: Prediction, key: Key[Array, ""]) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """How an option is drawn, and how a flag: each with random numbers of its own, which are made all at once.

    Drawing is the costliest part of imagined rollouts.
    """
    some = [predicted.walkers, predicted.rewards, predicted.things, predicted.homes, predicted.counters]
    numbers = [math.prod(logits.shape[:-1]) for logits in some if logits is not None]
    numbers += [each.size for each in (predicted.ended, predicted.sets, predicted.comes) if each is not None]
    uniforms, used = uniforms_from_words(random_words(sum(numbers), key=key)), 0

    def take(shape: tuple[int, ...]) -> Array:
        nonlocal used
        used += math.prod(shape)
        return uniforms[used - math.prod(shape) : used].reshape(shape)

    def pick(logits: Array) -> Array:
        rows = logits.reshape(-1, logits.shape[-1])
        return sample_actions(jax.nn.softmax(rows), uniforms=take(rows.shape[:1])).reshape(logits.shape[:-1])

    def flip(logits: Array) -> Array:
        return jax.nn.sigmoid(logits) > take(logits.shape)

    return pick, flip


def _on_cells(spec: GameSpec, rows: Array) -> Array:
    """Rows of all cells as planes."""
    return jnp.moveaxis(rows.reshape(-1, spec.height, spec.width), 0, -1)


def _one_cell(spec: GameSpec, chosen: Int32[Array, " things"]) -> UInt8[Array, "height width things"]:
    """Planes that are on in one cell each."""
    return _on_cells(spec, (jnp.arange(spec.height * spec.width) == chosen[:, None]).astype(jnp.uint8))


def _cell_of(planes: UInt8[Array, "height width things"]) -> Int32[Array, " things"]:
    """The cell that is on in each plane."""
    return jnp.argmax(planes.reshape(-1, planes.shape[-1]), axis=0).astype(jnp.int32)


def counts_of(spec: GameSpec, board: Array) -> Int32[Array, "agents counters"]:
    """The numbers that are shown."""
    shown = jnp.sum(board[..., counter_planes(spec)], axis=(0, 1), dtype=jnp.int32)
    return shown.reshape(-1, spec.num_agents).T


def _counted(spec: GameSpec, numbers: Int32[Array, "agents counters"]) -> UInt8[Array, "height width counters_agents"]:
    """The planes that show these numbers."""
    shown = jnp.arange(spec.height * spec.width) < numbers.T.reshape(-1, 1)
    return _on_cells(spec, shown.astype(jnp.uint8))


def _carried(board: UInt8[Array, "height width planes"], walkers: Array, traits: np.ndarray) -> Array:
    """The planes of traits, where the walkers are now: each keeps those that it had."""
    before = board[..., : walkers.shape[-1]]
    has = jnp.any((before[..., :, None] & board[..., None, traits]) > 0, axis=(0, 1))
    if walkers.dtype == jnp.uint8:
        return jnp.any((walkers[..., :, None] > 0) & has, axis=-2).astype(jnp.uint8)
    return jnp.sum(walkers[..., :, None] * has, axis=-2)
