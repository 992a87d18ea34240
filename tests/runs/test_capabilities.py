"""Which agents can learn a game, and what a game must declare for the others."""

import json
from dataclasses import replace

import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.named import NAMES
from hopplus.cli.main import main
from hopplus.games.presets import PRESETS, make
from hopplus.learning.config import LearnerConfig, ModellingConfig
from hopplus.models.config import OthersConfig
from hopplus.runs import RunConfig, train
from hopplus.runs.agents import learner_of
from hopplus.runs.capabilities import agents_for, missing

OWN_GAMES = """
from dataclasses import replace
from hopplus.games import MatrixGame, StagHunt
from hopplus.games.game import Game

class NoEvents(StagHunt):
    @property
    def spec(self):
        return replace(super().spec, events=())

class NoList(StagHunt):
    @property
    def spec(self):
        return replace(super().spec, reward_support=())

class Private(StagHunt):
    @property
    def spec(self):
        planes, time, last = super().spec.observation
        return replace(super().spec, observation=(replace(planes, layout="own"), time, last))

class Silent(StagHunt):
    @property
    def spec(self):
        return replace(super().spec, observation=super().spec.observation[:2])

class NoView(StagHunt):
    from_view = Game.from_view

class Dilemma(MatrixGame):
    from_view = Game.from_view
"""


@pytest.fixture
def own_games(tmp_path, monkeypatch):
    """Games of a user, each without something."""
    (tmp_path / "own_games.py").write_text(OWN_GAMES)
    monkeypatch.chdir(tmp_path)
    return lambda name: make(f"own_games:{name}")


def able(game):
    return {agent for agent, lack in agents_for(game).items() if lack is None}


@pytest.mark.parametrize("name", PRESETS)
def test_every_agent_can_learn_a_grid_game_and_some_a_matrix_game(name):
    if make(name).spec.sums_others:
        assert able(make(name)) == {"ppo", "mappo", "liam", "fcp"}
        assert {agent for agent, lack in agents_for(make(name), name).items() if lack is None} == {
            "ppo",
            "mappo",
            "liam",
            "fcp",
            "hop_plus",
        }
        return
    if make(name).spec.walkers_return:
        assert able(make(name)) == set(NAMES) - {"hop_plus_notes"}
        assert "takes a player that is away for one that left" in str(agents_for(make(name))["hop_plus_notes"])
        return
    of_matrix_games = {"ppo", "mappo", "liam", "fcp", "direct_om", "hop"}
    assert able(make(name)) == (of_matrix_games if name.startswith("matrix") else set(NAMES))


def test_what_models_of_summed_others_need_is_named():
    game, learner = make("harvest-16x16-16"), learner_of("hop_plus", game="harvest-16x16-16")
    assert missing(learner, game) is None
    opponents = learner.opponents
    changed = {
        "--goals.kind": {"opponents": replace(opponents, goals=replace(opponents.goals, kind="hindsight"))},
        "--others.models": {"opponents": replace(opponents, others=replace(opponents.others, models="each"))},
        "--sharing": {"sharing": "independent"},
        "--others.as-input": {"opponents": replace(opponents, others=replace(opponents.others, as_input=True))},
        "--planning.kind": {"planning": replace(learner.planning, kind="one_step")},
        "--world.kind": {"world": replace(learner.world, kind="fields")},
    }
    for flag, parts in changed.items():
        assert flag in str(missing(replace(learner, **parts), game)), flag


def test_what_is_missing_is_named(own_games):
    assert able(own_games("NoView")) == {
        "ppo",
        "mappo",
        "liam",
        "fcp",
        "omg",
        "hop_plus",
        "hop_plus_search",
        "hop_plus_notes",
    }
    assert "write `from_view` in NoView" in str(agents_for(own_games("NoView"))["hop"])
    assert able(own_games("NoEvents")) == {"ppo", "mappo", "liam", "fcp", "omg", "direct_om"}
    assert "`events` of the GameSpec" in str(agents_for(own_games("NoEvents"))["hop_plus"])
    assert able(own_games("NoList")) == set(NAMES)
    assert able(own_games("Private")) == {"ppo", "mappo", "liam", "fcp"}
    assert "needs what a co-player sees" in str(agents_for(own_games("Private"))["hop"])
    assert "the field 'planes' is a seat's own" in str(agents_for(own_games("Private"))["omg"])
    assert able(own_games("Silent")) == {"ppo", "mappo", "liam", "fcp", "direct_om"}
    assert "add `last_actions_field`" in str(agents_for(own_games("Silent"))["omg"])
    assert able(own_games("Dilemma")) == {"ppo", "mappo", "liam", "fcp"}
    assert "declare `planes`" in str(agents_for(own_games("Dilemma"))["omg"])


