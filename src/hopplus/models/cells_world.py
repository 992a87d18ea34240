"""The world of cells: every cell of a board reads its neighbourhood, every seat its own cell and a sum over all.

Predictions are distributions of the plane's kind, masked to what is possible:

    walker     one of: stay, the four cells around, gone    masked to free cells of the board. Where the game says that
                                                            players return: whether one that is away comes, and where
    set        each cell on or off                          in units of "it stays as it is"
               one of all cells                             of a set that is always in one cell
    counter    one of all numbers, for each player
    category   goes with its walker
    fixed      copied
    reward     one of the game's reward support, or of the bins of `world_rewards`, for each seat
    end        for each seat; for ever

**What a cell reads.** On a board where players act on their own cell only, it reads what lies on it and around it, and
the number of players with each action there, so that two hunters differ from one. Otherwise, where things are taken
from beside or on arrival, or players carry traits, counters or things of their own, it reads all of that on the nine
cells around, players and what they do included, and then what its four neighbours have read: who else comes to the cell
where a player goes. The planes say which (`acts_at_a_distance`).

A seat reads its own cell, the cells of the things that are its own, its action, and a sum over all cells.
"""

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Key, UInt8

from hopplus.core.numerics import MASKED
from hopplus.games.game import GameSpec
from hopplus.models.cells_prediction import (
    Prediction,
    counter_planes,
    counts_of,
    kinds_of,
    num_values,
    set_kinds,
    set_planes,
    thing_kinds,
    thing_planes,
)
from hopplus.models.config import WorldConfig
from hopplus.models.networks import Dense, Heads, init_dense, init_heads
from hopplus.models.world import GONE, NUM_STEPS, STANDS, UNCHANGED, WorldModel, on_board, shifted
from hopplus.models.world_rewards import num_rewards

MOST_TOGETHER = 4
"""Up to so many players on a cell are distinguished exactly, where cells read their neighbours."""


class World(WorldModel):
    """The parameters."""

    is_symmetric: ClassVar[bool] = True
    cell: Dense
    sets: Heads | None
    """Whether a set keeps what it has on the cell: an output for each kind of set."""
    pool: Dense
    seat: Dense
    mixed: Dense
    heads: Heads
    """The walker's option, the reward, whether it comes back, its counters, the end."""
    around: Dense | None = None
    """Of a cell, its neighbours and what they have read."""
    things: Heads | None = None
    """Of each kind of set that is in one cell: whether it is on this cell, if it was elsewhere and if it was here."""
    homes: Heads | None = None
    """Whether a player that comes back is on this cell."""

    def __call__(self, spec, now):
        board = now.board.astype(jnp.float32)
        walkers = board[..., : spec.num_walkers]
        did = jax.nn.one_hot(now.actions, spec.num_actions)
        cells = self._cells(spec, board, did)
        there = jnp.einsum("hwi,hwf->if", walkers, cells)
        pooled = jnp.sum(jax.nn.relu(_everywhere(self.pool)(cells)), axis=(0, 1))
        free = _free_around(spec, now.board)
        last_step = jnp.full((spec.num_agents, 1), now.time + 1 >= spec.horizon, jnp.float32)
        for_all = jnp.broadcast_to(pooled, (spec.num_agents, len(pooled)))
        ended = now.ended[:, None].astype(jnp.float32)
        own = _own_things(spec, board, cells)
        seats = jnp.concatenate([there, for_all, did, free.astype(jnp.float32), last_step, ended, *own], axis=-1)
        hidden = jax.nn.relu(jax.vmap(self.mixed)(jax.nn.relu(jax.vmap(self.seat)(seats))))
        outputs = jax.vmap(self.heads)(hidden)
        options = outputs[:, : GONE + 1].at[:, STANDS].add(UNCHANGED)
        ends = np.cumsum([GONE + 1, num_rewards(spec), *_num_more(spec)])
        _, rewards, comes, counters, ended_logits = jnp.split(outputs, ends, axis=-1)
        return Prediction(
            walkers=jnp.where(_possible(free, now.board, spec), options, MASKED),
            sets=_of_sets(spec, self.sets, board, cells),
            rewards=rewards,
            ended=ended_logits[:, 0],
            things=_of_things(spec, self.things, board, cells) if self.things else None,
            comes=comes[:, 0] - UNCHANGED if self.homes else None,
            homes=_of_homes(spec, self.homes, cells) if self.homes else None,
            counters=counters.reshape(spec.num_agents, -1, num_values(spec)) if counter_planes(spec).size else None,
        )

    def _cells(
        self, spec: GameSpec, board: Float32[Array, "height width planes"], did: Float32[Array, "agents actions"]
    ) -> Float32[Array, "height width hidden"]:
        walkers, shared = board[..., : spec.num_walkers], board[..., spec.num_walkers :]
        counts = jnp.tensordot(walkers, did, 1)
        if self.around is None:
            at_least = counts[..., None] >= np.arange(1, spec.num_agents + 1)
            around = [shifted(shared, move) for move in range(NUM_STEPS)]
            content = jnp.concatenate([shared, *around, at_least.reshape(*counts.shape[:2], -1)], axis=-1)
            return jax.nn.relu(_everywhere(self.cell)(content))
        lies = [jnp.sum(board[..., np.array(kind, int)], axis=-1, keepdims=True) for kind in _seen_kinds(spec)]
        together = jnp.sum(walkers, axis=-1, keepdims=True) >= np.arange(1, _most_together(spec) + 1)
        floor = jnp.ones((*board.shape[:2], 1), jnp.float32)
        content = jnp.concatenate([*lies, counts, together.astype(jnp.float32), floor], axis=-1)
        first = jax.nn.relu(_everywhere(self.cell)(_nine(content)))
        neighbours = [shifted(first, move) for move in range(NUM_STEPS)]
        return jax.nn.relu(_everywhere(self.around)(jnp.concatenate([content, first, *neighbours], axis=-1)))


