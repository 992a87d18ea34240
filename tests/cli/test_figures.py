"""Results as JSON: rounded, and without NaN."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopplus.cli.figures import rounded, to_json


@pytest.mark.parametrize(
    ("number", "short"),
    [
        (2.8955474823760983, 2.8955),
        (2.89549, 2.89549),  # 2.8955 would be printed as 2.896
        (0.000248113792, 0.00024811),
        (5.096432736540433e-07, 5.0964e-07),
        (1959498.550572175, 1959499.0),
        (57632.68203315601, 57633.0),
        (-0.17451234, -0.17451),
        (0.0, 0.0),
        (3.0, 3.0),
    ],
)
def test_floats_are_rounded_to_five_digits(number, short):
    assert rounded(number) == short


@given(st.floats(1e-6, 99_999.0))
def test_rounding_first_prints_the_same(number):
    short = rounded(number)
    for places in range(4 - math.floor(math.log10(number))):
        assert f"{short:.{places}f}" == f"{number:.{places}f}"
    assert short == pytest.approx(number, rel=1e-4) and rounded(short) == short


def test_nan_is_null_and_everything_inside_is_rounded():
    result = {
        "estimate": 1.23456789,
        "low": math.nan,
        "list": [2.00000001, (math.inf, 7)],
        "name": "x",
        "count": 123456,
    }
    made = {"estimate": 1.2346, "low": None, "list": [2.0, [None, 7]], "name": "x", "count": 123456}
    assert to_json(result) == made
    assert json.loads(json.dumps(to_json(result), allow_nan=False)) == made
