"""What a user may bring, by name or as an object: games, scripts, agents and parts of agents."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import NO_PLANNING
from hopplus.cli.adaptation import judge_adaptation
from hopplus.cli.main import main
from hopplus.cli.verbs.evaluate import AdaptationSettings
from hopplus.core.extensions import is_own, name_of, named
from hopplus.evaluation.adaptation import all_lineups, first_seat_returns, short_name
from hopplus.games import MatrixGame, contract, make
from hopplus.games.coplayers import Policy, Random
from hopplus.games.lineups import read_policies
from hopplus.runs import RunConfig, evaluate, load, train
from hopplus.runs.pretraining import load_pretrained, pretrain
from test_examples import EXAMPLES

SMALL = ["--envs", "4", "--rollout-steps", "10", "--seeds", "2", "--steps", "80", "--checkpoint-every", "2"]
MATRIX = ["--game", "matrix-chicken", *SMALL]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with all examples in it."""
    for path in EXAMPLES.glob("own_*.py"):
        shutil.copy(path, tmp_path)
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, *arguments: str) -> str:
    assert main(list(arguments)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_a_game_keeps_its_promises_and_trains(capsys):
    game = make("own_game:Commons")
    findings = contract.check(game)
    assert {finding.name for finding in findings if finding.unchecked} == {"spawns", "ego views", "planes"}
    said(capsys, "train", "ppo", "--game", "own_game:Commons", *SMALL, "--out", "run")
    returns = json.loads(said(capsys, "evaluate", "run", "--episodes", "8", "--json"))
    assert returns["game"] == "own_game:Commons"
    assert load("run").config.task.game == game


@pytest.mark.usefixtures("here")
def test_a_script_is_trained_against_and_evaluated_by_name_and_as_an_object(capsys):
    others = "own_script:Careful,own_script:Careful(3),random"
    said(capsys, "train", "ppo", "--game", "stag-hunt-4x4", "--co-players", others, *SMALL, "--out", "run")
    run = load("run")
    names = [type(policy).__name__ for policy in run.config.task.co_players.policies]
    assert names == ["Careful", "Careful", "Random"]
    for question in ("seats", "critic"):  # of a run with one learning seat
        assert json.loads(said(capsys, "doctor", question, "run", "--json"))["verdict"] != "broken"
    by_name = evaluate(run, 8, co_players="own_script:Careful,random,random")
    careful = run.config.task.co_players.policies[0]
    assert isinstance(careful, Policy)
    as_object = evaluate(run, 8, co_players=[careful, "random,random"])
    np.testing.assert_array_equal(by_name.returns, as_object.returns)
    assert as_object.names[1] == "Careful"


@pytest.mark.usefixtures("here")
def test_a_script_teaches_opponent_models_by_name_and_as_an_object(capsys):
    """`pretrain`: the same episodes, so the same figures."""
    hidden = ["--goals.hidden", "4", "--others.hidden", "4", "--others.keys", "2"]
    data = ["--data.game", "stag-hunt-4x4", "--data.samples", "300", "--data.types", "own_script:Careful", "random"]
    said(capsys, "pretrain", *data, "--epochs", "1", *hidden, "--out", "by_name")
    config, _ = load_pretrained(Path("by_name"))
    careful = read_policies("own_script:Careful", make("stag-hunt-4x4"))[0]
    pretrain(replace(config, data=replace(config.data, types=(careful, "random"))), Path("by_object"))
    figures = [Path(folder, "metrics.jsonl").read_text() for folder in ("by_name", "by_object")]
    assert figures[0] == figures[1] and "held_out/top1" in figures[0]


@pytest.mark.usefixtures("here")
def test_a_script_is_adapted_to_by_name_and_as_an_object():
    """The returns of a player with line-ups of the script, as `evaluate --adaptation` measures them."""
    game = make("stag-hunt-4x4")
    careful = read_policies("own_script:Careful", game)[0]
    returns = []
    for kind in ("own_script:Careful", named(careful)):
        lineups = all_lineups(game.spec, (kind, "random"))
        assert [short_name(lineup) for lineup in lineups] == ["ccc", "ccR", "cRR", "RRR"]
        players = read_policies("nearest_stag", game)
        returns.append(first_seat_returns(game, players, [0] * 4, lineups, 8, key=jax.random.key(0)))
    np.testing.assert_array_equal(*returns)


@pytest.mark.heavy
@pytest.mark.usefixtures("here")
def test_a_run_is_judged_with_line_ups_of_a_script(capsys):
    """`evaluate --adaptation` by name, with oracles trained for the script; the same with the object."""
    said(capsys, "train", "ppo", "--game", "stag-hunt-4x4", *SMALL, "--out", "run")
    oracles = ["--oracles", "oracles", "--oracle-steps", "20000", "--episodes", "40", "--kinds", "own_script:Careful"]
    by_name = json.loads(said(capsys, "evaluate", "run", "--adaptation", *oracles, "--json"))
    careful = read_policies("own_script:Careful", make("stag-hunt-4x4"))[0]
    settings = AdaptationSettings(kinds=[careful], oracles=Path("others"), oracle_steps=20_000)
    by_object = judge_adaptation(Path("run"), 40, 0, settings, NO_PLANNING)
    (one,), (other,) = by_name["lineups"], by_object["lineups"]
    assert one["lineup"] == other["lineup"] == "ccc"
    assert one["oracle"] == pytest.approx(other["oracle"], abs=1e-3)
    assert one["sampled"]["estimate"] == pytest.approx(other["sampled"]["estimate"], abs=1e-3)


@pytest.mark.usefixtures("here")
def test_an_agent_acts_and_learns_in_its_own_way(capsys):
    said(capsys, "train", "own_agent:Reinforce", *MATRIX, "--out", "run")
    run = load("run")
    assert type(run.params).__name__ == "Linear" and run.config.agent == "own_agent:Reinforce"
    said(capsys, "evaluate", "run", "--episodes", "8")
    assert "own_agent:Reinforce" in (run.folder / "config.json").read_text()
    assert main(["train", "own_agent:Nobody", *MATRIX, "--out", "other"]) == 2
    assert "cannot load the agent 'own_agent:Nobody'" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "flags",
    [
        ["--planning.kind", "own_planner:Rollouts", "--planning.trees", "2", "--planning.depth", "2"],
        ["--planning.kind", "none", "--goals.kind", "own_goals:Frequencies"],
        ["--planning.kind", "none", "--others.network", "own_opponents:make"],
    ],
    ids=["planner", "goals", "opponents"],
)
def test_parts_of_an_agent_may_be_the_users(flags, capsys):
    said(capsys, "train", "direct_om", *flags, *MATRIX, "--out", "run")
    run = load("run")
    if "own_goals:Frequencies" in flags:
        assert run.policy().goals.size == 2
    if "own_opponents:make" in flags:
        assert type(run.opponents.others).__name__ == "ByLastAction"
    assert np.isfinite(evaluate(run, 8).returns).all()


