"""`hopplus VERB`: parse a command line and run the verb."""

import sys

import tyro

from hopplus.cli.check import check
from hopplus.cli.crossplay import crossplay
from hopplus.cli.doctor import doctor, with_action
from hopplus.cli.evaluate import evaluate
from hopplus.cli.games import games
from hopplus.cli.play import play
from hopplus.cli.pretrain import pretrain
from hopplus.cli.report import report
from hopplus.cli.runs import runs
from hopplus.cli.study import study
from hopplus.cli.train import asks_for_help, names_own_agent, print_help, train, train_own
from hopplus.runs.training import NonFiniteRunError

VERBS = {
    "games": games,
    "check": check,
    "play": play,
    "pretrain": pretrain,
    "train": train,
    "evaluate": evaluate,
    "crossplay": crossplay,
    "runs": runs,
    "report": report,
    "study": study,
    "doctor": doctor,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Exit code 0: done; 1: a fault was found; 2: the command failed, and stderr says why."""
    try:
        typed = with_action(sys.argv[1:] if arguments is None else arguments)
        if asks_for_help(typed):
            return print_help(typed)
        if names_own_agent(typed):
            return train_own(typed)
        return tyro.extras.subcommand_cli_from_dict(VERBS, prog="hopplus", args=typed) or 0
    except NonFiniteRunError as error:
        print(f"hopplus: {error}", file=sys.stderr)
        return 1
    except (ValueError, OSError, ImportError) as error:
        print(f"hopplus: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def entry() -> None:
    """The entry point of the `hopplus` program."""
    sys.exit(main())
