"""Who sits where when a run is evaluated, and that returns go with the policy and not with the seat."""

import json

import jax
import numpy as np
import pytest

from hopplus.cli.main import main
from hopplus.evaluation.crossplay import Guest, seed_pairs
from hopplus.games.coplayers import Random
from hopplus.runs import load
from hopplus.runs.lineups import seat_players, split
from runs.tiny import train_line

GAME = """
from hopplus.games.matrix import PRISONERS_DILEMMA, MatrixGame
def four_prisoners():
    return MatrixGame(payoff=PRISONERS_DILEMMA, num_players=4)
"""
QUICK = "--game four_prisoners:four_prisoners --ppo.learning-rate 0.05 --ppo.entropy-coefficient 0"
DEFECTING = 30.0
"""What ten rounds of defecting pay on average among three who play at random: half of 5 and 1 in each."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of a game where to defect is always best, as all seats learn at once; the second has one seed only."""
    folder = tmp_path_factory.mktemp("prisoners")
    (folder / "four_prisoners.py").write_text(GAME)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        assert main(train_line(folder / "one", QUICK, updates=20)) == 0
        assert main(train_line(folder / "other", f"{QUICK} --seeds 1 --seed 5", updates=2)) == 0
        yield folder


def evaluated(capsys, *line):
    """The one line of JSON that is printed."""
    capsys.readouterr()
    assert main(["evaluate", *line, "--episodes", "200", "--json"]) == 0
    (printed,) = capsys.readouterr().out.strip().split("\n")
    return json.loads(printed)


def same(one, other):
    """Whether two players are the same to the bit."""
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(leaf, of_other) for leaf, of_other in leaves)


def test_self_play_is_told_in_one_line_of_json(runs, capsys):
    found = evaluated(capsys, "one")
    assert [seat["player"] for seat in found["per_seat"]] == ["one:1", "one:2", "one:3", "one:4"]
    assert [seat["seat"] for seat in found["per_seat"]] == ["player_1", "player_2", "player_3", "player_4"]
    for manner, name in (("sampled", "mean_return"), ("greedy", "mean_return_greedy")):
        seats = [seat[manner]["estimate"] for seat in found["per_seat"]]
        np.testing.assert_allclose(found[name], np.mean(seats), rtol=1e-4)  # JSON is rounded
        np.testing.assert_allclose(found[name], np.mean([seed[manner] for seed in found["per_seed"]]), rtol=1e-4)
        assert all(
            seat[manner]["low"] <= seat[manner]["estimate"] <= seat[manner]["high"] for seat in found["per_seat"]
        )
    assert found["mean_return_greedy"] == 10.0 and len(found["per_seed"]) == found["seeds"] == 2
    assert found["training_seconds"] > 0
    assert found["episodes"] == 200 and found["env_steps"] == 1600 and found["game_version"] == 1
    assert found["commands"][-1] == "hopplus evaluate one --episodes 200 --seed 0 --json"
    assert json.loads((runs / "one" / "evaluation.json").read_text()) == found


@pytest.mark.parametrize("rotate", [0, 1, 2, 3])
def test_the_return_follows_the_policy_to_every_seat(runs, capsys, rotate):
    before = (runs / "one" / "evaluation.json").exists()
    found = evaluated(capsys, "one", "--co-players", "random,random,random", "--rotate", str(rotate))
    seats = found["per_seat"]
    assert [seat["player"] for seat in seats].index("one:1") == rotate
    returns = [seat["greedy"]["estimate"] for seat in seats]
    np.testing.assert_allclose(returns[rotate], DEFECTING, atol=1.0)
    assert all(value < 20 for seat, value in enumerate(returns) if seat != rotate)
    assert (runs / "one" / "evaluation.json").exists() == before
    assert found["commands"][-1].endswith(f"{f' --rotate {rotate}' if rotate else ''} --seed 0 --json")


@pytest.mark.parametrize("rotate", [0, 1, 3])
def test_the_policy_of_seat_i_sits_so_many_seats_further_on(runs, rotate):
    run = load(runs / "one")
    lineup, names = seat_players(run, None, greedy=True, rotate=rotate)
    for seat, player in enumerate(run.players(greedy=True)):
        assert same(lineup.policies[(seat + rotate) % 4], player)
        assert names[(seat + rotate) % 4] == f"one:{seat + 1}"
    assert not same(lineup.policies[0], lineup.policies[1])