@pytest.mark.usefixtures("here")
def test_a_world_is_trained_and_scored(capsys):
    world = ["--world.members", "1", "--world.kind", "own_world:make"]
    said(capsys, "train", "ppo", "--game", "stag-hunt-4x4", *world, *SMALL, "--out", "run")
    assert type(load("run").worlds).__name__ == "WholeBoard"


def test_objects_are_accepted_where_names_are(tmp_path):
    game = MatrixGame(payoff=((1.0, 0.0), (0.0, 2.0)), horizon=4)
    config = RunConfig.for_agent(
        "ppo", game=game, co_players=[Random()], seeds=2, steps=32, learner={"envs": 4, "rollout_steps": 4}
    )
    run = train(config, tmp_path / "run")
    assert run.game == game and run.num_learning == 1
    assert np.isfinite(evaluate(run, 4).returns).all()
    with pytest.raises(ValueError, match="the game was a Python object"):
        load(tmp_path / "run")
    again = load(tmp_path / "run", game=game)
    assert all(np.array_equal(*pair) for pair in zip(*map(jax.tree.leaves, (again.params, run.params)), strict=True))


class Stubborn(Policy):
    """Plays its first action with this probability."""

    share: float

    def init(self):
        return ()

    def __call__(self, observation, legal, state):
        return jnp.array([self.share, 1 - self.share]), state


def test_a_script_may_keep_numbers(tmp_path):
    """Training, evaluation and the report take it, for several seeds."""
    config = RunConfig.for_agent(
        "ppo",
        game="matrix-chicken",
        co_players=[Stubborn(0.5)],
        seeds=2,
        steps=40,
        learner={"envs": 4, "rollout_steps": 10},
    )
    run = train(config, tmp_path / "run")
    assert np.isfinite(evaluate(run, 4).returns).all()
    for leaf in jax.tree.leaves(run.lineup()):
        assert leaf.shape[0] == 2


def test_what_a_factory_raises_is_told_in_one_line(tmp_path, monkeypatch):
    (tmp_path / "own_fails.py").write_text("def make():\n    return 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ValueError, match=r"making the game 'own_fails:make' fails with ZeroDivisionError.*own_fails.py"
    ):
        make("own_fails:make")
    with pytest.raises(ValueError, match=r"only scripts take values in brackets"):
        make("own_fails:make(3)")


def test_a_default_object_is_saved_by_its_name():
    assert name_of(MatrixGame()) == "hopplus.games.matrix:MatrixGame" and is_own(name_of(MatrixGame()))
    assert name_of(MatrixGame(horizon=3)) == "object of hopplus.games.matrix:MatrixGame"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--planning.kind", "trees"], "--planning.kind is trees; give one of none, one_step, search, or MODULE"),
        (["--goals.kind", "wishes"], "--goals.kind is wishes; give one of none"),
        (["--others.network", "lstm"], "--others.network is lstm; give one of mixture, or MODULE:FACTORY"),
        (["--world.kind", "field"], "--world.kind is field; give one of cells, fields, regression, or MODULE:FACTORY"),
        (["--co-players", "own_script:Nobody"], "cannot load the script 'own_script:Nobody'"),
        (["--co-players", "own_game:Commons"], "'own_game:Commons' gives a Commons; give a factory that returns"),
    ],
)
def test_what_does_not_exist_is_named(flags, message, capsys):
    assert main(["train", "direct_om", *flags, *MATRIX, "--out", "run"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
