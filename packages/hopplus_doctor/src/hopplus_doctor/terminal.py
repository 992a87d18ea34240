"""Print an examination on the terminal: a short block for each finding, the parts to blame, and the next steps."""

import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hopplus_doctor.answer import Examination, Finding, Verdict
from hopplus_doctor.page import doctor_page, effect_words, rests_on, severity

COLOURS: dict[Verdict, str] = {
    "fine": "green",
    "not enough evidence": "bright_black",
    "suspicious": "yellow",
    "broken": "bold red",
}
INDENT = 2
PROGRAMS = ("hopplus ", "hopplus-doctor ")
"""A next step that begins with one of these is a command."""


def print_examination(examination: Examination, console: Console) -> None:
    """Print an examination, wrapped at the width of the terminal. Commands are not wrapped, so they can be copied."""
    console.print(Text.assemble((examination.subject, "bold"), ": ", _verdict(examination.verdict)))
    for answer in examination.answers:
        console.print()
        console.print(Text.assemble((answer.question, "bold"), ": ", _verdict(answer.verdict), f"  {answer.asks}"))
        for finding in answer.findings:
            _print_finding(finding, console)
        if not answer.findings:
            _print_indented(Text("no check was possible"), INDENT, console)
    console.print()
    console.print(Text(f"blame: {', '.join(examination.suspects) or 'nothing'}"))
    for step in _next_steps(examination):
        console.print(Text(f"next: {step}"), soft_wrap=step.startswith(PROGRAMS))


def _print_finding(finding: Finding, console: Console) -> None:
    """Print the verdict, the check and the kind; then the text; then the effect and the basis of the verdict."""
    style = "dim" if finding.verdict == "fine" else ""
    head = Text.assemble(_verdict(finding.verdict), f"  {finding.check}  ", (f"({finding.kind})", "dim"))
    basis = {"exact": "", "test": rests_on(finding), "judgement": f"threshold: {finding.threshold}"}[finding.kind]
    foot = "; ".join(filter(None, (effect_words(finding), basis)))
    _print_indented(head, INDENT, console)
    for words in filter(None, (finding.says, foot)):
        _print_indented(Text(words, style=style), 2 * INDENT, console)


def _print_indented(text: Text, indent: int, console: Console) -> None:
    """Print wrapped text. Lines after the first have the indent of a finding's text."""
    width = max(console.width - 2 * INDENT, 1)
    for number, line in enumerate(text.wrap(console, width)):
        line.rstrip()
        console.print(Text(" " * (2 * INDENT if number else indent)) + line)


def _verdict(verdict: Verdict) -> tuple[str, str]:
    return verdict, COLOURS[verdict]


def _next_steps(examination: Examination) -> list[str]:
    """The next steps without duplicates, those of the worst findings first."""
    ordered = sorted(examination.findings, key=severity, reverse=True)
    return list(dict.fromkeys(finding.advice for finding in ordered if finding.advice))


class Watch:
    """Shows the current check on a terminal; elsewhere prints a line for each question."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status = self._console.status("")

    def __enter__(self) -> "Watch":
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def on_finding(self, question: str, finding: Finding | None) -> None:
        """Show a question that is asked (the finding is None), or one of its findings."""
        self.note(f"{question}: {finding.check} is {finding.verdict}" if finding else f"asking: {question}")
        if finding is None and not self._console.is_terminal:
            self._console.print(f"asking: {question}")

    def note(self, words: str) -> None:
        """Show one line on a terminal; the next one replaces it."""
        if self._console.is_terminal:
            self._status.update(words)


def show(examination: Examination, page: Path | None, json_line: bool) -> int:
    """Write the page and print the examination. Returns the exit code: 1 if something is broken."""
    if page is not None:
        page.write_text(doctor_page(examination))
    if json_line:
        print(json.dumps(examination.to_json()))
    else:
        print_examination(examination, Console())
        if page is not None:
            print(f"wrote {page}")
    return 1 if examination.verdict == "broken" else 0
