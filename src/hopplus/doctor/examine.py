"""All questions about a run, or some of them: asked one after the other, judged together."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import jax

from hopplus import __version__
from hopplus.doctor import critic, others, seats, world
from hopplus.doctor import time as timing
from hopplus.doctor.answer import Answer, Examination, Finding, settled
from hopplus.doctor.beside import compare
from hopplus.doctor.case import Case, open_case
from hopplus.doctor.game import ask as ask_game

GAME_SECONDS = 10.0
"""How long the game of a run is played at random."""
Ask = Callable[[Case], Iterator[Finding]]
QUESTIONS: dict[str, tuple[str, Ask]] = {
    "seats": (seats.ASKS, seats.ask),
    "others": (others.ASKS, others.ask),
    "world": (world.ASKS, world.ask),
    "critic": (critic.ASKS, critic.ask),
    "time": (timing.ASKS, timing.ask),
}
ALL = ("game", *QUESTIONS)
Told = Callable[[str, Finding | None], None]
"""Told the question that is asked, and each finding as it is made."""


def examine(
    folder: Path | str,
    questions: Sequence[str] = ALL,
    *,
    beside: Sequence[Path] = (),
    told: Told = lambda *_: None,
) -> Examination:
    """Ask a run; `beside` are runs to compare its seats with."""
    case = open_case(folder)
    answers: list[Answer] = []
    with jax.debug_key_reuse(False):  # the same update is looked at again and again
        for name in questions:
            known = [finding for answer in answers for finding in answer.findings]
            answers.append(_ask(case, name, known, told))
    if beside:
        others = [open_case(other) for other in beside]
        answers.append(Answer("beside", "do other runs say the same of their seats?", tuple(compare(case, others))))
    asked = "" if tuple(questions) == ALL else f"{' '.join(questions)} "
    command = " ".join([f"hopplus doctor {asked}{folder}", *map(str, beside)])
    return Examination(str(folder), command, __version__, settled(answers))


def _ask(case: Case, name: str, known: list[Finding], told: Told) -> Answer:
    """What an earlier answer has found is not told again: whatever feeds several parts is blamed where it begins."""
    started = time.perf_counter()
    told(name, None)
    if name == "game":
        answer = ask_game(case.run.game, case.config.game, seconds=GAME_SECONDS)
        for finding in answer.findings:
            told(name, finding)
        return answer
    asks, ask = QUESTIONS[name]
    fresh = (finding for finding in ask(case) if not any(finding is each for each in known))
    return Answer(name, asks, tuple(_watched(fresh, name, told)), time.perf_counter() - started)


def _watched(findings: Iterable[Finding], name: str, told: Told) -> Iterator[Finding]:
    for finding in findings:
        told(name, finding)
        yield finding
