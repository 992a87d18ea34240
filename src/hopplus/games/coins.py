"""Coins: every player may take every coin, but a coin that another player takes costs its owner more than it is worth.

The coin game of Lerer and Peysakhovich, 2017 (arXiv 1707.01068), for two to four players, with a coin of each player's
colour on the board at all times. All players move at once. The players that are on a coin's cell after the moves share
it equally, so no seat has priority: with k of them each gets 1 / k, and the owner pays 2 / k for each of the k that is
not the owner. A taken coin comes back on a random free cell.
"""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8, UInt32

from hopplus.core.numerics import running_count
from hopplus.games.board import MOVE_NAMES, STAY, Board, distinct, random_words
from hopplus.games.fields import Observation, Plane, board_fields
from hopplus.games.game import NO_ACTION, Event, Game, GameSpec, as_played, ego_views, steps_passed

ACTION_NAMES = (*MOVE_NAMES, "stay")
MOST_PLAYERS = 4


class CoinsState(eqx.Module):
    """The state of one environment: integers and flags only."""

    position: Int32[Array, " agents"]
    coin_position: Int32[Array, " agents"]
    """The cell of each player's own coin; no two coins share a cell."""
    last_actions: Int32[Array, " agents"]
    walls: Bool[Array, "height width"]
    time: Int32[Array, ""]


