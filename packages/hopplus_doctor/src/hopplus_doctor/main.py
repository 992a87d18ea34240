"""`hopplus-doctor`: examine recordings, logs or a PettingZoo environment, without JAX."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hopplus_doctor.answer import Examination
from hopplus_doctor.version import __version__

CLOSED_PIPE = 141
"""The exit code of programs that a closed pipe stops."""
ABOUT = """Find out what is wrong with multi-agent training that was written in anything.

Exit code 1 if something is broken, 2 if it cannot be examined."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 0: done; 1: something is broken; 2: it cannot be examined, and stderr says why."""
    asked = parser().parse_args(arguments)
    try:
        return asked.run(asked)
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        print(f"hopplus-doctor: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    program = argparse.ArgumentParser("hopplus-doctor", description=ABOUT)
    program.add_argument("--version", action="version", version=__version__)
    commands = program.add_subparsers(required=True, metavar="COMMAND")
    recording = commands.add_parser("recording", help="examine recordings that hopplus_doctor.Recorder wrote")
    recording.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a recording; several are seeds")
    recording.add_argument("--env", metavar="MODULE:FACTORY", help="a function that makes the recorded ParallelEnv")
    recording.add_argument("--seconds", type=float, default=30.0, help="seconds of random play of that environment")
    recording.set_defaults(
        run=lambda asked: ask_recording(asked.folders, asked.page, asked.json, env=asked.env, seconds=asked.seconds)
    )
    logs = commands.add_parser("logs", help="examine TensorBoard events, CSV or JSON lines")
    logs.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="the logs of a run; several are seeds")
    logs.add_argument("--tags", type=Path, help="a TOML file that says which tag is what; written if it is not there")
    logs.set_defaults(run=lambda asked: ask_logs(asked.folders, asked.tags, asked.page, asked.json))
    game = commands.add_parser("game", help="does a PettingZoo environment treat its agents alike?")
    game.add_argument("--env", required=True, metavar="MODULE:FACTORY", help="a function that makes a ParallelEnv")
    game.add_argument("--alike", metavar="NAMES|all", help="the agents to compare, with commas, or all")
    game.add_argument("--seconds", type=float, default=60.0, help="seconds of random play")
    game.add_argument("--episodes", type=int, help="episodes of random play, instead of --seconds")
    game.add_argument("--seed", type=int, default=0, help="the seed of all random numbers")
    game.set_defaults(run=_ask_env)
    for command in (recording, logs, game):
        command.add_argument("--page", type=Path, help="write an HTML page to this file")
        command.add_argument("--json", action="store_true", help="print one line of JSON instead of a table")
    return program


def ask_recording(
    folders: Sequence[Path],
    page: Path | None,
    json_line: bool,
    program: str = "hopplus-doctor",
    *,
    env: str | None = None,
    seconds: float = 30.0,
) -> int:
    """Examine recordings. The page and a JSON file go into the first folder unless `page` names another file."""
    from hopplus_doctor.examination import examine_recordings
    from hopplus_doctor.terminal import Watch

    with Watch() as watch:
        examination = examine_recordings(
            folders, on_finding=watch.on_finding, program=program, env=env, seconds=seconds
        )
    return written(examination, folders[0], page, json_line)


def ask_logs(
    folders: Sequence[Path], tags: Path | None, page: Path | None, json_line: bool, program: str = "hopplus-doctor"
) -> int:
    """Examine logs. The mapping of tags is guessed and shown, and is read from `tags` if that file is there."""
    from hopplus_doctor.log_questions import examine_logs

    examination, mapping = examine_logs(folders, tags, program=program)
    if not json_line:
        print(mapping)
    return written(examination, folders[0] if folders[0].is_dir() else None, page, json_line)


def _ask_env(asked: argparse.Namespace) -> int:
    from hopplus_doctor.environment import examine_env, load_env
    from hopplus_doctor.terminal import Watch, show

    alike = () if asked.alike is None else tuple(name.strip() for name in asked.alike.split(","))
    with Watch() as watch:
        answer = examine_env(
            load_env(asked.env),
            asked.env,
            seconds=asked.seconds,
            episodes=asked.episodes,
            alike=alike,
            seed=asked.seed,
            on_progress=watch.note,
        )
    command = f"hopplus-doctor game --env {asked.env} --seed {asked.seed}"
    return show(Examination(asked.env, command, __version__, (answer,), "hopplus-doctor"), asked.page, asked.json)


def written(examination: Examination, folder: Path | None, page: Path | None, json_line: bool) -> int:
    """Write the page, and the JSON file into the folder; print. Returns the exit code."""
    from hopplus_doctor.terminal import show

    if page is None and folder is not None:
        page = folder / "doctor.html"
        text = json.dumps(examination.to_json(), indent=1)
        (folder / "doctor.json").write_text(text + "\n", encoding="utf-8")
    return show(examination, page, json_line)


def entry() -> None:
    """The entry point of the `hopplus-doctor` program."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # as in `hopplus-doctor recording FOLDER | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED_PIPE
    sys.exit(code)
