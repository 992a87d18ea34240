"""Oracles are trained once and stored, chosen on separate episodes, and printed by `evaluate --adaptation`."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from hopplus.agents.config import PlanningConfig
from hopplus.cli import adaptation
from hopplus.cli.main import main
from hopplus.core.extensions import Named
from hopplus.evaluation import series
from hopplus.evaluation.adaptation import first_seat_returns
from hopplus.games.lineups import read_policies
from hopplus.planning.config import SearchConfig
from hopplus.runs import RunConfig, load, oracles, training
from runs.tiny import NUM_DEVICES, config, train_line

GAME = """
from hopplus.games.board import Board
from hopplus.games.stag_hunt import StagHunt
def two_hunters():
    return StagHunt(grid=Board(4, 4), num_players=2, num_hares=2)
"""
NAME = "two_hunters:two_hunters"
FLAGS = ["--episodes", "100", "--oracle-steps", "160"]
SETTINGS = oracles.OracleSettings("stag-hunt-4x4", Path("kept"), steps=1_000_000, episodes=300, seed=0)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A working folder with a run of a small game, judged once; `trained` counts the trainings that it took."""
    folder = tmp_path_factory.mktemp("oracles")
    (folder / "two_hunters.py").write_text(GAME)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(oracles, "LEARNER", config().learner)
        monkeypatch.setattr(oracles, "SELECTION_EPISODES", 100)
        monkeypatch.setattr(oracles, "SEARCH", PlanningConfig(kind="search", search=SearchConfig(2, 8, 4)))
        monkeypatch.setattr(oracles, "SEARCH_EPISODES", 60)
        monkeypatch.setattr(oracles, "SEARCH_SELECTION", 40)
        monkeypatch.setattr(series, "NUM_ENVS", 100)
        monkeypatch.setattr(adaptation, "ORACLE_EPISODES", 100)
        assert NUM_DEVICES == 2
        assert main(train_line(folder / "run", f"--game {NAME}", updates=2)) == 0
        yield folder


@pytest.fixture
def trainings(monkeypatch):
    """The programs that were compiled for training, counted."""
    counted, compile_program = [], training.compile_program

    def counting(config, task, keys, run):
        counted.append(task)
        return compile_program(config, task, keys, run)

    monkeypatch.setattr(training, "compile_program", counting)
    return counted


def judged(capsys, *more):
    capsys.readouterr()
    assert main(["evaluate", "run", "--adaptation", *FLAGS, *more, "--json"]) == 0
    (printed,) = capsys.readouterr().out.strip().split("\n")
    return json.loads(printed)


def test_a_run_is_judged_and_its_oracles_are_kept(here, capsys, trainings, monkeypatch):
    monkeypatch.setattr("hopplus.cli.evaluate.to_json", lambda result: result)  # all digits, for the sums below
    found = judged(capsys)
    assert len(trainings) == 3
    assert sorted(path.name for path in (here / "runs" / "oracles").iterdir()) == [
        "two_hunters.two_hunters--nearest_hare",
        "two_hunters.two_hunters--nearest_stag",
        "two_hunters.two_hunters--random",
    ]
    assert found == json.loads((here / "run" / "adaptation.json").read_text())
    stored = [json.loads(path.read_text())["selection"] for path in (here / "runs" / "oracles").glob("*/oracle.json")]
    trained = [max(value for name, value in one.items() if "trained" in name) for one in stored]
    searched = [one[oracles.SEARCHED] for one in stored]  # with responders that are hardly trained
    assert len(stored) == 3 and any(one > other for one, other in zip(searched, trained, strict=True))
    assert found["saw"] == "own self-play" and found["oracle_steps"] == 160 and found["seeds"] == 2
    rows = {row["lineup"]: row for row in found["lineups"]}
    assert list(rows) == ["N", "H", "R"]
    assert rows["N"]["oracle"] == rows["N"]["nearest_stag"] == 5 and rows["N"]["oracle_player"] == "nearest_stag"
    assert rows["H"]["nearest_stag"] == 0 and rows["H"]["oracle_player"] != "nearest_stag"
    assert found["normalised"]["oracle"] == pytest.approx(1) and found["normalised"]["random"] == 0
    for row in rows.values():
        gain = row["oracle"] - row["random"]
        expected = (row["greedy"]["estimate"] - row["random"]) / gain
        assert row["normalised"]["greedy"]["estimate"] == pytest.approx(expected)
    mean = sum(row["sampled"]["estimate"] for row in rows.values()) / 3
    assert found["mean"]["sampled"]["estimate"] == pytest.approx(mean)

    monkeypatch.setattr(oracles, "first_seat_returns", None)  # nothing about the yardsticks is played again
    assert main(["evaluate", "run", "--adaptation", *FLAGS]) == 0
    printed = capsys.readouterr().out
    assert "own self-play" in printed and "always" in printed and "nan" not in printed
    kept = json.loads((here / "run" / "adaptation.json").read_text())
    assert found | {"seconds": 0} == kept | {"seconds": 0} and len(trainings) == 3


