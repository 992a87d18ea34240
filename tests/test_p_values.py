"""A p-value is never written as zero."""

import pytest

from hopplus_doctor.p_values import p_words


@pytest.mark.parametrize(
    ("p_value", "words"),
    [
        (1.0, "p = 1.00"),
        (0.123, "p = 0.12"),
        (0.0123, "p = 0.012"),
        (4e-4, "p = 4.0e-04"),
        (2.1e-5, "p = 2.1e-05"),
        (4e-88, "p < 1e-6"),
        (0.0, "p < 1e-6"),
    ],
)
def test_a_p_value_in_words(p_value, words):
    assert p_words(p_value) == words
