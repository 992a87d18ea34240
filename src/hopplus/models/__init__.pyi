from hopplus.models.actor_critic import ActorCritic as ActorCritic
from hopplus.models.config import ActorCriticConfig as ActorCriticConfig
from hopplus.models.config import GoalsConfig as GoalsConfig
from hopplus.models.config import OthersConfig as OthersConfig
from hopplus.models.config import WorldConfig as WorldConfig
from hopplus.models.learned_game import LearnedGame as LearnedGame
from hopplus.models.others import Others as Others
from hopplus.models.world import World as World