def init(config: WorldConfig, spec: GameSpec, *, key: Key[Array, ""]) -> World:
    """A world of cells that starts by predicting almost no change."""
    cell_key, sets_key, pool_key, seat_key, mixed_key, heads_key = jax.random.split(key, 6)
    hidden, num_shared = config.hidden, len(spec.planes) - spec.num_walkers
    num_cell = num_shared * (1 + NUM_STEPS) + spec.num_agents * spec.num_actions
    num_seat = hidden + config.pooled + spec.num_actions + NUM_STEPS + 2
    more = {}
    if acts_at_a_distance(spec):
        around_key, things_key, homes_key = jax.random.split(jax.random.fold_in(key, 1), 3)
        num_content = len(_seen_kinds(spec)) + spec.num_actions + _most_together(spec) + 1
        num_cell = 9 * num_content
        num_seat += len(_own_sets(spec)) * (hidden + NUM_STEPS + 1) + len(kinds_of(spec, "counter")) * num_values(spec)
        more["around"] = init_dense(num_content + (1 + NUM_STEPS) * hidden, hidden, 2**0.5, key=around_key)
        if num_things := len(thing_kinds(spec)):
            more["things"] = init_heads(hidden, [0.01] * 2 * num_things, key=things_key)
        if spec.walkers_return:
            more["homes"] = init_heads(hidden, [0.01], key=homes_key)
    gains = [0.01] * (NUM_STEPS + 2 + num_rewards(spec) + sum(_num_more(spec)) + 1)
    return World(
        cell=init_dense(num_cell, hidden, 2**0.5, key=cell_key),
        sets=init_heads(hidden, [0.01] * len(set_kinds(spec)), key=sets_key) if set_kinds(spec) else None,
        pool=init_dense(hidden, config.pooled, 1.0, key=pool_key),
        seat=init_dense(num_seat, hidden, 2**0.5, key=seat_key),
        mixed=init_dense(hidden, hidden, 2**0.5, key=mixed_key),
        heads=init_heads(hidden, gains, key=heads_key),
        **more,
    )


def acts_at_a_distance(spec: GameSpec) -> bool:
    """Whether a player changes more than its own cell, or has more than a place: then cells read their neighbours."""
    beyond = [plane.kind in ("category", "counter") or plane.per_player or plane.one_cell for plane in spec.planes]
    return any(beyond) or spec.walkers_return or any(plane.reached != "on" for plane in spec.planes)


def _own_sets(spec: GameSpec) -> list[list[int]]:
    """The sets that every player has one of."""
    return [group for group in kinds_of(spec, "set") if spec.planes[group[0]].per_player]


def _seen_kinds(spec: GameSpec) -> list[list[int]]:
    """What lies on a cell, for a cell that does not know whose it is; a counter lies nowhere."""
    return [group for kind in ("fixed", "set", "category") for group in kinds_of(spec, kind)]


