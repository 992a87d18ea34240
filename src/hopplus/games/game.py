"""The Game protocol: a Markov game as pure functions over an immutable state.

A game is written and typed for one environment; `jax.vmap` runs thousands, `jax.jit` makes it fast. Seats are an array
axis, called `agents`, in every signature; nothing here or in a game may depend on a seat's number.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.core.numerics import running_count
from hopplus.games.fields import Field, Observation, Plane, rotated

State = TypeVar("State")

NO_ACTION = -1
"""The last action of a seat that has not acted, or has left the game."""


@dataclass(frozen=True)
class Event:
    """A thing that can happen to a seat in a step. It is counted for each seat and episode, and can be a goal."""

    name: str
    """As in the tag of its metric, `charts/NAME`."""
    action: str | None = None
    """The action that makes it happen; None if it is no single action."""


PAID = (Event("paid_rate"),)
"""The events of a game that declares none: a seat got a positive reward."""


@dataclass(frozen=True)
class GameSpec:
    """The static description of a game."""

    name: str
    version: int
    """Increased whenever the rules change, so that an old run is never resumed under new rules."""
    num_agents: int
    action_names: tuple[str, ...]
    observation: tuple[Field, ...]
    """What a seat sees. `fields.board_fields` gives the fields of a board."""
    horizon: int
    """No episode has more steps."""
    stay: int | None = None
    """The action that an illegal action acts as. None: it acts as the seat's first legal one, if any can be illegal."""
    reward_support: tuple[float, ...] = ()
    """Every reward that one seat can get in one step, ascending; empty if it is no short list."""
    roles: tuple[str, ...] = ()
    """The role of each seat, as in predator and prey; empty if all seats have the same. Seats are compared within a
    role only."""
    events: tuple[Event, ...] = PAID
    """What `Game.events` tells about."""
    straight_paths: bool = False
    """True if no wall can make a shortest path longer than the Manhattan distance."""

    def __post_init__(self):
        if self.roles and len(self.roles) != self.num_agents:
            raise ValueError(f"{len(self.roles)} roles are named for {self.num_agents} seats; name one for each seat")
        for event in self.events:
            if event.action is not None and event.action not in self.action_names:
                raise ValueError(f"the event {event.name!r} is by {event.action!r}, which is none of the action_names")
        names = [field.name for field in self.observation]
        if len(set(names)) < len(names):
            raise ValueError(f"two fields of the observation have the same name: {', '.join(names)}")
        own = [plane.kind == "walker" or plane.per_player for plane in self.planes]
        if any(plane.per_player for plane in self.planes) and (sum(own) % self.num_agents or False in own[: sum(own)]):
            raise ValueError(
                f"{sum(own)} planes are of single players; put as many as there are players for each thing, first the "
                "walkers, and the shared planes after them"
            )

    @property
    def num_actions(self) -> int:
        return len(self.action_names)

    @property
    def interface(self) -> tuple[Any, ...]:
        """The parts of the spec that must be equal for networks of one game to fit another."""
        return self.observation, self.action_names

    @cached_property
    def _board(self) -> Field | None:
        return next((field for field in self.observation if field.planes), None)

    @property
    def planes(self) -> tuple[Plane, ...]:
        """The planes of the board; empty for a game without a board."""
        return (self._board.board or self._board.planes) if self._board else ()

    @property
    def view_planes(self) -> tuple[Plane, ...]:
        """The planes of a view: those of the board, or fewer where the others are summed."""
        return self._board.planes if self._board else ()

    @property
    def sums_others(self) -> bool:
        """Whether a view shows the other players summed, so that it does not tell which of them is where."""
        return self._board is not None and self._board.layout == "summed"

    @property
    def height(self) -> int:
        return self._board.shape[0] if self._board else 0

    @property
    def width(self) -> int:
        return self._board.shape[1] if self._board else 0

    @cached_property
    def event_actions(self) -> np.ndarray:
        """The action of each event; NO_ACTION for an event without one."""
        actions = [self.action_names.index(event.action) if event.action else NO_ACTION for event in self.events]
        return np.array(actions, np.int32)

    @cached_property
    def num_walkers(self) -> int:
        return sum(plane.kind == "walker" for plane in self.planes)

    @property
    def walkers_return(self) -> bool:
        """Whether a player may be off the board for a while."""
        return any(plane.returns for plane in self.planes)

    @cached_property
    def num_blocks(self) -> int:
        """How many planes of the board each player has: its walker, and others of its own."""
        return self._board.num_blocks(self.num_agents) if self._board else 0

    def plane_order(self, order: Int32[Array, " agents"]) -> Int32[Array, " planes"]:
        """The place of each plane of the board if new seat i is old seat order[i]; every seat has a walker."""
        blocks = [order + self.num_agents * block for block in range(self.num_blocks)]
        shared = np.arange(self.num_agents * self.num_blocks, len(self.planes), dtype=np.int32)
        return jnp.concatenate([*blocks, jnp.asarray(shared)])

    @cached_property
    def seats_by_role(self) -> dict[str, list[int]]:
        """The seats of each role; one role for a game that declares none."""
        roles = self.roles or ("player",) * self.num_agents
        return {role: [seat for seat, other in enumerate(roles) if other == role] for role in dict.fromkeys(roles)}

    def plane_index(self, name: str) -> int:
        return [plane.name for plane in self.planes].index(name)

    def view_index(self, name: str) -> int:
        """The place of a plane in a view."""
        return [plane.name for plane in self.view_planes].index(name)

    def has_plane(self, name: str) -> bool:
        return any(plane.name == name for plane in self.planes)

    def has_field(self, name: str) -> bool:
        return any(field.name == name for field in self.observation)


