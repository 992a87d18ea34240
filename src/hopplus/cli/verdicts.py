"""What the doctor says, on the terminal: a table of all findings, what to blame, and what to run next."""

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hopplus.doctor.answer import Examination, Finding, Verdict
from hopplus.report.doctor import effect_words, severity

COLOURS: dict[Verdict, str] = {
    "fine": "green",
    "not enough evidence": "bright_black",
    "suspicious": "yellow",
    "broken": "bold red",
}


def print_examination(examination: Examination, console: Console) -> None:
    """The sentences take what room the other columns leave; commands are not broken, so that they can be copied."""
    title = f"{escape(examination.subject)}: {_coloured(examination.verdict)}"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("question", no_wrap=True)
    table.add_column("check", max_width=16)
    table.add_column("verdict", max_width=10)
    table.add_column("what it says", ratio=1)
    table.add_column("effect", max_width=24)
    for answer in examination.answers:
        question = f"[bold not dim]{escape(answer.question)}[/]"
        for number, finding in enumerate(answer.findings):
            style = "dim" if finding.verdict == "fine" else None
            table.add_row("" if number else question, *_row(finding), style=style)
        if not answer.findings:
            table.add_row(question, "", _coloured(answer.verdict), "nothing could be looked at", "")
        table.add_section()
    console.print(table)
    console.print(f"blame: {escape(', '.join(examination.suspects) or 'nothing')}", soft_wrap=True)
    for command in _next_commands(examination):
        console.print(f"next: {escape(command)}", soft_wrap=True, highlight=False)


def _row(finding: Finding) -> tuple[str, str, str, str]:
    return escape(finding.check), _coloured(finding.verdict), escape(finding.says), escape(effect_words(finding))


def _coloured(verdict: Verdict) -> str:
    return f"[{COLOURS[verdict]}]{verdict}[/]"


def _next_commands(examination: Examination) -> list[str]:
    """Each once, those of the worst findings first."""
    found = sorted(examination.findings, key=severity, reverse=True)
    return list(dict.fromkeys(finding.next for finding in found if finding.next and finding.verdict != "fine"))
