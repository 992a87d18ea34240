"""`hopplus doctor`: find out what is wrong with a game or a run, with evidence."""

import json
import shlex
from pathlib import Path

from rich.console import Console

from hopplus import __version__
from hopplus.cli.verbs.doctor import AskGame, ClimbLadder, WithFault
from hopplus.cli.verdicts import print_examination
from hopplus.doctor.answer import Answer, Examination, Finding, OnProgress, settled
from hopplus.doctor.examination import examine
from hopplus.doctor.faults import switched_on
from hopplus.doctor.game import examine_env, examine_game, load_env
from hopplus.doctor.ladder import climb, read_ladder
from hopplus.doctor.questions import ALL
from hopplus.doctor.recorded import examine_recorded
from hopplus.games.presets import make
from hopplus.report.doctor import doctor_page
from hopplus.runs.folder import write_json


def ask_game(asked: AskGame) -> int:
    """Examine a game or a PettingZoo environment."""
    if (asked.game is None) == (asked.env is None):
        raise ValueError("name a game, as in `hopplus doctor game stag-hunt-4x4`, or give --env MODULE:FACTORY")
    if asked.alike is not None and asked.env is None:
        raise ValueError("--alike is for --env; leave it out: all seats of a hopplus game are compared")
    if asked.recorded is not None and asked.game is None:
        raise ValueError("--recorded is for games of hopplus; name the game that was played in the page")
    with Watch() as watch:
        watch.on_finding("game", None)
        answer = _examine_game(asked, watch.note)
    name = asked.game or f"--env {asked.env}" + (f" --alike {asked.alike}" if asked.alike else "")
    budget = f"--seconds {asked.seconds:g}" if asked.episodes is None else f"--episodes {asked.episodes}"
    budget = f"{budget} --seed {asked.seed}" if asked.recorded is None else f"--recorded {asked.recorded}"
    command = f"hopplus doctor game {name} {budget}"
    return show(Examination(asked.game or str(asked.env), command, __version__, (answer,)), asked.page, asked.json)


def _examine_game(asked: AskGame, on_progress: OnProgress) -> Answer:
    budget = {"seconds": asked.seconds, "episodes": asked.episodes, "seed": asked.seed}
    if asked.game is not None and asked.recorded is not None:
        return examine_recorded(make(asked.game), asked.game, asked.recorded)
    if asked.game is not None:
        return examine_game(make(asked.game), asked.game, **budget, on_progress=on_progress)
    assert asked.env is not None
    alike = () if asked.alike is None else tuple(name.strip() for name in asked.alike.split(","))
    return examine_env(load_env(asked.env), asked.env, alike=alike, **budget, on_progress=on_progress)


def climb_ladder(asked: ClimbLadder) -> int:
    """Train the rungs, and compare them."""
    ladder = read_ladder(asked.folder, asked.symptom, asked.steps)
    with Watch() as watch:
        answer = climb(ladder, asked.out, on_progress=watch.note)
    command = f"hopplus doctor ladder {asked.folder} --out {asked.out} --symptom {asked.symptom}"
    examination = Examination(str(asked.folder), command, __version__, settled([answer]))
    write_json(asked.out / "doctor.json", examination.to_json())
    return show(examination, asked.out / "doctor.html", asked.json)


def run_with_fault(asked: WithFault) -> int:
    """Run a command with a fault switched on."""
    from hopplus.cli.main import main

    with switched_on(asked.name) as fault:
        print(f"with a fault: {fault.about}", flush=True)
        typed = shlex.split(asked.command)
        game = ["--game", fault.game] if fault.game and typed[:1] == ["train"] else []
        return main([*typed, *game])


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
