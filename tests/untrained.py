"""Players and planners that have learned nothing: what they know of the game is what they plan in."""

import jax

from hopplus.games.board import Board
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning import minds
from hopplus.learning.minds import MindConfig, Player
from hopplus.learning.planner import Planner, PlanningConfig
from hopplus.models import actor_critic
from hopplus.models.actor_critic import ActorCriticConfig
from hopplus.models.goals import GoalsConfig, goal_size
from hopplus.models.others import OthersConfig
from hopplus.planning.search import SearchConfig

GAME = StagHunt(grid=Board(3, 3), num_players=3, num_stags=1, num_hares=1)
MIND = MindConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="shared", hidden=4, keys=2))
SMALL = SearchConfig(trees=6, simulations=14, depth=3)


def player(*, greedy=True):
    size = goal_size(MIND.goals, GAME.spec)
    params = actor_critic.init(ActorCriticConfig(hidden=(4,)), GAME.spec, size, key=jax.random.key(0))
    return Player(params, minds.init(MIND, GAME.spec, key=jax.random.key(1)), GAME, MIND, greedy)


def planner(kind, *, game=GAME, greedy=True, **settings):
    return Planner(player(greedy=greedy), game, PlanningConfig(kind=kind, search=SMALL, **settings), 0.99)
