import numpy as np
import pytest

from hopplus.doctor.faults import TieToTheLowestSeat
from hopplus.evaluation import fairness
from hopplus.games.stag_hunt import StagHunt
from probes import SMALL


def returns_with(advantage, episodes=20_000, seats=4, seed=0):
    random = np.random.RandomState(seed)
    return random.exponential(0.65, size=(episodes, seats)) + np.asarray(advantage)


@pytest.mark.parametrize(("slope", "direction"), [(0.02, "rising"), (-0.02, "falling")])
def test_a_planted_trend_by_seat_is_a_fault(slope, direction):
    fair = fairness.judge(returns_with(slope * np.arange(4)))
    assert fair.trend is not None and fair.trend.direction == direction and fair.trend.p_value < 1e-3
    assert fair.fault is not None


def test_a_trend_too_weak_for_the_intervals_is_found_by_its_order():
    random = np.random.RandomState(3)
    by_block = np.repeat(random.normal(size=(200, 1)), 100, axis=0)
    noise = np.repeat(random.normal(0, 0.1, size=(200, 4)), 100, axis=0) + random.normal(0, 3, size=(20_000, 4))
    fair = fairness.judge(by_block + noise + 0.09 * np.arange(4))
    assert fair.trend is not None and fair.trend.direction == "rising" and fair.trend.p_value < 1e-3


def test_one_favoured_seat_is_named():
    fair = fairness.judge(returns_with([0.0, 0.0, 0.06, 0.0]))
    assert fair.fault is not None and fair.fault.startswith("seat 3 gets +0.04")


def test_fair_returns_are_called_fair():
    verdicts = [fairness.judge(returns_with(0.0, episodes=4000, seed=seed)).fault for seed in range(50)]
    assert sum(verdict is not None for verdict in verdicts) <= 1


def test_too_few_episodes_are_refused():
    with pytest.raises(ValueError, match="too few to judge by; play at least 400"):
        fairness.judge(returns_with(0.0, episodes=100))


def test_random_play_clears_the_stag_hunt_and_convicts_a_biased_one():
    batches = []
    fair = fairness.measure(StagHunt(grid=SMALL), 20_000, on_batch=batches.append)
    assert fair.fault is None and fair.episodes == sum(batches) == 20_000
    assert all(0.6 < interval.estimate < 0.7 for interval in fair.returns)
    biased = fairness.measure(TieToTheLowestSeat(grid=SMALL), 120_000)  # ties are rare in random play
    assert biased.fault is not None and biased.advantages[0].estimate > 0 > biased.advantages[3].estimate
    assert biased.trend is not None and biased.trend.direction == "falling" and biased.trend.p_value < 1e-3
