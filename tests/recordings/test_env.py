"""`recording --env`: what the environment hands out is compared with the recording, and the environment is played."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="environments of PettingZoo are examined where it is installed")

from hopplus_doctor import Recorder
from hopplus_doctor.examination import examine_recordings
from hopplus_doctor.main import main

MODULE = """
import numpy as np
from biased_envs import Coins, FirstIsPaidMore, Foraging

class Walk(Foraging):
    horizon = 8

class Aliased(Walk):
    def begin(self):
        super().begin()
        self.shown = {agent: np.zeros(2, np.float32) for agent in self.possible_agents}
    def views(self):
        for agent, view in super().views().items():
            self.shown[agent][:] = view
        return {agent: self.shown[agent] for agent in self.agents}

class Repeats(Walk):
    def reset(self, seed=None, options=None):
        self.last = seed if seed is not None else getattr(self, "last", 0)
        return super().reset(seed=self.last)

class TwoStarts(Walk):
    # without a seed the first ten episodes after a seed begin alike, by chance
    def begin(self):
        super().begin()
        self.food, self.places = self.coin(), dict.fromkeys(self.agents, 0)
    def coin(self):
        return self.seeded % 2 if self.since < 11 else self.since % 2
    def reset(self, seed=None, options=None):
        self.seeded, self.since = (seed, 0) if seed is not None else (self.seeded, self.since + 1)
        return super().reset(seed=seed)

class TwoStartsRepeat(TwoStarts):
    def coin(self):
        return self.seeded % 2

class RareStartRepeats(TwoStarts):
    def coin(self):
        return self.seeded == 7
"""


@pytest.fixture(autouse=True)
def _environments(monkeypatch, tmp_path):
    (tmp_path / "walks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("walks", None)


def recorded(folder, *, same=False, actions=3, seats=3):
    random = np.random.default_rng(0)
    recorder = Recorder(folder, [f"player_{seat}" for seat in range(seats)])
    views = random.integers(9, size=(seats, 2, 20, 2))
    views = views[[0] * seats] if same else views
    recorder.record(0, observations=views, actions=random.integers(actions, size=(seats, 2, 20)))
    return recorder.save()


@pytest.mark.parametrize(
    ("name", "settings", "suspects"),
    [
        ("Walk", {}, ()),
        ("Walk", {"same": True}, ("observations",)),
        ("Walk", {"actions": 5}, ("game: actions",)),
        ("Aliased", {}, ("observations",)),
        ("Repeats", {}, ("random streams: envs",)),
        ("TwoStarts", {}, ()),
        ("TwoStartsRepeat", {}, ("random streams: envs",)),
        ("RareStartRepeats", {}, ()),
        ("FirstIsPaidMore", {"actions": 2}, ("game: returns",)),
    ],
)
def test_the_environment_is_examined_with_the_recording(tmp_path, name, settings, suspects):
    folder = recorded(tmp_path / "recording", **settings)
    seconds = 8.0 if name == "FirstIsPaidMore" else 1.0
    examination = examine_recordings([folder], env=f"walks:{name}", seconds=seconds)
    assert examination.suspects == suspects
    assert [answer.question for answer in examination.answers[:2]] == ["environment", "game"]


@pytest.mark.parametrize("name", ["Repeats", "TwoStarts", "RareStartRepeats"])
def test_new_episodes_are_a_test_with_a_level(tmp_path, name):
    examination = examine_recordings([recorded(tmp_path / "recording")], env=f"walks:{name}", seconds=0.1)
    (finding,) = [finding for finding in examination.findings if finding.check == "new episodes"]
    assert finding.kind == "test" and "1e-06" in finding.threshold
    verdicts = {"Repeats": "broken", "TwoStarts": "fine", "RareStartRepeats": "not enough evidence"}
    assert finding.verdict == verdicts[name]


@pytest.mark.parametrize("padded", [-1, 99])
def test_what_stands_in_the_rows_of_a_seat_that_left_is_not_read(tmp_path, padded):
    recorder = Recorder(tmp_path / "recording", [f"player_{seat}" for seat in range(3)])
    there = np.ones((3, 2, 20), bool)
    there[1, :, 10:] = False
    recorder.record(0, actions=np.where(there, 1, padded), in_game=there)
    assert examine_recordings([recorder.save()], env="walks:Walk", seconds=0.1).suspects == ()


def test_the_command_takes_an_environment(tmp_path, capsys):
    folder = recorded(tmp_path / "recording", seats=2)
    assert main(["recording", str(folder), "--env", "walks:Walk", "--seconds", "1", "--json"]) == 0
    assert "the recording has 2 seats, the environment 3 agents" in capsys.readouterr().out
    assert main(["recording", str(folder), "--env", "walks:Nothing"]) == 2
    assert "walks:Nothing" in capsys.readouterr().err
