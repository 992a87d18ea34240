"""The world: the learned effect of a joint action on the board, on every seat's reward and on who is in the game.

Boards and actions are in one seat order, the ego's. Any order works, because seats differ only by their position and
their action. Predictions are distributions of the plane's kind, masked to what is possible:

    walker   one of: stay, the four cells around, gone      masked to free cells of the board; gone is for ever
    set      each cell on or off                            in units of "it stays as it is"
    fixed    copied
    reward   one of the game's reward support, for each seat
    end      for each seat; for ever

A cell reads what lies on it and around it and the number of players with each action there, so that two hunters differ
from one. A seat reads its own cell, its action, and a sum over all cells.
"""

import math
from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.core.numerics import MASKED, Metrics
from hopplus.games.board import COLUMN_STEPS, ROW_STEPS, random_words
from hopplus.games.fields import TIME, Field, Observation, last_actions_field
from hopplus.games.game import Game, GameSpec
from hopplus.games.rollout import sample_actions, uniforms_from_words
from hopplus.models.config import WorldConfig
from hopplus.models.networks import Dense, Heads, init_dense, init_heads

NUM_STEPS = len(ROW_STEPS)
STANDS, GONE = NUM_STEPS, NUM_STEPS + 1
"""What can happen to a walker besides the four moves."""
UNCHANGED = 3.0
"""The logit with which an untrained world predicts that a cell of a set stays as it is."""


class Situation(eqx.Module):
    """What the world reads: a board in one seat's order, and the joint action."""

    board: UInt8[Array, "*batch height width planes"]
    time: Int32[Array, "*batch"]
    """Steps since the start of the episode."""
    actions: Int32[Array, "*batch agents"]
    ended: Bool[Array, "*batch agents"]
    """Whether the seat was out of the game before."""
    view: Observation | None = None
    """The `viewed_fields`: of the viewer; of all seats, [agents, ...], in a transition that has no viewer yet. None if
    the board shows everything."""


class Outcome(eqx.Module):
    """What follows a joint action."""

    board: UInt8[Array, "*batch height width planes"]
    rewards: Float32[Array, "*batch agents"]
    ended: Bool[Array, "*batch agents"]
    view: Observation | None = None
    """The viewed fields of the same viewer."""


class Transition(eqx.Module):
    """One observed transition: training and test data of a world."""

    now: Situation
    after: Outcome


def has_shared_board(spec: GameSpec) -> bool:
    """Whether there is a board with every player on it that all seats see, each in its own order."""
    board = next((field for field in spec.observation if field.planes), None)
    return board is not None and board.layout in ("players", "summed") and spec.num_walkers == spec.num_agents


def shows_who_left(spec: GameSpec) -> bool:
    """Whether a player that is nowhere on a shared board has left the game for good."""
    return has_shared_board(spec) and not spec.walkers_return


def viewed_fields(spec: GameSpec) -> tuple[Field, ...]:
    """The fields of an observation that a world keeps as its viewer sees them.

    A shared board has its own place, because every seat's view follows from it. The time and the last joint action are
    known without a model.
    """
    known = TIME, last_actions_field(spec.num_agents, spec.num_actions)
    is_board = has_shared_board(spec)
    return tuple(field for field in spec.observation if field not in known and not (is_board and field.planes))


def board_shape(spec: GameSpec) -> tuple[int, int, int]:
    """The shape of the board in a world; zeros without a shared board."""
    return (spec.height, spec.width, len(spec.planes)) if has_shared_board(spec) else (0, 0, 0)


def board_of(game: Game, state: Any) -> UInt8[Array, "height width planes"]:
    """The shared board of a state, with the players in seat order."""
    return game.board(state) if has_shared_board(game.spec) else jnp.zeros(board_shape(game.spec), jnp.uint8)


def views_of_world(spec: GameSpec, views: Observation) -> Observation | None:
    """The viewed fields of views; None if there are none."""
    return {field.name: views[field.name] for field in viewed_fields(spec)} or None


def seen_by(spec: GameSpec, transition: Transition, order: Int32[Array, " agents"]) -> Transition:
    """The transition of all seats as the first seat of `order` sees it: everything in that order of seats."""
    now, after = transition.now, transition.after
    board = spec.plane_order(order) if has_shared_board(spec) else slice(None)

    def own(views: Observation | None) -> Observation | None:
        axes = {field.name: -1 - len(field.shape) for field in viewed_fields(spec)}
        return views and {name: jnp.take(views[name], order[0], axis=axis) for name, axis in axes.items()}

    return Transition(
        Situation(now.board[..., board], now.time, now.actions[..., order], now.ended[..., order], own(now.view)),
        Outcome(after.board[..., board], after.rewards[..., order], after.ended[..., order], own(after.view)),
    )


