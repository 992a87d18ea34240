"""The terminal says what the page says, in a hundred columns."""

import io

from rich.console import Console

from hopplus.cli.verdicts import print_examination
from hopplus.doctor.answer import Answer, Examination, Finding
from report.examinations import HOSTILE, examination


def printed(examined: Examination, width: int = 100) -> str:
    stream = io.StringIO()
    print_examination(examined, Console(file=stream, width=width))
    return stream.getvalue()


def test_every_finding_is_in_the_table_and_no_word_is_broken():
    said = printed(examination())
    words = said.split()
    for finding in examination().findings:
        expected = [
            *finding.verdict.split(),
            *(f"{finding.check} {finding.says}".split() if finding.next != HOSTILE else ()),
        ]
        assert all(word in words for word in expected)
    assert "0.42 (0.31 to 0.53)" in said and "nothing could be looked at" in said
    table = said[: said.index("blame:")].split("\n")
    assert all(len(line) <= 100 for line in table[2:])


def test_blame_and_next_follow_the_worst_first_and_commands_stay_whole():
    lines = printed(examination()).split("\n")
    assert f"blame: others, {HOSTILE}, policy" in lines
    assert [line for line in lines if line.startswith("next: ")] == ["next: do a", f"next: {HOSTILE}", "next: do b"]


def test_a_fine_examination_blames_nothing():
    fine = Finding("check", "module", "fine", "It says.", next="never said")
    said = printed(Examination("game", "command", "1", (Answer("game", "Fair?", (fine,)),)))
    assert "blame: nothing" in said and "next:" not in said and "game: fine" in said


def test_verdicts_are_coloured_on_a_terminal():
    stream = io.StringIO()
    print_examination(examination(), Console(file=stream, width=100, force_terminal=True, color_system="standard"))
    assert "\x1b[1;31mbroken" in stream.getvalue() and "\x1b[33msuspicious" in stream.getvalue()
