"""What a learner's settings need from a game.

`missing` alone decides whether an agent can learn a game: training calls it before it makes a run folder, and
`hopplus check` and `hopplus games` print its answer.
"""

from hopplus.agents.named import NAMES
from hopplus.games.game import Game, capabilities
from hopplus.learning.config import LearnerConfig
from hopplus.models.world import has_shared_board
from hopplus.runs.agents import learner_of


def missing(learner: LearnerConfig, game: Game) -> str | None:
    """What the game must declare for these learner settings, in one sentence; None if nothing is missing."""
    spec, goals, offered = game.spec, learner.opponents.goals, capabilities(game)
    if learner.population.is_used:
        if spec.num_agents < 2:
            return "a population (--population.members) plays the other seats: the game has one seat"
        if spec.roles:
            return "a best response (--population.members) learns in the first seat, and other seats have other roles"
    if learner.opponents.is_used:
        if spec.num_agents < 2:
            return "opponent models (--others.models) need a co-player: the game has one seat"
        if spec.sums_others and (needs := _missing_for_summed_views(learner)):
            return needs
        if (needs := _missing_for_own_views(learner, game)) and "others' views" not in offered:
            return needs
        if goals.kind != "none" and not spec.has_field("last_actions"):
            needs = "goals (--goals.kind) are inferred from what co-players did"
            return f"{needs}: add `last_actions_field` to `observation` of the GameSpec, or give --goals.kind none"
    if learner.planning.is_used and learner.planning.model == "game" and "plan" not in offered:
        needs = "planning in the true game (--planning.kind) needs a state to start from"
        return f"{needs}: write `from_view` in {type(game).__name__}"
    if learner.planning.is_used and learner.planning.model == "game" and "others' views" not in offered:
        return "planning in the true game (--planning.kind) needs what a co-player sees: it moves in the planned state"
    rewarded_only = learner.opponents.is_used and learner.modelling.rewarded_only
    if not spec.events and (goals.kind == "hindsight" or rewarded_only):
        what = "--goals.kind hindsight" if goals.kind == "hindsight" else "--modelling.rewarded-only"
        return f"{what} needs events: list them as `events` of the GameSpec"
    if goals.is_latent and "board" not in offered:
        return "learned goals (--goals.kind) encode a board: declare `planes` with kinds in `observation`"
    return _missing_for_world(learner, game) if learner.world.is_used else None


def _missing_for_world(learner: LearnerConfig, game: Game) -> str | None:
    """The world of fields needs nothing but seats that see alike, where they share it."""
    spec = game.spec
    if learner.world.kind == "fields":
        if spec.sums_others:
            return "a world of fields (--world.kind fields) needs views with a plane for each player; give cells"
        if not spec.roles or learner.sharing == "independent":
            return None
        return "seats in different roles see different things, and a world that they share does not know roles yet"
    if learner.world.kind == "regression" and spec.sums_others:
        return "a world that regresses planes (--world.kind regression) needs views with a plane for each player"
    if learner.world.kind == "regression" and spec.walkers_return:
        return "a world that regresses planes (--world.kind regression) takes a player that is away for one that left"
    if not has_shared_board(spec):
        needs = "a learned world (--world.members) needs a board with every player on it"
        return f"{needs}: declare a `walker` plane for each player in `observation`; or give --world.kind fields"
    return None


def _missing_for_summed_views(learner: LearnerConfig) -> str | None:
    """What opponent models need where views sum the others: nobody is followed over time, and one model is of all."""
    opponents, who = learner.opponents, "a view sums the others, so nobody can tell which of them did what"
    if opponents.goals.kind != "none":
        return f"{who}: goals (--goals.kind) cannot be inferred; give none"
    if opponents.others.models != "shared" or learner.sharing != "shared":
        return f"{who}: opponent models (--others.models) can only be of any player; give shared, and --sharing shared"
    if opponents.others.as_input:
        return f"{who}: a policy cannot read what each will do (--others.as-input); leave it out"
    if learner.planning.is_used:
        return f"{who}: a tree (--planning.kind) has a place for each co-player; give none"
    return None


def _missing_for_own_views(learner: LearnerConfig, game: Game) -> str | None:
    """What opponent models need where a seat does not know what its co-players see: they read its own view."""
    if game.spec.roles and learner.sharing == "shared":
        return "seats in different roles see different things, and opponent models that they share do not know roles"
    if learner.opponents.others.models == "shared":
        return "a model of all co-players needs what each of them sees (--others.models shared); give each"
    if learner.opponents.goals.is_latent:
        own = [field.name for field in game.spec.observation if field.layout == "own"]
        what = f"the field {own[0]!r} is a seat's own" if own else "the seats have roles"
        return f"learned goals (--goals.kind) encode what a co-player sees, and {what}; give hindsight or none"
    return None


def agents_for(game: Game, name: str | None = None) -> dict[str, str | None]:
    """What the game is missing for each named agent; None for an agent that can learn it.

    With the name of a game, as agents learn it without any flag.
    """
    return {agent: missing(learner_of(agent, game=name), game) for agent in NAMES}