class Coins(Game[CoinsState]):
    """Take your own coins only, or those of the others too."""

    grid: Board = Board(3, 3)
    num_players: int = eqx.field(static=True, default=2)
    horizon: int = eqx.field(static=True, default=40)
    coin_reward: float = eqx.field(static=True, default=1.0)
    """The reward for a coin, shared equally by the players that take it in the same step."""
    cost: float = eqx.field(static=True, default=2.0)
    """What a coin costs its owner if others take it; their share of it, if the owner is among those that take it."""

    def __check_init__(self):
        if not 2 <= self.num_players <= MOST_PLAYERS:
            raise ValueError(f"num_players is {self.num_players}; give 2 to {MOST_PLAYERS}")
        if self.horizon < 1:
            raise ValueError(f"horizon is {self.horizon}; give 1 or more steps")
        self.grid.check_room(2 * self.num_players)

    @property
    def spec(self) -> GameSpec:
        players = tuple(Plane(f"player_{offset}", "walker") for offset in range(self.num_players))
        coins = tuple(
            Plane(f"coins_{offset}", "set", per_player=True, one_cell=True, random=True, reached="entered")
            for offset in range(self.num_players)
        )
        planes = (*players, *coins, Plane("obstacles", "fixed"))
        return GameSpec(
            name="coins",
            version=1,
            num_agents=self.num_players,
            action_names=ACTION_NAMES,
            observation=board_fields(planes, self.grid.height, self.grid.width, self.num_players, len(ACTION_NAMES)),
            stay=STAY,
            reward_support=self._reward_support(),
            horizon=self.horizon,
            straight_paths=self.grid.obstacle_pieces == 0,
            events=(Event("own_coins"), Event("others_coins")),
        )

    def reset(self, *, key: Key[Array, ""]) -> CoinsState:
        walls, cells = self.grid.draw(2 * self.num_players, key=key)
        return CoinsState(
            position=cells[: self.num_players],
            coin_position=cells[self.num_players :],
            last_actions=jnp.full(self.num_players, NO_ACTION, jnp.int32),
            walls=walls,
            time=jnp.int32(0),
        )

    def step(
        self, state: CoinsState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[CoinsState, Float32[Array, " agents"]]:
        actions = as_played(self.legal(state), actions, stay=STAY)
        position = self.grid.moved(state.position, actions)
        takes = position[:, None] == state.coin_position
        takers = jnp.sum(takes, axis=0, dtype=jnp.int32)
        others = takers - jnp.diagonal(takes)
        gain = jnp.sum(jnp.where(takes, np.float32(self.coin_reward) / jnp.maximum(takers, 1), 0.0), axis=-1)
        loss = np.float32(self.cost) * others / jnp.maximum(takers, 1)
        coin_position = self.respawned(state, position, takers > 0, self.draw_words(key=key))
        after = replace(
            state, position=position, coin_position=coin_position, last_actions=actions, time=state.time + 1
        )
        return after, gain - loss

    def draw_words(self, *, key: Key[Array, ""]) -> UInt32[Array, " agents"]:
        """The random draws of one step: a word for each coin that may come back."""
        return random_words(self.num_players, key=key)

    def respawned(
        self,
        state: CoinsState,
        position: Int32[Array, " agents"],
        taken: Bool[Array, " agents"],
        words: UInt32[Array, " agents"],
    ) -> Int32[Array, " agents"]:
        """The cells of the coins after those that were taken came back on free cells, all choices equally likely.

        A cell is free without a wall, a player or a coin that is left. The draws belong to the taken coins in the order
        of their cells, not of their owners, so that relabelling the seats changes nothing.
        """
        coins = state.coin_position
        things = jnp.concatenate([position, coins])
        cells = np.arange(self.grid.height * self.grid.width, dtype=np.int32)
        free = ~jnp.any(cells[:, None] == things, axis=-1)
        if self.grid.has_walls:
            free &= ~state.walls.reshape(-1)
        free_up_to_here = running_count(free)
        ranks = distinct(words, free_up_to_here[-1])
        turn = jnp.sum(taken & (coins < coins[:, None]), axis=-1, dtype=jnp.int32)
        rank = jnp.sum(jnp.where(turn[:, None] == np.arange(len(coins)), ranks, 0), axis=-1)
        new = jnp.sum(free_up_to_here <= rank[:, None], axis=-1, dtype=jnp.int32)
        return jnp.where(taken, new, coins)

    def board(self, state: CoinsState) -> UInt8[Array, "height width planes"]:
        things = jnp.concatenate([state.position, state.coin_position])
        own = self.grid.planes(things, jnp.ones(2 * self.num_players, bool))
        return jnp.concatenate([own, state.walls[..., None]], axis=-1).astype(jnp.uint8)

    def observe(self, state: CoinsState) -> Observation:
        present = jnp.ones(self.num_players, bool)
        return ego_views(self.spec, self.board(state), present, state.time, state.last_actions)

    def legal(self, state: CoinsState) -> Bool[Array, "agents actions"]:
        _, free = self.grid.moves(state.walls, state.position)
        playing = ~self.terminated(state)[:, None]
        return jnp.concatenate([free & playing, jnp.ones((self.num_players, 1), bool)], axis=-1)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        own, walls = (observation["planes"][..., plane] for plane in (0, -1))
        free = self.grid.free_moves(walls > 0, own > 0)
        return jnp.concatenate([free & (observation["time"] < 1), jnp.ones(1, bool)])

    def from_view(self, observation: Observation) -> CoinsState:
        planes = observation["planes"] > 0
        things, _ = self.grid.place_of_each(planes[..., : 2 * self.num_players])
        return CoinsState(
            position=things[: self.num_players],
            coin_position=things[self.num_players :],
            last_actions=observation["last_actions"],
            walls=planes[..., -1],
            time=steps_passed(observation["time"], self.horizon),
        )

    def events(
        self,
        state: CoinsState,
        actions: Int32[Array, " agents"],
        after: CoinsState,
        rewards: Float32[Array, " agents"],
    ) -> Bool[Array, "events agents"]:
        """A player took its own coin, or the coin of another; a coin that is shared counts for all that took it."""
        takes = (after.position[:, None] == state.coin_position) & (after.time > state.time)
        own = jnp.diagonal(takes)
        return jnp.stack([own, jnp.any(takes, axis=-1) & ~own])

    def terminated(self, state: CoinsState) -> Bool[Array, " agents"]:
        return jnp.broadcast_to(state.time >= self.horizon, (self.num_players,))

    def permute(self, state: CoinsState, order: Int32[Array, " agents"]) -> CoinsState:
        return replace(
            state,
            position=state.position[order],
            coin_position=state.coin_position[order],
            last_actions=state.last_actions[order],
        )

    def _reward_support(self) -> tuple[float, ...]:
        """All possible rewards: with k players at a seat's coin, n - k are left to take another."""
        reward, cost, players = np.float32(self.coin_reward), np.float32(self.cost), self.num_players

        def paid(others: int, takers: int) -> np.float32:
            return cost * np.float32(others) / np.float32(takers)

        gains = [reward / np.float32(takers) for takers in range(1, players + 1)]
        support = [np.float32(0.0), *gains]
        support += [-paid(takers, takers) for takers in range(1, players)]
        support += [gains[takers - 1] - paid(takers - 1, takers) for takers in range(1, players + 1)]
        for takers in range(1, players):
            support += [gains[with_it - 1] - paid(takers, takers) for with_it in range(1, players - takers + 1)]
        return tuple(sorted(set(map(float, support))))
