"""The terminal says what the page says, in eighty columns."""

import io
import re
from dataclasses import replace

import numpy as np
from rich.console import Console

from hopplus.doctor.progress import learned
from hopplus.runs.records import RETURN_TAG, Recorded
from hopplus_doctor.answer import Answer, Examination, Finding, settled
from hopplus_doctor.seat_differences import Measured, standing_out, trends
from hopplus_doctor.terminal import print_examination
from report.examinations import HOSTILE, examination


def printed(examined: Examination, width: int = 80) -> str:
    stream = io.StringIO()
    print_examination(examined, Console(file=stream, width=width))
    return stream.getvalue()


def test_every_finding_is_there_and_no_word_is_broken():
    said = printed(examination())
    words = said.split()
    for finding in examination().findings:
        expected = [
            *finding.verdict.split(),
            *(f"{finding.check} {finding.says}".split() if finding.next != HOSTILE else ()),
        ]
        assert all(word in words for word in expected)
    assert "0.42 (0.31 to 0.53)" in said and "no check was possible" in said


def realistic() -> Examination:
    """The longest findings of `doctor game` and of a run."""
    returns = np.random.default_rng(0).normal(1.0, 0.5, (5000, 4))
    returns[:, 0] += 0.3
    seats = ("player_1", "player_2", "player_3", "player_4")
    measured = Measured("returns", "game: returns", "return", returns, seats, 0.02, "look", "hopplus doctor game x")
    flat = np.random.default_rng(0).normal(0.8, 0.05, (20, 3))
    recorded = Recorded("a", {}, np.arange(1, 21), {RETURN_TAG: flat}, {}, None)
    words = "in what the world of player_3 learns from, another seat's action tells 1.71 nats more of a walker"
    data = Finding("planes and actions", "world: data", "judgement", "broken", words, threshold="broken above 0.1 nats")
    length = Finding("buffer/episode_length", "buffer", "exact", "fine", "the same for every seat: 12.3 in an update")
    findings = (standing_out(measured), *trends(measured), learned(recorded), data, length)
    return Examination("runs/first", "hopplus doctor runs/first", "1", settled([Answer("seats", "alike?", findings)]))


def test_a_finding_takes_few_lines_of_a_narrow_terminal():
    examined = realistic()
    lines = printed(examined).split("\n")
    assert max(map(len, lines)) <= 80
    first = [number for number, line in enumerate(lines) if re.match(r"  \S", line)]
    assert len(first) == len(examined.findings)
    heights = np.diff([*first, next(number for number, line in enumerate(lines) if line.startswith("blame:")) - 1])
    assert heights.max() <= 6 and heights.mean() <= 4.5
    assert "…" not in printed(examined)


def test_the_terminal_says_of_what_kind_a_finding_is():
    said = " ".join(printed(realistic()).split())
    assert (
        "broken planes and actions (judgement) in what the world" in said
        and "walker threshold: broken above 0.1 nats" in said
    )
    assert "fine buffer/episode_length (exact)" in said
    assert "broken returns (test) player_1's return is" in said
    assert "0.231 (0.211 to 0.252) return; p < 1e-6, adjusted p < 1e-6; 0.02 would matter" in said
    assert "p = 0.000" not in said


def test_what_is_certain_is_not_played_longer():
    game = realistic().answers[0]
    certain = Examination("x", "", "1", (replace(game, findings=game.findings[:2]),))
    assert [line for line in printed(certain).split("\n") if line.startswith("next: ")] == ["next: look"]


def test_blame_and_next_follow_the_worst_first_and_commands_stay_whole():
    command = f"hopplus doctor game {'x' * 80}"
    suspect = Finding("check", "module", "exact", "suspicious", "It says.", next=command)
    examined = examination()
    examined = replace(examined, answers=(*examined.answers, Answer("game", "Fair?", (suspect,))))
    said = printed(examined)
    assert f"blame: others, {HOSTILE}, module, policy" in " ".join(said.split())
    places = [said.index(f"next: {words}") for words in ("do a", HOSTILE[:20], f"{command}\n", "do b")]
    assert places == sorted(places)


def test_a_fine_examination_blames_nothing():
    fine = Finding("check", "module", "exact", "fine", "It says.", next="never said")
    said = printed(Examination("game", "command", "1", (Answer("game", "Fair?", (fine,)),)))
    assert "blame: nothing" in said and "next:" not in said and "game: fine" in said


def test_verdicts_are_coloured_on_a_terminal():
    stream = io.StringIO()
    print_examination(examination(), Console(file=stream, width=100, force_terminal=True, color_system="standard"))
    assert "\x1b[1;31mbroken" in stream.getvalue() and "\x1b[33msuspicious" in stream.getvalue()