class WorldPrediction(eqx.Module):
    """What a world says about the outcome. Subclass it for a world that predicts in another form than `Prediction`."""

    @abstractmethod
    def draw(self, spec: GameSpec, now: Situation, *, key: Key[Array, ""] | None) -> Outcome:
        """One outcome: sampled, or the most likely one without a key."""

    @abstractmethod
    def expected_board(self, spec: GameSpec, now: Situation) -> Float32[Array, "height width planes"]:
        """The probability of each cell of each plane to be on."""

    def expected_view(self, spec: GameSpec, now: Situation) -> Observation | None:
        """The mean of the viewed fields' features, by field. None for a world of boards."""
        return None

    @abstractmethod
    def losses(self, spec: GameSpec, transition: Transition) -> Metrics:
        """The parts of the loss of one transition, by name."""


class Prediction(WorldPrediction):
    """Distributions, as masked logits. A drawn outcome is always a possible one."""

    walkers: Float32[Array, "agents options"]
    """Up, down, left, right, stands, gone."""
    sets: Float32[Array, "height width sets"]
    """Of the cell being on."""
    rewards: Float32[Array, "agents support"]
    ended: Float32[Array, " agents"]

    def draw(self, spec, now, *, key):
        walkers, paid, ends, cells = _likeliest(self) if key is None else _drawn(self, key=key)
        rewards = jnp.asarray(spec.reward_support, jnp.float32)[paid]
        moved = move_walkers(now.board[..., : spec.num_walkers], walkers)
        board = jnp.concatenate([moved, now.board[..., spec.num_walkers :]], axis=-1)
        board = board.at[..., np.array(set_planes(spec), int)].set(cells.astype(jnp.uint8))
        return Outcome(
            board=board,
            rewards=jnp.where(now.ended, 0.0, rewards),
            ended=now.ended | ends | ~on_board(moved),
        )

    def expected_board(self, spec, now):
        before = now.board[..., : spec.num_walkers].astype(jnp.float32)
        chances = jax.nn.softmax(self.walkers)
        walkers = before * chances[:, STANDS]
        for move in range(NUM_STEPS):
            walkers += shifted(before, move ^ 1) * chances[:, move]
        shared = now.board[..., spec.num_walkers :].astype(jnp.float32)
        board = jnp.concatenate([walkers, shared], axis=-1)
        return board.at[..., np.array(set_planes(spec), int)].set(jax.nn.sigmoid(self.sets))

    def losses(self, spec, transition):
        """Negative log-likelihoods, over walkers and seats that are in the game."""
        now, after = transition.now, transition.after
        present = on_board(now.board[..., : spec.num_walkers])
        options = option_taken(now.board[..., : spec.num_walkers], after.board[..., : spec.num_walkers])
        on = after.board[..., np.array(set_planes(spec), int)].astype(jnp.float32)
        support = jnp.asarray(spec.reward_support, jnp.float32)
        paid = jnp.argmin(jnp.abs(after.rewards[:, None] - support), axis=-1)
        ended = after.ended.astype(jnp.float32)
        playing = (~now.ended).astype(jnp.float32)
        return {
            "walkers": jnp.sum(_surprise(self.walkers, options) * present),
            "sets": jnp.sum(jax.nn.softplus(self.sets) - on * self.sets),
            "reward": jnp.sum(_surprise(self.rewards, paid) * playing),
            "ended": jnp.sum((jax.nn.softplus(self.ended) - ended * self.ended) * playing),
        }


class WorldModel(eqx.Module):
    """One member of a learned world; all leaves are parameters. Subclass it for a world of your own."""

    parts: ClassVar[tuple[str, ...]] = ("walkers", "sets", "reward", "ended")
    """The parts of its loss, as its prediction names them."""
    is_symmetric: ClassVar[bool] = False
    """Whether it treats the players alike by construction: then it need not be trained in the order of every seat."""
    learning_rate: ClassVar[float] = 3e-3
    """Of training on given transitions (`learning.worlds.fit`)."""
    weight_decay: ClassVar[float | None] = None
    """Of AdamW, whose rate then falls to zero along a cosine. None: Adam."""

    @abstractmethod
    def __call__(self, spec: GameSpec, now: Situation) -> WorldPrediction:
        """What it says about the outcome."""


class World(WorldModel):
    """The world of cells."""

    is_symmetric: ClassVar[bool] = True
    cell: Dense
    sets: Heads
    """Whether each set plane keeps what it has on the cell."""
    pool: Dense
    seat: Dense
    mixed: Dense
    heads: Heads
    """The walker's option, the reward, the end."""

    def __call__(self, spec, now):
        board = now.board.astype(jnp.float32)
        walkers, shared = board[..., : spec.num_walkers], board[..., spec.num_walkers :]
        did = jax.nn.one_hot(now.actions, spec.num_actions)
        counts = jnp.tensordot(walkers, did, 1)
        at_least = counts[..., None] >= np.arange(1, spec.num_agents + 1)
        around = [shifted(shared, move) for move in range(NUM_STEPS)]
        content = jnp.concatenate([shared, *around, at_least.reshape(*counts.shape[:2], -1)], axis=-1)

        def everywhere(layer):
            return jax.vmap(jax.vmap(layer))

        cells = jax.nn.relu(everywhere(self.cell)(content))

        there = jnp.einsum("hwi,hwf->if", walkers, cells)
        pooled = jnp.sum(jax.nn.relu(everywhere(self.pool)(cells)), axis=(0, 1))
        free = _free_around(spec, now.board)
        last_step = jnp.full((spec.num_agents, 1), now.time + 1 >= spec.horizon, jnp.float32)
        for_all = jnp.broadcast_to(pooled, (spec.num_agents, len(pooled)))
        ended = now.ended[:, None].astype(jnp.float32)
        seats = jnp.concatenate([there, for_all, did, free.astype(jnp.float32), last_step, ended], axis=-1)
        hidden = jax.nn.relu(jax.vmap(self.mixed)(jax.nn.relu(jax.vmap(self.seat)(seats))))
        outputs = jax.vmap(self.heads)(hidden)
        options = outputs[:, : GONE + 1].at[:, STANDS].add(UNCHANGED)
        on = board[..., np.array(set_planes(spec), int)]
        return Prediction(
            walkers=jnp.where(_possible(free, now.board, spec), options, MASKED),
            sets=(2 * on - 1) * (UNCHANGED + cells @ self.sets.weight.T + self.sets.bias),
            rewards=outputs[:, GONE + 1 : -1],
            ended=outputs[:, -1],
        )