def test_another_run_sits_in_its_own_seats_or_in_the_one_that_is_named(runs):
    run, other = load(runs / "one"), load(runs / "other")
    lineup, names = seat_players(run, "other,random,other:2", greedy=False)
    assert names == ["one:1", "other", "random", "other:2"]
    assert same(lineup.policies[0], run.players()[0]) and isinstance(lineup.policies[2], Random)
    for seat in (1, 3):  # the second seat's policy in both: seat 2 is its own, and is what :2 names
        for seed in (0, 1):  # the other run has one seed, which plays with each of this run's
            player = jax.tree.map(lambda leaf, seed=seed: leaf[seed], lineup.policies[seat])
            assert same(player, other.policy(seed=0, seat=1))
    in_seat_three, _ = seat_players(run, "random,other,random", greedy=False)
    assert same(jax.tree.map(lambda leaf: leaf[:1], in_seat_three.policies[2]), other.players()[2])


def test_a_run_plays_against_another_run(runs, capsys):
    found = evaluated(capsys, "one", "--co-players", f"random,other,{runs / 'other'}:4")
    assert [seat["player"] for seat in found["per_seat"]] == ["one:1", "random", "other", f"{runs / 'other'}:4"]
    assert found["per_seat"][0]["greedy"]["estimate"] > 15


def test_what_one_seed_cannot_tell_is_null_and_not_drawn(runs, capsys):
    found = evaluated(capsys, "other")
    assert found["interval"]["low"] is None and found["interval"]["estimate"] == found["mean_return"]
    assert "NaN" not in (runs / "other" / "evaluation.json").read_text()
    assert main(["evaluate", "other", "--episodes", "10"]) == 0
    assert "nan" not in capsys.readouterr().out
    assert main(["runs", str(runs)]) == 0


def test_evaluations_with_the_same_seed_are_the_same(runs, capsys):
    one, again, other = (evaluated(capsys, str(runs / "one"), "--seed", seed) for seed in ("1", "1", "2"))
    assert one == again and one["mean_return"] != other["mean_return"]


def test_a_lineup_is_cut_at_commas_outside_of_brackets():
    assert split("noisy(random, 0.1), runs/a:2,random") == ["noisy(random, 0.1)", "runs/a:2", "random"]


def test_everybody_plays_with_everybody(runs, capsys):
    capsys.readouterr()
    assert main(["crossplay", "one", "other", "random", "--episodes", "100", "--out", "crossed", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((runs / "crossed" / "crossplay.json").read_text())
    assert found["players"] == ["one", "other", "random"] and found["seeds"] == [2, 1, 1]
    means = np.array([[cell["estimate"] for cell in row] for row in found["returns"]])
    assert means[0, 2] == pytest.approx(DEFECTING, abs=2), "it defects among those who play at random"
    assert means[0, 0] < 15, "and among its own other seed, which defects too"
    assert means[2, 0] < means[2, 2] < means[0, 2], "to be one of its co-players is no pleasure"
    assert found["returns"][0][2]["low"] is not None and found["returns"][1][2]["low"] is None
    assert (runs / "crossed" / "crossplay.png").stat().st_size > 5_000
    assert main(["crossplay", "one", "random", "--episodes", "10"]) == 0
    printed = capsys.readouterr().out
    assert "random" in printed and "with 2" in printed


def test_strangers_are_other_seeds():
    run, other, script = Guest("run", (), 3), Guest("other", (), 2), Guest("random", (), 1)
    assert seed_pairs(run, run) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert len(seed_pairs(run, other)) == 6 and seed_pairs(script, script) == [(0, 0)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("random idler", "give one run folder at least"),
        ("one one", "a player is named twice"),
        ("one runs/nowhere", "there is no run folder runs/nowhere"),
        ("one --episodes 0", "--episodes is 0; give 1 or more"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_what_cannot_be_crossed_is_said(capsys, line, reason):
    assert main(["crossplay", *line.split()]) == 2
    assert reason in capsys.readouterr().err
