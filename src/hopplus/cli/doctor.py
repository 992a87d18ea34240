"""`hopplus doctor`: what is wrong with a game or a run, with evidence."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro
from rich.console import Console

from hopplus import __version__
from hopplus.cli.games import GameName
from hopplus.cli.verdicts import print_examination
from hopplus.doctor.answer import Answer, Examination, Finding, Tell, settled
from hopplus.doctor.examine import ALL, examine
from hopplus.doctor.faults import switched_on
from hopplus.doctor.game import ask, ask_env, load_env
from hopplus.doctor.ladder import Symptom, climb, read_ladder
from hopplus.games.presets import make
from hopplus.report.doctor import doctor_page
from hopplus.runs.folder import write_json

RunFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
JsonLine = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True)
class AskGame:
    """Does the game treat seats alike? Relabelled seats, first boards, and what seats get by random play."""

    game: Annotated[tyro.conf.Positional[GameName | None], tyro.conf.arg(metavar="GAME")] = None
    """A name from `hopplus games`, or MODULE:FACTORY for a game of your own."""
    env: str | None = None
    """MODULE:FACTORY of any PettingZoo ParallelEnv instead, as in my_envs:make."""
    seconds: float = 60.0
    """How long to play at random: the longer, the smaller a bias is found."""
    seed: int = 0
    """The seed of all random draws."""
    page: Path | None = None
    """Write an HTML page there."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        if (self.game is None) == (self.env is None):
            raise ValueError("name a game, as in `hopplus doctor game stag-hunt-4x4`, or give --env MODULE:FACTORY")
        with Watch() as watch:
            watch.tell("game", None)
            answer = self._ask(watch.note)
        name = self.game or f"--env {self.env}"
        command = f"hopplus doctor game {name} --seconds {self.seconds:g} --seed {self.seed}"
        found = Examination(self.game or str(self.env), command, __version__, (answer,))
        return show(found, self.page, self.json)

    def _ask(self, tell: Tell) -> Answer:
        if self.game is not None:
            return ask(make(self.game), self.game, seconds=self.seconds, seed=self.seed, tell=tell)
        assert self.env is not None
        return ask_env(load_env(self.env), self.env, seconds=self.seconds, seed=self.seed, tell=tell)


@dataclass(frozen=True)
class AskRun:
    """Ask everything that applies, and write one page: RUN/doctor.html, and RUN/doctor.json."""

    folder: RunFolder
    """The run's folder."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""
    questions: ClassVar[tuple[str, ...]] = ALL

    def __call__(self) -> int:
        return ask_run(self.folder, self.questions, (), self.json)


@dataclass(frozen=True)
class AskSeats:
    """Does training treat seats alike? Streams, samples, targets, one update with the seats turned, returns.

    More runs, of other seeds or of shared parameters, are compared with the first.
    """

    folder: RunFolder
    """The run's folder."""
    beside: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Runs to compare it with."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        return ask_run(self.folder, ("seats",), self.beside, self.json)


@dataclass(frozen=True)
class AskCritic(AskRun):
    """What feeds the critic? Value losses by source, real against imagined, and which part is to blame."""

    questions: ClassVar[tuple[str, ...]] = ("critic",)


@dataclass(frozen=True)
class AskOthers(AskRun):
    """Is the opponent model good, and is it used? Yardsticks, recall, calibration, shuffled goals."""

    questions: ClassVar[tuple[str, ...]] = ("others",)


@dataclass(frozen=True)
class AskWorld(AskRun):
    """Is the world model good where it matters? Boards, ends, what pays, impossible outcomes, where it errs."""

    questions: ClassVar[tuple[str, ...]] = ("world",)


@dataclass(frozen=True)
class AskTime(AskRun):
    """Where does the time go? Phases of an update, compiling, speed over the run."""

    questions: ClassVar[tuple[str, ...]] = ("time",)


@dataclass(frozen=True)
class ClimbLadder:
    """Which module brings the symptom? Trains ppo, +goals, +others, +world, +imagination, full, and compares.

    Runs as a study on Ray: Ctrl-C stops it, and the same command goes on.
    """

    folder: RunFolder
    """A run with the symptom: its settings are the top of the ladder."""
    out: Path
    """The folder of the ladder's runs."""
    symptom: Symptom = "value_loss"
    """What to look for: a large value loss on real data, returns that differ by seat, or a low return."""
    steps: int | None = None
    """Steps of each rung; None: as many as the run."""
    json: JsonLine = False
    """Print one line of JSON instead of a table."""

    def __call__(self) -> int:
        ladder = read_ladder(self.folder, self.symptom, self.steps)
        with Watch() as watch:
            answer = climb(ladder, self.out, tell=watch.note)
        command = f"hopplus doctor ladder {self.folder} --out {self.out} --symptom {self.symptom}"
        found = Examination(str(self.folder), command, __version__, settled([answer]))
        write_json(self.out / "doctor.json", found.to_json())
        return show(found, self.out / "doctor.html", self.json)


@dataclass(frozen=True)
class WithFault:
    """Run another command with a fault switched on: to see what the doctor says, or how bad the fault is.

    For example: hopplus doctor fault imagined_reward_x5 train hop_plus --steps 12000 --out runs/broken
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Which fault; see the docs, or give any word to get the list."""
    command: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="COMMAND")]
    """What to run, as after `hopplus`."""

    def __call__(self) -> int:
        from hopplus.cli.main import main

        with switched_on(self.name) as fault:
            print(f"with a fault: {fault.about}")
            game = ["--game", fault.game] if fault.game and self.command[0] == "train" else []
            return main([*self.command, *game])


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
    """Find out what is wrong with a game or a run, with evidence. `hopplus doctor RUN` asks everything.

    Exit code 1 where something is broken.

    Args:
        action: What to ask.
    """
    return action()


def with_action(arguments: list[str]) -> list[str]:
    """`doctor RUN` means `doctor run RUN`."""
    is_short = arguments[:1] == ["doctor"] and len(arguments) > 1 and arguments[1] not in (*ACTIONS, "-h", "--help")
    return ["doctor", "run", *arguments[1:]] if is_short else arguments


class Watch:
    """Says what is being looked at, on a terminal; else a line for each question."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status = self._console.status("")

    def __enter__(self) -> "Watch":
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def tell(self, question: str, finding: Finding | None) -> None:
        self.note(f"{question}: {finding.check} is {finding.verdict}" if finding else f"asking: {question}")
        if finding is None and not self._console.is_terminal:
            self._console.print(f"asking: {question}")

    def note(self, words: str) -> None:
        """For a terminal alone, where the next note takes its place."""
        if self._console.is_terminal:
            self._status.update(words)


def ask_run(folder: Path, questions: tuple[str, ...], beside: tuple[Path, ...], json_line: bool) -> int:
    """Ask, and write a page and a file into the run's folder."""
    with Watch() as watch:
        found = examine(folder, questions, beside=beside, told=watch.tell)
    name = "doctor" if questions == ALL else f"doctor_{questions[0]}"
    write_json(folder / f"{name}.json", found.to_json())
    return show(found, folder / f"{name}.html", json_line)


def show(found: Examination, page: Path | None, json_line: bool) -> int:
    """Print it, write its page, and say by the exit code whether something is broken."""
    if page is not None:
        page.write_text(doctor_page(found))
    if json_line:
        print(json.dumps(found.to_json()))
    else:
        print_examination(found, Console())
        if page is not None:
            print(f"wrote {page}")
    return 1 if found.verdict == "broken" else 0
