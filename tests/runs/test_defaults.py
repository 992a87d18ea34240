"""One table holds what an agent does on a game without a flag; the command line and Python read it."""

import re
from dataclasses import asdict
from itertools import pairwise

import pytest

from hopplus.agents.named import NAMES
from hopplus.cli.verbs.train import read
from hopplus.games.presets import PRESETS
from hopplus.runs import RunConfig
from hopplus.runs.agents import learner_of
from hopplus.runs.config import parts_of
from hopplus.runs.defaults import BY_GAME, GAME, STEPS, defaults_of, game_in, with_setting
from hopplus.runs.studies.study import read_study, read_variant
from test_examples import EXAMPLES


@pytest.mark.parametrize(("agent", "game"), list(BY_GAME))
def test_every_row_of_the_table_is_a_run(agent, game):
    assert agent in NAMES and game in PRESETS
    config = RunConfig(agent=agent, game=game)
    assert config.steps == BY_GAME[agent, game].steps and config.num_updates > 1
    assert parts_of(config.learner) == parts_of(learner_of(agent))
    typed = read([agent, "--game", game, "--out", "run"]).config
    assert (typed.steps, typed.early_stop) == (config.steps, config.early_stop)
    assert with_setting(typed.learner, "mesh", config.learner.mesh) == config.learner
    assert read_variant(f"{agent} --game {game}", "one").learner == config.learner


def test_a_flag_wins_over_the_table():
    config = read(["hop_plus", f"--game={GAME}", "--out", "run", "--sharing", "independent", "--steps", "9999"]).config
    assert (config.learner.sharing, config.steps) == ("independent", 9999)
    assert read(["ppo", "--out", "run"]).config.steps == STEPS == RunConfig().steps


def test_python_changes_settings_of_parts_by_their_flags():
    config = RunConfig.for_agent("hop_plus", learner={"envs": 4, "imagination.real_ratio": 0.5})
    assert (config.learner.envs, config.learner.imagination.real_ratio) == (4, 0.5)
    assert config.learner.imagination.explore == RunConfig(agent="hop_plus").learner.imagination.explore
    with pytest.raises(TypeError, match="no_such"):
        RunConfig.for_agent("ppo", learner={"ppo.no_such": 1})


def test_other_games_have_the_settings_of_the_named_agent():
    assert learner_of("hop_plus", game="coins-3x3") == learner_of("hop_plus")
    assert defaults_of("hop_plus", object()) == defaults_of(object(), GAME) == defaults_of("ppo", GAME)


def test_the_game_is_read_from_the_flags():
    assert game_in(["--steps", "5", "--game", "a"]) == game_in(["--game=a"]) == "a"
    assert game_in([]) == game_in(["--game"]) == GAME


def test_sequence_of_the_notes_ends_at_the_defaults():
    """The study goes from the notes' agent to the default hop_plus, a change at a time."""
    variants = list(read_study(EXAMPLES / "notes/sequence.toml").variants.values())
    first, last = (RunConfig(agent=agent, game="stag-hunt-4x4") for agent in ("hop_plus_notes", "hop_plus"))
    for config, expected in ((variants[0], first), (variants[-1], last)):
        assert config.learner == expected.learner
        assert (config.steps, config.arenas, config.early_stop) == (
            expected.steps,
            expected.arenas,
            expected.early_stop,
        )
    named = [settings_of(config) for config in variants]
    changes = [{name for name in one | other if one.get(name) != other.get(name)} for one, other in pairwise(named)]
    assert changes == list(CHANGED_BY_ROW.values())
    changed = [name for row in changes for name in row]
    assert len(changed) == len(set(changed)), "no setting is changed twice"


GOALS = (
    "opponents.goals.kind",
    "opponents.goals.posterior",
    *(f"modelling.{name}" for name in ("lookahead", "prior_loss", "rewarded_only", "max_grad_norm", "epsilon")),
)
CHANGED_BY_ROW = {
    "the world": {"world.kind", "world.hidden", "world.members"},
    "trust": {"imagination.trust", "imagination.critic"},
    "rollouts": {"imagination.length", "imagination.branch"},
    "goals, and how they are learned": set(GOALS),
    "shortest paths": {"opponents.others.destinations"},
    "counterfactual goals": {"imagination.counterfactual"},
    "arenas": {"arenas"},
    "lambda": {"ppo.gae_lambda"},
    "exploration": {"imagination.explore", "ppo.entropy_coefficient"},
    "real ratio": {"imagination.real_ratio"},
    "sharing": {"sharing"},
    "destinations": {"network.destinations"},
    "schedule": {"schedule"},
    "environments": {"envs"},
}
"""The settings that each row of examples/notes/sequence.toml changes: one, or a group that belongs together."""


def settings_of(config):
    """The arenas and every setting of the learner, by name."""

    def flat(part, place):
        for name, value in part.items():
            yield from flat(value, f"{place}{name}.") if isinstance(value, dict) else [(place + name, value)]

    return dict(flat(asdict(config.learner), "")) | {"arenas": config.arenas}


@pytest.mark.parametrize("page", ["notes.md", "notes.zh-CN.md"])
def test_page_of_the_notes_names_every_setting_of_their_agent(page):
    """The flags of the table are the agent's settings, and none that differs from the library's is left out."""
    text = (EXAMPLES.parent / "docs" / page).read_text()
    flags = re.findall(r"^\| `(--\S+(?: \S+)?)` \|", text, flags=re.MULTILINE)
    agent = RunConfig(agent="hop_plus_notes", game=GAME)
    named = read_variant(f"ppo --game {GAME} {' '.join(flags)}", "flags of the page")
    assert named.learner == agent.learner and named.arenas == agent.arenas
