"""Markov snowdrift: all players gain when a drift is removed, and only those that remove it pay.

A removed drift gives its benefit to every player; its cost is split among the players that removed it in that step. No
player leaves, so the episode ends for all at once: when no drift is left, or at the horizon.
"""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.games.board import MOVE_NAMES, STAY, Board
from hopplus.games.fields import Observation, Plane, board_fields
from hopplus.games.game import NO_ACTION, Event, Game, GameSpec, as_played, ego_views, steps_passed

REMOVE = 5
ACTION_NAMES = (*MOVE_NAMES, "stay", "remove")


class SnowdriftState(eqx.Module):
    """The state of one environment: integers and flags only."""

    position: Int32[Array, " agents"]
    last_actions: Int32[Array, " agents"]
    drift_position: Int32[Array, " drifts"]
    drift_remains: Bool[Array, " drifts"]
    walls: Bool[Array, "height width"]
    time: Int32[Array, ""]


class Snowdrift(Game[SnowdriftState]):
    """Walk to a drift and remove it, or wait until another player does."""

    grid: Board = Board()
    num_players: int = eqx.field(static=True, default=4)
    num_drifts: int = eqx.field(static=True, default=6)
    horizon: int = eqx.field(static=True, default=50)
    benefit: float = eqx.field(static=True, default=6.0)
    """The reward of every player for each removed drift."""
    cost: float = eqx.field(static=True, default=4.0)
    """The cost of a removed drift, split equally among the players that remove it together."""

    def __check_init__(self):
        if self.num_players < 1 or self.num_drifts < 1:
            raise ValueError(
                f"num_players is {self.num_players} and num_drifts {self.num_drifts}; give at least one of each"
            )
        if self.horizon < 1:
            raise ValueError(f"horizon is {self.horizon}; give 1 or more steps")
        self.grid.check_room(self.num_players + self.num_drifts)

    @property
    def spec(self) -> GameSpec:
        players = tuple(Plane(f"player_{offset}", "walker") for offset in range(self.num_players))
        planes = (*players, Plane("obstacles", "fixed"), Plane("drifts", "set"))
        return GameSpec(
            name="snowdrift",
            version=1,
            num_agents=self.num_players,
            action_names=ACTION_NAMES,
            observation=board_fields(planes, self.grid.height, self.grid.width, self.num_players, len(ACTION_NAMES)),
            stay=STAY,
            reward_support=self._reward_support(),
            horizon=self.horizon,
            straight_paths=self.grid.obstacle_pieces == 0,
            events=(Event("removals", "remove"),),
        )

    def reset(self, *, key: Key[Array, ""]) -> SnowdriftState:
        walls, cells = self.grid.draw(self.num_players + self.num_drifts, key=key)
        return SnowdriftState(
            position=cells[: self.num_players],
            last_actions=jnp.full(self.num_players, NO_ACTION, jnp.int32),
            drift_position=cells[self.num_players :],
            drift_remains=jnp.ones(self.num_drifts, bool),
            walls=walls,
            time=jnp.int32(0),
        )

    def step(
        self, state: SnowdriftState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[SnowdriftState, Float32[Array, " agents"]]:
        actions = as_played(self.legal(state), actions, stay=STAY)
        removes = self._on_drift(state) & (actions[:, None] == REMOVE)
        removers = jnp.sum(removes, axis=0)
        removed = removers > 0
        cost = jnp.sum(jnp.where(removes, np.float32(self.cost) / jnp.maximum(removers, 1), 0.0), axis=-1)
        rewards = np.float32(self.benefit) * jnp.sum(removed) - cost
        after = replace(
            state,
            position=self.grid.moved(state.position, actions),
            last_actions=actions,
            drift_remains=state.drift_remains & ~removed,
            time=state.time + 1,
        )
        return after, rewards

    def board(self, state: SnowdriftState) -> UInt8[Array, "height width planes"]:
        players = self.grid.planes(state.position, jnp.ones(self.num_players, bool))
        drifts = self.grid.plane(state.drift_position, state.drift_remains)
        return jnp.concatenate([players, jnp.stack([state.walls, drifts], axis=-1)], axis=-1).astype(jnp.uint8)

    def observe(self, state: SnowdriftState) -> Observation:
        present = jnp.ones(self.num_players, bool)
        return ego_views(self.spec, self.board(state), present, state.time, state.last_actions)

    def legal(self, state: SnowdriftState) -> Bool[Array, "agents actions"]:
        _, free = self.grid.moves(state.walls, state.position)
        on_drift = jnp.any(self._on_drift(state), axis=-1, keepdims=True)
        playing = ~self.terminated(state)[:, None]
        stay = jnp.ones((self.num_players, 1), bool)
        return jnp.concatenate([free & playing, stay, on_drift & playing], axis=-1)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        own, walls, drifts = (observation["planes"][..., plane] for plane in (0, -2, -1))
        free = self.grid.free_moves(walls > 0, own > 0)
        playing = (observation["time"] < 1) & jnp.any(drifts > 0)
        on_drift = jnp.any((own & drifts) > 0)[None]
        return jnp.concatenate([free & playing, jnp.ones(1, bool), on_drift & playing])

    def from_view(self, observation: Observation) -> SnowdriftState:
        walls, drifts = jnp.moveaxis(observation["planes"][..., self.num_players :] > 0, -1, 0)
        position, _ = self.grid.place_of_each(observation["planes"][..., : self.num_players] > 0)
        drift_position, drift_remains = self.grid.places(drifts, self.num_drifts)
        return SnowdriftState(
            position=position,
            last_actions=observation["last_actions"],
            drift_position=drift_position,
            drift_remains=drift_remains,
            walls=walls,
            time=steps_passed(observation["time"], self.horizon),
        )

    def terminated(self, state: SnowdriftState) -> Bool[Array, " agents"]:
        over = ~jnp.any(state.drift_remains) | (state.time >= self.horizon)
        return jnp.broadcast_to(over, (self.num_players,))

    def permute(self, state: SnowdriftState, order: Int32[Array, " agents"]) -> SnowdriftState:
        return replace(state, position=state.position[order], last_actions=state.last_actions[order])

    def _on_drift(self, state: SnowdriftState) -> Bool[Array, "agents drifts"]:
        return (state.position[:, None] == state.drift_position) & state.drift_remains

    def _reward_support(self) -> tuple[float, ...]:
        """All possible rewards: with k players at a seat's drift, n - k are left for the other drifts."""
        benefit, cost, players = np.float32(self.benefit), np.float32(self.cost), self.num_players
        support = {float(benefit * count) for count in range(min(self.num_drifts, players - 1) + 1)}
        for removers in range(1, players + 1):
            most = 1 + min(self.num_drifts - 1, players - removers)
            support |= {float(benefit * count - cost / np.float32(removers)) for count in range(1, most + 1)}
        return tuple(sorted(support))
