"""Comparing runs: the settings that differ are named, and all seeds together judge a seat."""

from dataclasses import replace

import numpy as np
import pytest

from hopplus.doctor import run_comparison
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.learning.config import LearnerConfig
from hopplus.runs.config import RunConfig
from hopplus.runs.records import RETURN_FAMILY, Recorded

SEEDS, UPDATES = 4, 10
CONFIG = RunConfig(seeds=SEEDS)


def examined(tmp_path, name: str, advantage: float = 0.0, config: RunConfig = CONFIG) -> ExaminedRun:
    """A run of 4x4 whose first seat got `advantage` more than the others, but for chance."""
    made = ExaminedRun(tmp_path / name, config)
    spread = np.random.default_rng(sum(name.encode())).normal(2.0, 0.01, (4, UPDATES, SEEDS))
    spread[0] += advantage
    metrics = {f"{RETURN_FAMILY}/player_{seat + 1}": values for seat, values in enumerate(spread)}
    steps = np.arange(1, UPDATES + 1, dtype=np.int64) * 10
    made.__dict__["recorded"] = Recorded(name, {}, steps, metrics, {}, None)
    return made


def test_what_differs_is_named_and_what_does_not_change_learning_is_not(tmp_path):
    other = replace(CONFIG, seed=7, learner=LearnerConfig(sharing="shared"))
    finding = run_comparison.settings([examined(tmp_path, "a"), examined(tmp_path, "b", config=other)])
    assert finding.says == "the runs differ in learner.sharing: independent, shared"


def test_equal_settings_are_said_to_be_equal(tmp_path):
    finding = run_comparison.settings(
        [examined(tmp_path, "a"), examined(tmp_path, "b", config=replace(CONFIG, seed=7))]
    )
    assert "the same settings" in finding.says


@pytest.mark.parametrize(("advantage", "is_found"), [(0.0, False), (0.6, True)])
def test_all_seeds_of_all_runs_judge_a_seat_together(tmp_path, advantage, is_found):
    runs = [examined(tmp_path, name, advantage) for name in ("a", "b", "c")]
    _, pooled, spreads = run_comparison.compare(runs[0], runs[1:])
    assert f"all {3 * SEEDS} seeds" in pooled.says
    assert pooled.test is not None
    assert pooled.effect is not None
    assert (pooled.test.p_value < 1e-4) == is_found
    assert (pooled.effect.low > pooled.test.matters) == is_found
    if is_found:
        assert "player_1" in pooled.says
        assert pooled.effect.estimate == pytest.approx(0.75 * advantage / (2 + advantage / 4), abs=0.01)
    assert all(name in spreads.says for name in ("a (independent)", "b (independent)", "c (independent)"))


def test_runs_with_other_seats_cannot_be_pooled(tmp_path):
    scripted = replace(CONFIG, co_players="random,random,random")
    findings = list(run_comparison.compare(examined(tmp_path, "a"), [examined(tmp_path, "b", config=scripted)]))
    assert [finding.verdict for finding in findings] == ["fine", "not enough evidence"]
