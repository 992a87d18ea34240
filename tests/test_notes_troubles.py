"""When a trouble of the notes counts as one that appears: benchmarks/notes_troubles.py."""

import importlib.util
import sys
from pathlib import Path

import pytest

from hopplus_doctor.statistics import Interval

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
ACTIONS = ("up", "down", "left", "right", "stay", "hunt_stag", "hunt_hare")


@pytest.fixture(scope="module")
def troubles():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("notes_troubles", BENCHMARKS / "notes_troubles.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


def study(*, losses=(1.0, 1.2, 0.8), base=0.1, never=(), jumped=0, vanished=3):
    impossible = {"jumped": jumped, "doubled": 3, "revived": 0}
    judged = {"transitions": 1000, "impossible": impossible, "players": 3000, "vanished": vanished}
    agent = {
        "value_loss_by_seed": list(losses),
        "seats": [{}] * 4,
        "never_predicted": list(never),
        "recall": dict.fromkeys(ACTIONS),
        "top1": {"estimate": 0.5, "low": 0.4, "high": 0.6},
        "world": {"line_ups": {"all": judged}},
    }
    return {"variants": {"critic on all": agent, "ppo": {"value_loss_by_seed": [base, base]}}}


@pytest.mark.parametrize(
    ("interval", "above", "expected"),
    [
        ((11, 12), True, "yes"),
        ((9, 12), True, "not clear"),
        ((8, 9), True, "no"),
        ((0.8, 0.9), False, "no"),
        ((0.4, 0.45), False, "yes"),
    ],
)
def test_a_trouble_appears_if_its_whole_interval_is_beyond_the_bound(troubles, interval, above, expected):
    low, high = interval
    assert troubles.appears(Interval((low + high) / 2, low, high), 10 if above else 0.5, above=above) == expected


def test_the_value_loss_is_compared_with_that_of_ppo(troubles):
    found = troubles.value_loss(study(), {})
    assert found["figure"]["estimate"] == pytest.approx(10) and found["appears"] == "not clear"
    assert troubles.value_loss(study(base=0.01), {})["appears"] == "yes"
    assert troubles.value_loss(study(base=1.0), {})["appears"] == "no"


def test_an_opponent_model_has_collapsed_if_it_never_predicts_half_of_the_actions(troubles):
    assert troubles.collapse(study(never=ACTIONS[:3]), {})["appears"] == "no"
    assert troubles.collapse(study(never=ACTIONS[:4]), {})["appears"] == "yes"


def test_impossible_places_are_a_share_of_players(troubles):
    found = troubles.boards(study(jumped=400), {})
    assert found["figure"]["estimate"] == pytest.approx(0.1) and found["appears"] == "yes"
    found = troubles.boards(study(vanished=600), {})
    assert found["figure"]["estimate"] == pytest.approx(0.2) and found["most_frequent"] == "vanished"
    assert troubles.boards(study(), {})["appears"] == "no"


def test_a_return_falls_if_it_ends_clearly_below_its_best(troubles):
    long = {"variants": {"hop_plus_notes": {"last_over_best_by_seed": [0.5, 0.52, 0.51]}}}
    assert troubles.fall({}, long)["appears"] == "yes"
    long["variants"]["hop_plus_notes"]["last_over_best_by_seed"] = [0.99, 1.0, 0.98]
    assert troubles.fall({}, long)["appears"] == "no"
