"""Harvest: a common pool of apples that regrow faster the more of them are left around.

The commons game of Perolat et al., 2017 (arXiv 1707.06600), smaller and fully observed. Taking every apple pays each
player at once and leaves nothing to grow from. A step has five parts, each for all players at once. Players move. Those
on an apple eat it and share it equally. Beams hit the players in their line, who leave the board. Players whose time
away is over return, all of one step to one random cell. Apples grow on cells without an apple, a wall or a player.
"""

from dataclasses import replace
from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8, UInt32

from hopplus.core.numerics import running_count
from hopplus.games.board import COLUMN_STEPS, MOVE_NAMES, ROW_STEPS, STAY, Board, random_words, uniform_below
from hopplus.games.fields import Observation, OthersInView, Plane, board_fields
from hopplus.games.game import NO_ACTION, Event, Game, GameSpec, as_played, board_of_view, ego_views, steps_passed

ACTION_NAMES = (*MOVE_NAMES, "stay")
ZAP_NAMES = tuple(f"zap {name}" for name in MOVE_NAMES)
ZAP = len(ACTION_NAMES)
CHANCES = 2**16
"""Chances of growth are multiples of 1 / CHANCES."""


class HarvestState(eqx.Module):
    """The state of one environment: integers and flags only."""

    position: Int32[Array, " agents"]
    """Of a player who is away, any cell."""
    away: Int32[Array, " agents"]
    """The steps until each player is back on the board; 0 for those who are there."""
    last_actions: Int32[Array, " agents"]
    apples: Bool[Array, "height width"]
    walls: Bool[Array, "height width"]
    time: Int32[Array, ""]


class HarvestDraws(eqx.Module):
    """The random draws of one step, made before they are used: the rest of the step is arithmetic."""

    growth: Int32[Array, "height width"]
    """Uniform below CHANCES, for each cell."""
    back: UInt32[Array, ""]
    """Where players return."""


