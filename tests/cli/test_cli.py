import json
import os
import pty
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from hopplus.cli import check
from hopplus.cli.keyboard import Keyboard
from hopplus.cli.main import main
from hopplus.games.presets import PRESETS, make

GOLDEN = Path(__file__).parents[1] / "golden" / "format_1"
"""Small trained runs on stag-hunt-4x4."""


def test_games_lists_every_preset(capsys):
    assert main(["games"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in PRESETS) and "patient_stag" in printed


def test_check_prints_both_tables(capsys):
    assert main(["check", "matrix-chicken", "--episodes", "1000"]) == 0
    printed = capsys.readouterr().out
    assert "contract" in printed and "1,000 episodes" in printed and "player_2" in printed
    assert "fair: no seat" in printed
    assert printed.rstrip().endswith("matrix-chicken: no fault was found")


def test_check_ends_with_the_faults(capsys):
    check._print_verdict("my_games:Mine", ["seats: player_1 is paid [twice]", "fairness: seat 1"], Console(width=120))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["my_games:Mine: fault: seats: player_1 is paid [twice]", "my_games:Mine: fault: fairness: seat 1"]


def test_check_prints_one_line_of_json(capsys):
    assert main(["check", "matrix-stag-hunt", "--episodes", "500", "--json"]) == 0
    lines = capsys.readouterr().out.strip().split("\n")
    result = json.loads(lines[-1])
    assert len(lines) == 1 and result["faults"] == [] and result["fairness"]["episodes"] == 500


def test_check_of_somebody_elses_broken_game_exits_with_1(capsys, tmp_path, monkeypatch):
    (tmp_path / "my_games.py").write_text(
        "from hopplus.games import MatrixGame\n"
        "class Generous(MatrixGame):\n"
        "    def step(self, state, actions, *, key):\n"
        "        after, rewards = super().step(state, actions, key=key)\n"
        "        return after, rewards.at[0].add(1.0) * (1 - self.terminated(state))\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["check", "my_games:Generous", "--episodes", "1000", "--json"]) == 1
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert any(fault.startswith("seats: the seats are not treated alike") for fault in faults)
    assert any(fault.startswith("fairness: seat 1 gets +") for fault in faults)


def test_trained_players_take_seats_and_say_what_they_believe(capsys, tmp_path):
    run = GOLDEN / "hop_plus"
    out, seats = tmp_path / "episode.gif", f"{run},{run}:2,nearest_stag,{GOLDEN / 'ppo'}"
    line = ["play", "stag-hunt-4x4", "--seconds", "0", "--out", str(out), "--seats"]
    assert main([*line, seats]) == 0
    printed = capsys.readouterr().out
    assert "1 believes: 2 " in printed and "2 believes: 3 " in printed
    assert "3 believes" not in printed and "4 believes" not in printed, "a script and ppo have no beliefs"
    with Image.open(out) as picture:
        assert picture.n_frames > 1
    assert main([*line, seats.replace(":2", ":7")]) == 2
    assert "has no seat 7; give 1 to 4" in capsys.readouterr().err
    assert main(["play", "stag-hunt-8x8", "--seats", f"{run},random,random,random"]) == 2
    assert "which has another board; give a run of the same game" in capsys.readouterr().err


def test_play_shows_the_episode_and_saves_it(capsys, tmp_path):
    out = tmp_path / "episode.gif"
    assert main(["play", "matrix-chicken", "--seconds", "0", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "step 10 of 10" in printed
    with Image.open(out) as picture:
        assert getattr(picture, "n_frames", 1) > 1
    assert main(["play", "stag-hunt-4x4", "--seed", "3", "--seconds", "0", "--out", str(tmp_path / "last.png")]) == 0
    with Image.open(tmp_path / "last.png") as picture:
        assert picture.width > 300
    assert "nearest_hare" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("play no-such-game", "there is no game called 'no-such-game'"),
        ("check no-such-game", "give one of stag-hunt-4x4"),
        ("check no_such_module:Game", "cannot load the game"),
        ("check hopplus.games:NoSuchGame", "cannot load the game"),
        ("check hopplus.games:Board", "gives a Board; give a factory that returns a hopplus.games.Game"),
        ("check matrix-chicken --episodes -1", "--episodes is -1; give 400 or more"),
        ("check matrix-chicken --episodes 10", "or 0 to skip fairness"),
        ("play stag-hunt-4x4 --seats random", "names 1 players, but stag_hunt has 4 seats"),
        ("play stag-hunt-4x4 --seats nobody,random,random,random", "no script called 'nobody'"),
        ("play stag-hunt-4x4 --seats keyboard,keyboard,random,random", "2 seats are called keyboard; give one at most"),
        ("play stag-hunt-4x4 --seats keyboard,random,random,random", "needs a terminal"),
        ("play stag-hunt-4x4 --out episode.mp4", "give a name that ends in .gif, .png or .svg"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(line, reason, capsys):
    assert main(line.split()) == 2
    complaint = capsys.readouterr().err.strip().split("\n")[-1]
    assert complaint.startswith("hopplus: ") and reason in complaint


@pytest.mark.parametrize("line", ["", "no-such-verb", "play --no-such-flag", "check", "check x --episodes many"])
def test_what_cannot_be_read_exits_with_2(line):
    with pytest.raises(SystemExit) as stopped:
        main(line.split())
    assert stopped.value.code == 2


def test_help_explains(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["play", "--help"])
    assert stopped.value.code == 0
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "A seat called `keyboard` is yours" in printed and "GAME" in printed


def test_a_person_can_play_at_the_keyboard(capsys, monkeypatch):
    """In a real terminal: two keys that mean an action, one that means none, an arrow, `act`, and quit."""
    person, terminal = pty.openpty()
    with os.fdopen(terminal, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(person, b"10?\x1b[A.eq")
        assert main(["play", "matrix-prisoners-dilemma", "--seats", "keyboard,random"]) == 0
    os.close(person)
    printed = capsys.readouterr().out
    assert "step 3 of 10" in printed and "step 4 of 10" not in printed
    assert "keyboard" in printed


def test_keys_mean_actions():
    spec = make("stag-hunt-4x4").spec
    keyboard = Keyboard(spec)
    legal = np.array([True, True, True, True, True, False, True])
    expected = {"w": 0, "\x1b[B": 1, "a": 2, "\x1bOC": 3, " ": 4, "e": 6, "5": 5, "9": None, "x": None}
    assert {pressed: keyboard.meaning(pressed, legal) for pressed in expected} == expected
    assert keyboard.meaning("e", np.array([True] * 5 + [False] * 2)) is None
