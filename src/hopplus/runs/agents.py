"""The named agents: what each of them is made of. Every setting can still be changed."""

from dataclasses import replace

from hopplus.learning.imagination import ImaginationConfig
from hopplus.learning.learner import LearnerConfig
from hopplus.learning.minds import MindConfig
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import OthersConfig
from hopplus.models.world import WorldConfig

ABOUT = {
    "ppo": "plain PPO, each seat for itself",
    "omg": "infers a goal vector of each co-player, models its actions, and reads the goals in its policy",
    "hop": "believes that each co-player is after some kind of prey, by a Bayes filter; search comes later",
    "hop_plus": "hop that also learns the world, imagines play in it, and learns from real and imagined play",
}
AGENTS = tuple(ABOUT)


def learner_of(agent: str, learner: LearnerConfig | None = None) -> LearnerConfig:
    """The settings of an agent of that name."""
    minds = {
        "ppo": MindConfig(),
        "omg": MindConfig(GoalsConfig(kind="continuous"), OthersConfig(models="each")),
        "hop": MindConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="each")),
    }
    learner = replace(learner or LearnerConfig(), mind=minds.get(agent, minds["hop"]))
    if agent != "hop_plus":
        return learner
    return replace(
        learner,
        envs=16,
        world=WorldConfig(members=2),
        imagination=ImaginationConfig(real_ratio=0.08, counterfactual=0.5),
    )
