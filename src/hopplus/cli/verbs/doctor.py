"""`hopplus doctor`: find out what is wrong with a game or a run, with evidence."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from hopplus.cli.verbs.types import GameName, RunPath, Switch
from hopplus.doctor.questions import ALL, Symptom


@dataclass(frozen=True)
class AskGame:
    """Does the game treat its seats alike? Checks relabelled seats, spawns, and the returns of random play."""

    game: Annotated[tyro.conf.Positional[GameName | None], tyro.conf.arg(metavar="GAME")] = None
    """A name from `hopplus games`; jaxmarl:NAME, jumanji:NAME or pettingzoo:MODULE.FACTORY; or MODULE:FACTORY for a
    game of your own."""
    env: str | None = None
    """Examine a PettingZoo ParallelEnv instead of a game: MODULE:FACTORY, as in my_envs:make."""
    alike: Annotated[str | None, tyro.conf.arg(metavar="NAMES|all")] = None
    """The agents of the environment to compare: names with commas, as in alice,bob,carol, or all. Without it, agents
    whose names differ only in a number are compared, as agent_0 and agent_1."""
    seconds: float = 60.0
    """Seconds of random play. Longer play finds a smaller bias."""
    episodes: int | None = None
    """Episodes of random play, instead of --seconds. The verdict is then the same on every machine."""
    recorded: Path | None = None
    """Examine episodes that people saved from a page of `hopplus share`, instead of random play: they are played again
    by the rules, and the returns of seats with the same player are compared."""
    seed: int = 0
    """The seed of all random numbers."""
    page: Path | None = None
    """Write an HTML page to this file."""
    json: Switch = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        from hopplus.cli.doctor import ask_game

        return ask_game(self)


@dataclass(frozen=True)
class AskRun:
    """Ask all questions about a run. Writes RUN/doctor.html and RUN/doctor.json."""

    folder: RunPath
    """The run's folder."""
    json: Switch = False
    """Print one line of JSON instead of a table."""
    questions: ClassVar[tuple[str, ...]] = ALL

    def __call__(self) -> int:
        from hopplus.cli.doctor import ask_run

        return ask_run(self.folder, self.questions, (), self.json)


@dataclass(frozen=True)
class AskSeats:
    """Does training treat seats alike? Checks random streams, samples, targets, one update with the seats turned, and
    returns.

    More runs, as with other seeds or shared parameters, are compared with the first.
    """

    folder: RunPath
    """The run's folder."""
    compare_with: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="[OTHER_RUN ...]")] = ()
    """Runs to compare it with."""
    json: Switch = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        from hopplus.cli.doctor import ask_run

        return ask_run(self.folder, ("seats",), self.compare_with, self.json)


@dataclass(frozen=True)
class AskCritic(AskRun):
    """What feeds the critic? Compares real and imagined value losses, rewards and targets, and blames a part."""

    questions: ClassVar[tuple[str, ...]] = ("critic",)


@dataclass(frozen=True)
class AskOthers(AskRun):
    """Are the opponent models good, and are they used? Checks accuracy, recall, calibration, and shuffled goals."""

    questions: ClassVar[tuple[str, ...]] = ("others",)


@dataclass(frozen=True)
class AskWorld(AskRun):
    """Is the world model good where it matters? Checks boards, rewards, terminations, and impossible outcomes."""

    questions: ClassVar[tuple[str, ...]] = ("world",)


@dataclass(frozen=True)
class AskTime(AskRun):
    """Where does the time go? Measures the phases of an update, compiling, and the speed over the run."""

    questions: ClassVar[tuple[str, ...]] = ("time",)


@dataclass(frozen=True)
class AskRecording:
    """Is anything wrong in a recording of anyone's training? Checks data, targets, policies, models and imagination.

    Writes doctor.html and doctor.json into the first folder. Several recordings are seeds of one training.
    """

    folders: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FOLDER [FOLDER ...]")]
    """Folders that hopplus_doctor.Recorder wrote."""
    env: str | None = None
    """The PettingZoo ParallelEnv that was recorded, to be examined too: MODULE:FACTORY, as in my_envs:make."""
    seconds: float = 30.0
    """Seconds of random play of that environment."""
    page: Path | None = None
    """Write the page to this file instead."""
    json: Switch = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        from hopplus_doctor.main import ask_recording

        return ask_recording(self.folders, self.page, self.json, "hopplus doctor", env=self.env, seconds=self.seconds)


