"""Ask all questions about a run, or some of them. The tests of all answers are adjusted together."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import jax

from hopplus import __version__
from hopplus.doctor import critic, others, seats, world
from hopplus.doctor import time as timing
from hopplus.doctor.examined_run import ExaminedRun, open_run
from hopplus.doctor.game import examine_game
from hopplus.doctor.questions import ALL
from hopplus.doctor.run_comparison import compare
from hopplus_doctor.answer import Answer, Examination, Finding, OnFinding, answered, settled

GAME_SECONDS = 10.0
"""How long the doctor plays the game of a run at random."""
Ask = Callable[[ExaminedRun], Iterator[Finding]]
QUESTIONS: dict[str, tuple[str, Ask]] = {
    "seats": (seats.ASKS, seats.ask),
    "others": (others.ASKS, others.ask),
    "world": (world.ASKS, world.ask),
    "critic": (critic.ASKS, critic.ask),
    "time": (timing.ASKS, timing.ask),
}
"""The questions about a run: what each asks, and the function that answers it."""


def examine(
    folder: Path | str,
    questions: Sequence[str] = ALL,
    *,
    compare_with: Sequence[Path] = (),
    on_finding: OnFinding = lambda *_: None,
) -> Examination:
    """Answer questions about a run. The seats of the runs in `compare_with` are compared with its seats."""
    examined = open_run(folder)
    answers: list[Answer] = []
    with jax.debug_key_reuse(False):  # several checks repeat the same update with the same keys
        for name in questions:
            known = [finding for answer in answers for finding in answer.findings]
            answers.append(_ask(examined, name, known, on_finding))
    if compare_with:
        findings = tuple(compare(examined, [open_run(other) for other in compare_with]))
        answers.append(Answer("other runs", "do the seats of other runs differ in the same way?", findings))
    asked = "" if tuple(questions) == ALL else f"{' '.join(questions)} "
    command = " ".join([f"hopplus doctor {asked}{folder}", *map(str, compare_with)])
    return Examination(str(folder), command, __version__, settled(answers))


def _ask(examined: ExaminedRun, name: str, known: list[Finding], on_finding: OnFinding) -> Answer:
    """Answer one question. A finding that an earlier answer holds is left out: data that feeds several parts is blamed
    once, where it is made."""
    if name == "game":
        on_finding(name, None)
        answer = examine_game(examined.run.game, str(examined.config.game), seconds=GAME_SECONDS)
        for finding in answer.findings:
            on_finding(name, finding)
        return answer
    asks, ask = QUESTIONS[name]
    fresh = (finding for finding in ask(examined) if not any(finding is each for each in known))
    return answered(name, asks, fresh, on_finding)
