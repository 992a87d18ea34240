"""A run that has hardly learned is said to be one, without an alarm; one that has learned is fine."""

import numpy as np
import pytest

from hopplus.doctor.progress import first_means, learned
from hopplus.runs.records import RETURN_TAG, Recorded


def recorded(first: float, last: float, *, seeds: int = 5, updates: int = 40, noise: float = 0.02) -> Recorded:
    """Returns that move from one level to the other in a straight line, but for chance."""
    line = np.linspace(first, last, updates)[:, None]
    returns = line + np.random.default_rng(0).normal(0, noise, (updates, seeds))
    return Recorded("run", {}, np.arange(1, updates + 1), {RETURN_TAG: returns}, {}, None)


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (recorded(0.7, 2.9), "fine"),
        (recorded(1.5, 0.6), "fine"),  # learning may lower returns where motives are mixed
        (recorded(-1.0, -0.2), "fine"),
        (recorded(0.7, 0.7), "not enough evidence"),
        (recorded(0.7, 0.73, noise=1e-4), "not enough evidence"),  # certain, and hardly anything
        (recorded(0.7, 0.9, noise=1.0), "not enough evidence"),
        (recorded(0.0, 0.0, noise=0.0), "not enough evidence"),
    ],
)
def test_a_run_has_learned_where_its_return_has_changed(run, verdict):
    finding = learned(run)
    assert finding.verdict == verdict
    assert finding.kind == "judgement" and "10%" in finding.threshold
    assert ("hardly learned" in finding.says) == (verdict != "fine")
    assert (finding.advice is None) == (verdict == "fine")


def test_one_seed_does_not_say_how_far_chance_goes():
    finding = learned(recorded(0.7, 2.9, seeds=1))
    assert finding.verdict == "not enough evidence" and "one seed" in finding.says


def test_a_run_of_one_update_is_too_short():
    assert "too short" in learned(recorded(0.7, 0.7, updates=1)).says


def test_updates_before_the_first_episode_ends_are_left_out():
    returns = np.array([[np.nan, np.nan], [np.nan, 1.0], [2.0, 3.0], [4.0, 5.0]])
    run = Recorded("run", {}, np.arange(1, 5), {RETURN_TAG: returns}, {}, None)
    np.testing.assert_array_equal(first_means(run), [np.nan, 1.0])