class Harvest(Game[HarvestState]):
    """Eat what grows, and leave enough that it grows again."""

    grid: Board = Board()
    num_players: int = eqx.field(static=True, default=4)
    horizon: int = eqx.field(static=True, default=100)
    first_apples: float = eqx.field(static=True, default=0.3)
    """The probability that a cell without wall or player has an apple at the start."""
    growth: tuple[float, ...] = eqx.field(static=True, default=(0.0, 0.01, 0.02, 0.04))
    """The probability in a step that an apple grows on a cell, by the number of apples around it, on eight cells. The
    last one also holds for more."""
    away_steps: int = eqx.field(static=True, default=0)
    """How many steps a player that is hit by a beam is away. 0: there are no beams."""
    beam_length: int = eqx.field(static=True, default=4)
    """A beam hits all players in a straight line up to so many cells away; walls stop it."""
    others: OthersInView = eqx.field(static=True, default="planes")
    """How a view shows the other players: each on a plane of its own, or all summed in one, so that views do not grow
    with the number of players."""

    def __check_init__(self):
        if self.num_players < 1:
            raise ValueError(f"num_players is {self.num_players}; give at least one")
        if self.horizon < 1:
            raise ValueError(f"horizon is {self.horizon}; give 1 or more steps")
        if not self.growth or not all(0.0 <= chance <= 1.0 for chance in (self.first_apples, *self.growth)):
            raise ValueError(f"first_apples is {self.first_apples}, growth {self.growth}; give probabilities")
        if not 0 <= self.away_steps <= self.grid.height * self.grid.width:
            raise ValueError(f"away_steps is {self.away_steps}; give 0 to the number of cells, which show it")
        if self.beam_length < 1:
            raise ValueError(f"beam_length is {self.beam_length}; give 1 or more cells")
        if self.others not in get_args(OthersInView):
            raise ValueError(f"others is {self.others!r}; give one of {', '.join(get_args(OthersInView))}")
        self.grid.check_room(self.num_players)

    @property
    def has_beam(self) -> bool:
        return self.away_steps > 0

    @property
    def spec(self) -> GameSpec:
        offsets = range(self.num_players)
        own = [Plane(f"player_{offset}", "walker", returns=self.has_beam) for offset in offsets]
        own += [Plane(f"away_{offset}", "counter", per_player=True) for offset in offsets if self.has_beam]
        planes = (*own, Plane("obstacles", "fixed"), Plane("apples", "set", random=True, reached="entered"))
        action_names = ACTION_NAMES + (ZAP_NAMES if self.has_beam else ())
        sizes = self.grid.height, self.grid.width, self.num_players, len(action_names)
        shares = [1 / np.float32(players) for players in range(1, self.num_players + 1)]
        return GameSpec(
            name="harvest",
            version=1,
            num_agents=self.num_players,
            action_names=action_names,
            observation=board_fields(planes, *sizes, self.others),
            stay=STAY,
            reward_support=tuple(sorted({0.0, *map(float, shares)})),
            horizon=self.horizon,
            straight_paths=self.grid.obstacle_pieces == 0,
            events=(Event("apples"), *([Event("zaps")] if self.has_beam else [])),
        )

    def reset(self, *, key: Key[Array, ""]) -> HarvestState:
        cell_key, apple_key = jax.random.split(key)
        walls, position = self.grid.draw(self.num_players, key=cell_key)
        away = jnp.zeros(self.num_players, jnp.int32)
        draws = self.draw_growth(key=apple_key)
        blocked = walls | self.grid.plane(position, away == 0)
        return HarvestState(
            position=position,
            away=away,
            last_actions=jnp.full(self.num_players, NO_ACTION, jnp.int32),
            apples=(draws.growth < round(self.first_apples * CHANCES)) & ~blocked,
            walls=walls,
            time=jnp.int32(0),
        )

    def step(
        self, state: HarvestState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[HarvestState, Float32[Array, " agents"]]:
        actions = as_played(self.legal(state), actions, stay=STAY)
        draws = self.draw_growth(key=key)
        there = state.away == 0
        position = self.grid.moved(state.position, actions)
        players = self.grid.planes(position, there)
        eats = jnp.any(players & state.apples[..., None], axis=(0, 1))
        sharers = jnp.sum((position[:, None] == position) & there, axis=-1)
        rewards = jnp.where(eats, np.float32(1.0) / jnp.maximum(sharers, 1), 0.0)
        apples = state.apples & ~jnp.any(players, axis=-1)

        away = jnp.maximum(state.away - 1, 0)
        if self.has_beam:
            position = jnp.where(state.away == 1, self._cell_of_return(state.walls, draws.back), position)
            hit = jnp.any(self._hits(state, position, actions), axis=0)
            away = jnp.where(hit, self.away_steps, away)
        after = replace(
            state,
            position=position,
            away=away,
            last_actions=actions,
            apples=self._grown(state.walls, apples, self.grid.plane(position, away == 0), draws),
            time=state.time + 1,
        )
        return after, rewards

    def draw_growth(self, *, key: Key[Array, ""]) -> HarvestDraws:
        """The random draws of a step: half a word for each cell, and one word."""
        height, width = self.grid.height, self.grid.width
        words = random_words(1 + (height * width + 1) // 2, key=key)
        halves = jnp.concatenate([words[1:] & 0xFFFF, words[1:] >> 16])[: height * width]
        return HarvestDraws(halves.astype(jnp.int32).reshape(height, width), words[0])

    def board(self, state: HarvestState) -> UInt8[Array, "height width planes"]:
        own = [self.grid.planes(state.position, state.away == 0)]
        if self.has_beam:
            cells = np.arange(self.grid.height * self.grid.width, dtype=np.int32)
            own.append(jnp.asarray(cells.reshape(self.grid.height, self.grid.width, 1)) < state.away)
        shared = jnp.stack([state.walls, state.apples], axis=-1)
        return jnp.concatenate([*own, shared], axis=-1).astype(jnp.uint8)

    def observe(self, state: HarvestState) -> Observation:
        """The views; who is away sees the board without itself."""
        present = jnp.ones(self.num_players, bool)
        return ego_views(self.spec, self.board(state), present, state.time, state.last_actions)

    def legal(self, state: HarvestState) -> Bool[Array, "agents actions"]:
        _, free = self.grid.moves(state.walls, state.position)
        acting = ((state.away == 0) & ~self.terminated(state))[:, None]
        zaps = [jnp.broadcast_to(acting, (self.num_players, len(ZAP_NAMES)))] if self.has_beam else []
        return jnp.concatenate([free & acting, jnp.ones((self.num_players, 1), bool), *zaps], axis=-1)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        own, walls = (observation["planes"][..., plane] > 0 for plane in (0, -2))
        free = self.grid.free_moves(walls, own)
        acting = (observation["time"] < 1) & jnp.any(own)
        zaps = [jnp.broadcast_to(acting, (len(ZAP_NAMES),))] if self.has_beam else []
        return jnp.concatenate([free & acting, jnp.ones(1, bool), *zaps])

    def from_view(self, observation: Observation) -> HarvestState:
        """The state; where the others are summed, they are in the order of `board_of_view`."""
        shown = observation["planes"]
        planes = (board_of_view(self.spec, shown) if self.spec.sums_others else shown) > 0
        position, _ = self.grid.place_of_each(planes[..., : self.num_players])
        away = jnp.zeros(self.num_players, jnp.int32)
        if self.has_beam:
            counters = planes[..., self.num_players : 2 * self.num_players]
            away = jnp.sum(counters, axis=(0, 1), dtype=jnp.int32)
        return HarvestState(
            position=position,
            away=away,
            last_actions=observation.get("last_actions", jnp.full(self.num_players, NO_ACTION, jnp.int32)),
            apples=planes[..., -1],
            walls=planes[..., -2],
            time=steps_passed(observation["time"], self.horizon),
        )

    def events(
        self,
        state: HarvestState,
        actions: Int32[Array, " agents"],
        after: HarvestState,
        rewards: Float32[Array, " agents"],
    ) -> Bool[Array, "events agents"]:
        """A player ate an apple, or its beam hit another player."""
        if not self.has_beam:
            return (rewards > 0)[None]
        played = as_played(self.legal(state), actions, stay=STAY)
        hits = self._hits(state, self.grid.moved(state.position, played), played)
        return jnp.stack([rewards > 0, jnp.any(hits, axis=-1)])

    def terminated(self, state: HarvestState) -> Bool[Array, " agents"]:
        return jnp.broadcast_to(state.time >= self.horizon, (self.num_players,))

    def permute(self, state: HarvestState, order: Int32[Array, " agents"]) -> HarvestState:
        return replace(
            state, position=state.position[order], away=state.away[order], last_actions=state.last_actions[order]
        )

    def _grown(
        self,
        walls: Bool[Array, "height width"],
        apples: Bool[Array, "height width"],
        players: Bool[Array, "height width"],
        draws: HarvestDraws,
    ) -> Bool[Array, "height width"]:
        """The apples after growth: each cell for itself, by the number of apples around it before any grew."""
        around = jnp.pad(apples.astype(jnp.int32), 1)
        rows = around[:-2] + around[1:-1] + around[2:]
        number = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
        thresholds = [round(chance * CHANCES) for chance in self.growth]
        threshold = jnp.full_like(number, thresholds[0])
        for least, chances in enumerate(thresholds[1:], start=1):
            threshold = jnp.where(number >= least, chances, threshold)
        return apples | ((draws.growth < threshold) & ~walls & ~players)

    def _hits(
        self, state: HarvestState, position: Int32[Array, " agents"], actions: Int32[Array, " agents"]
    ) -> Bool[Array, "shooters agents"]:
        """Whom each beam hits, where the players are after the moves; nobody who was away before the step."""
        height, width = self.grid.height, self.grid.width
        rows, columns = jax.lax.div(position, jnp.int32(width)), jax.lax.rem(position, jnp.int32(width))
        zap = np.arange(len(ZAP_NAMES)) == actions[:, None] - ZAP
        down, right = (jnp.sum(jnp.where(zap, steps, 0), axis=-1) for steps in (ROW_STEPS, COLUMN_STEPS))
        reaches = jnp.any(zap, axis=-1)
        there = state.away == 0
        hits = jnp.zeros((self.num_players, self.num_players), bool)
        for length in range(1, min(self.beam_length, max(height, width)) + 1):
            row, column = rows + length * down, columns + length * right
            reaches &= (row >= 0) & (row < height) & (column >= 0) & (column < width)
            cell = row * width + column
            if self.grid.has_walls:
                reaches &= ~state.walls.reshape(-1)[jnp.where(reaches, cell, 0)]
            hits |= reaches[:, None] & (cell[:, None] == position) & there
        return hits

    def _cell_of_return(self, walls: Bool[Array, "height width"], word: UInt32[Array, ""]) -> Int32[Array, ""]:
        """A uniformly random cell without a wall."""
        if not self.grid.has_walls:
            return uniform_below(word, jnp.int32(self.grid.height * self.grid.width))
        free_up_to_here = running_count(~walls.reshape(-1))
        return jnp.sum(free_up_to_here <= uniform_below(word, free_up_to_here[-1]), dtype=jnp.int32)
