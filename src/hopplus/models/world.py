"""The world: what a joint action does to the board, to every seat's reward and to who is still in the game.

Boards and actions are in one seat order, the ego's; any order will do, because seats are told apart by where they stand
and what they do alone. Predictions are distributions of the kind that a plane is, masked to what can happen at all:

    walker   one of: stay, the four cells around, gone      masked to free cells of the board; gone is for ever
    set      each cell on or off                            in units of "it stays as it is"
    fixed    copied
    reward   one of the game's reward support, for each seat
    end      for each seat; for ever

A cell reads what lies on it and around it and how many players do what there: counts, so that two hunters are told from
one. A seat reads its own cell, what it does, and a sum over all cells.
"""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.games.board import COLUMN_STEPS, ROW_STEPS, random_words
from hopplus.games.game import NO_ACTION, Game, GameSpec, Observation, as_played, ego_views, steps_passed
from hopplus.games.rollout import levels_from_words, sample_actions
from hopplus.models.networks import Dense, Heads, check_least, init_dense, init_heads

NEVER = -1e9
NUM_STEPS = len(ROW_STEPS)
STANDS, GONE = NUM_STEPS, NUM_STEPS + 1
"""What becomes of a walker, after the four moves."""
UNCHANGED = 3.0
"""How sure an untrained world is that a cell of a set stays as it is."""
Metrics = dict[str, Array]


@dataclass(frozen=True)
class WorldConfig:
    """The model of the world."""

    members: int = 0
    """Models that are trained side by side, each from other samples: where they differ, nobody knows. 0: no world."""
    hidden: int = 64
    """Width of the layers that read a cell and a seat."""
    pooled: int = 16
    """How many sums over the whole board a seat reads."""

    @property
    def is_used(self) -> bool:
        return self.members > 0

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        check_least("world", self, 0, "members")
        check_least("world", self, 1, "hidden", "pooled")


class Situation(eqx.Module):
    """What the world reads: a board in somebody's seat order, and what is done on it."""

    board: UInt8[Array, "*batch height width planes"]
    time: Int32[Array, "*batch"]
    """Steps that were played before."""
    actions: Int32[Array, "*batch agents"]
    ended: Bool[Array, "*batch agents"]
    """Whether the seat was out of the game before."""


class Outcome(eqx.Module):
    """What the world says comes after."""

    board: UInt8[Array, "*batch height width planes"]
    rewards: Float32[Array, "*batch agents"]
    ended: Bool[Array, "*batch agents"]


class Transition(eqx.Module):
    """What happened: what a world learns from, and is judged by."""

    now: Situation
    after: Outcome


def seen_by(spec: GameSpec, happened: Transition, order: Int32[Array, " agents"]) -> Transition:
    """The same in another order of seats, planes and actions alike."""
    now, after = happened.now, happened.after
    planes = jnp.concatenate([order, jnp.arange(spec.num_walkers, len(spec.planes), dtype=order.dtype)])
    return Transition(
        Situation(now.board[..., planes], now.time, now.actions[..., order], now.ended[..., order]),
        Outcome(after.board[..., planes], after.rewards[..., order], after.ended[..., order]),
    )


class World(eqx.Module):
    """The parameters of one member."""

    cell: Dense
    sets: Heads
    """Whether each set plane keeps what it has on the cell."""
    pool: Dense
    seat: Dense
    mixed: Dense
    heads: Heads
    """What becomes of the walker, the reward, the end."""


class Prediction(eqx.Module):
    """Distributions, as masked logits."""

    walkers: Float32[Array, "agents options"]
    """Up, down, left, right, stands, gone."""
    sets: Float32[Array, "height width sets"]
    """Of the cell being on."""
    rewards: Float32[Array, "agents support"]
    ended: Float32[Array, " agents"]


def set_planes(spec: GameSpec) -> list[int]:
    return [index for index, plane in enumerate(spec.planes) if plane.kind == "set"]


