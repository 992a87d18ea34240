"""The reference is whole: every flag, every settings field, every metric tag and every public name is in it."""

import ast
import io
import json
import re
from contextlib import redirect_stdout, suppress
from dataclasses import fields
from pathlib import Path

import pytest

from docs_site import reference
from hopplus.cli.main import VERBS, main
from hopplus.runs.tags import TAGS, about, family

ROOT = Path(__file__).resolve().parents[2]
ACTIONS: dict[str, tuple[str, ...]] = {
    "doctor": ("game", "run", "seats", "critic", "others", "world", "time", "ladder", "fault")
}
ACTIONS["doctor"] += ("recording", "logs", "record")
ACTIONS["study"] = ("run", "status", "report")
FLAG = re.compile(r"(?<![\w-])--[a-z](?:[\w.-]*\w)?")
SOURCED = re.compile(r"^(charts|policy|real|imagined|moa|goal|wm|trust|held_out|utilities|count|buffer)/[\w{}/.]*$")
IN_PARTS = {"imagined/", "goal/", "wm/", "policy/", "count/", "buffer/"}
"""Beginnings that the code joins with other names; the golden runs have those tags."""
OF_PRETRAINING = {"held_out/top1", "held_out/top3", "held_out/ce_loss", "held_out/exact_next_state"}
OF_PRETRAINING |= {"held_out/open_loop_exact", "held_out/"}


def said(*arguments: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        main(list(arguments))
    return out.getvalue()


@pytest.fixture(scope="module")
def cli_page():
    return reference.cli()


@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_that_help_prints_is_in_the_reference(verb, cli_page):
    """Help is printed by the command itself, the page is written from the parsers."""
    section = "\n".join(part for part in cli_page.split("\n## ") if part.startswith(f"hopplus {verb}"))
    if verb == "train":
        printed = [said("train", "hop_plus", "--help-all")]
    else:
        printed = [said(verb, *action, "--help") for action in [(each,) for each in ACTIONS.get(verb, ())] or [()]]
    flags = {flag for text in printed for flag in FLAG.findall(text)} - {"--help"}
    named = set(FLAG.findall(section))
    assert all(printed) and flags - named - {"--cache", "--no-json"} == set()
    assert verb in ("games", "runs", "check") or len(flags) >= 1


def test_every_settings_field_is_in_the_reference_with_its_words():
    page = reference.settings()
    sections = {part.split("\n")[0]: part for part in page.split("\n## ")}
    classes = reference.settings_classes()
    assert len(classes) > 15 and {"RunConfig", "PPOConfig", "SearchConfig", "Recipe"} <= {*sections}
    for kind in classes:
        for field in fields(kind):
            row = re.search(rf"^\| `{field.name}` \|.*\| (.*) \|$", sections[kind.__name__], re.MULTILINE)
            assert row and len(row[1]) > 5, f"{kind.__name__}.{field.name}"
    assert not re.search(r"<function|0x[0-9a-f]{6}", page)


def recorded_tags() -> set[str]:
    """The tags of the golden runs, one of every agent."""
    lines = [path.read_text().splitlines()[0] for path in (ROOT / "tests" / "golden").rglob("metrics.jsonl")]
    assert len(lines) >= 7
    return {tag for line in lines for tag in json.loads(line)} - {"update", "env_steps"}


def sourced_tags() -> set[str]:
    """The tags that are written in the source; what an f-string fills in is a word in angle brackets."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=str(text)) if SOURCED.match(text):
                    found.add(text)
                case ast.JoinedStr(values=parts):
                    words = [str(part.value) if isinstance(part, ast.Constant) else "{x}" for part in parts]
                    text = "".join(words)
                    found |= {text} if SOURCED.match(text) else set()
    return found


def test_every_metric_tag_has_an_entry():
    recorded = recorded_tags()
    assert {tag for tag in recorded if about(tag) is None} == set() and len({family(tag) for tag in recorded}) > 60
    sourced = {tag.split("{")[0] for tag in sourced_tags()} - OF_PRETRAINING - IN_PARTS
    entries = {entry.split("<")[0] for entry in TAGS}
    lost = {tag for tag in sourced if not (tag in entries or about(tag) or about(f"{tag}_mean"))}
    assert lost == set() and len(sourced) > 40


def test_every_entry_is_a_tag_that_something_writes():
    written = {family(tag) for tag in recorded_tags()} | {tag.split("{")[0] for tag in sourced_tags()}
    assert {entry for entry in TAGS if not {entry.split("<")[0], about_of(entry)} & written} == set()


def about_of(entry: str) -> str:
    """The beginning that the code joins, as `real/reward` of `real/reward_mean`."""
    return re.sub(r"_(mean|std|min|max)$", "", entry)


def test_tags_are_found_with_their_seats():
    assert about("moa/top1/player_1_of_2") == TAGS["moa/top1"]
    assert about("charts/episodic_return/mean") == TAGS["charts/episodic_return"]
    assert about("moa/recall/hunt_stag/player_2") == TAGS["moa/recall/<action>"]
    assert about("no_such/tag") is None and about("policy/no_such") is None


def test_every_metric_tag_is_in_the_reference():
    page = reference.metrics()
    assert all(f"| `{tag}` |" in page for tag in TAGS)


@pytest.mark.parametrize("folder", reference.FOLDERS)
def test_every_public_name_has_a_docstring(folder):
    named = list(reference.public_names(folder))
    assert named and [name for name, _, text in named if not text] == []


def test_the_api_page_has_every_public_name():
    page = reference.api()
    for folder in reference.FOLDERS:
        title = f"hopplus.{folder}" if folder else "hopplus"
        assert all(f"### {title}.{name}\n" in page for name, _, _ in reference.public_names(folder))


def test_the_page_of_the_run_folder_has_every_file():
    page = reference.run_folder()
    assert all(f"`{name}`" in page for name in ("config.json", "metrics.jsonl", "checkpoints/", "ended.json", "lock"))