class Game(eqx.Module, Generic[State]):
    """The base class of games; `hopplus.games.contract.check` tests a subclass."""

    @property
    @abstractmethod
    def spec(self) -> GameSpec:
        """The static description of the game."""

    @abstractmethod
    def reset(self, *, key: Key[Array, ""]) -> State:
        """The first state of an episode."""

    @abstractmethod
    def step(
        self, state: State, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[State, Float32[Array, " agents"]]:
        """The next state, and the reward of each seat."""

    @property
    def is_compiled(self) -> bool:
        """Whether the rules are part of the compiled program. If Python steps the environments, checks play fewer of
        them, and exact resume is not promised."""
        return True

    @property
    def is_bit_exact(self) -> bool:
        """Whether a step gives the same bits in every program. If another library computes it, two programs may round
        differently, and checks allow for that."""
        return True

    def reset_where(self, over: Bool[Array, ""], state: State, *, key: Key[Array, ""]) -> State:
        """The first state of a new episode if the last one is over, else the state as it is."""
        return jax.tree.map(lambda one, other: jnp.where(over, one, other), self.reset(key=key), state)

    @abstractmethod
    def observe(self, state: State) -> Observation:
        """The views of all seats, stacked: an array for each field of the spec. `ego_views` builds those of a board."""

    @abstractmethod
    def terminated(self, state: State) -> Bool[Array, " agents"]:
        """Which seats are done for this episode, for good; the episode is over when all are."""

    def legal(self, state: State) -> Bool[Array, "agents actions"]:
        """Which actions each seat may take. The default allows every action."""
        return jnp.ones((self.spec.num_agents, self.spec.num_actions), bool)

    def board(self, state: State) -> UInt8[Array, "height width planes"]:
        """The planes with the players in seat order: one board for all seats. The default is for a game without one."""
        return jnp.zeros((0, 0, 0), jnp.uint8)

    def events(
        self,
        state: State,
        actions: Int32[Array, " agents"],
        after: State,
        rewards: Float32[Array, " agents"],
    ) -> Bool[Array, "events agents"]:
        """Which events of the spec happened to each seat in one step.

        By default an event happens to a seat that got a positive reward, for the event's own action if it has one.
        """
        return paid_events(self.spec, self.legal(state), actions, rewards)

    def events_in_view(self, observation: Observation) -> Bool[Array, "agents events"]:
        """The events of the last step that the viewer can see, for each player in its order. By default it sees none.

        Where an event is seen, it reveals the goal of a co-player.
        """
        return jnp.zeros((self.spec.num_agents, len(self.spec.events)), bool)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        """Which actions the viewer may take, from its ego view alone: for co-players and for imagined boards.

        The default allows every action: predictions of co-players are then less sharp, but not wrong.
        """
        return jnp.ones(self.spec.num_actions, bool)

    def from_view(self, observation: Observation) -> State:
        """The state as the viewer sees it, with the viewer in the first seat: the root of a plan.

        For a fully observed game. Entities that have left may be at any position.
        """
        raise NotImplementedError(f"{self.spec.name} has no `from_view`; write it to plan in this game")

    def permute(self, state: State, order: Int32[Array, " agents"]) -> State:
        """The state with the seats relabelled: new seat i is old seat order[i]. It opens the exact checks of seats."""
        raise NotImplementedError(f"{self.spec.name} has no `permute`; write it to check its seats exactly")


CAPABILITIES = {
    "relabel": "`permute`: the exact checks that all seats are treated alike",
    "others' views": "no field of the layout `own`: opponent models read what a co-player sees, not only the own view",
    "plan": "`from_view`: search and one-step lookahead in the true game",
    "board": "planes with kinds: the world of cells, pictures, replays",
}
"""What a game may offer besides play, and what each opens."""


def capabilities(game: Game) -> frozenset[str]:
    """Those of CAPABILITIES that the game offers."""
    spec = game.spec
    offered = {
        "relabel": overrides(game, "permute"),
        "others' views": knows_others(spec),
        "plan": overrides(game, "from_view"),
        "board": bool(spec.planes),
    }
    return frozenset(name for name, is_offered in offered.items() if is_offered)


def knows_others(spec: GameSpec) -> bool:
    """Whether each seat knows what its co-players see."""
    return all(field.layout != "own" for field in spec.observation) and not spec.roles


def legal_of_other(game: Game, view: Observation) -> Bool[Array, " actions"]:
    """Which actions a co-player may take, from its view as the viewer knows it: any, if that is partly the viewer's."""
    return game.legal_in_view(view) if knows_others(game.spec) else jnp.ones(game.spec.num_actions, bool)


def overrides(game: Game, method: str) -> bool:
    """Whether the game's class defines a method that `Game` leaves open."""
    return getattr(type(game), method) is not getattr(Game, method)


def paid_events(
    spec: GameSpec,
    legal: Bool[Array, "agents actions"],
    actions: Int32[Array, " agents"],
    rewards: Float32[Array, " agents"],
) -> Bool[Array, "events agents"]:
    """The events that each seat was paid for in one step: the event's action, if it has one, was taken and legal."""
    wanted = spec.event_actions
    took = (actions[:, None] == wanted) & legal[:, wanted]
    return ((took | (wanted == NO_ACTION)) & (rewards > 0)[:, None]).T


def steps_passed(time: Float32[Array, ""], horizon: int) -> Int32[Array, ""]:
    """The number of steps played before, from the time in a view."""
    return jnp.round(time * horizon).astype(jnp.int32)


def as_played(
    legal: Bool[Array, "agents actions"], actions: Int32[Array, " agents"], *, stay: int | None
) -> Int32[Array, " agents"]:
    """The effective action of each seat: an illegal or nonexistent action becomes `stay`, or the first legal one.

    Action by action, XLA reads the parts that `legal` is made of; a reduction over the whole takes four times as long.
    """
    is_legal = jnp.zeros(len(legal), bool)
    for action in range(legal.shape[-1]):
        is_legal |= (actions == action) & legal[:, action]
    instead = jnp.argmax(legal, axis=-1).astype(jnp.int32) if stay is None else stay
    return jnp.where(is_legal, actions, instead)


def ego_order(num_agents: int) -> np.ndarray:
    """Row i: viewer i, then the other seats in seat order after it."""
    seats = np.arange(num_agents)
    return (seats[:, None] + seats[None, :]) % num_agents


def view_of(spec: GameSpec, observation: Observation, offset: int) -> Observation:
    """The view of the co-player `offset` seats after the viewer, as far as the viewer knows it.

    Fields that only a seat itself sees are the viewer's. Where the others are summed, it is the co-player in that place
    of `board_of_view`.
    """
    if spec.sums_others:
        board = board_of_view(spec, observation["planes"])
        own = board[..., offset : spec.num_agents * spec.num_blocks : spec.num_agents]
        return {**observation, "planes": _summed(spec, board, own)}
    return {field.name: rotated(field, observation[field.name], spec.num_agents, offset) for field in spec.observation}


def views_of_others(spec: GameSpec, observation: Observation) -> Observation:
    """The views of all co-players in seat order after the viewer, stacked on an axis `others`."""
    if spec.sums_others:
        planes = _views_of_summed(spec, board_of_view(spec, observation["planes"]))[1:]
        return {name: jnp.broadcast_to(array, (len(planes), *array.shape)) for name, array in observation.items()} | {
            "planes": planes
        }
    views = [view_of(spec, observation, offset) for offset in range(1, spec.num_agents)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *views)


def board_of_view(spec: GameSpec, planes: UInt8[Array, "height width seen"]) -> UInt8[Array, "height width planes"]:
    """A board that looks like this view with the others summed: the viewer is the first player.

    The view does not tell the others apart. They are put in the order of their cells; then come those that are nowhere
    on the board, in the order of what else they have, the most first.
    """
    others = np.arange(spec.num_agents - 1)
    walkers = planes[..., 1].astype(jnp.int32)
    up_to_here = running_count(walkers.reshape(-1)).reshape(walkers.shape)
    is_there = (up_to_here[..., None] > others) & ((up_to_here - walkers)[..., None] <= others)
    blocks = [planes[..., :1], is_there.astype(jnp.uint8)]
    nowhere = others - jnp.sum(walkers)
    for block in range(1, spec.num_blocks):
        has = (planes[..., 2 * block + 1][..., None] > nowhere) & (nowhere >= 0)
        blocks += [planes[..., 2 * block : 2 * block + 1], has.astype(jnp.uint8)]
    return jnp.concatenate([*blocks, planes[..., 2 * spec.num_blocks :]], axis=-1)


def others_in_view(
    spec: GameSpec, board: UInt8[Array, "height width planes"]
) -> Int32[Array, "agents others"] | np.ndarray:
    """Which seat each co-player of a seat is: the seats after it; where the others are summed, in the view's order."""
    agents = spec.num_agents
    if not spec.sums_others:
        return ego_order(agents)[:, 1:]
    cells = board[..., : agents * spec.num_blocks].reshape(-1, spec.num_blocks, agents)
    has = jnp.sum(cells[:, 1:], axis=(0, 1), dtype=jnp.int32)
    is_there = jnp.any(cells[:, 0] > 0, axis=0)
    place = jnp.where(is_there, jnp.argmax(cells[:, 0], axis=0), cells.shape[0] * spec.num_blocks - has)
    order = jnp.argsort(place, stable=True).astype(jnp.int32)
    own = jnp.argsort(order, stable=True)[:, None]
    others = np.arange(agents - 1)
    return order[others + (others >= own)]


def ego_views(
    spec: GameSpec,
    board: UInt8[Array, "height width planes"],
    present: Bool[Array, " agents"],
    time: Int32[Array, ""],
    last_actions: Int32[Array, " agents"],
) -> Observation:
    """The view of each seat, from the one board, as `board_fields` declares it. A seat that has left sees nothing.

    A game without a board passes an empty one; its views are the time and the last joint action.
    """
    order = ego_order(spec.num_agents)
    # A lookup, because compiled XLA divides by a constant by multiplying with its reciprocal, which rounds otherwise.
    shares = np.arange(spec.horizon + 1, dtype=np.float32) / np.float32(spec.horizon)
    times = jnp.where(present, jnp.asarray(shares)[time], 0.0)
    if spec.sums_others:
        planes = _views_of_summed(spec, board)
        return {"planes": jnp.where(present[:, None, None, None], planes, jnp.uint8(0)), "time": times}
    views = {"planes": _rotate_planes(spec, board, present)} if spec.planes else {}
    return {
        **views,
        "time": times,
        "last_actions": jnp.where(present[:, None], last_actions[order], NO_ACTION),
    }


def _views_of_summed(
    spec: GameSpec, board: UInt8[Array, "height width planes"]
) -> UInt8[Array, "agents height width seen"]:
    """The board once per viewer: of each thing that players have its own plane, and the sum of the others'."""
    own = board[..., : spec.num_agents * spec.num_blocks].reshape(spec.height, spec.width, spec.num_blocks, -1)
    return _summed(spec, board, jnp.moveaxis(own, -1, 0))


def _summed(
    spec: GameSpec, board: UInt8[Array, "height width planes"], own: UInt8[Array, "*viewers height width blocks"]
) -> UInt8[Array, "*viewers height width seen"]:
    """The views of players with these planes of their own."""
    of_all = board[..., : spec.num_agents * spec.num_blocks].reshape(spec.height, spec.width, spec.num_blocks, -1)
    others = jnp.sum(of_all, axis=-1, dtype=jnp.uint8) - own
    pairs = jnp.stack([own, others], axis=-1).reshape(*own.shape[:-1], -1)
    shared = board[..., spec.num_agents * spec.num_blocks :]
    return jnp.concatenate([pairs, jnp.broadcast_to(shared, (*pairs.shape[:-1], shared.shape[-1]))], axis=-1)


def _rotate_planes(
    spec: GameSpec, board: UInt8[Array, "height width planes"], present: Bool[Array, " agents"]
) -> UInt8[Array, "agents height width planes"]:
    """The board once per viewer, the planes of the players in the viewer's order.

    All planes are packed into the bits of one word where they fit, and each view picks its bits with a constant mask.
    XLA turns this into a streaming loop; a gather along the last axis runs element by element on a CPU.
    """
    num_planes = len(spec.planes)
    word = np.dtype(np.uint8 if num_planes <= 8 else np.uint16)
    width = 8 * word.itemsize
    source = np.tile(np.arange(num_planes), (spec.num_agents, 1))
    order = ego_order(spec.num_agents)
    source[:, : spec.num_walkers] = order[:, : spec.num_walkers]
    for start in range(spec.num_agents, spec.num_agents * spec.num_blocks, spec.num_agents):
        source[:, start : start + spec.num_agents] = start + order
    word_of, bit_of = source // width, source % width

    bits = board.astype(word) << (np.arange(num_planes) % width).astype(word)
    views = jnp.zeros((spec.num_agents, spec.height, spec.width, num_planes), bool)
    for number in range(-(-num_planes // width)):
        packed = jnp.sum(bits[..., width * number : width * (number + 1)], axis=-1, dtype=word)
        seen = jnp.where(present[:, None, None], packed, jnp.zeros((), word))
        mask = np.where(word_of == number, 1 << bit_of, 0).astype(word)
        views |= (seen[..., None] & mask[:, None, None, :]) != 0
    return views.astype(jnp.uint8)
