"""The records of an examination: answers to questions. An answer holds findings, each with a verdict and evidence.

A finding has one of three kinds. An exact finding compares two things that must be equal; it cannot raise a false
alarm. A test has a p-value. Of many tests some have a small p-value by chance, so p-values are adjusted:

    Holm's adjustment over all tests of one examination; broken below 0.0001, suspicious below 0.005,
    and in both cases only where the effect is large enough to matter

The exact findings and tests of a fair run are then suspicious at most 5 times in a thousand. A test without an alarm
is fine if its interval rules out an effect that matters; otherwise there is not enough evidence.

A judgement compares a number with a chosen threshold, and states it. No bound on false alarms holds for judgements;
benchmarks/doctor.py measures how often they alarm on clean runs.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from hopplus_doctor.statistics import Interval

Verdict = Literal["fine", "not enough evidence", "suspicious", "broken"]
"""What a finding, a part or a whole examination comes to."""
VERDICTS: tuple[Verdict, ...] = ("fine", "not enough evidence", "suspicious", "broken")
"""From good to bad."""
Kind = Literal["exact", "test", "judgement"]
"""How a finding was reached: two things that must be equal, a p-value, or a threshold."""
KINDS: tuple[Kind, ...] = ("exact", "test", "judgement")
NO_THRESHOLD = "none: it describes, and raises no alarm"
"""The threshold of a judgement that is always fine."""
BROKEN_BELOW, SUSPICIOUS_BELOW = 1e-4, 5e-3
"""Adjusted p-values."""


@dataclass(frozen=True)
class Picture:
    """The numbers of a figure; the report page draws it."""

    kind: Literal["bars", "boxes", "lines", "matrix"]
    title: str
    labels: tuple[str, ...]
    """Names of the bars or boxes, of the points of lines, or of the rows of a matrix."""
    series: Mapping[str, Sequence[Any]]
    """Bars and lines: a number for each label. Boxes: the samples of each label. Matrix: the columns, each with a
    number for each row. None stands for an unknown number."""
    unit: str = ""
    low: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Lower ends of intervals, for the bars of a series."""
    high: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Upper ends of intervals."""


@dataclass(frozen=True)
class Significance:
    """The p-value of a test, and the smallest effect that matters."""

    p_value: float
    matters: float
    """The smallest effect that matters, in the unit of the effect."""
    adjusted: float | None = None
    """The p-value adjusted over all tests of the examination; None until all tests are done."""


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    """What was checked, as in "targets"."""
    module: str
    """The part to blame if the check fails, as in "goals"."""
    kind: Kind
    """The basis of the verdict: an equality that must hold, a p-value, or a chosen threshold."""
    verdict: Verdict
    says: str
    """One sentence, with figures."""
    effect: Interval | None = None
    unit: str = ""
    test: Significance | None = None
    """Only of a test; None if there is too little data for a p-value."""
    picture: Picture | None = None
    next: str | None = None
    """What to do next if the verdict is not fine."""
    more: str | None = None
    """How to get more evidence if the verdict is uncertain."""
    threshold: str = ""
    """In words, as in "suspicious below 0.9, broken below 0.5": the threshold of a judgement, or the fixed level of a
    test that is not adjusted with the others."""

    def __post_init__(self) -> None:
        if self.test is not None and self.kind != "test":
            raise ValueError(f"{self.check}: a finding with a p-value has the kind test, not {self.kind}; change it")
        if self.kind == "judgement" and not self.threshold:
            raise ValueError(f"{self.check}: a judgement states its threshold; give threshold=")
        is_alarm = self.verdict in ("suspicious", "broken")
        if self.kind == "test" and is_alarm and self.test is None and not self.threshold:
            raise ValueError(
                f"{self.check}: a test that raises an alarm has a p-value or a level; give test= or threshold="
            )

    @property
    def advice(self) -> str | None:
        """What to do next: act if the finding is certain, else first get more evidence; None if it is fine."""
        if self.verdict == "fine":
            return None
        return self.next or self.more if self.verdict == "broken" else self.more or self.next


@dataclass(frozen=True)
class Answer:
    """All findings of one question."""

    question: str
    asks: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        return worst(finding.verdict for finding in self.findings)


OnFinding = Callable[[str, Finding | None], None]
"""Called with a question when it is asked (then the finding is None), and again with each of its findings."""


def answered(name: str, asks: str, findings: Iterable[Finding], on_finding: OnFinding) -> Answer:
    """The answer to a question; its findings are reported as they are made."""
    started, found = time.perf_counter(), []
    on_finding(name, None)
    for finding in findings:
        on_finding(name, finding)
        found.append(finding)
    return Answer(name, asks, tuple(found), time.perf_counter() - started)


@dataclass(frozen=True)
class Examination:
    """All answers of one command about one game or run."""

    subject: str
    command: str
    version: str
    answers: tuple[Answer, ...]
    program: str = "hopplus"
    """The program whose version it is."""

    @property
    def verdict(self) -> Verdict:
        return worst(answer.verdict for answer in self.answers)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for answer in self.answers for finding in answer.findings)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The modules to blame, the likeliest first: broken ones come before suspicious ones.

        Among equal verdicts exact findings and judgements come first, because they look at one part. Tests look at
        everything downstream of a part.
        """
        bad = [finding for finding in self.findings if finding.verdict in ("suspicious", "broken")]
        bad.sort(key=lambda finding: (finding.verdict != "broken", finding.test is not None))
        return tuple(dict.fromkeys(finding.module for finding in bad))

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": self.verdict, "suspects": list(self.suspects)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; "not enough evidence" if there are none."""
    return VERDICTS[max(map(VERDICTS.index, verdicts), default=VERDICTS.index("not enough evidence"))]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm, 1979): the probability of any false alarm below alpha is at most alpha."""
    order = np.argsort(p_values)
    adjusted = np.asarray(p_values, float)[order] * np.arange(len(p_values), 0, -1)
    result = np.empty(len(p_values))
    result[order] = np.minimum(np.maximum.accumulate(adjusted), 1.0) if len(p_values) else adjusted
    return result.tolist()


def settled(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """The answers with the verdicts of their tests; the p-values of all answers are adjusted together."""
    tests = [finding.test for answer in answers for finding in answer.findings if finding.test]
    adjusted = iter(holm([test.p_value for test in tests]))

    def settle(finding: Finding) -> Finding:
        if finding.test is None:
            return finding
        p_value = next(adjusted)
        verdict = verdict_of(finding.test, finding.effect, p_value)
        return replace(finding, verdict=verdict, test=replace(finding.test, adjusted=p_value))

    return tuple(replace(answer, findings=tuple(map(settle, answer.findings))) for answer in answers)


def verdict_of(test: Significance, effect: Interval | None, adjusted: float) -> Verdict:
    """The verdict of a test, by its adjusted p-value and the interval of its effect."""
    size = max(abs(effect.low), abs(effect.high)) if effect is not None else np.nan
    matters = effect is not None and abs(effect.estimate) >= test.matters
    if matters and adjusted < SUSPICIOUS_BELOW:
        return "broken" if adjusted < BROKEN_BELOW else "suspicious"
    return "fine" if adjusted < SUSPICIOUS_BELOW or size < test.matters else "not enough evidence"


OnProgress = Callable[[str], None]
"""Called with a line of text for a progress display."""
