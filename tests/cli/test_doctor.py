"""`hopplus doctor`: what a user types, what is written, and what the exit code says."""

import json
import sys

import pytest

from hopplus.cli.doctor import ACTIONS, with_action
from hopplus.cli.main import main
from runs.tiny import train_line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("doctor") / "run"
    assert main(train_line(out, "--seeds 3")) == 0
    return out


def test_a_run_is_examined_and_a_page_is_written(folder, capsys):
    assert main(["doctor", "seats", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["command"] == f"hopplus doctor seats {folder}" and told["verdict"] != "broken"
    verdicts = {each["check"]: each["verdict"] for each in told["answers"][0]["findings"]}
    assert (
        verdicts["samples"]
        == verdicts["targets"]
        == verdicts["policy, turned"]
        == verdicts["seats learn alone"]
        == "fine"
    )
    assert json.loads((folder / "doctor_seats.json").read_text()) == told
    assert "seats learn alone" in (folder / "doctor_seats.html").read_text()


def test_a_run_is_a_question_of_its_own():
    assert with_action(["doctor", "runs/first", "--json"]) == ["doctor", "run", "runs/first", "--json"]
    assert all(with_action(["doctor", action]) == ["doctor", action] for action in (*ACTIONS, "--help"))
    assert with_action(["runs"]) == ["runs"] and with_action(["doctor"]) == ["doctor"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("doctor game", "name a game, as in `hopplus doctor game stag-hunt-4x4`, or give --env MODULE:FACTORY"),
        ("doctor game nothing", "nothing"),
        ("doctor nowhere", "nowhere"),
        (
            "doctor fault nothing games",
            "there is no fault 'nothing'; the faults are tie_to",
        ),
    ],
)
def test_what_makes_no_sense_is_said(line, reason, capsys):
    assert main(line.split()) == 2
    assert reason in capsys.readouterr().err


def test_a_command_runs_with_a_fault(capsys):
    assert main(["doctor", "fault", "one_random_stream", "games"]) == 0
    assert "with a fault: all seats draw" in capsys.readouterr().out
    assert "doctor" in sys.modules["hopplus.cli.main"].VERBS
