"""Episodes that a page saved are read, and nothing that is not one does harm."""

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.cli.main import main
from hopplus.doctor.recorded import seats_alike
from hopplus.games.lineups import read_policies, split
from hopplus.games.presets import make
from hopplus.learning.page_episodes import PERSON, read_episodes, read_page_episodes
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.models.config import GoalsConfig, OthersConfig
from hopplus.runs.pretraining import pretrain
from hopplus.share.parity import record

GAME = "stag-hunt-4x4"
GOLDEN = Path(__file__).parents[1] / "golden" / "format_1"
LINEUP = "nearest_stag,nearest_stag,nearest_hare,nearest_hare"
SEATS = [PERSON, "nearest_stag", "nearest_hare", "nearest_hare"]


@cache
def played():
    """Episodes as Python plays them, in series of one."""
    game = make(GAME)
    return json.dumps(record(game, read_policies(LINEUP, game), split(LINEUP), 12, series=1))


def saved():
    """The content of a file of a page."""
    spec = make(GAME).spec
    episodes = []
    for one in json.loads(played()):
        has_left = [[False] * spec.num_agents, *one["over"][:-1]]
        actions = [
            [-1 if gone else action for action, gone in zip(*step, strict=True)]
            for step in zip(one["actions"], has_left, strict=True)
        ]
        episodes.append({"seats": SEATS, "first": one["first"], "actions": actions, "rewards": one["rewards"]})
    about = {"format": "hopplus-episodes", "version": 1, "game_name": spec.name, "game_version": spec.version}
    return {**about, "game": GAME, "hopplus": "0.6.0", "settings": {}, "episodes": episodes}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "episodes.json"
    path.write_text(json.dumps(saved()))
    return path


def test_the_arrays_are_those_of_the_game(file):
    read, content = read_page_episodes(file, make(GAME)), saved()
    assert read.seats == (tuple(SEATS),) * 12
    for index, one in enumerate(content["episodes"]):
        steps = len(one["actions"])
        in_game = np.asarray(read.episodes.in_game)[index]
        np.testing.assert_array_equal(in_game[:steps], np.array(one["actions"]) >= 0)
        assert not in_game[steps:].any()
        np.testing.assert_array_equal(np.asarray(read.episodes.rewards)[index, :steps], np.float32(one["rewards"]))
        board = np.asarray(read.episodes.boards)[index, 0]
        assert [np.flatnonzero(board[..., seat]).item() for seat in range(4)] == one["first"]["position"]


def test_a_step_is_drawn_again_with_its_key(tmp_path):
    """Coins come back on random cells. With other keys they are elsewhere, and walking there pays otherwise."""
    game, lineup = make("coins-3x3"), "any_coins,any_coins"
    about = {"format": "hopplus-episodes", "version": 1, "game_name": "coins", "game_version": 1}
    names = ("seats", "first", "actions", "rewards", "keys")
    recorded = record(game, read_policies(lineup, game), split(lineup), 3, series=1)
    episodes = [{name: one[name] for name in names} for one in recorded]
    path = tmp_path / "episodes.json"
    path.write_text(json.dumps({**about, "episodes": episodes}))
    read = read_page_episodes(path, game).episodes
    np.testing.assert_array_equal(np.asarray(read.rewards), np.float32([one["rewards"] for one in episodes]))
    episodes[1]["keys"] = [[one ^ 1, other] for one, other in episodes[1]["keys"]]
    path.write_text(json.dumps({**about, "episodes": episodes}))
    with pytest.raises(ValueError, match="episode 1 does not pay these rewards"):
        read_page_episodes(path, game)


def test_opponent_models_learn_from_them(file, tmp_path):
    small = OpponentsConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="shared", hidden=4, keys=2))
    config = PretrainConfig(data=Recipe(game=GAME), opponents=small, epochs=1, held_out=0.5)
    pretrain(config, tmp_path / "models", episodes=file)
    line = json.loads((tmp_path / "models" / "metrics.jsonl").read_text())
    assert 0 < line["held_out/top1"] <= 1
    with pytest.raises(ValueError, match="too few to hold out"):
        pretrain(replace(config, held_out=0.01), tmp_path / "other", episodes=file)


