"""Level-based foraging: a food is taken if the players that load it together are strong enough.

After Albrecht and Ramamoorthy, 2013 (arXiv 1506.01170), and the environments of Papoudakis et al., 2021 (arXiv
2006.07869). Players and foods have levels. Players load from the four cells around a food; it is taken if the levels of
those that load it in the same step sum to its own or more, and its level is split among them in proportion to theirs.
Players and foods block each other's cells. Of players that move to the same cell in the same step none moves, and
nobody moves onto a cell that a player stood on before the step: no seat has priority, and nobody swaps places.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.games.board import MOVE_NAMES, STAY, Board, random_words, uniform_below
from hopplus.games.fields import Observation, Plane, board_fields
from hopplus.games.game import NO_ACTION, Event, Game, GameSpec, as_played, ego_views, steps_passed

LOAD = 5
ACTION_NAMES = (*MOVE_NAMES, "stay", "load")
MOST_LEVELS = 3


class ForagingState(eqx.Module):
    """The state of one environment: integers and flags only."""

    position: Int32[Array, " agents"]
    level: Int32[Array, " agents"]
    last_actions: Int32[Array, " agents"]
    """What each player tried, also if another player was in its way."""
    food_position: Int32[Array, " foods"]
    food_level: Int32[Array, " foods"]
    food_remains: Bool[Array, " foods"]
    walls: Bool[Array, "height width"]
    time: Int32[Array, ""]


class Foraging(Game[ForagingState]):
    """Take the small foods alone, or wait beside a large one until others come."""

    grid: Board = Board()
    num_players: int = eqx.field(static=True, default=4)
    num_foods: int = eqx.field(static=True, default=4)
    player_levels: int = eqx.field(static=True, default=2)
    """The level of each player is uniform from 1 to this, for each episode."""
    food_levels: int = eqx.field(static=True, default=3)
    """The level of each food is uniform from 1 to this, for each episode."""
    horizon: int = eqx.field(static=True, default=40)

    def __check_init__(self):
        if self.num_players < 1 or self.num_foods < 1:
            raise ValueError(f"num_players is {self.num_players}, num_foods {self.num_foods}; give at least one each")
        if not 1 <= self.player_levels <= MOST_LEVELS:
            raise ValueError(f"player_levels is {self.player_levels}; give 1 to {MOST_LEVELS}")
        if not 1 <= self.food_levels <= MOST_LEVELS:
            raise ValueError(f"food_levels is {self.food_levels}; give 1 to {MOST_LEVELS}")
        if self.horizon < 1:
            raise ValueError(f"horizon is {self.horizon}; give 1 or more steps")
        self.grid.check_room(self.num_players + self.num_foods)

    @property
    def spec(self) -> GameSpec:
        players = tuple(Plane(f"player_{offset}", "walker") for offset in range(self.num_players))
        foods = tuple(Plane(f"food_{level}", "set", reached="beside") for level in self._up_to(self.food_levels))
        levels = tuple(Plane(f"level_{level}", "category") for level in self._up_to(self.player_levels))
        planes = (*players, Plane("obstacles", "fixed"), *foods, *levels)
        return GameSpec(
            name="foraging",
            version=1,
            num_agents=self.num_players,
            action_names=ACTION_NAMES,
            observation=board_fields(planes, self.grid.height, self.grid.width, self.num_players, len(ACTION_NAMES)),
            stay=STAY,
            horizon=self.horizon,
            straight_paths=self.grid.obstacle_pieces == 0,
            events=tuple(Event(f"foods_{level}") for level in self._up_to(self.food_levels)),
        )

    def reset(self, *, key: Key[Array, ""]) -> ForagingState:
        cell_key, level_key = jax.random.split(key)
        walls, cells = self.grid.draw(self.num_players + self.num_foods, key=cell_key)
        words = random_words(self.num_players + self.num_foods, key=level_key)
        return ForagingState(
            position=cells[: self.num_players],
            level=1 + uniform_below(words[: self.num_players], jnp.int32(self.player_levels)),
            last_actions=jnp.full(self.num_players, NO_ACTION, jnp.int32),
            food_position=cells[self.num_players :],
            food_level=1 + uniform_below(words[self.num_players :], jnp.int32(self.food_levels)),
            food_remains=jnp.ones(self.num_foods, bool),
            walls=walls,
            time=jnp.int32(0),
        )

    def step(
        self, state: ForagingState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[ForagingState, Float32[Array, " agents"]]:
        loads, strength = self._loads(state, actions)
        taken = self._taken(state, strength)
        actions = as_played(self.legal(state), actions, stay=STAY)
        after = replace(
            state,
            position=self._moved(state, actions),
            last_actions=actions,
            food_remains=state.food_remains & ~taken,
            time=state.time + 1,
        )
        return after, self._shares(state, loads & taken, strength)

    def board(self, state: ForagingState) -> UInt8[Array, "height width planes"]:
        players = self.grid.planes(state.position, jnp.ones(self.num_players, bool))
        of_players = _bit(self.food_levels + state.level)
        of_foods = jnp.where(state.food_remains, _bit(state.food_level), jnp.uint8(0))
        cells = jnp.concatenate([state.position, state.food_position])
        marks = self.grid.marked(cells, jnp.concatenate([of_players, of_foods])) | state.walls.astype(jnp.uint8)
        places = np.arange(1 + self.food_levels + self.player_levels, dtype=np.uint8)
        return jnp.concatenate([players.astype(jnp.uint8), (marks[..., None] >> places) & jnp.uint8(1)], axis=-1)

    def observe(self, state: ForagingState) -> Observation:
        present = jnp.ones(self.num_players, bool)
        return ego_views(self.spec, self.board(state), present, state.time, state.last_actions)

    def legal(self, state: ForagingState) -> Bool[Array, "agents actions"]:
        targets, free = self.grid.moves(state.walls, state.position)
        by_food = jnp.any((targets[..., None] == state.food_position) & state.food_remains, axis=-1)
        by_player = jnp.any(targets[..., None] == state.position, axis=-1)
        playing = ~self.terminated(state)
        moves = free & ~by_food & ~by_player & playing[:, None]
        beside = jnp.any(free & by_food, axis=-1) & playing
        return jnp.concatenate([moves, jnp.ones((self.num_players, 1), bool), beside[:, None]], axis=-1)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        planes = observation["planes"] > 0
        foods = jnp.any(planes[..., self._food_planes], axis=-1)
        others = jnp.any(planes[..., 1 : self.num_players], axis=-1)
        blocked = planes[..., self.num_players] | foods | others
        free = self.grid.free_moves(blocked, planes[..., 0])
        playing = (observation["time"] < 1) & jnp.any(foods)
        beside = jnp.any(self.grid.free_moves(~foods, planes[..., 0]))[None]
        return jnp.concatenate([free & playing, jnp.ones(1, bool), beside & playing])

    def from_view(self, observation: Observation) -> ForagingState:
        planes = observation["planes"] > 0
        players, foods = planes[..., : self.num_players], planes[..., self._food_planes]
        traits = planes[..., self._food_planes.stop :]
        position, _ = self.grid.place_of_each(players)
        has = jnp.any(players[..., None] & traits[..., None, :], axis=(0, 1))
        food_position, food_remains = self.grid.places(jnp.any(foods, axis=-1), self.num_foods)
        food_is = foods.reshape(-1, self.food_levels)[food_position]
        return ForagingState(
            position=position,
            level=_number(has),
            last_actions=observation["last_actions"],
            food_position=food_position,
            food_level=_number(food_is),
            food_remains=food_remains,
            walls=planes[..., self.num_players],
            time=steps_passed(observation["time"], self.horizon),
        )

    def events(
        self,
        state: ForagingState,
        actions: Int32[Array, " agents"],
        after: ForagingState,
        rewards: Float32[Array, " agents"],
    ) -> Bool[Array, "events agents"]:
        """A player had a part in taking a food of this level."""
        loads, strength = self._loads(state, actions)
        got = loads & self._taken(state, strength)
        levels = [jnp.any(got & (state.food_level == level), axis=-1) for level in self._up_to(self.food_levels)]
        return jnp.stack(levels)

    def terminated(self, state: ForagingState) -> Bool[Array, " agents"]:
        over = ~jnp.any(state.food_remains) | (state.time >= self.horizon)
        return jnp.broadcast_to(over, (self.num_players,))

    def permute(self, state: ForagingState, order: Int32[Array, " agents"]) -> ForagingState:
        return replace(
            state, position=state.position[order], level=state.level[order], last_actions=state.last_actions[order]
        )

    @property
    def _food_planes(self) -> slice:
        return slice(self.num_players + 1, self.num_players + 1 + self.food_levels)

    @staticmethod
    def _up_to(most: int) -> range:
        return range(1, most + 1)

    def _beside(self, state: ForagingState) -> Bool[Array, "agents foods"]:
        """Whether each player stands on one of the four cells around each food that remains."""
        width = jnp.int32(self.grid.width)
        rows, columns = jax.lax.div(state.position, width), jax.lax.rem(state.position, width)
        food_rows, food_columns = jax.lax.div(state.food_position, width), jax.lax.rem(state.food_position, width)
        steps = jnp.abs(rows[:, None] - food_rows) + jnp.abs(columns[:, None] - food_columns)
        return (steps == 1) & state.food_remains

    def _loads(
        self, state: ForagingState, actions: Int32[Array, " agents"]
    ) -> tuple[Bool[Array, "agents foods"], Int32[Array, " foods"]]:
        """Who loads each food, and the sum of their levels; an action that is illegal loads nothing."""
        loads = self._beside(state) & ((actions == LOAD) & ~self.terminated(state))[:, None]
        return loads, jnp.sum(jnp.where(loads, state.level[:, None], 0), axis=0, dtype=jnp.int32)

    def _taken(self, state: ForagingState, strength: Int32[Array, " foods"]) -> Bool[Array, " foods"]:
        return (strength >= state.food_level) & (strength > 0)

    def _shares(
        self, state: ForagingState, gets: Bool[Array, "agents foods"], strength: Int32[Array, " foods"]
    ) -> Float32[Array, " agents"]:
        """What each player gets of the foods that it took part in: the sum of fractions, rounded once.

        At most four foods are around a player, and the strength of each is at most 12: all numbers are exact.
        """
        parts = jnp.where(gets, strength, 1)
        whole = jnp.prod(parts, axis=-1, dtype=jnp.int32)
        worth = jnp.where(gets, state.food_level * jax.lax.div(whole[:, None], parts), 0)
        shares = state.level * jnp.sum(worth, axis=-1, dtype=jnp.int32)
        return shares.astype(jnp.float32) / whole.astype(jnp.float32)

    def _moved(self, state: ForagingState, actions: Int32[Array, " agents"]) -> Int32[Array, " agents"]:
        """The positions after the moves, which must be legal."""
        target = self.grid.moved(state.position, actions)
        same = (target[:, None] == target) & ~np.eye(self.num_players, dtype=bool)
        return jnp.where(jnp.any(same, axis=-1), state.position, target)


def _bit(place: Int32[Array, "*shape"]) -> UInt8[Array, "*shape"]:
    """A byte with this bit."""
    return jnp.uint8(1) << place.astype(jnp.uint8)


def _number(one_of: Bool[Array, "*shape levels"]) -> Int32[Array, "*shape"]:
    """The level of which the flag is on."""
    return jnp.sum(jnp.where(one_of, np.arange(1, one_of.shape[-1] + 1, dtype=np.int32), 0), axis=-1, dtype=jnp.int32)
