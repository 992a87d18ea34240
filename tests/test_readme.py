"""The front door is true: its code runs, its tables are those of the results, and both languages say the same."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hopplus.cli.figures import to_json
from hopplus.cli.main import VERBS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)


SNIPPETS = [
    (page, code)
    for code, page in {
        code: page.relative_to(ROOT).as_posix() for page in reversed(PAGES) for code in python_blocks(page)
    }.items()
]
"""Each once: pages in two languages have the same code."""


@pytest.mark.parametrize(("page", "code"), SNIPPETS, ids=[page for page, _ in SNIPPETS])
def test_the_code_of_every_page_runs(page, code):
    exec(compile(code, page, "exec"), {})


def test_both_readmes_hold_the_same_code_and_commands():
    english, chinese = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
    assert python_blocks(ROOT / "README.md") == python_blocks(ROOT / "README.zh-CN.md")
    commands = [
        re.findall(r"^    ((?:hopplus|pip) .*?)(?:\s+#.*)?$", text, flags=re.MULTILINE) for text in (english, chinese)
    ]
    assert commands[0] == commands[1] and len(commands[0]) >= 7
    assert len(re.findall(r"^## ", english, re.MULTILINE)) == len(re.findall(r"^## ", chinese, re.MULTILINE))


def test_both_pages_of_the_notes_have_the_same_sections_tables_and_commands():
    english, chinese = ((ROOT / "docs" / name).read_text() for name in ("notes.md", "notes.zh-CN.md"))
    for pattern in (
        r"^(#+) ",
        r"^<!-- (results:\w+) -->",
        r"^    ((?:hopplus|python) .*?)(?:\s+#.*)?$",
        r"^\| `(--.*?)` \|",
    ):
        found, wanted = (re.findall(pattern, text, flags=re.MULTILINE) for text in (chinese, english))
        assert found == wanted and len(found) > 5, pattern


def test_every_command_of_the_docs_is_a_verb_that_exists():
    used = {verb for page in PAGES for verb in re.findall(r"^    hopplus (\S+)", page.read_text(), flags=re.MULTILINE)}
    assert used and used <= set(VERBS)


def anchors(path):
    """What a link's # can name: the headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    for page in [*PAGES, ROOT / "README.zh-CN.md", ROOT / "CONTRIBUTING.md"]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", page.read_text()):
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name} links to {target}, which does not exist"
            assert not anchor or anchor in anchors(path), f"{page.name}: {target} has no heading #{anchor}"


def test_tables_are_those_of_the_results():
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr + "run: python scripts/tables.py"


def test_every_result_says_how_it_was_made_and_is_rounded():
    paths = sorted((ROOT / "results").glob("*.json"))
    assert len(paths) > 100
    for path in paths:
        result = json.loads(path.read_text())
        assert result["commands"] and all(isinstance(command, str) for command in result["commands"]), path.name
        assert result["version"] and not {"command", "trained_by"} & set(result), path.name
        assert result == to_json(result), f"{path.name} has floats that are not rounded"