@dataclass(frozen=True)
class AskLogs:
    """Is anything wrong in the logs of anyone's training? Reads TensorBoard events, CSV and JSON lines.

    Shows which tag it takes for what. Several folders are seeds of one training.
    """

    folders: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FOLDER [FOLDER ...]")]
    """Folders or files of logs."""
    tags: Path | None = None
    """A TOML file that says which tag is what. If it is not there, the guess is written to it."""
    page: Path | None = None
    """Write the page to this file instead."""
    json: Switch = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        from hopplus_doctor.main import ask_logs

        return ask_logs(self.folders, self.tags, self.page, self.json, "hopplus doctor")


@dataclass(frozen=True)
class WriteRecording:
    """Play the next update of a run, and write it as a recording: plain arrays that other tools can read."""

    folder: RunPath
    """The run's folder."""
    out: Path
    """The folder for the recording; with several seeds, for a folder of each."""

    def __call__(self) -> int:
        from hopplus.doctor.recording import write_recording

        for written in write_recording(self.folder, self.out):
            print(f"wrote {written}")
        return 0


@dataclass(frozen=True)
class ClimbLadder:
    """Which module causes a symptom? Trains ppo, + others, + goals, + world, + imagination, full, and compares them.

    The ladder runs as a study on Ray. Ctrl-C stops it, and the same command resumes it.
    """

    folder: RunPath
    """A run with the symptom. Its settings are the top rung."""
    out: Path
    """The folder for the ladder's runs."""
    symptom: Symptom = "value_loss"
    """value_loss: a large value loss on real data. seats: returns differ between seats. return: a low return."""
    steps: int | None = None
    """Environment steps of each rung. None: as many as the run."""
    json: Switch = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        from hopplus.cli.doctor import climb_ladder

        return climb_ladder(self)


@dataclass(frozen=True)
class WithFault:
    """Run another command with a fault switched on, to see whether the doctor finds it and how bad it is.

    For example: hopplus doctor fault imagined_reward_x5 train hop_plus --steps 12000 --out runs/broken
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The fault, as in imagined_reward_x5. An unknown name prints the list."""
    command: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="COMMAND ...")]
    """The command to run, without `hopplus`, with all its flags."""

    def __call__(self) -> int:
        from hopplus.cli.doctor import run_with_fault

        return run_with_fault(self)


DOCTOR = """Find out what is wrong with a game or a run, with evidence. `hopplus doctor RUN` asks all questions.

Exit code 1 if something is broken, 2 if it cannot be examined."""
Action: Any = (
    Annotated[AskRun, tyro.conf.subcommand("run", prefix_name=False)]
    | Annotated[AskGame, tyro.conf.subcommand("game", prefix_name=False)]
    | Annotated[AskSeats, tyro.conf.subcommand("seats", prefix_name=False)]
    | Annotated[AskCritic, tyro.conf.subcommand("critic", prefix_name=False)]
    | Annotated[AskOthers, tyro.conf.subcommand("others", prefix_name=False)]
    | Annotated[AskWorld, tyro.conf.subcommand("world", prefix_name=False)]
    | Annotated[AskTime, tyro.conf.subcommand("time", prefix_name=False)]
    | Annotated[AskRecording, tyro.conf.subcommand("recording", prefix_name=False)]
    | Annotated[AskLogs, tyro.conf.subcommand("logs", prefix_name=False)]
    | Annotated[WriteRecording, tyro.conf.subcommand("record", prefix_name=False)]
    | Annotated[ClimbLadder, tyro.conf.subcommand("ladder", prefix_name=False)]
    | Annotated[WithFault, tyro.conf.subcommand("fault", prefix_name=False)]
)
ACTIONS = (
    "run",
    "game",
    "seats",
    "critic",
    "others",
    "world",
    "time",
    "recording",
    "logs",
    "record",
    "ladder",
    "fault",
)


def with_action(typed: list[str]) -> list[str]:
    """Turn `RUN` into `run RUN`, and quote the command after `fault NAME`."""
    if typed[:1] == ["fault"] and len(typed) > 2:
        return [*typed[:2], shlex.join(typed[2:])]
    is_short = bool(typed) and typed[0] not in (*ACTIONS, "-h", "--help")
    return ["run", *typed] if is_short else typed


def run(typed: list[str]) -> int:
    """Run `hopplus doctor` with these arguments."""
    return tyro.cli(Action, prog="hopplus doctor", description=DOCTOR, args=with_action(typed))()
