"""The named agents: what each of them is made of. Every setting can still be changed."""

from dataclasses import replace

from hopplus.learning.imagination import ImaginationConfig
from hopplus.learning.learner import LearnerConfig
from hopplus.learning.minds import MindConfig
from hopplus.learning.planner import PlanningConfig
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import OthersConfig
from hopplus.models.world import WorldConfig
from hopplus.planning.search import SearchConfig

ABOUT = {
    "ppo": "plain PPO, each seat for itself",
    "omg": "infers a goal vector of each co-player, models its actions, and reads the goals in its policy",
    "direct_om": "models its co-players' actions, no goals, and learns what search in the true game finds",
    "hop": "believes that each co-player is after some kind of prey, and learns what search in the true game finds",
    "hop_plus": "has hop's beliefs, learns the world, imagines play in it, and learns from real and imagined play",
}
AGENTS = tuple(ABOUT)


def parts_of(learner: LearnerConfig) -> list[str]:
    """What a learner has besides its policy and critic."""
    has = {
        "opponent models": learner.mind.others.models != "none",
        "planning": learner.planning.is_used,
        "a world": learner.world.is_used,
    }
    return [name for name, is_there in has.items() if is_there]


def learner_of(agent: str, learner: LearnerConfig | None = None) -> LearnerConfig:
    """The settings of an agent of that name."""
    minds = {
        "ppo": MindConfig(),
        "omg": MindConfig(GoalsConfig(kind="continuous"), OthersConfig(models="each")),
        "direct_om": MindConfig(others=OthersConfig(models="each")),
        "hop": MindConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="each")),
    }
    learner = replace(learner or LearnerConfig(), mind=minds.get(agent, minds["hop"]))
    if agent in ("direct_om", "hop"):
        few = PlanningConfig(kind="search", search=SearchConfig(trees=2, simulations=16, depth=8))
        ppo = replace(learner.ppo, gae_lambda=1.0, entropy_coefficient=0.0, final_entropy_coefficient=0.0)
        return replace(learner, envs=16, planning=few, ppo=ppo)
    if agent != "hop_plus":
        return learner
    return replace(
        learner,
        envs=16,
        world=WorldConfig(members=2),
        imagination=ImaginationConfig(real_ratio=0.08, counterfactual=0.5),
    )
