"""How a p-value is written, in every table, page and sentence."""

SMALLEST = 1e-6
"""Approximations of far tails are not exact: below this only the bound is stated."""


def p_words(p_value: float) -> str:
    """For example: p = 0.12, p = 0.034, p = 2.1e-05, p < 1e-6; never p = 0.000."""
    if p_value < SMALLEST:
        return "p < 1e-6"
    if p_value < 1e-3:
        return f"p = {p_value:.1e}"
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"