def init(config: WorldConfig, spec: GameSpec, *, key: Key[Array, ""]) -> World:
    """A world in which nothing happens, more or less."""
    cell_key, sets_key, pool_key, seat_key, mixed_key, heads_key = jax.random.split(key, 6)
    hidden, num_shared = config.hidden, len(spec.planes) - spec.num_walkers
    num_cell = num_shared * (1 + NUM_STEPS) + spec.num_agents * spec.num_actions
    num_seat = hidden + config.pooled + spec.num_actions + NUM_STEPS + 2
    gains = [0.01] * (NUM_STEPS + 2 + len(spec.reward_support) + 1)
    return World(
        cell=init_dense(num_cell, hidden, 2**0.5, key=cell_key),
        sets=init_heads(hidden, [0.01] * len(set_planes(spec)), key=sets_key),
        pool=init_dense(hidden, config.pooled, 1.0, key=pool_key),
        seat=init_dense(num_seat, hidden, 2**0.5, key=seat_key),
        mixed=init_dense(hidden, hidden, 2**0.5, key=mixed_key),
        heads=init_heads(hidden, gains, key=heads_key),
    )


def apply(params: World, spec: GameSpec, now: Situation) -> Prediction:
    """The distributions of what comes next."""
    board = now.board.astype(jnp.float32)
    walkers, shared = board[..., : spec.num_walkers], board[..., spec.num_walkers :]
    did = jax.nn.one_hot(now.actions, spec.num_actions)
    counts = jnp.tensordot(walkers, did, 1)
    at_least = counts[..., None] >= np.arange(1, spec.num_agents + 1)
    around = [shifted(shared, move) for move in range(NUM_STEPS)]
    content = jnp.concatenate([shared, *around, at_least.reshape(*counts.shape[:2], -1)], axis=-1)
    everywhere = lambda layer: jax.vmap(jax.vmap(layer))  # noqa: E731
    cells = jax.nn.relu(everywhere(params.cell)(content))

    there = jnp.einsum("hwi,hwf->if", walkers, cells)
    pooled = jnp.sum(jax.nn.relu(everywhere(params.pool)(cells)), axis=(0, 1))
    free = _free_around(spec, now.board)
    last_step = jnp.full((spec.num_agents, 1), now.time + 1 >= spec.horizon, jnp.float32)
    for_all = jnp.broadcast_to(pooled, (spec.num_agents, len(pooled)))
    ended = now.ended[:, None].astype(jnp.float32)
    seats = jnp.concatenate([there, for_all, did, free.astype(jnp.float32), last_step, ended], axis=-1)
    hidden = jax.nn.relu(jax.vmap(params.mixed)(jax.nn.relu(jax.vmap(params.seat)(seats))))
    outputs = jax.vmap(params.heads)(hidden)
    options = outputs[:, : GONE + 1].at[:, STANDS].add(UNCHANGED)
    on = board[..., np.array(set_planes(spec), int)]
    return Prediction(
        walkers=jnp.where(_possible(free, now.board, spec), options, NEVER),
        sets=(2 * on - 1) * (UNCHANGED + cells @ params.sets.weight.T + params.sets.bias),
        rewards=outputs[:, GONE + 1 : -1],
        ended=outputs[:, -1],
    )


def draw(spec: GameSpec, now: Situation, predicted: Prediction, *, key: Key[Array, ""] | None) -> Outcome:
    """One outcome: drawn, or the likeliest without a key. Nothing impossible can come out."""
    walkers, paid, ends, cells = _likeliest(predicted) if key is None else _drawn(predicted, key=key)
    rewards = jnp.asarray(spec.reward_support, jnp.float32)[paid]
    moved = move_walkers(now.board[..., : spec.num_walkers], walkers)
    board = jnp.concatenate([moved, now.board[..., spec.num_walkers :]], axis=-1)
    board = board.at[..., np.array(set_planes(spec), int)].set(cells.astype(jnp.uint8))
    return Outcome(
        board=board,
        rewards=jnp.where(now.ended, 0.0, rewards),
        ended=now.ended | ends | ~_on_board(moved),
    )


Draws = tuple[
    Int32[Array, " agents"], Int32[Array, " agents"], Bool[Array, " agents"], Bool[Array, "height width sets"]
]
"""Options of the walkers, places in the reward support, who has ended, which cells are on."""


def _likeliest(predicted: Prediction) -> Draws:
    best = lambda logits: jnp.argmax(logits, axis=-1).astype(jnp.int32)  # noqa: E731
    return best(predicted.walkers), best(predicted.rewards), predicted.ended > 0, predicted.sets > 0


