"""The decisions of a seat in an episode: its beliefs about each co-player, its policy, and what planning computed.

A player is a pure function of its observations and its state, so its decisions are recomputed exactly from the states
of the episode.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, PyTree

from hopplus.agents.goals import BeliefState
from hopplus.agents.planner import Planner
from hopplus.agents.player import Player
from hopplus.games.game import Game


@dataclass(frozen=True)
class Decisions:
    """The decisions of one seat in each state of an episode but the last."""

    seat: int
    goals: tuple[str, ...]
    """The names of the goals; empty if the seat's beliefs have no named goals."""
    beliefs: Float32[np.ndarray, "steps others goals"]
    """The probability of each goal, for the co-players in seat order after this one."""
    policy: Float32[np.ndarray, "steps actions"]
    """The probability of each action under the policy, without planning."""
    legal: Bool[np.ndarray, "steps actions"]
    values: Float32[np.ndarray, "steps actions"] | None = None
    """The value of each action by planning; None without planning."""
    visits: Float32[np.ndarray, "steps actions"] | None = None
    """The number of visits of each action, over all trees."""


def decisions_of(player: Player | Planner, game: Game, states: PyTree[Array | np.ndarray], seat: int) -> Decisions:
    """The decisions of this player in that seat; states have a leading axis of steps, and the last is not acted in.

    States after the end of the episode may follow; the caller ignores the decisions there.
    """
    policy, beliefs, plans, legal = _decide(player, game, states, seat)
    names = player_of(player).goals.names
    beliefs = beliefs.goals if names else beliefs.goals[..., :0]
    policy, beliefs, legal, plans = jax.device_get((policy, beliefs, legal, plans))
    return Decisions(
        seat,
        names,
        beliefs,
        policy,
        legal,
        values=None if plans is None else plans.values,
        visits=None if plans is None else plans.visits,
    )


def player_of(player: Player | Planner) -> Player:
    """The player itself, or the player inside a planner."""
    return player.player if isinstance(player, Planner) else player


@eqx.filter_jit
def _decide(player: Player | Planner, game: Game, states: PyTree[Array], seat: int):
    own = player_of(player)
    seen = jax.vmap(game.observe)(states), jax.vmap(game.legal)(states)
    observations, legal = jax.tree.map(lambda leaf: leaf[:-1, seat], seen)

    def one_step(beliefs: BeliefState, seen):
        observation, legal = seen
        beliefs = own.update_beliefs(observation, beliefs)
        inputs = own.policy_inputs(observation, beliefs.goals)
        log_probabilities, _, hidden = own.params.step(beliefs.hidden, observation, legal, inputs)
        beliefs = replace(beliefs, hidden=hidden)
        plan = player.plan(observation, beliefs) if isinstance(player, Planner) else None
        return beliefs, (jnp.exp(log_probabilities), beliefs, plan)

    _, decisions = jax.lax.scan(one_step, player.init(), (observations, legal))
    return *decisions, legal
