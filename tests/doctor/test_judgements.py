"""Where a measure of a model turns from fine to suspicious to broken."""

import numpy as np
import pytest

from hopplus.doctor import critic, others, world
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.runs.config import RunConfig
from hopplus.runs.records import Recorded
from hopplus_doctor.answer import Picture


@pytest.mark.parametrize(
    ("cross_entropy", "verdict"),
    [(0.5, "fine"), (0.75, "fine"), (0.95, "suspicious"), (1.0, "broken"), (3.0, "broken")],
)
def test_models_must_know_more_than_action_frequencies(cross_entropy, verdict):
    yardsticks = {"marginal": {"cross_entropy": 1.0}, "ceiling": {"cross_entropy": 0.5}}
    assert others.yardsticks({"cross_entropy": cross_entropy, "yardsticks": yardsticks}).verdict == verdict


def test_one_pair_that_is_far_behind_the_others_is_named():
    pairs = [{"player": "player_1", "other": f"player_{other}", "ratio": 0.9} for other in (2, 3, 4)]
    assert others.pairs({"pairs": pairs}).verdict == "fine"
    pairs[1]["ratio"] = 0.4
    finding = others.pairs({"pairs": pairs})
    assert finding.verdict == "suspicious"
    assert "player_1 of 3" in finding.says


@pytest.mark.parametrize(("goals_move_policies_by", "verdict"), [(0.2, "fine"), (0.0, "suspicious")])
def test_goals_that_change_nothing_are_not_used(goals_move_policies_by, verdict):
    assert others.use({"use": {"shuffled": {"total_variation": goals_move_policies_by}}}).verdict == verdict


@pytest.mark.parametrize(
    ("share", "learning", "verdict"),
    [
        (0.95, False, "fine"),
        (0.7, False, "suspicious"),
        (0.7, True, "not enough evidence"),
        (0.3, True, "broken"),
        (0.3, False, "broken"),
    ],
)
def test_a_middling_world_may_only_be_early_and_a_bad_one_is_bad(share, learning, verdict):
    finding = world._rate(learning, "next board", "world: board", share, "of boards")
    assert finding.verdict == verdict
    assert finding.kind == "judgement" and finding.threshold == "suspicious below 90%, broken below 50%"


@pytest.mark.parametrize(("last", "learning"), [(0.5, True), (0.99, False)])
def test_a_world_is_learning_while_its_error_falls(last, learning):
    errors = np.array([[3.0], [2.0], [1.5], [1.0], [last]])
    recorded = Recorded("run", {}, np.arange(1, 6), {"wm/board_error": errors}, {}, None)
    assert world.is_learning(recorded) == learning


@pytest.mark.parametrize(
    ("by_seed", "verdict"),
    [
        ((0.5, 0.6, 0.7), "fine"),
        ((0.05, 0.17, 0.29), "not enough evidence"),  # -.13 to .47
        ((-0.5, -0.6, -0.7), "suspicious"),
        ((0.6,), "not enough evidence"),
    ],
)
def test_a_wide_interval_of_the_explained_variance_is_not_enough_evidence(by_seed, verdict, tmp_path):
    examined = ExaminedRun(tmp_path, RunConfig(seeds=len(by_seed)))
    tags = [f"policy/explained_variance/player_{seat}" for seat in (1, 2, 3, 4)]
    metrics = {tag: np.tile(by_seed, (10, 1)) for tag in tags}
    examined.__dict__["recorded"] = Recorded("run", {}, np.arange(1, 11), metrics, {}, None)
    finding = critic.explained_variance(examined)
    assert finding.verdict == verdict
    assert finding.kind == "judgement" and "above 0" in finding.threshold


@pytest.mark.parametrize(
    ("by_update", "rising"),
    [
        ([-0.9], True),  # one update cannot tell
        ([-0.9, -0.8, -0.7, -0.6, -0.4], True),
        ([-0.9, -0.8, -0.7, -0.5, -0.5], False),
        ([0.3, 0.1, -0.1, -0.3, -0.5], False),
    ],
)
def test_a_critic_that_still_learns_is_no_alarm(by_update, rising, tmp_path):
    examined = ExaminedRun(tmp_path, RunConfig(seeds=3))
    noise = np.array([-0.02, 0.0, 0.02])
    values = np.array(by_update)[:, None] + noise * np.arange(len(by_update))[:, None]
    metrics = {f"policy/explained_variance/player_{seat}": values for seat in (1, 2, 3, 4)}
    examined.__dict__["recorded"] = Recorded("run", {}, np.arange(1, len(values) + 1), metrics, {}, None)
    assert critic.is_rising(examined.recorded) == rising
    assert critic.explained_variance(examined).verdict == ("not enough evidence" if rising else "suspicious")


@pytest.mark.parametrize(
    ("imagined", "verdict"),
    [
        ([1.0, 1.0, 1.0], "fine"),
        ([5.0, 5.0, 5.0], "suspicious"),
        ([20.0, 20.0, 20.0], "broken"),
        ([1.0, 1.0, 9.0], "not enough evidence"),  # one seed of three
        ([11.0, 13.0, 15.0], "suspicious"),
        ([5.0], "suspicious"),
        ([-5.0, -5.0, -5.0], "suspicious"),  # the other sign is no less wrong
        ([-1.0, -1.0, -1.0], "fine"),
    ],
)
def test_what_is_compared_with_a_chosen_ratio_is_a_judgement(imagined, verdict, tmp_path):
    examined = ExaminedRun(tmp_path, RunConfig(seeds=len(imagined)))
    real, picture = np.ones(len(imagined)), Picture("boxes", "", (), {})
    finding = critic._compared(examined, "value loss", real, np.array(imagined), picture)
    assert finding.verdict == verdict and finding.kind == "judgement"
    assert finding.threshold == "suspicious above 3 times, broken above 10, by the 95% interval over seeds"


def test_one_impossible_outcome_is_too_many():
    assert world.impossible({"cell": 0, "reward": 0}, "cells").verdict == "fine"
    finding = world.impossible({"cell": 0, "reward": 1}, "cells")
    assert finding.verdict == "broken" and finding.kind == "exact"
