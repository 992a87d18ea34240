"""Rewards by rank, for episodes that end in the middle of a rollout."""

import jax
import numpy as np

from hopplus.learning import episodes
from learning.played import two_updates


def test_episodes_are_paid_by_rank_once_when_a_seat_ends_them():
    played = two_updates()[1]
    steps, before = played.steps, np.asarray(played.before.episodes.returns)
    paid = np.asarray(
        jax.jit(lambda before, steps: episodes.ranked(before, steps, 0.5).rewards)(played.before.episodes, steps)
    )
    rewards, ended, in_game = (np.asarray(each) for each in (steps.rewards, steps.terminated_after, steps.in_game))
    returns = {}
    for env, seat in np.ndindex(rewards.shape[0], rewards.shape[2]):
        total = before[env, seat]
        for time in range(rewards.shape[1]):
            total += rewards[env, time, seat]
            if in_game[env, time, seat] and ended[env, time, seat]:
                returns[env, time, seat] = total
            if ended[env, time].all():
                total = 0.0
    threshold = np.quantile(list(returns.values()), 0.5)
    expected = np.zeros_like(rewards)
    for place, total in returns.items():
        expected[place] = 1.0 if total >= threshold else -1.0
    assert len(returns) > 10
    np.testing.assert_array_equal(paid, expected)
    assert (paid == 1).any()
