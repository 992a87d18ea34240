"""How often do the intervals over seeds hold the true value, and how often do the tests raise a false alarm?

    python benchmarks/coverage.py            10,000 studies of each kind; writes results/coverage.json
    python benchmarks/coverage.py --quick    1,000 studies, and writes nothing

A study has 3, 5, 6, 10 or 20 seeds. Their returns have one of four shapes, which resemble returns in results/: normal;
skewed (gamma, shape 2); bounded at the best return (beta, 8 and 1: most seeds are close to the bound); in two modes
(three of five seeds learn, the others fail). Harder shapes are simulated for the truth's sake: exponential, and one
seed in five fails. The functions are those of the package; methods that were tried and not taken stand beside them.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm, ttest_ind
from scipy.stats import t as student

from hopplus.games.spawns import homogeneity
from hopplus_doctor.answer import Significance, holm, verdict_of
from hopplus_doctor.seat_differences import Measured, standing_out
from hopplus_doctor.seat_returns import seat_p_values
from hopplus_doctor.statistics import (
    Band,
    Interval,
    difference_band,
    improvement,
    improvement_band,
    interquartile_mean,
    mean_interval,
    page_score,
    ratio_band,
    seed_band,
)
from measure import PROGRESS, print_json, print_table, write_result

SEEDS = (3, 5, 6, 10, 20)
SHAPES = ("normal", "skewed", "bounded", "two modes")
HARDER = ("exponential", "one in five fails")
STUDIES, SEATS, RESAMPLES, LEVELS = 10_000, 4, 400, (0.05, 0.005)
RESULT = Path(__file__).parent.parent / "results" / "coverage.json"


def drawn(shape: str, random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Returns of that shape with mean 0 and standard deviation 1."""

    def modes(share: float) -> np.ndarray:
        values = np.where(random.random(size) < share, 2.5, 1.0) + random.normal(0, 0.25, size)
        return (values - 1 - 1.5 * share) / np.sqrt(0.25**2 + 1.5**2 * share * (1 - share))

    if shape == "normal":
        return random.normal(size=size)
    if shape == "skewed":
        return (random.gamma(2, size=size) - 2) / np.sqrt(2)
    if shape == "bounded":
        return (random.beta(8, 1, size=size) - 8 / 9) / np.sqrt(8 / 810)
    if shape == "exponential":
        return random.exponential(size=size) - 1
    return modes(0.6 if shape == "two modes" else 0.8)


def held(band: Band | tuple[np.ndarray, np.ndarray], truth: float) -> float:
    """The share of intervals that hold the truth."""
    low, high = (band.low, band.high) if isinstance(band, Band) else band
    return float(np.mean((low <= truth) & (truth <= high)))


def around(estimate: np.ndarray, error: np.ndarray, freedom: float) -> tuple[np.ndarray, np.ndarray]:
    half = student.ppf(0.975, freedom) * error
    return estimate - half, estimate + half


