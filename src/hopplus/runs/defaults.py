"""What an agent does on a game without any flag: one table, of what was measured to be best. No JAX here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

GAME, STEPS = "stag-hunt-4x4", 2_000_000


@dataclass(frozen=True)
class Defaults:
    """The default length of a run, and the learner settings that differ from those of the named agent."""

    steps: int = STEPS
    learner: Mapping[str, Any] | None = None
    """By flag, as in `imagination.real_ratio`."""
    early_stop: int = 0
    """As in `RunConfig.early_stop`."""
    arenas: Any = "default"
    """As in `RunConfig.arenas`."""

    def changed(self, learner: Any) -> Any:
        """The learner settings with these changes."""
        for name, value in (self.learner or {}).items():
            learner = with_setting(learner, name, value)
        return learner


SEARCHED_STEPS = 60_000
"""Agents that search at every step learn from fewer of them, and each takes a hundred times as long."""
IMAGINING: dict[str, Any] = {
    "sharing": "shared",
    "schedule": 60_000,
    "network.destinations": 16,
    "world.members": 1,
    "imagination.real_ratio": 0.33,
    "imagination.counterfactual": 0.0,
    "imagination.explore": 20.0,
}
"""Of hop_plus on other boards of 5x5 and 8x8: tried on two seeds of foraging, 60,000 steps."""
BY_GAME: dict[tuple[str, str], Defaults] = {
    ("fcp", "stag-hunt-4x4"): Defaults(learner={"population.steps": 500_000}),
    ("omg", "stag-hunt-4x4"): Defaults(500_000, {"sharing": "shared"}),
    ("omg", "stag-hunt-8x8"): Defaults(
        500_000, {"sharing": "shared", "opponents.goals.kind": "hindsight", "modelling.envs": 128}
    ),
    ("direct_om", "stag-hunt-4x4"): Defaults(SEARCHED_STEPS, {"sharing": "shared"}),
    ("hop", "stag-hunt-4x4"): Defaults(SEARCHED_STEPS, {"sharing": "shared"}),
    ("hop_plus", "stag-hunt-4x4"): Defaults(
        120_000,
        {
            "sharing": "shared",
            "envs": 8,
            "schedule": 100_000,
            "network.destinations": 16,
            "ppo.entropy_coefficient": 0.1,
            "imagination.real_ratio": 0.25,
            "imagination.counterfactual": 0.7,
            "imagination.explore": 20.0,
        },
    ),
    ("hop_plus", "stag-hunt-8x8"): Defaults(
        1_500_000,
        {
            "sharing": "shared",
            "envs": 256,
            "schedule": 700_000,
            "network.destinations": 16,
            "utilities.share": 0.75,
            "imagination.real_ratio": 0.5,
            "imagination.counterfactual": 0.7,
            "imagination.held_out": 0.1,
        },
        early_stop=200_000,
    ),
    **dict.fromkeys(
        (("hop_plus", game) for game in ("foraging-8x8", "coins-5x5", "harvest-8x8", "snowdrift-8x8")),
        Defaults(100_000, IMAGINING),
    ),
    ("hop_plus", "stag-hunt-8x8-obstacles"): Defaults(300_000, IMAGINING | {"schedule": 200_000}),
    **dict.fromkeys(
        (("hop_plus", f"harvest-16x16-{seats}") for seats in (16, 64)),
        Defaults(
            learner={
                "sharing": "shared",
                "opponents.goals.kind": "none",
                "opponents.others.models": "shared",
                "imagination.counterfactual": 0.0,
                "imagination.real_ratio": 0.25,
            }
        ),
    ),
}
"""By agent and game."""
BY_AGENT: dict[str, Defaults] = {
    "hop_plus_notes": Defaults(120_000, arenas="off"),
    **dict.fromkeys(("direct_om", "hop", "hop_plus_search"), Defaults(SEARCHED_STEPS)),
}
"""By agent, on games that are not in the table above."""
USUAL = Defaults()
IMPORTED = ("jaxmarl:", "jumanji:", "pettingzoo:")
"""How the names of games of other libraries begin. They declare no events, and no planes that a world could know."""
NO_GOALS = {"opponents.goals.kind": "none"}
FOR_IMPORTED = {
    "omg": Defaults(learner=NO_GOALS),
    "direct_om": Defaults(SEARCHED_STEPS, NO_GOALS),
    "hop_plus": Defaults(
        200_000,
        NO_GOALS
        | {
            "sharing": "shared",
            "world.kind": "fields",
            "world.hidden": 256,
            "imagination.real_ratio": 0.33,
            "imagination.counterfactual": 0.0,
        },
    ),
}
"""By agent, on these games."""


def defaults_of(agent: Any, game: Any) -> Defaults:
    """The defaults of an agent on a game; those of a game that is not in the table are the named agent's."""
    if not isinstance(agent, str):
        return USUAL
    usual = BY_AGENT.get(agent, USUAL)
    if isinstance(game, str) and game.startswith(IMPORTED):
        return FOR_IMPORTED.get(agent, usual)
    return BY_GAME.get((agent, game), usual) if isinstance(game, str) else usual


def with_setting(settings: Any, name: str, value: Any) -> Any:
    """A copy of the settings with one changed; a dot leads to the settings of a part."""
    first, _, rest = name.partition(".")
    return replace(settings, **{first: with_setting(getattr(settings, first), rest, value) if rest else value})


def game_in(flags: Sequence[str]) -> str:
    """The game that the flags of a command name; the usual one where they name none."""
    return value_in(flags, "--game") or GAME


def value_in(flags: Sequence[str], wanted: str) -> str | None:
    """The value of one flag of a command, before the others are read; None where it is not given."""
    for index, flag in enumerate(flags):
        name, equals, value = flag.partition("=")
        if name == wanted and (equals or index + 1 < len(flags)):
            return value if equals else flags[index + 1]
    return None
