"""Markov stag hunt: one hunter can catch a hare, and a stag needs two hunters or more in the same step.

The rules are those of Huang et al., ICML 2024 (HOP), with walls, arenas, moving prey and an early end as options. All
players act at once: they move or hunt, caught prey and its hunters leave, then prey may move.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8, UInt32

from hopplus.games.board import MOVE_NAMES, STAY, Board, draw_distinct, uniform_below
from hopplus.games.fields import Observation, Plane, board_fields
from hopplus.games.game import NO_ACTION, Event, Game, GameSpec, as_played, ego_views, steps_passed

HUNT_STAG, HUNT_HARE = 5, 6
ACTION_NAMES = (*MOVE_NAMES, "stay", "hunt stag", "hunt hare")
HUNTERS_NEEDED = {"stag": 2, "hare": 1}


class StagHuntState(eqx.Module):
    """The state of one environment: integers and flags only, so that a search tree can hold thousands of them."""

    position: Int32[Array, " agents"]
    present: Bool[Array, " agents"]
    last_actions: Int32[Array, " agents"]
    prey_position: Int32[Array, " prey"]
    """Stags first, then hares."""
    prey_alive: Bool[Array, " prey"]
    walls: Bool[Array, "height width"]
    time: Int32[Array, ""]
    ends_at: Int32[Array, ""]


class PreyDraws(eqx.Module):
    """The random draws of one step of moving prey, made before they are used: the rest of the step is arithmetic."""

    order: Int32[Array, " prey"]
    moves: Bool[Array, " prey"]
    direction: UInt32[Array, " prey"]


class StagHunt(Game[StagHuntState]):
    """Players leave after a catch; the others play until all have left or the horizon is reached."""

    grid: Board = Board()
    num_players: int = eqx.field(static=True, default=4)
    num_stags: int = eqx.field(static=True, default=1)
    num_hares: int = eqx.field(static=True, default=4)
    horizon: int = eqx.field(static=True, default=35)
    stag_reward: float = eqx.field(static=True, default=10.0)
    hare_reward: float = eqx.field(static=True, default=1.0)
    prey_moves: float = eqx.field(static=True, default=0.0)
    """The probability that a live prey takes a step after the hunts."""
    steps_after_first_catch: int | None = eqx.field(static=True, default=None)
    """End the episode this many steps after the first catch; None: the catch does not end it."""

    def __check_init__(self):
        if self.num_players < 1 or self.num_stags < 0 or self.num_hares < 0:
            raise ValueError(
                f"num_players is {self.num_players}, num_stags {self.num_stags} and num_hares {self.num_hares}; "
                "give at least one player, and 0 or more stags and hares"
            )
        if self.horizon < 1:
            raise ValueError(f"horizon is {self.horizon}; give 1 or more steps")
        if not 0.0 <= self.prey_moves <= 1.0:
            raise ValueError(f"prey_moves is {self.prey_moves}; give a probability between 0 and 1")
        if self.steps_after_first_catch is not None and self.steps_after_first_catch < 0:
            raise ValueError(f"steps_after_first_catch is {self.steps_after_first_catch}; give 0 or more, or None")
        self.grid.check_room(self.num_players + self.num_prey)

    @property
    def num_prey(self) -> int:
        return self.num_stags + self.num_hares

    @property
    def spec(self) -> GameSpec:
        players = tuple(Plane(f"player_{offset}", "walker") for offset in range(self.num_players))
        prey = [Plane(name, "set", random=self.prey_moves > 0) for name in ("stags", "hares")]
        planes = (*players, Plane("obstacles", "fixed"), *prey)
        shares = [np.float32(self.stag_reward) / np.float32(hunters) for hunters in range(2, self.num_players + 1)]
        shares += [np.float32(self.hare_reward) / np.float32(hunters) for hunters in range(1, self.num_players + 1)]
        return GameSpec(
            name="stag_hunt",
            version=1,
            num_agents=self.num_players,
            action_names=ACTION_NAMES,
            observation=board_fields(planes, self.grid.height, self.grid.width, self.num_players, len(ACTION_NAMES)),
            stay=STAY,
            reward_support=tuple(sorted({0.0, *map(float, shares)})),
            horizon=self.horizon,
            straight_paths=self.grid.obstacle_pieces == 0,
            events=(Event("stag_rate", "hunt stag"), Event("hare_rate", "hunt hare")),
        )

    def reset(self, *, key: Key[Array, ""]) -> StagHuntState:
        walls, cells = self.grid.draw(self.num_players + self.num_prey, key=key)
        return StagHuntState(
            position=cells[: self.num_players],
            present=jnp.ones(self.num_players, bool),
            last_actions=jnp.full(self.num_players, NO_ACTION, jnp.int32),
            prey_position=cells[self.num_players :],
            prey_alive=jnp.ones(self.num_prey, bool),
            walls=walls,
            time=jnp.int32(0),
            ends_at=jnp.int32(self.horizon),
        )

    def step(
        self, state: StagHuntState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]
    ) -> tuple[StagHuntState, Float32[Array, " agents"]]:
        actions = as_played(self.legal(state), actions, stay=STAY)
        hunts = self._hunts(state, actions)
        hunters = jnp.sum(hunts, axis=0)
        caught = hunters >= self._per_prey(HUNTERS_NEEDED["stag"], HUNTERS_NEEDED["hare"])
        catches = hunts & caught
        sharers = jnp.sum(jnp.where(catches, hunters, 0), axis=-1)
        on_stag = jnp.any(catches[:, : self.num_stags], axis=-1)
        worth = jnp.where(on_stag, np.float32(self.stag_reward), np.float32(self.hare_reward))
        rewards = jnp.where(sharers > 0, worth / jnp.maximum(sharers, 1), 0.0)

        time = state.time + 1
        ends_at = state.ends_at
        if self.steps_after_first_catch is not None:
            ends_at = jnp.where(jnp.any(caught), jnp.minimum(ends_at, time + self.steps_after_first_catch), ends_at)
        after_hunt = replace(
            state,
            position=self.grid.moved(state.position, actions),
            present=state.present & ~jnp.any(catches, axis=-1),
            last_actions=jnp.where(state.present, actions, NO_ACTION),
            prey_alive=state.prey_alive & ~caught,
            time=time,
            ends_at=ends_at,
        )
        if self.prey_moves > 0:
            after_hunt = self.move_prey(after_hunt, self.draw_prey_moves(key=key))
        return after_hunt, rewards

    def board(self, state: StagHuntState) -> UInt8[Array, "height width planes"]:
        players = self.grid.planes(state.position, state.present)
        stags, hares = self._by_kind(self.grid.planes(state.prey_position, state.prey_alive))
        shared = jnp.stack([state.walls, stags, hares], axis=-1)
        return jnp.concatenate([players, shared], axis=-1).astype(jnp.uint8)

    def observe(self, state: StagHuntState) -> Observation:
        return ego_views(self.spec, self.board(state), state.present, state.time, state.last_actions)

    def legal(self, state: StagHuntState) -> Bool[Array, "agents actions"]:
        _, free = self.grid.moves(state.walls, state.position)
        on_stag, on_hare = self._by_kind(self._on_prey(state))
        playing = ~self.terminated(state)
        moves = [free[:, move] & playing for move in range(len(MOVE_NAMES))]
        return jnp.stack([*moves, jnp.ones_like(playing), on_stag & playing, on_hare & playing], axis=-1)

    def legal_in_view(self, observation: Observation) -> Bool[Array, " actions"]:
        own, (walls, stags, hares) = observation["planes"][..., 0], jnp.moveaxis(observation["planes"][..., -3:], -1, 0)
        free = self.grid.free_moves(walls > 0, own > 0)
        hunts = jnp.stack([jnp.any((own & prey) > 0) for prey in (stags, hares)])
        playing = observation["time"] < 1
        return jnp.concatenate([free & playing, jnp.ones(1, bool), hunts & playing])

    def events_in_view(self, observation: Observation) -> Bool[Array, "agents events"]:
        """A player that took an event's action and is gone must have been paid."""
        gone = ~jnp.any(observation["planes"][..., : self.num_players] > 0, axis=(0, 1))
        return (observation["last_actions"][:, None] == self.spec.event_actions) & gone[:, None]

    def from_view(self, observation: Observation) -> StagHuntState:
        if self.steps_after_first_catch is not None:
            raise NotImplementedError(
                "a view does not show when the first catch was; leave out steps_after_first_catch to plan in this game"
            )
        walls, stags, hares = jnp.moveaxis(observation["planes"][..., self.num_players :] > 0, -1, 0)
        position, present = self.grid.place_of_each(observation["planes"][..., : self.num_players] > 0)
        stag_position, stag_alive = self.grid.places(stags, self.num_stags)
        hare_position, hare_alive = self.grid.places(hares, self.num_hares)
        return StagHuntState(
            position=position,
            present=present,
            last_actions=observation["last_actions"],
            prey_position=jnp.concatenate([stag_position, hare_position]),
            prey_alive=jnp.concatenate([stag_alive, hare_alive]),
            walls=walls,
            time=steps_passed(observation["time"], self.horizon),
            ends_at=jnp.int32(self.horizon),
        )

    def terminated(self, state: StagHuntState) -> Bool[Array, " agents"]:
        return ~state.present | (state.time >= state.ends_at)

    def permute(self, state: StagHuntState, order: Int32[Array, " agents"]) -> StagHuntState:
        return replace(
            state,
            position=state.position[order],
            present=state.present[order],
            last_actions=state.last_actions[order],
        )

    def draw_prey_moves(self, *, key: Key[Array, ""]) -> PreyDraws:
        order_key, moves_key, direction_key = jax.random.split(key, 3)
        return PreyDraws(
            order=draw_distinct(self.num_prey, jnp.int32(self.num_prey), key=order_key),
            moves=jax.random.bernoulli(moves_key, self.prey_moves, (self.num_prey,)),
            direction=jax.random.bits(direction_key, (self.num_prey,), jnp.uint32),
        )

    def move_prey(self, state: StagHuntState, draws: PreyDraws) -> StagHuntState:
        """Each prey in turn moves to a uniform neighbouring cell without a wall or other prey."""

        def move_one(positions, mover):
            targets, free = self.grid.moves(state.walls, positions[mover, None])
            taken = jnp.any((targets[0][:, None] == positions) & state.prey_alive, axis=-1)
            open_to_it = free[0] & ~taken
            choice = uniform_below(draws.direction[mover], jnp.sum(open_to_it, dtype=jnp.int32))
            chosen = open_to_it & (jnp.cumsum(open_to_it) == choice + 1)
            moves = draws.moves[mover] & state.prey_alive[mover] & jnp.any(open_to_it)
            target = jnp.sum(jnp.where(chosen, targets[0], 0))
            return positions.at[mover].set(jnp.where(moves, target, positions[mover])), None

        positions, _ = jax.lax.scan(move_one, state.prey_position, draws.order)
        return replace(state, prey_position=positions)

    def _hunts(self, state: StagHuntState, actions: Int32[Array, " agents"]) -> Bool[Array, "agents prey"]:
        hunted = self._per_prey(HUNT_STAG, HUNT_HARE)
        return self._on_prey(state) & (actions[:, None] == hunted) & state.present[:, None]

    def _on_prey(self, state: StagHuntState) -> Bool[Array, "agents prey"]:
        return (state.position[:, None] == state.prey_position) & state.prey_alive

    def _by_kind(self, prey: Bool[Array, "*shape prey"]) -> tuple[Bool[Array, "*shape"], Bool[Array, "*shape"]]:
        """Whether any stag, and whether any hare, in one pass over the prey."""
        kinds = jnp.bitwise_or.reduce(jnp.where(prey, self._per_prey(np.uint8(1), np.uint8(2)), np.uint8(0)), axis=-1)
        return (kinds & 1) > 0, (kinds & 2) > 0

    def _per_prey(self, stag: int | np.uint8, hare: int | np.uint8) -> np.ndarray:
        return np.array([stag] * self.num_stags + [hare] * self.num_hares)
