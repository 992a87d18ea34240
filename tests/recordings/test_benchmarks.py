"""What benchmarks measure is what they say."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from hopplus_doctor import Recorder
from hopplus_doctor.answer import SUSPICIOUS_BELOW, Answer, Finding, Significance, settled
from hopplus_doctor.seat_differences import MATTERS, Measured, scale_of, standing_out
from hopplus_doctor.statistics import Interval

SEATS, EPISODES, STUDIES = 3, 200, 600
OTHER = Finding("other", "", "test", "fine", "", Interval(0, 0, 0), "", Significance(0.6, 1))


def share_found(difference, spread, tests):
    random, found = np.random.default_rng(0), 0
    for _ in range(STUDIES):
        returns = 1 + spread * random.normal(size=(EPISODES, SEATS))
        returns += difference * np.array([1, -0.5, -0.5])
        measured = Measured("returns", "", "return", returns, ("a", "b", "c"), MATTERS * scale_of(returns), "", "")
        (answer,) = settled([Answer("game", "?", (standing_out(measured), *[OTHER] * (tests - 1)))])
        found += answer.findings[0].verdict in ("suspicious", "broken")
    return found / STUDIES


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))


@pytest.mark.parametrize("spread", [0.02, 0.3])
@pytest.mark.parametrize("tests", [1, 4])
def test_the_smallest_detectable_difference_is_found_in_95_of_100_studies(spread, tests):
    from audit import detectable

    error = spread * np.sqrt((SEATS - 1) / SEATS / EPISODES)
    half = error * float(norm.isf(SUSPICIOUS_BELOW / 2 / SEATS))
    difference = detectable(half, MATTERS, seats=SEATS, tests=tests)
    assert share_found(difference, spread, tests) == pytest.approx(0.95, abs=0.025)
    assert share_found(0.9 * difference, spread, tests) < 0.93


def test_the_recorders_share_is_that_of_the_trainings_that_find_the_faults(tmp_path):
    import doctor_recordings

    calls = []

    def train(folder, **settings):
        calls.append(settings)
        recorder = Recorder(folder, ["a"])
        recorder.record(0, rewards=np.zeros((1, 1, 2)))
        return recorder.save()

    loop = SimpleNamespace(train=train, FAULTS={})
    doctor_recordings.examined(loop, tmp_path, None, seed=0)
    assert 0 < doctor_recordings.overhead(loop, tmp_path, 2) <= 1
    assert calls[1:] == [{"seed": 0, "fault": None}, {"seed": 1, "fault": None}] and calls[0] == calls[1]