def _drawn(predicted: Prediction, *, key: Key[Array, ""]) -> Draws:
    """One random number for each of them: imagined play draws more than it does anything else."""
    num_agents, shape = len(predicted.ended), predicted.sets.shape
    levels = levels_from_words(random_words(3 * num_agents + math.prod(shape), key=key))
    for_walkers, for_rewards, for_ends, for_cells = jnp.split(levels, np.arange(1, 4) * num_agents)
    return (
        sample_actions(jax.nn.softmax(predicted.walkers), levels=for_walkers),
        sample_actions(jax.nn.softmax(predicted.rewards), levels=for_rewards),
        jax.nn.sigmoid(predicted.ended) > for_ends,
        jax.nn.sigmoid(predicted.sets) > for_cells.reshape(shape),
    )


def expected_board(spec: GameSpec, now: Situation, predicted: Prediction) -> Float32[Array, "height width planes"]:
    """The probability of each cell of each plane to be on."""
    before = now.board[..., : spec.num_walkers].astype(jnp.float32)
    chances = jax.nn.softmax(predicted.walkers)
    walkers = before * chances[:, STANDS]
    for move in range(NUM_STEPS):
        walkers += shifted(before, move ^ 1) * chances[:, move]
    shared = now.board[..., spec.num_walkers :].astype(jnp.float32)
    board = jnp.concatenate([walkers, shared], axis=-1)
    return board.at[..., np.array(set_planes(spec), int)].set(jax.nn.sigmoid(predicted.sets))


def move_walkers(
    walkers: UInt8[Array, "height width agents"], options: Int32[Array, " agents"]
) -> UInt8[Array, "height width agents"]:
    """Each walker where its option leads."""
    after = jnp.where(options == STANDS, walkers, 0)
    for move in range(NUM_STEPS):
        after = jnp.where(options == move, shifted(walkers, move ^ 1), after)
    return after


def what_became(
    before: UInt8[Array, "height width agents"], after: UInt8[Array, "height width agents"]
) -> Int32[Array, " agents"]:
    """Which option leads from one to the other: what a walker is taught."""
    meets = lambda there: jnp.any((there & after) > 0, axis=(0, 1))  # noqa: E731
    led = [meets(shifted(before, move ^ 1)) for move in range(NUM_STEPS)]
    return jnp.argmax(jnp.stack([*led, meets(before), ~_on_board(after)]), axis=0).astype(jnp.int32)


def loss(params: World, spec: GameSpec, happened: Transition) -> tuple[Float32[Array, ""], Metrics]:
    """Negative log-likelihood of one transition, and its parts: over walkers and seats that are in the game."""
    now, after = happened.now, happened.after
    predicted = apply(params, spec, now)
    present = _on_board(now.board[..., : spec.num_walkers])
    became = what_became(now.board[..., : spec.num_walkers], after.board[..., : spec.num_walkers])
    on = after.board[..., np.array(set_planes(spec), int)].astype(jnp.float32)
    support = jnp.asarray(spec.reward_support, jnp.float32)
    paid = jnp.argmin(jnp.abs(after.rewards[:, None] - support), axis=-1)
    ended = after.ended.astype(jnp.float32)
    playing = (~now.ended).astype(jnp.float32)
    parts = {
        "walkers": jnp.sum(_surprise(predicted.walkers, became) * present),
        "sets": jnp.sum(jax.nn.softplus(predicted.sets) - on * predicted.sets),
        "reward": jnp.sum(_surprise(predicted.rewards, paid) * playing),
        "ended": jnp.sum((jax.nn.softplus(predicted.ended) - ended * predicted.ended) * playing),
    }
    return sum(parts.values(), jnp.float32(0)), parts


def _surprise(logits: Float32[Array, "agents options"], chosen: Int32[Array, " agents"]) -> Float32[Array, " agents"]:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), chosen[:, None], axis=-1)[:, 0]


def _on_board(walkers: UInt8[Array, "height width agents"]) -> Bool[Array, " agents"]:
    return jnp.any(walkers > 0, axis=(0, 1))


