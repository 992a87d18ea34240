"""Ask all questions about recordings. Each recording is a seed; the tests of all answers are adjusted together."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hopplus_doctor import (
    data_questions,
    model_questions,
    policy_questions,
    source_questions,
    target_questions,
    view_questions,
)
from hopplus_doctor import update_questions as updates
from hopplus_doctor.answer import Answer, Examination, Finding, OnFinding, answered, settled
from hopplus_doctor.recording import Recording, read_recording
from hopplus_doctor.version import __version__

PROGRAM = "hopplus-doctor"
Ask = Callable[[Recording], Iterator[Finding]]
QUESTIONS: dict[str, tuple[str, Ask]] = {
    "data": (data_questions.ASKS, data_questions.ask),
    "views": (view_questions.ASKS, view_questions.ask),
    "targets": (target_questions.ASKS, target_questions.ask),
    "policy": (policy_questions.ASKS, policy_questions.ask),
    "modules": (updates.ASKS, updates.ask),
    "others": (model_questions.OTHERS_ASK, model_questions.others),
    "world": (model_questions.WORLD_ASK, model_questions.world),
    "sources": (source_questions.ASKS, source_questions.ask),
}
"""From what is recorded to what is made of it: the first broken part is the likeliest cause."""


def examine_recordings(
    folders: Sequence[str | Path],
    *,
    on_finding: OnFinding = lambda *_: None,
    program: str = PROGRAM,
    env: str | None = None,
    seconds: float = 30.0,
    seed: int = 0,
) -> Examination:
    """Examine the recordings of one or more seeds. Of several seeds the first is examined in detail.

    `env` is MODULE:FACTORY of the PettingZoo environment that was recorded; it is played at random for some `seconds`.
    """
    if not folders:
        raise ValueError("name the folder of a recording")
    recordings = [read_recording(folder) for folder in folders]
    answers = [answered(name, asks, ask(recordings[0]), on_finding) for name, (asks, ask) in QUESTIONS.items()]
    answers.append(answered("seats", updates.SEATS_ASK, updates.seat_returns(recordings), on_finding))
    command = " ".join([program, "recording", *map(str, folders)])
    if env is not None:
        command += f" --env {env} --seconds {seconds:g} --seed {seed}"
        answers = [*_asked_env(recordings[0], env, seconds, seed, on_finding), *answers]
    return Examination(str(folders[0]), command, __version__, settled(answers), PROGRAM)


def _asked_env(recording: Recording, env: str, seconds: float, seed: int, on_finding: OnFinding) -> list[Answer]:
    """What the environment itself says; it comes before all that is made of it."""
    from hopplus_doctor import env_questions
    from hopplus_doctor.environment import load_env

    make_env = load_env(env)
    findings = env_questions.env_findings(recording, make_env, env, seed)
    answers = [answered("environment", env_questions.ASKS, findings, on_finding)]
    on_finding("game", None)
    played = env_questions.play_findings(make_env, env, seconds=seconds, seed=seed)
    return answers if played is None else [*answers, played]
