"""Intervals in tables, and figures as JSON."""

import math
from typing import Any


def plus_minus(interval: dict[str, float]) -> str:
    """A symmetric interval, where a table is wide."""
    estimate, high = interval["estimate"], interval["high"]
    if not math.isfinite(estimate):
        return "-"
    return f"{estimate:.2f} ±{high - estimate:.2f}" if math.isfinite(high) else f"{estimate:.2f}"


def without_nan(found: Any) -> Any:
    """JSON knows no NaN: what a single seed cannot tell is null."""
    if isinstance(found, dict):
        return {name: without_nan(value) for name, value in found.items()}
    if isinstance(found, list):
        return [without_nan(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found
