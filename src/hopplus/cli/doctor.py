"""`hopplus doctor`: find out what is wrong with a game or a run, with evidence."""

import shlex
from pathlib import Path

from hopplus import __version__
from hopplus.cli.verbs.doctor import AskGame, ClimbLadder, WithFault
from hopplus.doctor.examination import examine
from hopplus.doctor.faults import switched_on
from hopplus.doctor.game import examine_game
from hopplus.doctor.ladder import climb, read_ladder
from hopplus.doctor.questions import ALL
from hopplus.doctor.recorded import examine_recorded
from hopplus.games.presets import make
from hopplus.runs.folder import write_json
from hopplus_doctor.answer import Answer, Examination, OnProgress, settled
from hopplus_doctor.environment import examine_env, load_env
from hopplus_doctor.terminal import Watch, show


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

    typed = shlex.split(asked.command)
    if typed[:1] == ["study"] or typed[:2] == ["doctor", "ladder"]:
        raise ValueError(
            "studies and ladders train in processes of their own, which have no fault; give a command that trains "
            "here, as in `hopplus doctor fault NAME train ppo`"
        )
    with switched_on(asked.name) as fault:
        print(f"with a fault: {fault.about}", flush=True)
        game = ["--game", fault.game] if fault.game and typed[:1] == ["train"] else []
        return main([*typed, *game])


def ask_run(folder: Path, questions: tuple[str, ...], compare_with: tuple[Path, ...], json_line: bool) -> int:
    """Examine a run, and write a page and a JSON file into its folder."""
    with Watch() as watch:
        examination = examine(folder, questions, compare_with=compare_with, on_finding=watch.on_finding)
    name = "doctor" if questions == ALL else f"doctor_{questions[0]}"
    write_json(folder / f"{name}.json", examination.to_json())
    return show(examination, folder / f"{name}.html", json_line)
