"""Ask all questions about recordings. Each recording is a seed; the tests of all answers are adjusted together."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hopplus_doctor import data_questions, model_questions, policy_questions, source_questions, target_questions
from hopplus_doctor import update_questions as updates
from hopplus_doctor.answer import Answer, Examination, Finding, settled
from hopplus_doctor.recording import Recording, read_recording
from hopplus_doctor.version import __version__

PROGRAM = "hopplus-doctor"
Ask = Callable[[Recording], Iterator[Finding]]
QUESTIONS: dict[str, tuple[str, Ask]] = {
    "data": (data_questions.ASKS, data_questions.ask),
    "targets": (target_questions.ASKS, target_questions.ask),
    "policy": (policy_questions.ASKS, policy_questions.ask),
    "modules": (updates.ASKS, updates.ask),
    "others": (model_questions.OTHERS_ASK, model_questions.others),
    "world": (model_questions.WORLD_ASK, model_questions.world),
    "sources": (source_questions.ASKS, source_questions.ask),
}
"""From what is recorded to what is made of it: the first broken part is the likeliest cause."""
OnFinding = Callable[[str, Finding | None], None]
"""Called with a question when it is asked (then the finding is None), and again with each of its findings."""


def examine_recordings(
    folders: Sequence[str | Path], *, on_finding: OnFinding = lambda *_: None, program: str = PROGRAM
) -> Examination:
    """Examine the recordings of one or more seeds. Of several seeds the first is examined in detail."""
    if not folders:
        raise ValueError("name the folder of a recording")
    recordings = [read_recording(folder) for folder in folders]
    answers = [_answer(name, asks, ask(recordings[0]), on_finding) for name, (asks, ask) in QUESTIONS.items()]
    answers.append(_answer("seats", updates.SEATS_ASK, updates.seat_returns(recordings), on_finding))
    command = " ".join([program, "recording", *map(str, folders)])
    return Examination(str(folders[0]), command, __version__, settled(answers), PROGRAM)


def _answer(name: str, asks: str, findings: Iterator[Finding], on_finding: OnFinding) -> Answer:
    started, found = time.perf_counter(), []
    on_finding(name, None)
    for finding in findings:
        on_finding(name, finding)
        found.append(finding)
    return Answer(name, asks, tuple(found), time.perf_counter() - started)
