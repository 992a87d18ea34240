"""Verdicts: many tests at once raise no more false alarms than one, and what is to blame comes first."""

import numpy as np
import pytest

from hopplus.doctor.answer import Answer, Examination, Finding, Significance, holm, settled, verdict_of, worst
from hopplus.evaluation.statistics import Interval


def finding(p_value=None, effect=1.0, **about):
    test = None if p_value is None else Significance(p_value, matters=0.1)
    interval = Interval(effect, effect - 0.01, effect + 0.01)
    settings = {"check": "a", "module": "policy", "verdict": "fine", "says": "so"} | about
    return Finding(**settings, effect=interval, test=test)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_fair_runs_alarm_as_rarely_as_is_said():
    random = np.random.default_rng(0)
    alarms = 0
    for _ in range(4000):
        asked = Answer("seats", "?", tuple(finding(p_value) for p_value in random.uniform(size=12)))
        alarms += settled([asked])[0].verdict in ("suspicious", "broken")
    assert alarms / 4000 < 0.01


@pytest.mark.parametrize(
    ("adjusted", "effect", "verdict"),
    [
        (1e-6, Interval(0.5, 0.4, 0.6), "broken"),
        (1e-3, Interval(0.5, 0.1, 0.9), "suspicious"),
        (1e-6, Interval(0.05, 0.04, 0.06), "fine"),
        (0.5, Interval(0.02, -0.05, 0.09), "fine"),
        (0.5, Interval(0.2, -0.5, 0.9), "not enough evidence"),
        (0.5, None, "not enough evidence"),
    ],
)
def test_an_effect_must_be_certain_and_matter(adjusted, effect, verdict):
    assert verdict_of(Significance(0.5, matters=0.1), effect, adjusted) == verdict


def test_what_is_broken_for_certain_is_blamed_first():
    found = Examination(
        "a run",
        "hopplus doctor a",
        "0",
        (
            Answer("seats", "?", (finding(module="odd", verdict="suspicious"), finding(1e-9, module="seats"))),
            Answer("critic", "?", (finding(module="rewards", verdict="broken"),)),
        ),
    )
    settled_found = Examination("a run", "", "0", settled(found.answers))
    assert settled_found.verdict == "broken"
    assert settled_found.suspects == ("rewards", "seats", "odd")
    assert worst([]) == "not enough evidence"
    assert settled_found.to_json()["suspects"] == ["rewards", "seats", "odd"]
