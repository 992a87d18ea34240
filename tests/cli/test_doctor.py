"""`hopplus doctor`: what a user types, what is written, and what the exit code says."""

import json
import sys

import pytest

from hopplus.cli.main import main
from hopplus.cli.verbs.doctor import ACTIONS, with_action
from hopplus.doctor.ladder import RUNGS
from runs.tiny import train_line

NAMED = """
from pettingzoo import ParallelEnv


class named(ParallelEnv):
    def __init__(self):
        self.possible_agents = ["alice", "bob", "carol"]

    def reset(self, seed=None, options=None):
        raise AssertionError("nothing is to be played")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("doctor") / "run"
    assert main(train_line(out, "--seeds 3")) == 0
    return out


def test_a_run_is_examined_and_a_page_is_written(folder, capsys):
    assert main(["doctor", "seats", str(folder), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["command"] == f"hopplus doctor seats {folder}" and result["verdict"] != "broken"
    verdicts = {each["check"]: each["verdict"] for each in result["answers"][0]["findings"]}
    assert (
        verdicts["samples"]
        == verdicts["targets"]
        == verdicts["policy, turned"]
        == verdicts["seats learn alone"]
        == "fine"
    )
    kinds = {each["check"]: each["kind"] for each in result["answers"][0]["findings"]}
    assert kinds["samples"] == kinds["seats learn alone"] == "exact" and kinds["returns"] == "test"
    assert json.loads((folder / "doctor_seats.json").read_text()) == result
    assert "seats learn alone" in (folder / "doctor_seats.html").read_text()


def test_a_run_becomes_a_recording_and_is_examined_again(folder, tmp_path, capsys):
    assert main(["doctor", "record", str(folder), "--out", str(tmp_path)]) == 0
    seeds = sorted(map(str, tmp_path.iterdir()))
    assert len(seeds) == 3 and capsys.readouterr().out.count("wrote") == 3
    assert main(["doctor", "recording", *seeds, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    verdicts = {each["check"]: each["verdict"] for answer in result["answers"] for each in answer["findings"]}
    for check in ("targets, real", "targets and advantages", "ends and resets", "legal actions, real", "samples, real"):
        assert verdicts[check] == "fine", check
    assert result["command"].startswith("hopplus doctor recording ")


def test_logs_are_examined(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("step,value_loss\n0,1.0\n1,inf\n")
    assert main(["doctor", "logs", str(tmp_path), "--page", str(tmp_path / "page.html")]) == 1
    assert '"value_loss" = "value_loss"' in capsys.readouterr().out and (tmp_path / "page.html").is_file()


def test_a_run_is_a_question_of_its_own():
    assert with_action(["runs/first", "--json"]) == ["run", "runs/first", "--json"]
    assert all(with_action([action]) == [action] for action in (*ACTIONS, "--help")) and with_action([]) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("doctor game", "name a game, as in `hopplus doctor game stag-hunt-4x4`, or give --env MODULE:FACTORY"),
        ("doctor game nothing", "nothing"),
        ("doctor nowhere", "nowhere"),
        ("doctor game stag-hunt-4x4 --alike all", "--alike is for --env"),
        ("doctor game --env named_env:named", "add --alike all"),
        ("doctor fault one_random_stream study run no.toml --out no", "have no fault; give a command that trains here"),
        ("doctor fault one_random_stream doctor ladder no --out no", "have no fault; give a command that trains here"),
        (
            "doctor fault nothing games",
            "there is no fault 'nothing'; the faults are tie_to",
        ),
    ],
)
def test_what_makes_no_sense_is_said(line, reason, capsys, monkeypatch, tmp_path):
    (tmp_path / "named_env.py").write_text(NAMED)
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert reason in capsys.readouterr().err


def test_the_help_of_the_ladder_lists_its_rungs_in_order(capsys):
    with pytest.raises(SystemExit):
        main(["doctor", "ladder", "--help"])
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    places = [said.index(rung.removesuffix(", actor only")) for rung in RUNGS]
    assert places == sorted(places)


def test_a_command_runs_with_a_fault(capsys):
    """The command's own flags are passed on, words with spaces too."""
    assert main(["doctor", "fault", "one_random_stream", "games"]) == 0
    assert main(["doctor", "fault", "one_random_stream", "evaluate", "no such run", "--episodes", "5"]) == 2
    assert "with a fault: all seats sample" in capsys.readouterr().out
    assert "doctor" in sys.modules["hopplus.cli.main"].VERBS
