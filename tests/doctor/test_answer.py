"""Verdicts: many tests at once raise no more false alarms than one, and what is to blame comes first."""

import numpy as np
import pytest

from hopplus_doctor.answer import Answer, Examination, Finding, Significance, holm, settled, verdict_of, worst
from hopplus_doctor.statistics import Interval


def finding(p_value=None, effect=1.0, **about):
    test = None if p_value is None else Significance(p_value, matters=0.1)
    interval = Interval(effect, effect - 0.01, effect + 0.01)
    kind = "exact" if p_value is None else "test"
    settings = {"check": "a", "module": "policy", "kind": kind, "verdict": "fine", "says": "so"} | about
    return Finding(**settings, effect=interval, test=test)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_fair_runs_alarm_as_rarely_as_is_said():
    """Twelve tests in each of 20,000 fair examinations; an effect always matters, so only the p-values decide."""
    random = np.random.default_rng(0)
    effect, test = Interval(0.5, 0.4, 0.6), Significance(0.5, matters=0.1)
    smallest = [min(holm(p_values)) for p_values in random.uniform(size=(20_000, 12)).tolist()]
    alarms = [verdict_of(test, effect, adjusted) in ("suspicious", "broken") for adjusted in smallest]
    assert np.mean(alarms) < 0.01


def test_all_tests_of_an_examination_are_adjusted_together():
    p_values = np.random.default_rng(0).uniform(size=12)
    answers = [
        Answer(name, "?", tuple(map(finding, part))) for name, part in zip("ab", np.split(p_values, 2), strict=True)
    ]
    tests = [each.test for answer in settled(answers) for each in answer.findings]
    assert [test.adjusted for test in tests] == holm(p_values.tolist())


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
    examination = Examination(
        "a run",
        "hopplus doctor a",
        "0",
        (
            Answer("seats", "?", (finding(module="odd", verdict="suspicious"), finding(1e-9, module="seats"))),
            Answer("critic", "?", (finding(module="rewards", verdict="broken"),)),
        ),
    )
    settled_examination = Examination("a run", "", "0", settled(examination.answers))
    assert settled_examination.verdict == "broken"
    assert settled_examination.suspects == ("rewards", "seats", "odd")
    assert worst([]) == "not enough evidence"
    assert settled_examination.to_json()["suspects"] == ["rewards", "seats", "odd"]


def test_a_judgement_of_a_part_is_blamed_before_a_test_of_what_it_feeds():
    judged = finding(module="world: data", kind="judgement", threshold="broken above 1", verdict="broken")
    answer = Answer("seats", "?", (finding(1e-9, module="seats"), judged))
    assert Examination("a run", "", "0", settled([answer])).suspects == ("world: data", "seats")


def test_a_finding_must_say_its_kind():
    with pytest.raises(TypeError, match="says"):
        Finding("returns", "seats", "fine", "so")  # pyright: ignore


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"kind": "judgement"}, "a judgement states its threshold"),
        ({"kind": "test", "verdict": "broken"}, "a test that raises an alarm has a p-value or a level"),
        ({"kind": "exact", "p_value": 0.5}, "a finding with a p-value has the kind test"),
    ],
)
def test_a_kind_must_have_what_it_rests_on(about, reason):
    with pytest.raises(ValueError, match=reason):
        finding(**about)


def test_the_kind_and_what_it_rests_on_are_in_the_json():
    asked = Answer("seats", "?", (finding(1e-3), finding(0.02), finding(kind="judgement", threshold="below 0.9")))
    (answer,) = Examination("a", "", "0", settled([asked])).to_json()["answers"]
    assert [each["kind"] for each in answer["findings"]] == ["test", "test", "judgement"]
    assert answer["findings"][0]["test"] == {"p_value": 1e-3, "matters": 0.1, "adjusted": 2e-3}
    assert answer["findings"][2]["threshold"] == "below 0.9"


@pytest.mark.parametrize(
    ("verdict", "advice"),
    [("fine", None), ("not enough evidence", "play longer"), ("suspicious", "play longer"), ("broken", "look at it")],
)
def test_what_is_certain_is_acted_on_and_what_is_not_is_looked_at_longer(verdict, advice):
    assert finding(1e-9, verdict=verdict, next="look at it", more="play longer").advice == advice
    assert finding(verdict=verdict, next="look at it").advice == (None if verdict == "fine" else "look at it")
