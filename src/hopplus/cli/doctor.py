"""`hopplus doctor`: find out what is wrong with a game or a run, with evidence."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro
from rich.console import Console

from hopplus import __version__
from hopplus.cli.games import GameName
from hopplus.cli.verdicts import print_examination
from hopplus.doctor.answer import Answer, Examination, Finding, OnProgress, settled
from hopplus.doctor.examination import ALL, examine
from hopplus.doctor.faults import switched_on
from hopplus.doctor.game import examine_env, examine_game, load_env
from hopplus.doctor.ladder import Symptom, climb, read_ladder
from hopplus.games.presets import make
from hopplus.report.doctor import doctor_page
from hopplus.runs.folder import write_json

RunFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
JsonLine = tyro.conf.FlagCreatePairsOff[bool]


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
    seed: int = 0
    """The seed of all random numbers."""
    page: Path | None = None
    """Write an HTML page to this file."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        if (self.game is None) == (self.env is None):
            raise ValueError("name a game, as in `hopplus doctor game stag-hunt-4x4`, or give --env MODULE:FACTORY")
        if self.alike is not None and self.env is None:
            raise ValueError("--alike is for --env; leave it out: all seats of a hopplus game are compared")
        with Watch() as watch:
            watch.on_finding("game", None)
            answer = self._examine(watch.note)
        name = self.game or f"--env {self.env}" + (f" --alike {self.alike}" if self.alike else "")
        budget = f"--seconds {self.seconds:g}" if self.episodes is None else f"--episodes {self.episodes}"
        command = f"hopplus doctor game {name} {budget} --seed {self.seed}"
        return show(Examination(self.game or str(self.env), command, __version__, (answer,)), self.page, self.json)

    def _examine(self, on_progress: OnProgress) -> Answer:
        budget = {"seconds": self.seconds, "episodes": self.episodes, "seed": self.seed}
        if self.game is not None:
            return examine_game(make(self.game), self.game, **budget, on_progress=on_progress)
        assert self.env is not None
        alike = () if self.alike is None else tuple(name.strip() for name in self.alike.split(","))
        return examine_env(load_env(self.env), self.env, alike=alike, **budget, on_progress=on_progress)


@dataclass(frozen=True)
class AskRun:
    """Ask all questions about a run. Writes RUN/doctor.html and RUN/doctor.json."""

    folder: RunFolder
    """The run's folder."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""
    questions: ClassVar[tuple[str, ...]] = ALL

    def __call__(self) -> int:
        return ask_run(self.folder, self.questions, (), self.json)


@dataclass(frozen=True)
class AskSeats:
    """Does training treat seats alike? Checks random streams, samples, targets, one update with the seats turned, and
    returns.

    More runs, as with other seeds or shared parameters, are compared with the first.
    """

    folder: RunFolder
    """The run's folder."""
    compare_with: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="[OTHER_RUN ...]")] = ()
    """Runs to compare it with."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
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
class ClimbLadder:
    """Which module causes a symptom? Trains ppo, + others, + goals, + world, + imagination, full, and compares them.

    The ladder runs as a study on Ray. Ctrl-C stops it, and the same command resumes it.
    """

    folder: RunFolder
    """A run with the symptom. Its settings are the top rung."""
    out: Path
    """The folder for the ladder's runs."""
    symptom: Symptom = "value_loss"
    """value_loss: a large value loss on real data. seats: returns differ between seats. return: a low return."""
    steps: int | None = None
    """Environment steps of each rung. None: as many as the run."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        ladder = read_ladder(self.folder, self.symptom, self.steps)
        with Watch() as watch:
            answer = climb(ladder, self.out, on_progress=watch.note)
        command = f"hopplus doctor ladder {self.folder} --out {self.out} --symptom {self.symptom}"
        examination = Examination(str(self.folder), command, __version__, settled([answer]))
        write_json(self.out / "doctor.json", examination.to_json())
        return show(examination, self.out / "doctor.html", self.json)


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
        from hopplus.cli.main import main

        with switched_on(self.name) as fault:
            print(f"with a fault: {fault.about}", flush=True)
            typed = shlex.split(self.command)
            game = ["--game", fault.game] if fault.game and typed[:1] == ["train"] else []
            return main([*typed, *game])


Action = (
    Annotated[AskRun, tyro.conf.subcommand("run", prefix_name=False)]
    | Annotated[AskGame, tyro.conf.subcommand("game", prefix_name=False)]
    | Annotated[AskSeats, tyro.conf.subcommand("seats", prefix_name=False)]
    | Annotated[AskCritic, tyro.conf.subcommand("critic", prefix_name=False)]
    | Annotated[AskOthers, tyro.conf.subcommand("others", prefix_name=False)]
    | Annotated[AskWorld, tyro.conf.subcommand("world", prefix_name=False)]
    | Annotated[AskTime, tyro.conf.subcommand("time", prefix_name=False)]
    | Annotated[ClimbLadder, tyro.conf.subcommand("ladder", prefix_name=False)]
    | Annotated[WithFault, tyro.conf.subcommand("fault", prefix_name=False)]
)
ACTIONS = ("run", "game", "seats", "critic", "others", "world", "time", "ladder", "fault")


def doctor(action: Annotated[Action, tyro.conf.arg(name="")]) -> int:
    """Find out what is wrong with a game or a run, with evidence. `hopplus doctor RUN` asks all questions.

    Exit code 1 if something is broken, 2 if it cannot be examined.

    Args:
        action: The question.
    """
    return action()


def with_action(arguments: list[str]) -> list[str]:
    """Turn `doctor RUN` into `doctor run RUN`, and quote the command after `doctor fault NAME`."""
    if arguments[:2] == ["doctor", "fault"] and len(arguments) > 3:
        return [*arguments[:3], shlex.join(arguments[3:])]
    is_short = arguments[:1] == ["doctor"] and len(arguments) > 1 and arguments[1] not in (*ACTIONS, "-h", "--help")
    return ["doctor", "run", *arguments[1:]] if is_short else arguments


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


def ask_run(folder: Path, questions: tuple[str, ...], compare_with: tuple[Path, ...], json_line: bool) -> int:
    """Examine a run, and write a page and a JSON file into its folder."""
    with Watch() as watch:
        examination = examine(folder, questions, compare_with=compare_with, on_finding=watch.on_finding)
    name = "doctor" if questions == ALL else f"doctor_{questions[0]}"
    write_json(folder / f"{name}.json", examination.to_json())
    return show(examination, folder / f"{name}.html", json_line)


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
