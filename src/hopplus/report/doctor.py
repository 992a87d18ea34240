"""One HTML page about an examination: what is to blame, why, how sure that is, and what to run next.

What is wrong is open and comes first; what is fine is folded away, with its pictures, for those who doubt it.
"""

from dataclasses import dataclass

import numpy as np

from hopplus.doctor.answer import BROKEN_BELOW, SUSPICIOUS_BELOW, VERDICTS, Answer, Examination, Finding, Verdict
from hopplus.report.evidence import Drawn, drawn, short_number
from hopplus.report.page import template_environment


@dataclass(frozen=True)
class Shown:
    """A finding in words and a picture."""

    anchor: str
    finding: Finding
    effect: str
    judged: str
    picture: Drawn | None


@dataclass(frozen=True)
class Section:
    """An answer, its worst findings first."""

    anchor: str
    answer: Answer
    wrong: list[Shown]
    """All that is not fine."""
    fine: list[Shown]


@dataclass(frozen=True)
class Suspect:
    """A module to blame, and the finding that says most about it."""

    module: str
    shown: Shown


def doctor_page(examination: Examination) -> str:
    """The whole page as text."""
    sections = [_section(place, answer) for place, answer in enumerate(examination.answers, start=1)]
    tested = [finding for finding in examination.findings if finding.test is not None]
    content = {
        "examination": examination,
        "headline": HEADLINES[examination.verdict],
        "counts": _counts(examination),
        "suspects": _suspects(examination, sections),
        "sections": sections,
        "num_tests": len(tested),
        "num_exact": len(examination.findings) - len(tested),
        "broken_below": f"{BROKEN_BELOW:g}",
        "suspicious_below": f"{SUSPICIOUS_BELOW:g}",
    }
    return template_environment().get_template("doctor.html").render(content)


HEADLINES: dict[Verdict, str] = {
    "fine": "Everything that was looked at is fine.",
    "not enough evidence": "Nothing was found to be wrong, but not everything could be judged.",
    "suspicious": "Something looks wrong, but it is not certain.",
    "broken": "Something is wrong.",
}


def effect_words(finding: Finding) -> str:
    """For example: 0.42 (0.31 to 0.53) goals per episode; an exact effect has no interval."""
    effect = finding.effect
    if effect is None:
        return ""
    estimate, low, high = map(short_number, (effect.estimate, effect.low, effect.high))
    is_exact = effect.low == effect.high or not np.isfinite([effect.low, effect.high]).all()
    return f"{estimate}{'' if is_exact else f' ({low} to {high})'} {finding.unit}".rstrip()


def severity(finding: Finding) -> int:
    """From good to bad."""
    return VERDICTS.index(finding.verdict)


def _counts(examination: Examination) -> list[tuple[Verdict, int]]:
    """How many findings have each verdict, the worst first."""
    verdicts = [finding.verdict for finding in examination.findings]
    return [(verdict, verdicts.count(verdict)) for verdict in reversed(VERDICTS) if verdict in verdicts]


def _section(place: int, answer: Answer) -> Section:
    shown = [_shown(f"finding-{place}-{number}", finding) for number, finding in enumerate(answer.findings, start=1)]
    shown.sort(key=lambda one: -severity(one.finding))
    wrong = [one for one in shown if one.finding.verdict != "fine"]
    return Section(f"answer-{place}", answer, wrong, shown[len(wrong) :])


def _shown(anchor: str, finding: Finding) -> Shown:
    return Shown(anchor, finding, effect_words(finding), _judged(finding), drawn(finding.picture))


def _judged(finding: Finding) -> str:
    if finding.test is None:
        return "exact: no chance is involved"
    matters = f"{short_number(finding.test.matters)} {finding.unit}".rstrip()
    return f"a test, p = {finding.test.p_value:.2g} before adjustment; an effect below {matters} would not matter"


def _suspects(examination: Examination, sections: list[Section]) -> list[Suspect]:
    """In the examination's order; of a module's findings the worst, and of those an exact one before a test."""
    wrong = [one for section in sections for one in section.wrong]
    wrong.sort(key=lambda one: (-severity(one.finding), one.finding.test is not None))
    return [
        Suspect(module, next(one for one in wrong if one.finding.module == module)) for module in examination.suspects
    ]
