"""Format intervals for tables, and results for JSON."""

import math
from collections.abc import Sequence
from typing import Any

FARTHER = "± is the distance to the farther end of the 95% interval over seeds"


def plus_minus(interval: dict[str, float], digits: int = 2) -> str:
    """An interval by the distance to its farther end, as in 2.91 ±0.06; the estimate alone if there is no interval."""
    estimate, low, high = (interval[name] for name in ("estimate", "low", "high"))
    if not math.isfinite(estimate):
        return "-"
    around = f" ±{max(high - estimate, estimate - low):.{digits}f}" if math.isfinite(high) else ""
    return f"{estimate:.{digits}f}{around}"


def seed_words(values: Sequence[float], digits: int = 2) -> str:
    """The value of each seed, in a row; a dash for an unknown one."""
    return "  ".join(f"{value:.{digits}f}" if math.isfinite(value) else "-" for value in values)


def to_json(result: Any) -> Any:
    """The result with floats rounded by `rounded`, and NaN and infinity as null."""
    if isinstance(result, dict):
        return {name: to_json(value) for name, value in result.items()}
    if isinstance(result, list | tuple):
        return [to_json(value) for value in result]
    if isinstance(result, float):
        return rounded(result) if math.isfinite(result) else None
    return result


def rounded(number: float) -> float:
    """Five significant digits, or whole numbers from 100,000 on.

    More digits are kept only if rounding twice would differ from rounding once: 2.89549 stays, because 2.8955 would
    be printed with three decimals as 2.896.
    """
    if abs(number) < 1e5 and float(f"{number:.5g}") == number:
        return number
    if number == 0 or abs(number) >= 1e5:
        return float(round(number))
    decimals = 4 - math.floor(math.log10(abs(number)))
    candidates = (float(f"{number:.{digits}g}") for digits in range(5, 17))

    def prints_alike(short: float) -> bool:
        return all(f"{short:.{digits}f}" == f"{number:.{digits}f}" for digits in range(decimals))

    short = next(filter(prints_alike, candidates), number)
    return short if short == number else rounded(short)  # rounding a rounded number changes nothing