def test_opponent_models_of_a_run_are_evaluated_on_them(file, capsys):
    assert main(["evaluate", str(GOLDEN / "hop_plus"), "--others", "--recorded", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    score = found["models"]["others"]
    in_game = [[action >= 0 for action in row] for one in saved()["episodes"] for row in one["actions"]]
    assert score["samples"] == sum(sum(row) * (sum(row) - 1) for row in in_game)
    assert set(score["by_kind"]) == set(SEATS) and found["episodes"] == 12
    assert main(["evaluate", str(GOLDEN / "ppo"), "--others", "--recorded", str(file)]) == 2
    assert main(["evaluate", str(GOLDEN / "hop_plus"), "--recorded", str(file)]) == 2


def test_the_doctor_compares_seats_with_the_same_player(file, capsys):
    assert main(["doctor", "game", GAME, "--recorded", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    checks = {finding["check"]: finding for answer in found["answers"] for finding in answer["findings"]}
    assert checks["recorded episodes"]["verdict"] == "fine" and "all 12 episodes" in checks["recorded episodes"]["says"]
    assert "recorded returns of nearest_hare" in checks and len(checks) == 2
    assert main(["doctor", "game", "--env", "a:b", "--recorded", str(file)]) == 2


def test_seats_are_compared_only_with_seats_of_the_same_player():
    assert seats_alike((("a", "b", "b"), ("a", "b", "b"))) == {"b": [1, 2]}
    assert seats_alike((("a", "b", "b"), ("a", "c", "c"))) == {"the same players": [1, 2]}
    assert seats_alike((("a", "b", "b"), ("a", "b", "c"))) == {}


def put(*path, value):
    def change(content):
        for name in path[:-1]:
            content = content[name]
        content[path[-1]] = value

    return change


def drop(*path):
    def change(content):
        for name in path[:-1]:
            content = content[name]
        del content[path[-1]]

    return change


ONE = ("episodes", 0)
FIRST = (*ONE, "first")
WRONG_VALUES = {
    "another format": put("format", value="pickle"),
    "no format": drop("format"),
    "a later version": put("version", value=2),
    "a version of text": put("version", value="1"),
    "a version that is a flag": put("version", value=True),
    "another game": put("game_name", value="snowdrift"),
    "another version of the game": put("game_version", value=9),
    "no episodes": put("episodes", value=[]),
    "episodes by name": put("episodes", value={"0": {}}),
    "an episode of text": put("episodes", 0, value="run me"),
    "no actions": drop(*ONE, "actions"),
    "actions of text": put(*ONE, "actions", value="import os"),
    "an action of text": put(*ONE, "actions", 0, 0, value="__import__('os')"),
    "an action of half": put(*ONE, "actions", 0, 0, value=0.5),
    "an action that is a flag": put(*ONE, "actions", 0, 0, value=True),
    "a huge action": put(*ONE, "actions", 0, 0, value=10**30),
    "an action that does not exist": put(*ONE, "actions", 0, 0, value=7),
    "a row too short": put(*ONE, "actions", 0, value=[0, 0, 0]),
    "no steps": lambda content: content["episodes"][0].update(actions=[], rewards=[]),
    "too many steps": lambda content: content["episodes"][0].update(actions=[[4] * 4] * 36, rewards=[[0] * 4] * 36),
    "fewer rewards than actions": put(*ONE, "rewards", value=[[0, 0, 0, 0]]),
    "a reward of text": put(*ONE, "rewards", 0, 0, value="10"),
    "a reward that is no number": put(*ONE, "rewards", 0, 0, value=float("nan")),
    "an endless reward": put(*ONE, "rewards", 0, 0, value=float("inf")),
    "a reward that was not paid": put(*ONE, "rewards", 0, 0, value=10),
    "seats of numbers": put(*ONE, "seats", value=[1, 2, 3, 4]),
    "three seats": put(*ONE, "seats", value=["a", "b", "c"]),
    "no first state": put(*ONE, "first", value=None),
    "a field too few": drop(*FIRST, "walls"),
    "a field too many": put(*FIRST, "code", value="x"),
    "a position of text": put(*FIRST, "position", 0, value="0"),
    "a position beyond the board": put(*FIRST, "position", 0, value=99),
    "a huge position": put(*FIRST, "position", 0, value=2**40),
    "positions of another shape": put(*FIRST, "position", value=[[0, 1, 2, 3]]),
    "a position alone": put(*FIRST, "position", value=0),
    "flags of numbers": put(*FIRST, "present", value=[1, 1, 1, 1]),
    "a player that is not there": put(*FIRST, "present", 0, value=False),
    "a wrong time": put(*FIRST, "time", value=34),
    "keys of text": put(*ONE, "keys", value="random"),
    "keys that are not two words": lambda content: content["episodes"][0].update(
        keys=[[0]] * len(content["episodes"][0]["actions"])
    ),
    "a huge key": lambda content: content["episodes"][0].update(
        keys=[[0, 2**32]] * len(content["episodes"][0]["actions"])
    ),
    "a key too few": put(*ONE, "keys", value=[]),
    "an end before the end": lambda content: [content["episodes"][0][name].pop() for name in ("actions", "rewards")],
    "an action after leaving": lambda content: [
        row.__setitem__(seat, 4)
        for one in content["episodes"]
        for row in one["actions"]
        for seat in range(4)
        if row[seat] < 0
    ],
}
WRONG_BYTES = {
    "empty": b"",
    "no text": b"\xff\xfe\x00",
    "half a file": json.dumps({"format": "hopplus-episodes"}).encode()[:-4],
    "a list": b"[]",
    "a pickle": b"cposix\nsystem\n(S'touch /tmp/pickle_was_loaded'\ntR.",
    "deep": b"[" * 200_000,
    "a number": b"1e999",
    "a page": b"<html>",
}


@pytest.mark.parametrize("name", [*WRONG_VALUES, *WRONG_BYTES])
def test_a_malformed_file_is_refused(file, name):
    assert len(WRONG_VALUES) + len(WRONG_BYTES) >= 30
    if name in WRONG_BYTES:
        file.write_bytes(WRONG_BYTES[name])
    else:
        content = saved()
        WRONG_VALUES[name](content)
        file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"episodes\.json"):
        read_episodes(file, make(GAME))
    assert not Path("/tmp/pickle_was_loaded").exists()


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.json cannot be read: No such file"):
        read_episodes(tmp_path / "none.json", make(GAME))
    shutil.copy(__file__, tmp_path / "other.npz")
    with pytest.raises(ValueError, match=r"as an \.npz file"):
        read_episodes(tmp_path / "other.npz", make(GAME))