def test_other_settings_are_measured_again_without_training(here, trainings, monkeypatch):
    """No episode is played, and the returns are 0, 1, 2, ..."""
    settings = oracles.OracleSettings(NAME, here / "runs" / "oracles", steps=160, episodes=50, seed=7)
    oracles.train_responders(settings)
    trainings.clear()
    assert oracles.read_yardsticks(settings) is None

    best_search = 0.0

    def numbered(*given, known=None, **_):
        _, _, choices, _, episodes = given
        returns = np.arange(len(choices), dtype=np.float32)[:, None, None].repeat(episodes, axis=1)
        return returns + (best_search if known else 0.0)

    monkeypatch.setattr(oracles, "first_seat_returns", numbered)
    elsewhere = replace(settings, devices=2)  # they were trained on one
    measured = oracles.measure_yardsticks(settings, oracles.train_responders(elsewhere))
    assert trainings == [] and oracles.read_yardsticks(settings) == measured
    assert [one.oracle for one in measured] == [9, 21, 33] and measured[1].oracle_player == "nearest_hare"
    assert [one.random for one in measured] == [10, 22, 34]
    best_search = 15.0  # then search is the oracle of the first line-up
    chosen = oracles.measure_yardsticks(replace(settings, seed=9), oracles.train_responders(elsewhere))
    assert [one.oracle for one in chosen] == [15, 21, 33] and chosen[0].oracle_player == oracles.SEARCHED
    for other in (replace(settings, seed=8), replace(settings, episodes=60), replace(settings, steps=240)):
        assert oracles.read_yardsticks(other) is None
    with pytest.raises(ValueError, match="of 160 steps; give --oracle-steps 160, or another folder with --oracles"):
        oracles.train_responders(replace(settings, steps=240))
    (oracles.folder_of(settings, ("random",)) / "oracle.json").write_text("{")
    assert oracles.read_yardsticks(settings) is None


def test_the_oracle_is_chosen_on_other_episodes_than_those_that_count():
    counted = {
        "nearest_stag": 3.0,
        "nearest_hare": 1.0,
        "random": 0.5,
        "by_belief": 9.0,
        "trained, seed 1, greedy": 2.9,
    }
    deciding = {**counted, "trained, seed 1, greedy": 3.1}
    found = oracles.choose(("nearest_stag", "random"), counted, deciding)
    assert (found.oracle, found.oracle_player) == (2.9, "trained, seed 1, greedy")
    assert found.scripted == {"nearest_stag": 3.0, "nearest_hare": 1.0, "random": 0.5, "by_belief": 9.0}
    assert found.name == "NR"
    assert "by_belief" not in found.selection and "random" not in found.selection


def test_a_responder_is_an_ordinary_run():
    lineup = ("nearest_stag", "nearest_hare", "random")
    assert oracles.folder_of(SETTINGS, lineup) == Path("kept/stag-hunt-4x4--nearest_stag-nearest_hare-random")
    responder = oracles.responder_config(SETTINGS, lineup)
    assert responder.co_players == "nearest_stag,nearest_hare,random" and responder.seeds == 4
    assert responder.task.num_learning == 1


@pytest.mark.parametrize(("game", "steps"), [("stag-hunt-4x4", 300_000), ("stag-hunt-8x8", 400_000)])
def test_larger_boards_take_longer(game, steps):
    assert oracles.default_steps(RunConfig(game=game).evaluation_game.spec) == steps


def test_what_an_agent_saw():
    assert oracles.what_it_saw(RunConfig()) == "own self-play"
    with_others = RunConfig(co_players="nearest_stag,random,random")
    assert oracles.what_it_saw(with_others) == "trained with nearest_stag,random,random"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--co-players random", "--adaptation sets the line-ups itself; leave --co-players out"),
        ("--rotate 1", "leave --rotate out, or --adaptation"),
        ("--oracle-steps 10", "--oracle-steps is 10; give 80, one update, or more"),
    ],
)
def test_what_makes_no_sense_is_said(here, capsys, line, reason):
    assert main(["evaluate", str(here / "run"), "--adaptation", *line.split()]) == 2
    assert reason in capsys.readouterr().err


def test_other_games_have_their_own_yardsticks():
    """Eight responders, the scripts, and search twice; a game without scripts of its own has one line-up."""
    matrix, coins = (replace(SETTINGS, game=game) for game in ("matrix-stag-hunt", "coins-5x5"))
    assert oracles.num_rows(matrix) == 8 + 1 + 2 and oracles.num_rows(coins) == 10 * (8 + 3 + 2)


@pytest.mark.heavy
def test_a_run_on_coins_is_judged(here, capsys):
    assert main(train_line(here / "coins", "--game coins-3x3 --network.destinations 0", updates=2)) == 0
    capsys.readouterr()
    assert main(["evaluate", "coins", "--adaptation", *FLAGS]) == 0
    printed = capsys.readouterr().out
    assert "O own_coins, A any_coins, R random" in printed and "NS or NH" not in printed
    found = json.loads((here / "coins" / "adaptation.json").read_text())
    assert [row["lineup"] for row in found["lineups"]] == ["O", "A", "R"]
    assert found["scripted"] == ["own_coins", "any_coins", "random"]


def test_trained_policies_are_co_players(here):
    """Each row has the parameters of its own co-player."""
    run = load(here / "run")
    policies = [run.policy(seat=seat, greedy=True) for seat in range(2)]
    kinds = [Named("one", policies[0]), Named("other", policies[1]), Named("copy", policies[0])]
    players = read_policies("nearest_stag", run.game)

    def returns(*kinds):
        lineups = [(kind,) for kind in kinds]
        return first_seat_returns(run.game, players, [0] * len(kinds), lineups, 40, key=jax.random.key(0))

    alone = [returns(kind) for kind in kinds]
    np.testing.assert_array_equal(alone[0], alone[2])
    assert np.any(alone[0] != alone[1])
    both, swapped = returns(*kinds[:2]), returns(*kinds[1:])
    assert np.any(both[0] != swapped[0]) and np.any(both[1] != swapped[1])
    settings = replace(SETTINGS, kinds=tuple(kinds))
    assert oracles.num_rows(settings) == oracles.num_rows(SETTINGS) - 20  # search is left out
