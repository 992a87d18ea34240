"""Where a measure of a model turns from fine to suspicious to broken."""

import numpy as np
import pytest

from hopplus.doctor import others, world
from hopplus.runs.records import Recorded


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
    found = others.pairs({"pairs": pairs})
    assert found.verdict == "suspicious"
    assert "player_1 of 3" in found.says


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
    assert world._rate(learning, "next board", "world: board", share, "of boards").verdict == verdict


@pytest.mark.parametrize(("last", "learning"), [(0.5, True), (0.99, False)])
def test_a_world_is_learning_while_its_error_falls(last, learning):
    errors = np.array([[3.0], [2.0], [1.5], [1.0], [last]])
    recorded = Recorded("run", {}, np.arange(1, 6), {"wm/board_error": errors}, {}, None)
    assert world.is_learning(recorded) == learning


def test_one_impossible_outcome_is_too_many():
    assert world.impossible({"cell": 0, "reward": 0}).verdict == "fine"
    assert world.impossible({"cell": 0, "reward": 1}).verdict == "broken"
