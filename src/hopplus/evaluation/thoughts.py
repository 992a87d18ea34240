"""What a seat thought during an episode: its beliefs about each co-player, and what it expected of its own actions.

A player is a pure function of what its seat sees and remembers, so its thoughts are worked out again from the states of
the episode, and are those that it had.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, PyTree

from hopplus.games.game import Game
from hopplus.learning.minds import Filter, Impression, Player
from hopplus.learning.planner import Planner
from hopplus.models import actor_critic
from hopplus.models.goals import goal_names


@dataclass(frozen=True)
class Thoughts:
    """Of one seat, for each state of an episode but the last."""

    seat: int
    goals: tuple[str, ...]
    """What co-players may be after; none where the seat has no beliefs that can be named."""
    beliefs: Float32[np.ndarray, "steps others goals"]
    """How likely each goal is, for the co-players in seat order after this one."""
    policy: Float32[np.ndarray, "steps actions"]
    """How likely its policy is to take each action, before it plans."""
    legal: Bool[np.ndarray, "steps actions"]
    values: Float32[np.ndarray, "steps actions"] | None = None
    """What planning found each action to be worth; None where it does not plan."""
    visits: Float32[np.ndarray, "steps actions"] | None = None
    """How often planning tried each, over all trees."""


def thoughts_of(player: Player | Planner, game: Game, states: PyTree[Array | np.ndarray], seat: int) -> Thoughts:
    """What this player thought in that seat; states have a leading axis of steps, and nobody acts in the last.

    States after the end of the episode may follow: nobody will ask for those thoughts.
    """
    policy, impressions, plans, legal = _think(player, game, states, seat)
    can_name = isinstance(impressions.kept, Filter)
    beliefs = impressions.goals if can_name else impressions.goals[..., :0]
    policy, beliefs, legal, plans = jax.device_get((policy, beliefs, legal, plans))
    return Thoughts(
        seat,
        goal_names(game.spec) if can_name else (),
        beliefs,
        policy,
        legal,
        values=None if plans is None else plans.values,
        visits=None if plans is None else plans.visits,
    )


@eqx.filter_jit
def _think(player: Player | Planner, game: Game, states: PyTree[Array], seat: int):
    mind = player.player if isinstance(player, Planner) else player
    seen = jax.vmap(game.observe)(states), jax.vmap(game.legal)(states)
    observations, legal = jax.tree.map(lambda leaf: leaf[:-1, seat], seen)

    def one_step(impression: Impression, seen):
        observation, legal = seen
        impression = mind.perceive(observation, impression)
        log_probabilities, _ = actor_critic.apply(mind.params, observation, legal, impression.goals)
        plan = player.plan(observation, impression) if isinstance(player, Planner) else None
        return impression, (jnp.exp(log_probabilities), impression, plan)

    _, found = jax.lax.scan(one_step, player.start(), (observations, legal))
    return *found, legal
