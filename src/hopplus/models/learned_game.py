"""The learned world as a game, and its state.

The state is what one seat sees, the viewer, in its order of seats: the shared board, or what the viewer alone sees.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.games.fields import TIME, Field, Observation, rotated
from hopplus.games.game import (
    NO_ACTION,
    Game,
    GameSpec,
    as_played,
    board_of_view,
    ego_views,
    knows_others,
    steps_passed,
)
from hopplus.models import world
from hopplus.models.world import (
    Situation,
    WorldModel,
    board_shape,
    has_shared_board,
    on_board,
    shows_who_left,
    viewed_fields,
    views_of_world,
)


class WorldState(eqx.Module):
    """An environment state of the learned world."""

    board: UInt8[Array, "*batch height width planes"]
    time: Int32[Array, "*batch"]
    last_actions: Int32[Array, "*batch agents"]
    ended: Bool[Array, "*batch agents"]
    view: Observation | None = None
    """The viewed fields of the first seat; None if the board shows everything."""


class LearnedGame(Game[WorldState]):
    """A learned world with the interface of a game: everything that runs on a game runs on it."""

    params: WorldModel
    game: Game
    """The rules that are known: the spec, and what is legal on a board."""
    starts: WorldState
    """Real states that an episode may start from, stacked."""

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
        now = Situation(state.board, state.time, actions, state.ended, state.view)
        after = world.draw(self.spec, now, world.apply(self.params, self.spec, now), key=key)
        last_actions = jnp.where(self._present(state), actions, NO_ACTION)
        return WorldState(after.board, state.time + 1, last_actions, after.ended, after.view), after.rewards

    def _present(self, state: WorldState) -> Bool[Array, " agents"]:
        """Which seats have not left. A game that is over because of its horizon still shows everybody."""
        if shows_who_left(self.spec):
            return on_board(state.board[..., : self.spec.num_walkers])
        return ~state.ended | (state.time >= self.spec.horizon)

    def board(self, state: WorldState) -> UInt8[Array, "height width planes"]:
        return state.board

    def observe(self, state: WorldState) -> Observation:
        time = jnp.minimum(state.time, self.spec.horizon)
        return views_of_seats(
            self.spec, state.board, self._present(state), time, state.last_actions, _own_views(self.spec, state.view)
        )

    def legal(self, state: WorldState) -> Bool[Array, "agents actions"]:
        views = self.observe(state)
        allowed = jax.vmap(self.game.legal_in_view)(views)
        if not knows_others(self.spec):  # the co-players' views are the viewer's
            allowed = allowed.at[1:].set(True)
        if self.spec.stay is None:
            return allowed
        only_stay = np.arange(self.spec.num_actions) == self.spec.stay
        return jnp.where(state.ended[:, None], only_stay, allowed)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        return self.game.legal_in_view(observation)

    def from_view(self, observation: Observation) -> WorldState:
        return from_view(self.spec, observation)

    def events_in_view(self, observation: Observation) -> Bool[Array, "agents events"]:
        return self.game.events_in_view(observation)

    def terminated(self, state: WorldState) -> Bool[Array, " agents"]:
        return state.ended | (state.time >= self.spec.horizon)

    def permute(self, state: WorldState, order: Int32[Array, " agents"]) -> WorldState:
        if state.view is not None:
            raise NotImplementedError("a state of this world is one seat's own view, which has no other order of seats")
        return reordered(self.spec, state, order)


def reordered(spec: GameSpec, state: WorldState, order: Int32[Array, " agents"]) -> WorldState:
    """The state with its seats in another order; the viewed fields stay the viewer's."""
    board = state.board[..., spec.plane_order(order)] if has_shared_board(spec) else state.board
    return WorldState(board, state.time, state.last_actions[order], state.ended[order], state.view)


def from_view(spec: GameSpec, observation: Observation, time: Int32[Array, ""] | None = None) -> WorldState:
    """One seat's view as a state of the learned world in that seat's order. A blank view is a finished game.

    Where views sum the others, their order is that of `board_of_view`.
    `time` is for views that do not show it; without it the state is at the start of an episode.
    """
    now = jnp.int32(0) if time is None else time
    if spec.has_field(TIME.name):
        now = steps_passed(observation[TIME.name], spec.horizon)
    none = jnp.full(spec.num_agents, NO_ACTION, jnp.int32)
    board, left = jnp.zeros(board_shape(spec), jnp.uint8), jnp.zeros(spec.num_agents, bool)
    if has_shared_board(spec):
        board = next(observation[field.name] for field in spec.observation if field.planes)
        board = board_of_view(spec, board) if spec.sums_others else board
    if shows_who_left(spec):
        left = ~on_board(board[..., : spec.num_walkers])
    last_actions, ended = observation.get("last_actions", none), left | (now >= spec.horizon)
    return WorldState(board, now, last_actions, ended, views_of_world(spec, observation))


def views_of_seats(
    spec: GameSpec,
    board: UInt8[Array, "height width planes"],
    present: Bool[Array, " agents"],
    time: Int32[Array, ""],
    last_actions: Int32[Array, " agents"],
    own: Observation,
) -> Observation:
    """The views of all seats, from the one board, the time, the last joint action, and the viewed fields of each."""
    names = {field.name for field in viewed_fields(spec)}
    known = replace(spec, observation=tuple(field for field in spec.observation if field.name not in names))
    views = ego_views(known, board, present, time, last_actions)
    return {field.name: (own if field.name in names else views)[field.name] for field in spec.observation}


def _own_views(spec: GameSpec, view: Observation | None) -> Observation:
    """The viewed fields of every seat, from the viewer's: where the game does not tell more, others see the same."""

    def of_all(field: Field) -> Array:
        assert view is not None
        return jnp.stack([rotated(field, view[field.name], spec.num_agents, seat) for seat in range(spec.num_agents)])

    return {field.name: of_all(field) for field in viewed_fields(spec)}
