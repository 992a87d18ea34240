"""The settings of the named agents. Every setting can still be changed."""

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from hopplus.agents.config import OpponentsConfig, PlanningConfig
from hopplus.agents.named import NAMES
from hopplus.core.extensions import OBJECT, is_own, make_own, thing_of
from hopplus.learning.config import ImaginationConfig, LearnerConfig, PopulationConfig
from hopplus.models.config import GoalsConfig, OthersConfig, WorldConfig
from hopplus.planning.config import SearchConfig
from hopplus.runs.defaults import defaults_of

if TYPE_CHECKING:
    from hopplus.learning.agent import Agent


def own_agent(agent: Any) -> "Agent | None":
    """The agent of a user, as an object or by MODULE:FACTORY; None for a built-in one."""
    if (thing := thing_of(agent)) is not None:
        return thing
    if isinstance(agent, str):
        return _load_agent(agent) if is_own(agent) or agent.startswith(OBJECT) else None
    return agent


@cache
def _load_agent(name: str) -> "Agent":
    from hopplus.learning.agent import Agent

    return make_own(name, "agent", Agent)


def parts_of(learner: LearnerConfig) -> list[str]:
    """The parts that a learner has besides its policy and critic, in words."""
    parts = {
        "opponent models": learner.opponents.is_used,
        "planning": learner.planning.is_used,
        "a world": learner.world.is_used,
        "a population": learner.population.is_used,
    }
    return [name for name, is_used in parts.items() if is_used]


def learner_of(agent: Any, learner: LearnerConfig | None = None, *, game: Any = None) -> LearnerConfig:
    """The learner settings of a named agent on a game; what the agent does not set comes from `learner`."""
    return defaults_of(agent, game).changed(_learner_of(agent, learner))


def _learner_of(agent: Any, learner: LearnerConfig | None) -> LearnerConfig:
    if own := own_agent(agent):
        return own.settings() if learner is None else replace(own.settings(), mesh=learner.mesh)
    if agent not in NAMES:
        known = f"the agents are {', '.join(NAMES)}, and MODULE:FACTORY is one of your own"
        raise ValueError(f"there is no agent called {agent!r}; {known}")
    opponents = {
        "ppo": OpponentsConfig(),
        "omg": OpponentsConfig(GoalsConfig(kind="continuous"), OthersConfig(models="each")),
        "direct_om": OpponentsConfig(others=OthersConfig(models="each")),
        "hop": OpponentsConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="each")),
    }
    learner = replace(learner or LearnerConfig(), opponents=opponents.get(agent, opponents["hop"]))
    if agent == "mappo":
        central = replace(learner.network, critic="central")
        return replace(learner, sharing="shared", network=central, opponents=OpponentsConfig())
    if agent == "liam":
        network = replace(learner.network, memory="gru", reconstruct=True)
        return replace(learner, sharing="shared", network=network, opponents=OpponentsConfig())
    if agent == "fcp":
        return replace(learner, population=PopulationConfig(members=8), opponents=OpponentsConfig())
    if agent == "hop_plus_notes":
        return _of_the_notes(learner)
    small_search = PlanningConfig(kind="search", search=SearchConfig(trees=2, simulations=16, depth=8))
    for_search = replace(learner.ppo, gae_lambda=1.0, entropy_coefficient=0.0, final_entropy_coefficient=0.0)
    if agent in ("direct_om", "hop"):
        return replace(learner, envs=16, planning=small_search, ppo=for_search)
    if agent == "hop_plus_search":
        in_world = replace(small_search, model="world")
        return replace(learner, envs=16, planning=in_world, ppo=for_search, world=WorldConfig(members=2))
    if agent != "hop_plus":
        return learner
    return replace(
        learner,
        envs=16,
        world=WorldConfig(members=2),
        imagination=ImaginationConfig(real_ratio=0.08, counterfactual=0.5),
    )


def _of_the_notes(learner: LearnerConfig) -> LearnerConfig:
    """The agent that the first notes describe; docs/notes.md has the sentence behind each setting."""
    goals = GoalsConfig(kind="continuous", size=16, posterior="conditional")
    return replace(
        learner,
        envs=16,
        opponents=OpponentsConfig(goals, OthersConfig(models="each", destinations=False)),
        modelling=replace(
            learner.modelling, lookahead=0, prior_loss="action", rewarded_only=True, max_grad_norm=10.0, epsilon=0.0
        ),
        world=WorldConfig(members=1, kind="regression", hidden=256),
        imagination=ImaginationConfig(real_ratio=0.5, length=5, branch="buffer", critic="all", trust=False),
        ppo=replace(learner.ppo, gae_lambda=1.0),
    )
