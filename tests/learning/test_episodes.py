"""Episodes as they end while tables play on: what they are worth when they are paid by rank."""

import jax
import numpy as np

from hopplus.learning import episodes
from learning.played import two_updates


def test_episodes_are_paid_by_rank_once_when_a_seat_ends_them():
    played = two_updates()[1]
    steps, before = played.steps, np.asarray(played.before.running.returns)
    found = np.asarray(
        jax.jit(lambda running, steps: episodes.ranked(running, steps, 0.5).rewards)(played.before.running, steps)
    )
    rewards, ended, in_game = (np.asarray(each) for each in (steps.rewards, steps.terminated_after, steps.in_game))
    returns = {}
    for table, seat in np.ndindex(rewards.shape[0], rewards.shape[2]):
        total = before[table, seat]
        for time in range(rewards.shape[1]):
            total += rewards[table, time, seat]
            if in_game[table, time, seat] and ended[table, time, seat]:
                returns[table, time, seat] = total
            if ended[table, time].all():
                total = 0.0
    threshold = np.quantile(list(returns.values()), 0.5)
    expected = np.zeros_like(rewards)
    for place, total in returns.items():
        expected[place] = 1.0 if total >= threshold else -1.0
    assert len(returns) > 10
    np.testing.assert_array_equal(found, expected)
    assert (found == 1).any()
