"""Every agent of `hopplus train` has a row in docs/papers.md and in every translation of it."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from hopplus.agents.named import NAMES
from hopplus.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.name for path in (ROOT / "docs").glob("papers*.md"))
ROW = re.compile(r"^\| (?P<agent>.*?) \| (?P<paper>.+?) \| (?P<files>.+?) \| (?P<flags>.+?) \|$", re.MULTILINE)


def rows(page: str) -> list[re.Match[str]]:
    found = list(ROW.finditer((ROOT / "docs" / page).read_text(encoding="utf-8")))
    return [row for row in found if "`" in row["files"]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_there_is_a_page_in_each_language():
    assert PAGES == ["papers.md", "papers.zh-CN.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_agent_has_a_row_and_a_paragraph(page):
    named = [name for row in rows(page) for name in names_in(row["agent"])]
    assert sorted(named) == sorted(NAMES)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    bold = {name for part in re.findall(r"^\*\*(.*?)\*\*", text, re.MULTILINE) for name in names_in(part)}
    assert {*NAMES} - bold == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_file_exists_and_every_flag_is_one(page, capsys):
    with suppress(SystemExit):
        main(["train", "hop_plus", "--help-all"])
    known = {*re.findall(r"--[a-z][\w.-]*\w", capsys.readouterr().out)}
    assert len(known) > 100
    for row in rows(page):
        for name in names_in(row["files"]):
            assert (ROOT / "src" / "hopplus" / name).is_file(), name
        assert {flag.split()[0] for flag in names_in(row["flags"])} - known == set()


def test_both_languages_have_the_same_files_and_flags():
    english, chinese = ([(names_in(row["files"]), names_in(row["flags"])) for row in rows(page)] for page in PAGES)
    assert english == chinese
