"""Untrained players and planners: what they know of the game is what they plan in."""

from functools import cache

import jax

from hopplus.agents import opponents
from hopplus.agents.config import OpponentsConfig, PlanningConfig
from hopplus.agents.planner import Planner
from hopplus.agents.player import Player
from hopplus.games.board import Board
from hopplus.games.stag_hunt import StagHunt
from hopplus.models import actor_critic
from hopplus.models.config import ActorCriticConfig, GoalsConfig, OthersConfig
from hopplus.models.goals import goal_size
from hopplus.planning.config import SearchConfig

GAME = StagHunt(grid=Board(3, 3), num_players=3, num_stags=1, num_hares=1)
OPPONENTS = OpponentsConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="shared", hidden=4, keys=2))
SMALL = SearchConfig(trees=6, simulations=14, depth=3)


@cache
def networks():
    size = goal_size(OPPONENTS.goals, GAME.spec)
    network = ActorCriticConfig(hidden=(4,))
    start = jax.jit(
        lambda key, other_key: (
            actor_critic.init(network, GAME.spec, size, key=key),
            opponents.init(OPPONENTS, GAME.spec, size, key=other_key),
        )
    )
    return start(jax.random.key(0), jax.random.key(1))


def player(*, greedy=True):
    return Player(*networks(), GAME, OPPONENTS, greedy)


def planner(kind, *, game=GAME, greedy=True, **settings):
    return Planner(player(greedy=greedy), game, PlanningConfig(kind=kind, search=SMALL, **settings), 0.99)
