"""The commands of the pages for beginners: each is one that the command line accepts, and by hand all of them run.

The examples that the tutorials use are trained, evaluated and checked with small sizes in tests/test_own.py and
tests/test_examples.py. `pytest -m heavy tests/docs` runs every page to the letter, in an empty folder.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tyro

from hopplus.cli import main
from hopplus.cli.verbs import doctor, study, train

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("start", "tutorials", "concepts")
PAGES = sorted(
    [
        "examine_your_trainer.md",
        *(
            path.relative_to(ROOT / "docs").as_posix()
            for folder in FOLDERS
            for path in (ROOT / "docs" / folder).glob("*.md")
            if not path.stem.endswith(".zh-CN")
        ),
    ]
)
LONG = {"tutorials/never_met.md"}
"""Default commands of many minutes, which benchmarks/defaults.py measures; this page quotes them."""
COMMAND = re.compile(r"^    (hopplus .*?)(?:\s+#.*)?$", re.MULTILINE)


def commands(page: str) -> list[list[str]]:
    """The commands of a page, without the program's name."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [shlex.split(line)[1:] for line in COMMAND.findall(text)]


def accepted(typed: list[str]) -> object:
    """What a command line says, without running it; it ends the program if it is not accepted."""
    verb, arguments = typed[0], typed[1:]
    if verb == "train":
        return train.read(arguments)
    if verb in ("doctor", "study"):
        module = {"doctor": doctor, "study": study}[verb]
        given = doctor.with_action(arguments) if verb == "doctor" else arguments
        return tyro.cli(module.Action, args=given)
    return tyro.cli(main._defined(verb)[1], args=arguments)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the examples, as `cd examples` leaves it, and as a command from above names them."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for path in (ROOT / "examples").glob("own_*.py"):
        shutil.copy(path, tmp_path)
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("here")
def test_every_command_is_accepted(page):
    for typed in commands(page):
        assert accepted(typed) is not None, typed


def test_the_pages_have_commands():
    assert len(PAGES) > 14 and sum(len(commands(page)) for page in PAGES) > 40
    assert all(commands(page) for page in PAGES if page.startswith("tutorials"))


@pytest.mark.parametrize("page", ["start/install.md", "tutorials/own_game.md"])
@pytest.mark.usefixtures("here")
def test_quick_commands_run(page, capsys):
    """Those that need no training."""
    quick = [typed for typed in commands(page) if typed[0] in ("games", "check")]
    assert quick
    for typed in quick:
        small = [*typed, "--episodes", "400"] if typed[0] == "check" else typed
        assert main.main(small) == 0, capsys.readouterr().err


@pytest.mark.heavy
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page) and page not in LONG])
def test_every_page_runs_to_the_letter(page, here):
    if "runs/first" in str(commands(page)) and not any(typed[0] == "train" for typed in commands(page)):
        run(commands("start/first_run.md")[0], here)
    for typed in commands(page):
        if not {"GAME", "RUN", "FOLDER"} & {*typed}:
            run(typed, here)


def run(typed: list[str], folder: Path) -> None:
    """Run one command as a user does; the doctor may find something."""
    line = [sys.executable, "-c", "from hopplus.cli.main import entry; entry()", *typed]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)])}
    ended = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode in ((0, 1) if typed[0] == "doctor" else (0,)), f"{typed}: {ended.stderr}"
    print(shlex.join(typed), ended.stdout, sep="\n")
