"""Versions of the coin game, of foraging and of harvest that are broken on purpose, one fault each."""

from dataclasses import replace

import jax.numpy as jnp

from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.foraging import LOAD, Foraging
from hopplus.games.harvest import Harvest


class CoinToTheLowestSeat(Coins):
    """Of several players on a coin the one with the lowest seat gets all of it."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        takes = after.position[:, None] == state.coin_position
        takers = jnp.sum(takes, axis=0)
        first = takes & (jnp.cumsum(takes, axis=0) == 1)
        change = jnp.sum(jnp.where(takes, first - 1.0 / jnp.maximum(takers, 1), 0.0), axis=-1)
        return after, rewards + change.astype(jnp.float32)


class OwnerAfterPays(Coins):
    """What the owner should pay, the player in the seat after it pays."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        takes = after.position[:, None] == state.coin_position
        takers = jnp.sum(takes, axis=0)
        loss = 2.0 * (takers - jnp.diagonal(takes)) / jnp.maximum(takers, 1)
        return after, rewards + loss - jnp.roll(loss, 1)


class FirstCoinNearItsOwner(Coins):
    """Every cell is as likely for every coin, but the first seat's coin is the one nearest to it."""

    def reset(self, *, key):
        state = super().reset(key=key)
        width, coins = self.grid.width, state.coin_position
        away = jnp.abs(coins // width - state.position[0] // width) + jnp.abs(coins % width - state.position[0] % width)
        nearest, seats = jnp.argmin(away), jnp.arange(self.num_players)
        order = jnp.where(seats == 0, nearest, jnp.where(seats == nearest, 0, seats))
        return replace(state, coin_position=coins[order])


class CoinsInSeatOrder(Coins):
    """The planes of the players are in the viewer's order, those of their coins are not: a view tells the seat."""

    def observe(self, state):
        seen, coins = super().observe(state), slice(self.num_players, 2 * self.num_players)
        board = jnp.broadcast_to(self.board(state), seen["planes"].shape)
        return {**seen, "planes": seen["planes"].at[..., coins].set(board[..., coins])}


class CoinsComeBackBySeat(Coins):
    """The draws belong to the coins in the order of their owners' seats."""

    def respawned(self, state, position, taken, words):
        cells = super().respawned(state, position, taken, words)
        drawn = jnp.sort(jnp.where(taken, cells, 10_000))
        turn = jnp.cumsum(taken) - 1
        return jnp.where(taken, drawn[jnp.maximum(turn, 0)], cells)


class LowestSeatMoves(Foraging):
    """Of several players that want a cell, the one with the lowest seat gets it."""

    def _moved(self, state, actions):
        target = self.grid.moved(state.position, actions)
        earlier = jnp.tril(jnp.ones((self.num_players, self.num_players), bool), -1)
        return jnp.where(jnp.any((target[:, None] == target) & earlier, axis=-1), state.position, target)


class FirstSeatIsStrong(Foraging):
    """The first seat always has the highest level."""

    def reset(self, *, key):
        state = super().reset(key=key)
        return replace(state, level=state.level.at[0].set(self.player_levels))


class SharesOfTheSeatAfter(Foraging):
    """The food is split in proportion to the level of the player in the seat after each loader."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, rewards * jnp.roll(state.level, -1) / state.level


class LevelOfTheFirstSeatFirst(Foraging):
    """The planes of levels show the first seat's level to everybody as if it were at the viewer's place."""

    def observe(self, state):
        seen = super().observe(state)
        planes, count = seen["planes"], self.player_levels
        own = planes[..., 0][..., None] * (state.level[0] == jnp.arange(1, count + 1))
        elsewhere = planes[..., -count:] * (1 - planes[..., :1])
        return {**seen, "planes": planes.at[..., -count:].set((own + elsewhere).astype(jnp.uint8))}


class FirstSeatLoadsTwice(Foraging):
    """The first seat counts twice when it loads."""

    def _loads(self, state, actions):
        loads, strength = super()._loads(state, actions)
        return loads, strength + jnp.where(loads[0] & (actions[0] == LOAD), 1, 0)


class AppleToTheLowestSeat(Harvest):
    """Of several players on an apple the one with the lowest seat gets all of it."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        same = (after.position[:, None] == after.position) & (rewards > 0)[:, None] & (rewards > 0)
        is_first = jnp.argmax(same, axis=-1) == jnp.arange(self.num_players)
        return after, jnp.where(rewards > 0, is_first.astype(jnp.float32), rewards)


class GrowthBySeat(Harvest):
    """Apples grow around the player in the first seat."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        row, column = after.position[0] // self.grid.width, after.position[0] % self.grid.width
        return replace(after, apples=after.apples.at[row, (column + 1) % self.grid.width].set(True)), rewards


class ReturnsBySeat(Harvest):
    """Players that return in the same step return to cells in the order of their seats."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        cells = (after.position + jnp.arange(self.num_players, dtype=jnp.int32)) % (self.grid.height * self.grid.width)
        return replace(after, position=jnp.where(state.away == 1, cells, after.position)), rewards


class CountersInSeatOrder(Harvest):
    """How long players are away is shown in the order of the seats: a view tells the seat."""

    def observe(self, state):
        seen, counters = super().observe(state), slice(self.num_players, 2 * self.num_players)
        board = jnp.broadcast_to(self.board(state), seen["planes"].shape)
        return {**seen, "planes": seen["planes"].at[..., counters].set(board[..., counters])}


class AppleToTheSeatAfter(Harvest):
    """What a player eats goes to the player in the seat after it."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, jnp.roll(rewards, 1)


class SortedSpawns(Harvest):
    """Seat by seat take the drawn cells from the top left down."""

    def reset(self, *, key):
        state = super().reset(key=key)
        return replace(state, position=jnp.sort(state.position))


COINS = Coins(grid=Board(4, 4), num_players=3)
FORAGING = Foraging(grid=Board(4, 4), num_players=3, num_foods=3)
HARVEST = Harvest(grid=Board(4, 4), num_players=3, away_steps=2, growth=(0.1, 0.3))
FAULTS = {
    CoinToTheLowestSeat: (COINS, "seats", "the rewards do not follow"),
    OwnerAfterPays: (COINS, "seats", "the rewards do not follow"),
    FirstCoinNearItsOwner: (COINS, "spawns", "the distance to the nearest of its own coins differs by seat"),
    CoinsInSeatOrder: (COINS, "ego views", "does not show its own seat first"),
    CoinsComeBackBySeat: (COINS, "seats", "the next state coin_position do not follow"),
    LowestSeatMoves: (FORAGING, "seats", "the next state position do not follow"),
    FirstSeatIsStrong: (FORAGING, "spawns", "the trait level_1 differs by seat"),
    SharesOfTheSeatAfter: (FORAGING, "seats", "the rewards do not follow"),
    LevelOfTheFirstSeatFirst: (FORAGING, "ego views", "does not show its own seat first"),
    FirstSeatLoadsTwice: (FORAGING, "seats", "do not follow"),
    AppleToTheLowestSeat: (HARVEST, "seats", "the rewards do not follow"),
    AppleToTheSeatAfter: (HARVEST, "seats", "the rewards do not follow"),
    GrowthBySeat: (HARVEST, "seats", "the next state apples do not follow"),
    ReturnsBySeat: (HARVEST, "seats", "the next state position do not follow"),
    CountersInSeatOrder: (HARVEST, "ego views", "does not show its own seat first"),
    SortedSpawns: (HARVEST, "spawns", "the starting cell differs by seat"),
}
"""Each broken game: the settings it is played with, the promise that must catch it, and words of the message."""


def broken(kind):
    """The broken game with the settings of the sound one."""
    sound, _, _ = FAULTS[kind]
    settings = {name: value for name, value in vars(sound).items() if name in sound.__dataclass_fields__}
    return kind(**settings)
