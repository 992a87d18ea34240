"""`hopplus VERB`: parse a command line and run the verb. Only the modules of that verb are imported."""

import os
import sys
from importlib import import_module
from typing import Any

import tyro

from hopplus.cli.verbs.types import print_choices
from hopplus.core.checks import NonFiniteRunError
from hopplus.core.compiled import OFF, VARIABLE, use_cache

VERBS = {
    "games": "Games",
    "check": "Check",
    "play": "Play",
    "pretrain": "Pretrain",
    "train": "TRAIN",
    "evaluate": "Evaluate",
    "crossplay": "CrossPlay",
    "runs": "Runs",
    "report": "Report",
    "export": "Export",
    "share": "Share",
    "study": "STUDY",
    "doctor": "DOCTOR",
}
"""Each verb has a module in `cli.verbs`, with a class of its arguments, or with its help text and a function `run`."""
CACHE = "--cache"
CLOSED_PIPE = 141
"""The exit code of programs that a closed pipe stops."""
ABOUT = f"""Agents for mixed-motive games: they infer goals, predict co-players, learn a world model and can be audited.

Compiled programs are kept for the next command. `hopplus {CACHE} FOLDER VERB ...` or the variable {VARIABLE} moves them
to another folder; `{CACHE} {OFF}` keeps none."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Exit code 0: done; 1: a fault was found; 2: the command failed, and stderr says why."""
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        if typed[:1] and typed[0] in VERBS:
            return _run(typed[0], typed[1:]) or 0
        return print_choices("hopplus", ABOUT, {verb: _about(verb) for verb in VERBS}, typed)
    except NonFiniteRunError as error:
        print(f"hopplus: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        print(f"hopplus: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _defined(verb: str) -> tuple[Any, Any]:
    module = import_module(f"hopplus.cli.verbs.{verb}")
    return module, getattr(module, VERBS[verb])


def _run(verb: str, typed: list[str]) -> int:
    module, arguments = _defined(verb)
    if isinstance(arguments, str):
        return module.run(typed)
    return tyro.cli(arguments, prog=f"hopplus {verb}", args=typed)()


def _about(verb: str) -> str:
    _, arguments = _defined(verb)
    return arguments if isinstance(arguments, str) else arguments.__doc__


def entry() -> None:
    """The entry point of the `hopplus` program: it also sets the compilation cache, which JAX reads when it starts."""
    typed, place = sys.argv[1:], None
    if typed[:1] == [CACHE]:
        if len(typed) < 2:
            sys.exit(f"hopplus: give a folder, or {OFF}, after {CACHE}")
        place, typed = typed[1], typed[2:]
    use_cache(place)
    try:
        code = main(typed)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        # As in `hopplus runs | head`: nobody reads on. A console of rich has made a SystemExit of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED_PIPE
    sys.exit(code)