def test_the_world_of_fields_needs_no_board_and_no_list_of_rewards(own_games):
    cells = learner_of("hop_plus")
    fields = replace(cells, world=replace(cells.world, kind="fields"))
    assert "or give --world.kind fields" in str(missing(cells, own_games("Dilemma")))
    for name in ("NoList", "Dilemma"):
        assert missing(fields, own_games(name)) is None
    assert missing(fields, own_games("Private")) is None, "its opponent models read the own view"


def test_the_settings_decide_not_the_name(own_games):
    hop, ppo = learner_of("hop"), LearnerConfig()
    assert missing(replace(hop, planning=ppo.planning), own_games("NoView")) is None
    assert missing(replace(ppo, world=learner_of("hop_plus").world), own_games("Dilemma"))
    each = OpponentsConfig(others=OthersConfig(models="each"))
    paid = replace(ppo, opponents=each, modelling=ModellingConfig(rewarded_only=True))
    assert "--modelling.rewarded-only" in str(missing(paid, own_games("NoEvents")))
    assert missing(replace(ppo, modelling=paid.modelling), own_games("NoEvents")) is None


@pytest.mark.usefixtures("own_games")
@pytest.mark.parametrize(
    ("agent", "game", "reason"),
    [
        ("hop", "own_games:NoView", "hop cannot learn own_games:NoView: planning in the true game"),
        ("hop", "own_games:NoEvents", "list them as `events` of the GameSpec"),
        ("hop_plus", "own_games:NoEvents", "`hopplus check own_games:NoEvents` says which agents can"),
        ("omg", "matrix-stag-hunt", "omg cannot learn matrix-stag-hunt: learned goals"),
    ],
)
def test_training_refuses_before_there_is_a_folder(tmp_path, agent, game, reason, capsys):
    assert main(["train", agent, "--game", game, "--arenas", "off", "--seeds", "1", "--out", "fresh"]) == 2
    said = capsys.readouterr().err
    assert reason in said and "Traceback" not in said
    assert not (tmp_path / "fresh").exists()


@pytest.mark.usefixtures("own_games")
def test_training_from_python_refuses_too(tmp_path):
    config = RunConfig(agent="hop", game="own_games:NoView", learner=learner_of("hop"), arenas="off")
    with pytest.raises(ValueError, match="from_view"):
        train(config, tmp_path / "fresh")
    assert not (tmp_path / "fresh").exists()


@pytest.mark.usefixtures("own_games")
def test_check_says_which_agents_can_learn_a_game(capsys):
    assert main(["check", "own_games:Dilemma", "--episodes", "0"]) == 0
    lines = capsys.readouterr().out.split("own_games:Dilemma: agents")[1].splitlines()
    answers = {words[0]: words[1] for line in lines if len(words := line.split()) > 1 and words[0] in NAMES}
    assert answers == dict.fromkeys(("ppo", "mappo", "liam", "fcp"), "yes") | dict.fromkeys(NAMES[4:], "no:")
    assert main(["check", "own_games:Dilemma", "--episodes", "0", "--json"]) == 0
    missing_for = json.loads(capsys.readouterr().out)["missing_for"]
    assert missing_for["ppo"] is None and "from_view" in missing_for["direct_om"]
    assert missing_for.keys() == set(NAMES)


def test_games_lists_the_agents_of_each(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["games"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("agents: all") == 8 and printed.count("agents: ppo, mappo, liam, fcp, direct_om") == 3
