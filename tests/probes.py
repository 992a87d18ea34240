"""Games that are broken on purpose, one fault each: what the contract must find."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.doctor.faults import TieToTheLowestSeat
from hopplus.games.board import Board
from hopplus.games.stag_hunt import StagHunt

SMALL = Board(4, 4)


class SortedSpawns(StagHunt):
    """All seats share one list of cells, and seat by seat take them from the top left down."""

    def reset(self, *, key):
        state = super().reset(key=key)
        return replace(state, position=jnp.sort(state.position))


class FirstSeatNearTheStag(StagHunt):
    """Every cell is as likely for every seat, but the first seat gets the spawn that is nearest to the stag."""

    def reset(self, *, key):
        state = super().reset(key=key)
        stag = state.prey_position[0]
        rows, columns = state.position // 4, state.position % 4
        distance = jnp.abs(rows - stag // 4) + jnp.abs(columns - stag % 4)
        nearest = jnp.argmin(distance)
        order = jnp.where(jnp.arange(4) == 0, nearest, jnp.where(jnp.arange(4) == nearest, 0, jnp.arange(4)))
        return replace(state, position=state.position[order])


class RewardToTheNextSeat(StagHunt):
    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, jnp.roll(rewards, 1)


class RewardOfSeatZeroForAll(StagHunt):
    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, jnp.where(self.terminated(state), 0.0, rewards[0])


class KeyUsedTwice(StagHunt):
    def reset(self, *, key):
        state = super().reset(key=key)
        stag = jax.random.randint(key, (1,), 0, 16, jnp.int32)
        return replace(state, prey_position=state.prey_position.at[:1].set(stag))


class IllegalMoveAccepted(StagHunt):
    """Walks through the edge of the board and comes out on the other side."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        cells = self.grid.height * self.grid.width
        wrapped = (self.grid.moved(state.position, actions)) % cells
        playing = ~self.terminated(state)
        return replace(after, position=jnp.where(playing, wrapped, after.position)), rewards


class ViewInSeatOrder(StagHunt):
    """Every seat sees player_1 first, so that a view tells which seat it is."""

    def observe(self, state):
        seen = super().observe(state)
        planes = jnp.where(state.present[:, None, None, None], self.board(state), jnp.uint8(0))
        return {**seen, "planes": planes}


class ActionsNotTurned(StagHunt):
    """The planes are in the viewer's order, the last actions are not."""

    def observe(self, state):
        seen = super().observe(state)
        last = jnp.where(state.present[:, None], state.last_actions, -1)
        return {**seen, "last_actions": last}


class NonFiniteReward(StagHunt):
    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, jnp.where(rewards > 0, rewards / 0.0, rewards)


class RewardOutsideSupport(StagHunt):
    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, 1.5 * rewards


class ReturnsToTheBoard(StagHunt):
    """A hunter who has left comes back after the third step."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return replace(after, present=after.present | (state.time > 3)), rewards


class NoHorizon(StagHunt):
    def terminated(self, state):
        return ~state.present


class WalksTwoCells(StagHunt):
    def step(self, state, actions, *, key):
        first_key, second_key = jax.random.split(key)
        after, rewards = super().step(state, actions, key=first_key)
        moves = jnp.where(actions < 4, actions, 4)
        again, _ = super().step(replace(after, time=state.time), moves, key=second_key)
        return replace(after, position=again.position), rewards


class WallsMove(StagHunt):
    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return replace(after, walls=jnp.roll(state.walls, 1, axis=0)), rewards


class WrongDtype(StagHunt):
    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, rewards.astype(jnp.float16)


class CountsItsCalls(StagHunt):
    """Keeps something outside the state, so that the same call gives another answer."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        calls.append(1)
        return after, jnp.where(jnp.any(rewards > 0), rewards, rewards + 0 * len(calls)) + np.float32(len(calls) % 2)


calls: list[int] = []

FAULTS = {
    TieToTheLowestSeat: ("seats", "not treated alike"),
    SortedSpawns: ("spawns", "the starting cell differs by seat"),
    FirstSeatNearTheStag: ("spawns", "the distance to the nearest of the stags differs by seat"),
    RewardToTheNextSeat: ("seats", "the rewards do not follow"),
    RewardOfSeatZeroForAll: ("seats", "the rewards do not follow"),
    KeyUsedTwice: ("keys", "reset uses a random key twice"),
    IllegalMoveAccepted: ("legal", "an illegal action does not act as 'stay'"),
    ViewInSeatOrder: ("ego views", "does not show its own seat first"),
    ActionsNotTurned: ("rotated views", "last_actions do not follow"),
    NonFiniteReward: ("rewards", "not finite"),
    RewardOutsideSupport: ("rewards", "outside the declared support"),
    ReturnsToTheBoard: ("termination", "plays again"),
    NoHorizon: ("termination", "continues after its horizon"),
    WalksTwoCells: ("planes", "moves 2 cells"),
    WallsMove: ("planes", "declared fixed"),
    WrongDtype: ("shapes", "the spec asks for float32[4], the game gives float16[4]"),
    CountsItsCalls: ("same bits", "the same state, actions and key"),
}
"""Each broken game, the promise that must catch it, and words of the message that name the fault."""