def shifted(planes: Array, move: int) -> Array:
    """What lies one step of that move away from every cell; nothing beyond the edge."""
    down, right = int(ROW_STEPS[move]), int(COLUMN_STEPS[move])
    padded = jnp.pad(planes, ((1, 1), (1, 1), (0, 0)))
    height, width = planes.shape[:2]
    return padded[1 + down : 1 + down + height, 1 + right : 1 + right + width]


def _free_around(spec: GameSpec, board: UInt8[Array, "height width planes"]) -> Bool[Array, "agents moves"]:
    """Which of the four moves lead a walker to a cell of the board without a wall."""
    floor = jnp.ones((spec.height, spec.width, 1), bool)
    if spec.has_plane("obstacles"):
        floor = board[..., spec.plane_index("obstacles")][..., None] == 0
    walkers = board[..., : spec.num_walkers] > 0
    return jnp.stack([jnp.any(walkers & shifted(floor, move), axis=(0, 1)) for move in range(NUM_STEPS)], axis=-1)


def _possible(
    free: Bool[Array, "agents moves"], board: UInt8[Array, "height width planes"], spec: GameSpec
) -> Bool[Array, "agents options"]:
    present = _on_board(board[..., : spec.num_walkers])[:, None]
    return jnp.concatenate([free, present, jnp.ones_like(present)], axis=-1)


class WorldState(eqx.Module):
    """A table in the learned world: what a picture shows, and who is out of the game."""

    board: UInt8[Array, "*batch height width planes"]
    time: Int32[Array, "*batch"]
    last_actions: Int32[Array, "*batch agents"]
    ended: Bool[Array, "*batch agents"]


class LearnedGame(Game[WorldState]):
    """A learned world with the interface of a game: whatever runs on a game runs on it."""

    params: World
    game: Game
    """The rules that are known beforehand: its spec, and what is legal on a board."""
    starts: WorldState
    """Real states that an episode may begin with, stacked."""

    @property
    def spec(self) -> GameSpec:
        return self.game.spec

    def reset(self, *, key: Key[Array, ""]) -> WorldState:
        chosen = jax.random.randint(key, (), 0, len(self.starts.time))
        return jax.tree.map(lambda leaf: leaf[chosen], self.starts)

    def step(
        self, state: WorldState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[WorldState, Float32[Array, " agents"]]:
        stay = self.spec.stay
        actions = actions if stay is None else as_played(self.legal(state), actions, stay=stay)
        now = Situation(state.board, state.time, actions, state.ended)
        after = draw(self.spec, now, apply(self.params, self.spec, now), key=key)
        last_actions = jnp.where(_on_board(state.board[..., : self.spec.num_walkers]), actions, NO_ACTION)
        return WorldState(after.board, state.time + 1, last_actions, after.ended), after.rewards

    def board(self, state: WorldState) -> UInt8[Array, "height width planes"]:
        return state.board

    def observe(self, state: WorldState) -> Observation:
        present = _on_board(state.board[..., : self.spec.num_walkers])
        time = jnp.minimum(state.time, self.spec.horizon)
        return ego_views(self.spec, state.board, present, time, state.last_actions)

    def legal(self, state: WorldState) -> Bool[Array, "agents actions"]:
        allowed = jax.vmap(self.game.legal_in_view)(self.observe(state))
        only_stay = np.arange(self.spec.num_actions) == self.spec.stay
        return jnp.where(state.ended[:, None], only_stay, allowed)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        return self.game.legal_in_view(observation)

    def from_view(self, observation: Observation) -> WorldState:
        return from_view(self.spec, observation)

    def terminated(self, state: WorldState) -> Bool[Array, " agents"]:
        return state.ended | (state.time >= self.spec.horizon)

    def permute(self, state: WorldState, order: Int32[Array, " agents"]) -> WorldState:
        walkers, shared = jnp.split(state.board, [self.spec.num_walkers], axis=-1)
        board = jnp.concatenate([walkers[..., order], shared], axis=-1)
        return WorldState(board, state.time, state.last_actions[order], state.ended[order])


def from_view(spec: GameSpec, observation: Observation) -> WorldState:
    """What one seat sees, as a state of the learned world in that seat's order. A blank view is a game that is over."""
    time = steps_passed(observation.time, spec.horizon)
    ended = ~_on_board(observation.planes[..., : spec.num_walkers]) | (time >= spec.horizon)
    return WorldState(observation.planes, time, observation.last_actions, ended)