def set_planes(spec: GameSpec) -> list[int]:
    return [index for index, plane in enumerate(spec.planes) if plane.kind == "set"]


def init(config: WorldConfig, spec: GameSpec, *, key: Key[Array, ""]) -> World:
    """A world of cells that starts by predicting almost no change."""
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


def apply(params: WorldModel, spec: GameSpec, now: Situation) -> WorldPrediction:
    """What a world says about the outcome."""
    return params(spec, now)


def draw(spec: GameSpec, now: Situation, predicted: WorldPrediction, *, key: Key[Array, ""] | None) -> Outcome:
    """One outcome: sampled, or the most likely one without a key."""
    return predicted.draw(spec, now, key=key)


Draws = tuple[
    Int32[Array, " agents"], Int32[Array, " agents"], Bool[Array, " agents"], Bool[Array, "height width sets"]
]
"""Options of the walkers, places in the reward support, who has ended, which cells are on."""


def _likeliest(predicted: Prediction) -> Draws:
    def best(logits):
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)

    return best(predicted.walkers), best(predicted.rewards), predicted.ended > 0, predicted.sets > 0


def _drawn(predicted: Prediction, *, key: Key[Array, ""]) -> Draws:
    """One random number for each prediction: drawing is the costliest part of imagined rollouts."""
    num_agents, shape = len(predicted.ended), predicted.sets.shape
    uniforms = uniforms_from_words(random_words(3 * num_agents + math.prod(shape), key=key))
    for_walkers, for_rewards, for_ends, for_cells = jnp.split(uniforms, np.arange(1, 4) * num_agents)
    return (
        sample_actions(jax.nn.softmax(predicted.walkers), uniforms=for_walkers),
        sample_actions(jax.nn.softmax(predicted.rewards), uniforms=for_rewards),
        jax.nn.sigmoid(predicted.ended) > for_ends,
        jax.nn.sigmoid(predicted.sets) > for_cells.reshape(shape),
    )


def move_walkers(
    walkers: UInt8[Array, "height width agents"], options: Int32[Array, " agents"]
) -> UInt8[Array, "height width agents"]:
    """Each walker moved by its option."""
    after = jnp.where(options == STANDS, walkers, 0)
    for move in range(NUM_STEPS):
        after = jnp.where(options == move, shifted(walkers, move ^ 1), after)
    return after


def option_taken(
    before: UInt8[Array, "height width agents"], after: UInt8[Array, "height width agents"]
) -> Int32[Array, " agents"]:
    """The option that leads from one board to the other: the target of a walker."""

    def meets(there):
        return jnp.any((there & after) > 0, axis=(0, 1))

    led = [meets(shifted(before, move ^ 1)) for move in range(NUM_STEPS)]
    return jnp.argmax(jnp.stack([*led, meets(before), ~on_board(after)]), axis=0).astype(jnp.int32)


def loss(params: WorldModel, spec: GameSpec, transition: Transition) -> tuple[Float32[Array, ""], Metrics]:
    """The loss of one transition, and its parts."""
    parts = apply(params, spec, transition.now).losses(spec, transition)
    return sum(parts.values(), jnp.float32(0)), parts


def _surprise(logits: Float32[Array, "agents options"], chosen: Int32[Array, " agents"]) -> Float32[Array, " agents"]:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), chosen[:, None], axis=-1)[:, 0]


def on_board(walkers: UInt8[Array, "height width agents"]) -> Bool[Array, " agents"]:
    return jnp.any(walkers > 0, axis=(0, 1))


def shifted(planes: Array, move: int) -> Array:
    """The planes shifted so that every cell holds what lies one move away; zero beyond the edge."""
    down, right = int(ROW_STEPS[move]), int(COLUMN_STEPS[move])
    padded = jnp.pad(planes, ((1, 1), (1, 1), (0, 0)))
    height, width = planes.shape[:2]
    return padded[1 + down : 1 + down + height, 1 + right : 1 + right + width]


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
