"""What the doctor says: answers to questions, each of findings with a verdict, an effect, a picture and a next step.

Findings are of two kinds. An exact one compares two things that must be the same, and cannot raise a false alarm. A
test has a p-value, and where many tests are asked at once some are small by chance; so no verdict rests on one alone:

    Holm's adjustment over all tests of one examination; broken below 0.0001, suspicious below 0.005,
    and in both cases only where the effect is large enough to matter

A fair run is then called suspicious in anything at most 5 times in a thousand. A test that finds nothing is fine if its
interval rules out an effect that matters, and is not enough evidence if it does not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from hopplus.evaluation.statistics import Interval

Verdict = Literal["fine", "not enough evidence", "suspicious", "broken"]
VERDICTS: tuple[Verdict, ...] = ("fine", "not enough evidence", "suspicious", "broken")
"""From good to bad."""
BROKEN_BELOW, SUSPICIOUS_BELOW = 1e-4, 5e-3
"""Adjusted p-values."""


@dataclass(frozen=True)
class Picture:
    """What a finding looks like, as numbers: the page draws it."""

    kind: Literal["bars", "boxes", "lines", "matrix"]
    title: str
    labels: tuple[str, ...]
    """Of the bars or boxes, of the points of lines, of the rows of a matrix."""
    series: Mapping[str, Sequence[Any]]
    """Bars: a number for each label. Boxes: under each label the samples. Lines: a number for each label. Matrix: the
    columns, each with a number for each row. None stands for what is not known."""
    unit: str = ""
    low: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Ends of intervals, for the bars of a series."""
    high: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Significance:
    """What a statistical finding rests on."""

    p_value: float
    matters: float
    """An effect smaller than this, in the unit of the effect, would change nothing."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """What was looked at, as in "targets"."""
    module: str
    """What is to blame where it is broken, as in "goals"."""
    verdict: Verdict
    says: str
    """One sentence, with figures."""
    effect: Interval | None = None
    unit: str = ""
    test: Significance | None = None
    """None for an exact finding."""
    picture: Picture | None = None
    next: str | None = None
    """The next command to run, where it is not fine."""


@dataclass(frozen=True)
class Answer:
    """All that was found about one question."""

    question: str
    asks: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        return worst(finding.verdict for finding in self.findings)


@dataclass(frozen=True)
class Examination:
    """Everything that one command asked about one subject."""

    subject: str
    command: str
    version: str
    answers: tuple[Answer, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(answer.verdict for answer in self.answers)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for answer in self.answers for finding in answer.findings)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The modules to blame, the likeliest first: what is broken before what is suspicious, exact before tested.

        What comes first in an answer is about a part; what comes later, about all that it feeds.
        """
        bad = [finding for finding in self.findings if finding.verdict in ("suspicious", "broken")]
        bad.sort(key=lambda finding: (finding.verdict != "broken", finding.test is not None))
        return tuple(dict.fromkeys(finding.module for finding in bad))

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": self.verdict, "suspects": list(self.suspects)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; of none, there is not enough evidence."""
    found = max((VERDICTS.index(verdict) for verdict in verdicts), default=VERDICTS.index("not enough evidence"))
    return VERDICTS[found]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm, 1979): calling all below alpha true is wrong at all with probability alpha at most."""
    order = np.argsort(p_values)
    adjusted = np.asarray(p_values, float)[order] * np.arange(len(p_values), 0, -1)
    result = np.empty(len(p_values))
    result[order] = np.minimum(np.maximum.accumulate(adjusted), 1.0) if len(p_values) else adjusted
    return result.tolist()


def settled(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """The answers with the verdicts of their tests, all of which are weighed together."""
    tests = [finding.test for answer in answers for finding in answer.findings if finding.test]
    adjusted = iter(holm([test.p_value for test in tests]))

    def settle(finding: Finding) -> Finding:
        if finding.test is None:
            return finding
        return replace(finding, verdict=verdict_of(finding.test, finding.effect, next(adjusted)))

    return tuple(replace(answer, findings=tuple(map(settle, answer.findings))) for answer in answers)


def verdict_of(test: Significance, effect: Interval | None, adjusted: float) -> Verdict:
    """By the adjusted p-value, and by what the effect's interval leaves possible."""
    size = max(abs(effect.low), abs(effect.high)) if effect is not None else np.nan
    matters = effect is not None and abs(effect.estimate) >= test.matters
    if matters and adjusted < SUSPICIOUS_BELOW:
        return "broken" if adjusted < BROKEN_BELOW else "suspicious"
    return "fine" if adjusted < SUSPICIOUS_BELOW or size < test.matters else "not enough evidence"


Tell = Callable[[str], None]
"""Told what is being looked at, for a progress display."""
