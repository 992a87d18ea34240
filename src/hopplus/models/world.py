"""What every learned world has: what it reads, what it predicts, and the geometry of walkers.

A world is the learned effect of a joint action on the board, on every seat's reward and on who is in the game. Boards
and actions are in one seat order, the ego's. Any order works, because seats differ only by their position and their
action. The kinds of worlds are in files of their own: `cells_world`, `fields_world`, `regression_world`.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.core.numerics import Metrics
from hopplus.games.board import COLUMN_STEPS, ROW_STEPS
from hopplus.games.fields import TIME, Field, Observation, last_actions_field
from hopplus.games.game import Game, GameSpec

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
    """What a world says about the outcome. Subclass it for a world that predicts in a form of its own."""

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


def apply(params: WorldModel, spec: GameSpec, now: Situation) -> WorldPrediction:
    """What a world says about the outcome."""
    return params(spec, now)


def draw(spec: GameSpec, now: Situation, predicted: WorldPrediction, *, key: Key[Array, ""] | None) -> Outcome:
    """One outcome: sampled, or the most likely one without a key. That all games end at their horizon is known."""
    after = predicted.draw(spec, now, key=key)
    return replace(after, ended=after.ended | (now.time + 1 >= spec.horizon))


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


def on_board(walkers: UInt8[Array, "height width agents"]) -> Bool[Array, " agents"]:
    return jnp.any(walkers > 0, axis=(0, 1))


def shifted(planes: Array, move: int) -> Array:
    """The planes shifted so that every cell holds what lies one move away; zero beyond the edge."""
    down, right = int(ROW_STEPS[move]), int(COLUMN_STEPS[move])
    padded = jnp.pad(planes, ((1, 1), (1, 1), (0, 0)))
    height, width = planes.shape[:2]
    return padded[1 + down : 1 + down + height, 1 + right : 1 + right + width]
