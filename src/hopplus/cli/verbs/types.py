"""Types that several verbs share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import tyro

GameName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GAME")]
Folder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
RunPath = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
Switch = tyro.conf.FlagCreatePairsOff[bool]


def print_choices(program: str, about: str, choices: Mapping[str, str], typed: list[str]) -> int:
    """Print the help of a program that expects one of several words, or say that the first word is none of them."""

    def chosen(words: str) -> Any:
        def choice() -> None: ...

        choice.__doc__ = words
        return choice

    parsers = {word: chosen(words.split("\n\n")[0]) for word, words in choices.items()}
    tyro.extras.subcommand_cli_from_dict(parsers, prog=program, description=about, args=typed)
    return 2