def _kind_of_each(kinds: list[list[int]]) -> list[int]:
    return [number for number, group in enumerate(kinds) for _ in group]


def _most_together(spec: GameSpec) -> int:
    return min(spec.num_agents, MOST_TOGETHER)


def _num_more(spec: GameSpec) -> tuple[int, int]:
    """How many outputs of a seat are about coming back, and about its counters."""
    return int(spec.walkers_return), len(kinds_of(spec, "counter")) * num_values(spec)


def _everywhere(layer: Dense) -> Callable[[Array], Array]:
    return jax.vmap(jax.vmap(layer))


def _nine(content: Float32[Array, "height width features"]) -> Float32[Array, "height width nine_features"]:
    """The content of the nine cells around each."""
    height, width = content.shape[:2]
    padded = jnp.pad(content, ((1, 1), (1, 1), (0, 0)))
    parts = [padded[row : row + height, column : column + width] for row in range(3) for column in range(3)]
    return jnp.concatenate(parts, axis=-1)


def _own_things(
    spec: GameSpec, board: Float32[Array, "height width planes"], cells: Float32[Array, "height width hidden"]
) -> list[Float32[Array, "agents features"]]:
    """What each seat reads of its own sets and counters: the cells of a set, whether the seat is on or beside one."""
    found, walkers = [], board[..., : spec.num_walkers]
    for group in _own_sets(spec):
        own = board[..., np.array(group, int)]
        beside = [jnp.sum(walkers * shifted(own, move), axis=(0, 1)) for move in range(NUM_STEPS)]
        found.append(jnp.einsum("hwi,hwf->if", own, cells))
        found.append(jnp.stack([jnp.sum(walkers * own, axis=(0, 1)), *beside], axis=-1))
    if counter_planes(spec).size:
        found.append(jax.nn.one_hot(counts_of(spec, board), num_values(spec)).reshape(spec.num_agents, -1))
    return found


def _of_sets(
    spec: GameSpec,
    heads: Heads | None,
    board: Float32[Array, "height width planes"],
    cells: Float32[Array, "h w hidden"],
) -> Float32[Array, "height width sets"]:
    on = board[..., set_planes(spec)]
    if heads is None:
        return on
    keeps = cells @ heads.weight.T + heads.bias
    if (kinds := _kind_of_each(set_kinds(spec))) != list(range(len(heads.bias))):
        keeps = keeps[..., np.array(kinds, int)]
    return (2 * on - 1) * (UNCHANGED + keeps)


def _of_things(
    spec: GameSpec, heads: Heads, board: Float32[Array, "height width planes"], cells: Float32[Array, "h w hidden"]
) -> Float32[Array, "things cells"]:
    outputs = (cells @ heads.weight.T + heads.bias).reshape(spec.height * spec.width, -1, 2)
    outputs = outputs[:, np.array(_kind_of_each(thing_kinds(spec)), int)]
    on = board[..., thing_planes(spec)].reshape(spec.height * spec.width, -1)
    return jnp.where(on > 0, 2 * UNCHANGED + outputs[..., 1], outputs[..., 0]).T


def _of_homes(
    spec: GameSpec, heads: Heads, cells: Float32[Array, "height width hidden"]
) -> Float32[Array, "agents cells"]:
    logits = (cells @ heads.weight.T + heads.bias).reshape(-1)
    return jnp.broadcast_to(logits, (spec.num_agents, len(logits)))


def _free_around(spec: GameSpec, board: UInt8[Array, "height width planes"]) -> Bool[Array, "agents moves"]:
    """Which of the four moves lead a walker to a free cell of the board."""
    floor = jnp.ones((spec.height, spec.width, 1), bool)
    if spec.has_plane("obstacles"):
        floor = board[..., spec.plane_index("obstacles")][..., None] == 0
    walkers = board[..., : spec.num_walkers] > 0
    return jnp.stack([jnp.any(walkers & shifted(floor, move), axis=(0, 1)) for move in range(NUM_STEPS)], axis=-1)


def _possible(
    free: Bool[Array, "agents moves"], board: UInt8[Array, "height width planes"], spec: GameSpec
) -> Bool[Array, "agents options"]:
    present = on_board(board[..., : spec.num_walkers])[:, None]
    return jnp.concatenate([free, present, jnp.ones_like(present)], axis=-1)
