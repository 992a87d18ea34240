"""Every figure about predictions against numbers worked by hand, and predictors whose quality is known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hopplus.evaluation.prediction import Predictions, score

NAMES = ("up", "down", "stay", "hunt")
HALF, LOG_2 = 0.5, np.log(2)


def five_samples(**changes) -> Predictions:
    """The decisions are 0, 0, 1, 1, 0 and the actions 0, 1, 1, 0, 2; nobody ever does 3."""
    found = Predictions(
        probabilities=np.array(
            [
                [0.7, 0.1, 0.1, 0.1],
                [0.5, 0.25, 0.25, 0.0],
                [0.2, 0.6, 0.1, 0.1],
                [0.3, 0.4, 0.2, 0.1],
                [0.4, 0.3, 0.2, 0.1],
            ]
        ),
        actions=np.array([0, 1, 1, 0, 2]),
        best=np.array(
            [
                [1.0, 0.0, 0.0, 0.0],
                [0.5, 0.5, 0.0, 0.0],
                [0.25, 0.75, 0.0, 0.0],
                [0.5, 0.25, 0.25, 0.0],
                [0.25, 0.25, 0.25, 0.25],
            ]
        ),
        last_actions=np.array([-1, 1, 0, 0, -1]),
        kinds=np.array([0, 0, 1, 1, 1]),
        kind_names=("nearest_stag", "nearest_hare", "never_met"),
        times=np.array([0.0, 0.3, 1 / 3, 0.5, 0.9]),
    )
    return replace(found, **changes)


@pytest.fixture(scope="module")
def found():
    return score(five_samples(), NAMES)


def test_accuracies_and_cross_entropy(found):
    assert found["samples"] == 5
    assert found["top1"] == pytest.approx(2 / 5)  # samples 0 and 2
    assert found["top3"] == pytest.approx(1.0)  # every action is among the first three of its row
    expected = -np.log([0.7, 0.25, 0.6, 0.3, 0.2]).mean()
    assert found["cross_entropy"] == pytest.approx(expected)


def test_the_fourth_action_is_not_in_the_top_three():
    assert score(five_samples(actions=np.array([3, 3, 1, 0, 2])), NAMES)["top3"] == pytest.approx(3 / 5)


def test_ties_go_to_the_first_action():
    level = five_samples(probabilities=np.full((5, 4), 0.25))
    found = score(level, NAMES)
    assert found["top1"] == pytest.approx(2 / 5)  # action 0
    assert found["top3"] == pytest.approx(1.0)  # actions 0, 1 and 2
    assert [row["predicted_share"] for row in found["actions"]] == [1, 0, 0, 0]
    assert found["top1_expected"] == pytest.approx((1 + 0.5 + 0.25 + 0.5 + 0.25) / 5)


def test_the_share_of_the_ceiling_uses_the_true_chances_of_the_decisions(found):
    assert found["top1_expected"] == pytest.approx((1 + 0.5 + 0.75 + 0.25 + 0.25) / 5)
    ceiling = (1 + 0.5 + 0.75 + 0.5 + 0.25) / 5
    assert found["yardsticks"]["ceiling"]["top1"] == pytest.approx(ceiling)
    assert found["top1_over_ceiling"] == pytest.approx(2.75 / 3.0)


def test_the_expected_cross_entropy_is_that_of_the_true_chances(found):
    surprise = -np.log(np.maximum(five_samples().probabilities, 1e-8))
    best = five_samples().best
    assert best is not None
    expected = [sum(best[row, action] * surprise[row, action] for action in range(4)) for row in range(5)]
    assert found["cross_entropy_expected"] == pytest.approx(np.mean(expected))


def test_the_yardsticks(found):
    yardsticks = found["yardsticks"]
    # The samples' own frequencies are 2, 2, 1 and 0 fifths: guess 0, which is right twice.
    assert yardsticks["marginal"]["top1"] == pytest.approx(2 / 5)
    assert yardsticks["marginal"]["top3"] == pytest.approx(1.0)
    assert yardsticks["marginal"]["cross_entropy"] == pytest.approx(-(4 * np.log(0.4) + np.log(0.2)) / 5)
    # Guesses 0 (none before), 1, 0, 0 and 0 (none before) for 0, 1, 1, 0 and 2.
    assert yardsticks["last_action"] == {"top1": pytest.approx(3 / 5)}
    entropies = [0, LOG_2, -0.25 * np.log(0.25) - 0.75 * np.log(0.75), 1.5 * LOG_2, 2 * LOG_2]
    assert yardsticks["ceiling"]["cross_entropy"] == pytest.approx(np.mean(entropies))
    assert yardsticks["ceiling"]["top3"] == pytest.approx((1 + 1 + 1 + 1 + 0.75) / 5)


def test_the_training_datas_marginal_takes_the_place_of_the_samples():
    other = score(five_samples(marginal=np.array([1.0, 1.0, 6.0, 0.0])), NAMES)["yardsticks"]
    assert other["marginal"]["top1"] == pytest.approx(1 / 5)
    assert other["marginal"]["cross_entropy"] == pytest.approx(-(4 * np.log(1 / 8) + np.log(6 / 8)) / 5)
    # Guesses 2, 1, 0, 0 and 2 for 0, 1, 1, 0 and 2.
    assert other["last_action"]["top1"] == pytest.approx(3 / 5)
    impossible = score(five_samples(marginal=np.array([1.0, 1.0, 0.0, 0.0])), NAMES)["yardsticks"]["marginal"]
    assert impossible["cross_entropy"] == pytest.approx((4 * LOG_2 - np.log(1e-8)) / 5)


def test_the_table_of_actions(found):
    up, down, stay, hunt = found["actions"]
    assert [row["name"] for row in found["actions"]] == list(NAMES)
    assert [row["support"] for row in found["actions"]] == [2, 2, 1, 0]
    assert [row["share"] for row in found["actions"]] == pytest.approx([0.4, 0.4, 0.2, 0.0])
    assert [row["predicted_share"] for row in found["actions"]] == pytest.approx([0.6, 0.4, 0.0, 0.0])
    means = [row["mean_probability"] for row in found["actions"]]
    assert means == pytest.approx([2.1 / 5, 1.65 / 5, 0.85 / 5, 0.4 / 5])
    # Up: predicted 3 times, done twice, once both. Precision 1/3, recall 1/2, F1 2 / (2 + 3).
    assert [up[name] for name in ("precision", "recall", "f1")] == pytest.approx([1 / 3, 1 / 2, 2 / 5])
    assert [down[name] for name in ("precision", "recall", "f1")] == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    assert [stay[name] for name in ("precision", "recall", "f1")] == [None, 0.0, 0.0]
    assert [hunt[name] for name in ("precision", "recall", "f1", "recall_ceiling")] == [None] * 4


def test_the_best_predictors_recall_shares_ties(found):
    # Up is done in samples 0 (certain) and 3 (clearly best); down in 1 (a tie of two) and 2; stay in 4 (a tie of four).
    ceilings = [row["recall_ceiling"] for row in found["actions"]]
    assert ceilings[:3] == pytest.approx([1.0, (HALF + 1) / 2, 0.25])


def test_the_confusion_has_counts_and_probabilities(found):
    assert found["confusion"] == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    probabilities = found["mean_probabilities"]
    np.testing.assert_allclose(probabilities[0], [0.5, 0.25, 0.15, 0.1])
    np.testing.assert_allclose(probabilities[1], [0.35, 0.425, 0.175, 0.05])
    np.testing.assert_allclose(probabilities[2], [0.4, 0.3, 0.2, 0.1])
    assert probabilities[3] is None


def test_the_calibration_is_that_of_the_top_label(found):
    bins = found["calibration"]["bins"]
    assert len(bins) == 15 and bins[0]["low"] == 0 and bins[-1]["high"] == 1
    # Bins are fifteenths: 0.4 = 6/15 closes the sixth bin (wrong twice); 0.5, 0.6 = 9/15 and 0.7 lie alone.
    filled = {index: each for index, each in enumerate(bins) if each["count"]}
    assert {index: each["count"] for index, each in filled.items()} == {5: 2, 7: 1, 8: 1, 10: 1}
    assert [each["confidence"] for each in filled.values()] == pytest.approx([0.4, 0.5, 0.6, 0.7])
    assert [each["accuracy"] for each in filled.values()] == pytest.approx([0, 0, 1, 1])
    assert bins[0]["confidence"] is None and bins[0]["accuracy"] is None
    assert found["calibration"]["ece"] == pytest.approx((2 * 0.4 + 0.5 + 0.4 + 0.3) / 5)


def test_the_figures_by_kind(found):
    stag, hare, never = (found["by_kind"][name] for name in ("nearest_stag", "nearest_hare", "never_met"))
    assert (stag["samples"], hare["samples"], never["samples"]) == (2, 3, 0)
    assert stag["top1"] == pytest.approx(1 / 2) and hare["top1"] == pytest.approx(1 / 3) and never["top1"] is None
    assert stag["cross_entropy"] == pytest.approx(-np.log([0.7, 0.25]).mean())
    assert stag["ceiling"] == pytest.approx(0.75) and hare["ceiling"] == pytest.approx(0.5)
    assert hare["top1_expected"] == pytest.approx(1.25 / 3) and hare["top1_over_ceiling"] == pytest.approx(1.25 / 1.5)
    assert never["ceiling"] is None and never["top1_over_ceiling"] is None


def test_the_figures_by_phase(found):
    first, second, third = found["by_phase"]
    assert [part["samples"] for part in found["by_phase"]] == [2, 2, 1]  # a third belongs to the second part
    assert (first["low"], first["high"], third["high"]) == (0, pytest.approx(1 / 3), 1)
    assert [part["top1"] for part in (first, second, third)] == pytest.approx([1 / 2, 1 / 2, 0])
    assert second["cross_entropy"] == pytest.approx(-np.log([0.6, 0.3]).mean())
    assert [part["ceiling"] for part in (first, second, third)] == pytest.approx([0.75, 0.625, 0.25])
    assert [part["samples"] for part in found["by_tenth"]] == [1, 0, 0, 2, 0, 1, 0, 0, 0, 1]


def test_times_in_single_precision_fall_into_the_phase_of_their_step():
    changed = five_samples(times=np.array([0.1, 0.3, 0.6, 0.7, 0.9], np.float32))
    parts = score(changed, NAMES)["by_tenth"]
    assert [index for index, part in enumerate(parts) if part["samples"]] == [1, 3, 6, 7, 9]


def test_without_the_best_prediction_there_is_no_ceiling():
    found = score(five_samples(best=None), NAMES)
    assert found["yardsticks"]["ceiling"] is None and found["top1"] == pytest.approx(2 / 5)
    assert found["top1_expected"] is None and found["top1_over_ceiling"] is None
    assert found["by_phase"][0]["ceiling"] is None and found["actions"][0]["recall_ceiling"] is None


def test_no_samples_give_no_figures():
    none = five_samples()
    nothing = replace(
        none,
        **{name: getattr(none, name)[:0] for name in ("probabilities", "actions", "best", "last_actions", "kinds")},
        times=none.times[:0],
    )
    found = score(nothing, NAMES)
    assert found["samples"] == 0 and found["top1"] is None and found["calibration"]["ece"] is None
    json.dumps(found, allow_nan=False)


def test_the_score_is_json_without_nan(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    single = five_samples(probabilities=five_samples().probabilities.astype(np.float32))
    assert score(single, NAMES)["cross_entropy"] == pytest.approx(found["cross_entropy"], rel=1e-6)


def test_a_perfect_predictor():
    certain = np.eye(4)[five_samples().actions]
    found = score(five_samples(probabilities=certain, best=certain), NAMES)
    assert found["top1"] == found["top1_over_ceiling"] == found["yardsticks"]["ceiling"]["top1"] == 1
    assert found["cross_entropy"] == pytest.approx(0) and found["calibration"]["ece"] == pytest.approx(0)
    assert found["confusion"] == np.diag([2, 2, 1, 0]).tolist()


def test_an_action_thought_impossible_costs_a_finite_amount():
    wrong = np.eye(4)[[1, 0, 0, 1, 1]]
    assert score(five_samples(probabilities=wrong), NAMES)["cross_entropy"] == pytest.approx(-np.log(1e-8))


def many_samples(predicted_of_true, num_samples=200_000) -> Predictions:
    """Actions drawn from true chances of every sharpness, and a prediction made from those chances."""
    random = np.random.RandomState(0)
    true = random.dirichlet(np.full(4, 0.7), num_samples)
    actions = (true.cumsum(axis=1) < random.rand(num_samples, 1)).sum(axis=1).clip(0, 3)
    powered = predicted_of_true(true)
    return Predictions(
        probabilities=powered / powered.sum(axis=1, keepdims=True),
        actions=actions,
        best=true,
        last_actions=np.full(num_samples, -1),
        kinds=np.zeros(num_samples, int),
        kind_names=("any",),
        times=random.rand(num_samples),
    )


def test_who_says_the_truth_is_calibrated_and_reaches_the_ceiling():
    found = score(many_samples(lambda true: true), NAMES)
    ceiling = found["yardsticks"]["ceiling"]
    assert found["calibration"]["ece"] < 0.01 and found["top1_over_ceiling"] == pytest.approx(1)
    assert found["top1"] == pytest.approx(ceiling["top1"], abs=0.005)
    assert found["top3"] == pytest.approx(ceiling["top3"], abs=0.005)
    assert found["cross_entropy"] == pytest.approx(ceiling["cross_entropy"], abs=0.01)
    assert found["cross_entropy_expected"] == pytest.approx(ceiling["cross_entropy"], abs=1e-6)


def test_who_overstates_is_as_accurate_and_badly_calibrated():
    found = score(many_samples(lambda true: true**6), NAMES)
    assert found["calibration"]["ece"] > 0.15 and found["top1_over_ceiling"] == pytest.approx(1)
    assert found["cross_entropy"] > found["yardsticks"]["ceiling"]["cross_entropy"] + 0.5
    filled = [each for each in found["calibration"]["bins"] if each["count"] > 500]
    assert all(each["accuracy"] < each["confidence"] for each in filled)


def test_a_uniform_predictor_knows_nothing_and_says_so():
    found = score(many_samples(np.ones_like), NAMES)
    assert found["top1"] == pytest.approx(0.25, abs=0.01) and found["top3"] == pytest.approx(0.75, abs=0.01)
    assert found["cross_entropy"] == pytest.approx(2 * LOG_2) and found["calibration"]["ece"] < 0.01


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"probabilities": np.ones((5, 4))}, "a row of probabilities is no distribution; give probabilities that sum"),
        ({"best": np.full((5, 4), np.nan)}, "a row of best is no distribution"),
        ({"actions": np.array([0, 1, 2, 3, 4])}, "actions must be at least 0 and below 4"),
        ({"actions": np.array([0, 1, 2, 3, -1])}, "actions must be at least 0 and below 4; leave out"),
        ({"last_actions": np.array([0, 1, 2, 3, -2])}, "last_actions must be at least -1"),
        ({"kinds": np.array([0, 1, 2, 3, 0])}, "kinds must be at least 0 and below 3"),
        ({"times": np.array([0.0, 0.1, 0.2, 0.3, 1.0])}, "times must be at least 0 and below 1"),
        ({"marginal": np.zeros(4)}, "frequencies of 4 actions"),
    ],
)
def test_errors_have_a_mend(changes, words):
    with pytest.raises(ValueError, match=words):
        five_samples(**changes)


def test_every_action_needs_a_name():
    with pytest.raises(ValueError, match="give one name per action"):
        score(five_samples(), NAMES[:2])
