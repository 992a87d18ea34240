"""What a learner's settings need from a game, and which flags they leave unused.

`missing` alone decides whether an agent can learn a game: training calls it before it makes a run folder, and
`hopplus check` and `hopplus games` print its answer.
"""

from hopplus.agents.named import NAMES
from hopplus.games.game import Game
from hopplus.learning.config import LearnerConfig
from hopplus.runs.agents import learner_of

LATENT_ONLY = (
    "goal_envs",
    "minibatch_envs",
    "goal_minibatch_size",
    "lookahead",
    "selector",
    "epsilon",
    "posterior_kl",
    "prior_loss",
    "prior_kl",
)
"""Settings of `modelling` that only latent goals, with a prior and a posterior, use."""


def missing(learner: LearnerConfig, game: Game) -> str | None:
    """What the game must declare for these learner settings, in one sentence; None if nothing is missing."""
    spec, goals = game.spec, learner.opponents.goals
    if learner.planning.is_used and learner.planning.model == "game" and not has_from_view(game):
        needs = "planning in the true game (--planning.kind) needs a state to start from"
        return f"{needs}: write `from_view` in {type(game).__name__}"
    rewarded_only = learner.opponents.is_used and learner.modelling.rewarded_only
    if goals.kind == "hindsight" or rewarded_only:
        what = "--goals.kind hindsight" if goals.kind == "hindsight" else "--modelling.rewarded-only"
        needs = f"{what} needs events that pay: "
        if not spec.events:
            return f"{needs}list (name, action) pairs as `events` of the GameSpec"
        if unknown := [action for _, action in spec.events if action not in spec.action_names]:
            return f"{needs}`events` of the GameSpec names {unknown[0]!r}, which is not in its action_names"
    if goals.is_latent and not spec.planes:
        return "learned goals (--goals.kind) encode a board: declare `planes` in the GameSpec"
    if learner.world.is_used and spec.num_walkers != spec.num_agents:
        needs = "a learned world (--world.members) needs a board with every player on it"
        return f"{needs}: declare a `walker` plane for each player in the GameSpec"
    return None


def has_from_view(game: Game) -> bool:
    """Whether the game defines `from_view`, its state as seen from a seat."""
    return type(game).from_view is not Game.from_view


def agents_for(game: Game) -> dict[str, str | None]:
    """What the game is missing for each named agent; None for an agent that can learn it."""
    return {agent: missing(learner_of(agent), game) for agent in NAMES}


def unused_flags(learner: LearnerConfig) -> frozenset[str]:
    """The flags, and groups of flags, that these learner settings do not use, as field names without `--`."""
    goals, unused = learner.opponents.goals, set[str]()
    if not learner.opponents.is_used:
        unused |= {"pretrained", "goals", "others", "modelling"}
    elif not goals.is_latent:
        unused |= {f"modelling.{name}" for name in LATENT_ONLY}
        unused |= {"goals"} if goals.kind == "none" else {"goals.size", "goals.hidden", "goals.evidence"}
    if goals.kind == "hindsight":
        unused.add("modelling.rewarded_only")
    if not learner.world.is_used:
        unused |= {"replay", "world", "world_training"}
    if not learner.imagination.is_used:
        unused.add("imagination")
    if learner.imagination.is_used or learner.planning.is_used:
        unused.add("ppo.ranked_reward")
    unused |= {"planning.model", "planning.policy_weight"} if learner.planning.is_used else {"planning"}
    return frozenset(unused)
