"""Of returns with a known fault, the faulty part is blamed, and noise is not taken for an error."""

import numpy as np
import pytest

from hopplus.doctor.attribution import PARTS, _attribution


def returns(bias_of: str | None):
    """[truth, truth again, all learned, each part; states, draws]: with the truth of a part its bias is gone."""
    random = np.random.default_rng(0)
    true = random.normal(0, 1, (200, 1))
    noise = random.normal(0, 1, (3 + len(PARTS), 200, 16))
    bias = np.full(3 + len(PARTS), 2.0 if bias_of else 0.0)
    bias[:2] = 0.0
    if bias_of:
        bias[3 + PARTS.index(bias_of)] = 0.0
    return true + noise + bias[:, None, None]


@pytest.mark.parametrize("part", PARTS)
def test_the_part_that_is_wrong_is_blamed(part):
    attribution = _attribution(returns(part), with_goals=True)
    assert 1.2 < attribution.error.estimate < 1.6  # a bias of 2 over a spread of sqrt(2)
    assert max(attribution.shares, key=lambda name: attribution.shares[name].estimate) == part
    assert attribution.shares[part].low > 0.9 and all(
        attribution.shares[other].high < 0.2 for other in PARTS if other != part
    )


def test_noise_is_no_error():
    attribution = _attribution(returns(None), with_goals=False)
    assert attribution.error.low < 0.1 and "goals" not in attribution.shares
