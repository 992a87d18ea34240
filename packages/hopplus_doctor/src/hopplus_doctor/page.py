"""One HTML page about an examination: the parts to blame, the evidence, and the next steps.

Findings that are not fine come first and are open. Fine findings are folded, with their pictures.
"""

from dataclasses import dataclass

import numpy as np

from hopplus_doctor.answer import (
    BROKEN_BELOW,
    KINDS,
    SUSPICIOUS_BELOW,
    VERDICTS,
    Answer,
    Examination,
    Finding,
    Verdict,
)
from hopplus_doctor.evidence import Drawn, drawn, short_number
from hopplus_doctor.p_values import p_words
from hopplus_doctor.template_environment import template_environment


@dataclass(frozen=True)
class Shown:
    """A finding as the page shows it."""

    anchor: str
    finding: Finding
    effect: str
    judged: str
    picture: Drawn | None


@dataclass(frozen=True)
class Section:
    """An answer, with its worst findings first."""

    anchor: str
    answer: Answer
    wrong: list[Shown]
    """The findings that are not fine."""
    fine: list[Shown]


@dataclass(frozen=True)
class Suspect:
    """A module to blame, and its worst finding."""

    module: str
    shown: Shown


def doctor_page(examination: Examination) -> str:
    """The HTML of the whole page."""
    sections = [_section(place, answer) for place, answer in enumerate(examination.answers, start=1)]
    kinds = [finding.kind for finding in examination.findings]
    content = {
        "examination": examination,
        "headline": HEADLINES[examination.verdict],
        "counts": _counts(examination),
        "suspects": _suspects(examination, sections),
        "sections": sections,
        "num_of": {kind: kinds.count(kind) for kind in KINDS},
        "broken_below": f"{BROKEN_BELOW:g}",
        "suspicious_below": f"{SUSPICIOUS_BELOW:g}",
    }
    return template_environment().get_template("doctor.html").render(content)


HEADLINES: dict[Verdict, str] = {
    "fine": "All findings are fine.",
    "not enough evidence": "No finding raises an alarm, but there is not enough evidence to clear everything.",
    "suspicious": "Something looks wrong, but it is not certain.",
    "broken": "Something is wrong.",
}


def effect_words(finding: Finding) -> str:
    """The effect in words, as in "0.42 (0.31 to 0.53) goals per episode". An exact effect has no interval."""
    effect = finding.effect
    if effect is None:
        return ""
    estimate, low, high = map(short_number, (effect.estimate, effect.low, effect.high))
    is_exact = effect.low == effect.high or not np.isfinite([effect.low, effect.high]).all()
    return f"{estimate}{'' if is_exact else f' ({low} to {high})'} {finding.unit}".rstrip()


def severity(finding: Finding) -> int:
    """The rank of a finding's verdict; greater is worse."""
    return VERDICTS.index(finding.verdict)


def _counts(examination: Examination) -> list[tuple[Verdict, int]]:
    """The number of findings with each verdict, the worst first."""
    verdicts = [finding.verdict for finding in examination.findings]
    return [(verdict, verdicts.count(verdict)) for verdict in reversed(VERDICTS) if verdict in verdicts]


def _section(place: int, answer: Answer) -> Section:
    shown = [_shown(f"finding-{place}-{number}", finding) for number, finding in enumerate(answer.findings, start=1)]
    shown.sort(key=lambda one: -severity(one.finding))
    wrong = [one for one in shown if one.finding.verdict != "fine"]
    return Section(f"answer-{place}", answer, wrong, shown[len(wrong) :])


def _shown(anchor: str, finding: Finding) -> Shown:
    return Shown(anchor, finding, effect_words(finding), judged_words(finding), drawn(finding.picture))


def judged_words(finding: Finding) -> str:
    """The kind of the finding and the basis of its verdict, as in "test: p = 0.012, adjusted p = 0.12; ..."."""
    return f"{finding.kind}: {rests_on(finding)}"


def rests_on(finding: Finding) -> str:
    """The basis of a verdict: the threshold of a judgement, or the p-value and the smallest effect of a test."""
    if finding.kind == "exact":
        return "no chance is involved"
    if finding.test is None:
        untested = "nothing differs: no p-value" if finding.verdict == "fine" else "too little data for a p-value"
        return finding.threshold or untested
    adjusted = "" if finding.test.adjusted is None else f", adjusted {p_words(finding.test.adjusted)}"
    return f"{p_words(finding.test.p_value)}{adjusted}; {short_number(finding.test.matters)} would matter"


def _suspects(examination: Examination, sections: list[Section]) -> list[Suspect]:
    """The modules to blame in the examination's order, each with its worst finding; among equals a test comes last."""
    wrong = [one for section in sections for one in section.wrong]
    wrong.sort(key=lambda one: (-severity(one.finding), one.finding.test is not None))
    return [
        Suspect(module, next(one for one in wrong if one.finding.module == module)) for module in examination.suspects
    ]
