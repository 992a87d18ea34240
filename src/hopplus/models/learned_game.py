"""The learned world as a game, and its state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.games.fields import Observation
from hopplus.games.game import NO_ACTION, Game, GameSpec, as_played, ego_views, steps_passed
from hopplus.models import world
from hopplus.models.world import Situation, WorldModel, on_board


class WorldState(eqx.Module):
    """An environment state of the learned world."""

    board: UInt8[Array, "*batch height width planes"]
    time: Int32[Array, "*batch"]
    last_actions: Int32[Array, "*batch agents"]
    ended: Bool[Array, "*batch agents"]


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
        now = Situation(state.board, state.time, actions, state.ended)
        after = world.draw(self.spec, now, world.apply(self.params, self.spec, now), key=key)
        last_actions = jnp.where(on_board(state.board[..., : self.spec.num_walkers]), actions, NO_ACTION)
        return WorldState(after.board, state.time + 1, last_actions, after.ended), after.rewards

    def board(self, state: WorldState) -> UInt8[Array, "height width planes"]:
        return state.board

    def observe(self, state: WorldState) -> Observation:
        present = on_board(state.board[..., : self.spec.num_walkers])
        time = jnp.minimum(state.time, self.spec.horizon)
        return ego_views(self.spec, state.board, present, time, state.last_actions)

    def legal(self, state: WorldState) -> Bool[Array, "agents actions"]:
        allowed = jax.vmap(self.game.legal_in_view)(self.observe(state))
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
        return WorldState(
            state.board[..., self.spec.plane_order(order)], state.time, state.last_actions[order], state.ended[order]
        )


def from_view(spec: GameSpec, observation: Observation) -> WorldState:
    """One seat's view as a state of the learned world in that seat's order. A blank view is a finished game."""
    time = steps_passed(observation["time"], spec.horizon)
    ended = ~on_board(observation["planes"][..., : spec.num_walkers]) | (time >= spec.horizon)
    return WorldState(observation["planes"], time, observation["last_actions"], ended)