def student_means(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    seeds = values.shape[1]
    return around(values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(seeds), seeds - 1)


def resampled(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """[studies, resamples, seeds], drawn with replacement."""
    studies, seeds = values.shape
    places = random.integers(seeds, size=(studies, RESAMPLES, seeds)) + seeds * np.arange(studies)[:, None, None]
    return values.ravel()[places]


def percentile(statistic: Callable[[np.ndarray], np.ndarray], resamples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.quantile(statistic(resamples), [0.025, 0.975], axis=1)
    return low, high


def bootstrap_t(values: np.ndarray, resamples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, error = values.mean(axis=1), values.std(axis=1, ddof=1)
    scores = (resamples.mean(axis=2) - mean[:, None]) / np.maximum(resamples.std(axis=2, ddof=1), 1e-9)
    low, high = np.quantile(scores, [0.025, 0.975], axis=1)
    return mean - high * error, mean - low * error


def trimmed_t(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The interval of Tukey and McLaughlin for the interquartile mean."""
    seeds = values.shape[1]
    cut = seeds // 4
    ordered = np.sort(values, axis=1)
    kept = seeds - 2 * cut
    winsorised = np.clip(ordered, ordered[:, [cut]], ordered[:, [seeds - cut - 1]])
    error = winsorised.std(axis=1, ddof=1) * np.sqrt((seeds - 1) / (kept * (kept - 1)))
    return around(ordered[:, cut : seeds - cut].mean(axis=1), error, kept - 1)


def intervals(shape: str, seeds: int, studies: int, random: np.random.Generator) -> dict[str, float]:
    """The coverage of every interval for one shape and number of seeds."""
    size, many = (studies, seeds), drawn(shape, random, (200_000,))
    ones, others, normal = (drawn(one, random, size) for one in (shape, shape, "normal"))
    beaten = float(improvement(many[:2000], many[-2000:] - 1))
    middle = float(interquartile_mean(many))
    few, common = slice(0, studies // 10), random.normal(size=size)
    again = resampled(ones[few], random)
    paired, base = 3 + 0.3 * ones + 0.2 * common, 2 + 0.2 * common
    return {
        "mean": held(seed_band(ones), 0.0),
        "difference": held(difference_band(ones, others), 0.0),
        "difference, other normal": held(difference_band(ones, 0.5 * normal), 0.0),
        "improvement": held(improvement_band(ones, others), 0.5),
        "improvement, one is better": held(improvement_band(ones, others - 1), beaten),
        "ratio": held(ratio_band(paired, base), 1.5),
        "tried: mean, Student": held(student_means(ones), 0.0),
        "tried: mean, bootstrap": held(percentile(lambda x: x.mean(axis=2), again), 0.0),
        "tried: mean, bootstrap-t": held(bootstrap_t(ones[few], again), 0.0),
        "tried: interquartile mean, bootstrap": held(percentile(interquartile_mean, again), middle),
        "tried: interquartile mean, trimmed t": held(trimmed_t(ones), middle),
    }


def over_episodes(shape: str, episodes: int, studies: int, random: np.random.Generator) -> dict[str, float]:
    """The coverage of the interval of a mean over episodes, at 95%, and the size of the test of exchanged seats."""
    held_often, p_values = [], []
    for _ in range(studies):
        values = drawn(shape, random, (episodes, SEATS))
        held_often.append(0.0 in mean_interval(values[:, 0], confidence=0.95))
        about = Measured("", "", "", values, tuple("1234"), 0.01, "", "")
        found = standing_out(about).test
        p_values.append(found.p_value if found else 1.0)
    return {"mean": float(np.mean(held_often)), **sizes("standing out", np.array(p_values))}


def sizes(name: str, p_values: np.ndarray) -> dict[str, float]:
    return {f"{name} at {level}": float(np.mean(p_values < level)) for level in LEVELS}


def tests(shape: str, seeds: int, studies: int, random: np.random.Generator) -> dict[str, float]:
    """How often each test alarms: without an effect at two levels, and its power at 0.05 for effects in deviations."""
    values = drawn(shape, random, (studies, seeds, SEATS))
    page = 2 * norm.sf(np.abs(page_score(values)))
    rising = 2 * norm.sf(np.abs(page_score(values + 0.5 * np.arange(SEATS))))
    over = values - values.mean(axis=2, keepdims=True)
    favoured = over + np.eye(SEATS)[0] - 1 / SEATS
    ones, others = values[..., 0], values[..., 1]

    def welch(more: float) -> np.ndarray:
        return np.asarray(ttest_ind(ones + more, others, axis=1, equal_var=False, alternative="greater")[1])

    return {
        **sizes("Page", page),
        "Page, each seat 0.5 more": float(np.mean(rising < 0.05)),
        **sizes("seat", seat_p_values(over)),
        "seat, one has 1 more": float(np.mean(seat_p_values(favoured) < 0.05)),
        **sizes("Welch", welch(0.0)),
        "Welch, 1 more": float(np.mean(welch(1.0) < 0.05)),
    }


def rankings(shape: str, seeds: int, studies: int, random: np.random.Generator) -> dict[str, float]:
    """Of two variants one deviation apart: which is called better? And who is the lowest of 20 equal line-ups?"""
    ones, others = (drawn(shape, random, (studies, seeds)) for _ in range(2))
    equal, apart = difference_band(ones, others), difference_band(ones + 1, others)
    middles = interquartile_mean(ones + 1) - interquartile_mean(others)
    lowest = drawn(shape, random, (studies // 10, 20, seeds)).mean(axis=2).min(axis=1)
    alarms = verdicts(seed_band(ones[: studies // 5] + 1), matters=1.0)
    return {
        "right order by the mean": float(np.mean(apart.mean > 0)),
        "right order by the interquartile mean": float(np.mean(middles > 0)),
        "answered yes, rightly": float(np.mean(apart.low > 0)),
        "answered no, wrongly": float(np.mean(apart.high < 0)),
        "answered, though equal": float(np.mean((equal.low > 0) | (equal.high < 0))),
        "lowest of 20 equal line-ups, in deviations": float(lowest.mean()),
        "called fine, though the effect matters": alarms,
    }


def verdicts(band: Band, *, matters: float) -> float:
    """How often an effect just large enough to matter is called fine, because its interval seems to rule it out."""
    effects = (Interval(*map(float, ends)) for ends in zip(band.mean, band.low, band.high, strict=True))
    return float(np.mean([verdict_of(Significance(1.0, matters), effect, 1.0) == "fine" for effect in effects]))


def many_tests(studies: int, random: np.random.Generator) -> dict[str, Any]:
    """Holm's adjustment over 20 tests, apart and alike; the chi-square test of spawns; the bound of 0 alarms in 20."""
    alike = np.sqrt(0.8) * random.normal(size=(studies, 1)) + np.sqrt(0.2) * random.normal(size=(studies, 20))
    shares = {}
    for name, scores in (("Holm, 20 tests", random.normal(size=(studies, 20))), ("Holm, 20 alike tests", alike)):
        smallest = np.array([min(holm(one.tolist())) for one in norm.sf(scores)])
        shares |= sizes(name, smallest)
    spawns = np.array([homogeneity(random.integers(16, size=(SEATS, 500))) for _ in range(studies // 5)])
    rate = 1 - 0.05 ** (1 / 20)
    none = float(np.mean(random.binomial(20, rate, size=studies) == 0))
    return shares | sizes("chi-square", spawns) | {"bound of 0 in 20": rate, "0 in 20 at that bound": none}


PARTS: dict[str, tuple[Callable[..., dict[str, Any]], tuple[str, ...], tuple[int, ...], int]] = {
    "intervals": (intervals, (*SHAPES, *HARDER), SEEDS, 1),
    "rankings": (rankings, SHAPES, SEEDS, 1),
    "tests": (tests, SHAPES, SEEDS, 1),
    "episodes": (over_episodes, SHAPES, (30, 400), 10),
}
"""What is simulated, for which shapes and numbers of seeds (or episodes); the last number divides the studies."""


def simulate(part: str, studies: int) -> dict[str, dict[str, dict[str, Any]]]:
    """The figures of a part, by shape and number of seeds."""
    function, shapes, counts, divisor = PARTS[part]
    found: dict[str, dict[str, dict[str, Any]]] = {shape: {} for shape in shapes}
    for number, shape in enumerate(shapes):
        for count in counts:
            random = np.random.default_rng([count, number])
            found[shape][str(count)] = function(shape, count, studies // divisor, random)
            PROGRESS.print(f"{part}: {shape}, {count}")
    return found


def worst(found: dict[str, Any], name: str) -> tuple[float, float]:
    """The lowest and the highest coverage for 6 seeds or more on the four shapes."""
    known = [found["intervals"][shape][str(seeds)][name] for shape in SHAPES for seeds in SEEDS if seeds >= 6]
    return min(known), max(known)


def save(found: dict[str, Any], studies: int) -> None:
    """Write what there is: a run that is stopped leaves the parts that are done."""
    if studies == STUDIES:
        write_result(RESULT, {"commands": ["python benchmarks/coverage.py"], "studies": studies, **found})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 studies")
    studies = 1_000 if parser.parse_args().quick else STUDIES
    found: dict[str, Any] = {}
    for part in PARTS:
        found[part] = simulate(part, studies)
        counts = list(found[part]["normal"])
        for name in found[part]["normal"][counts[0]]:
            rows = [(shape, *(f"{by_count[n][name]:.3f}" for n in counts)) for shape, by_count in found[part].items()]
            print_table(f"{part}: {name}", ("", *counts), rows)
        if part == "intervals":
            names = [name for name in found[part]["normal"]["6"] if not name.startswith("tried")]
            found["range"] = {name: dict(zip(("low", "high"), worst(found, name), strict=True)) for name in names}
        save(found, studies)
    found["many"] = many_tests(studies // 2, np.random.default_rng(0))
    print_table("many", ("", "share"), [(name, f"{share:.4f}") for name, share in found["many"].items()])
    save(found, studies)
    print_json({"studies": studies, "range": found["range"]}, ["numpy", "scipy"])


if __name__ == "__main__":
    main()
