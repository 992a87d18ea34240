"""How the errors of a world are counted in training."""

import jax.numpy as jnp
import pytest

from hopplus.games.presets import make
from hopplus.learning.worlds import reward_misses

SPEC = make("stag-hunt-4x4").spec


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        ([5.0, 1.0, 1.0, 1.0, 0.0, 0.0], 0.0),
        ([0.0, 1.0, 1.0, 1.0, 0.0, 0.0], 0.5),  # the only stag, one of two sizes
        ([5.0, 1.0, 1.0, 0.0, 0.0, 0.0], 1 / 6),  # a third of the hares
        ([5.0, 1.0, 1.0, 1.0, 1.0, 0.0], 0.25),  # one made up, where four were paid
        ([25.0, 5.0, 5.0, 5.0, 0.0, 0.0], 1.0),
    ],
)
def test_every_size_of_reward_counts_alike(predicted, expected):
    true = jnp.array([[5.0], [1.0], [1.0], [1.0], [0.0], [0.0]])
    misses = reward_misses(SPEC, jnp.array(predicted)[:, None], true, jnp.ones((6, 1), bool))
    assert float(misses) == pytest.approx(expected, abs=1e-6)
