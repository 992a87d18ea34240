"""Words that the glossary replaced: none is left as a name in the code, nor as a phrase in the docs."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REPLACED = frozenset(
    """
    Table open_table Company company told Mind MindConfig minds Impression impression perceive met_anew Lesson Prepared
    Thought Look look_at look_back lived happened Circumstances dealt_out in_parts foresee Outlook foretold deed deeds
    begin_with play_out single_minded really what_became
    """.split()  # noqa: SIM905
)
STUDY = frozenset({"study", "Study"})
"""A study is many runs, and nothing else."""
STUDIES = (
    "src/hopplus/runs/studies/",
    "src/hopplus/cli/",
    "src/hopplus/report/study.py",
    "src/hopplus/runs/__init__.py",
    "src/hopplus/doctor/ladder.py",
)
"""Where studies are defined, or imported."""
PHRASES = (
    "hunters of hares",
    "begun with",
    "company",
    "gone on with",
    "met anew",
    "at the table",
    "mended",
    "in vain",
    "whoever",
    "dice",
    "the ladder of changes",
    "同桌",
)
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "packages", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "README.zh-CN.md"])


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """Every name of a Python file with its line, also inside f-strings, which Python 3.11 reads as one token."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield line, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield line, name
            case ast.alias(name=name, asname=other):
                yield from ((line, part) for part in (*name.split("."), other) if part)


def found_in(path: str, wanted: frozenset[str]) -> list[str]:
    """Where a file uses one of these names."""
    source = (ROOT / path).read_text(encoding="utf-8")
    return [f"{path}:{line}: {name}" for line, name in sorted(set(names_in(source))) if name in wanted]


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Whole words with any white space between them; Chinese has no spaces between words."""
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(rf"\b{words}\b" if phrase.isascii() else words, re.IGNORECASE)


def test_all_of_the_code_is_read():
    assert "src/hopplus/learning/learner.py" in SOURCES and len(SOURCES) > 100
    assert ROOT / "README.md" in PAGES and len(PAGES) > 10


@pytest.mark.parametrize(
    "source",
    [
        "told = 1",
        "x.told",
        "def told(): ...",
        "class told: ...",
        "lambda told: 0",
        "f(told=1)",
        "import told.x",
        "from a import b as told",
        "f'{told} {x.told}'",
        "f'{f(told=1)}'",
        "global told",
    ],
)
def test_names_are_seen_wherever_they_are(source):
    assert "told" in {name for _, name in names_in(source)}


@pytest.mark.parametrize("source", ["'told'", "# told", "'''As told.'''", "told_rewards = 1", "f'told {x}'"])
def test_prose_and_other_names_are_not_seen(source):
    assert "told" not in {name for _, name in names_in(source)}


@pytest.mark.parametrize("path", SOURCES)
def test_no_replaced_word_is_left_as_a_name(path):
    assert found_in(path, REPLACED) == []


def test_study_is_a_name_only_where_it_means_many_runs():
    outside = [place for path in SOURCES if not path.startswith(STUDIES) for place in found_in(path, STUDY)]
    assert outside == []
    assert all(found_in(path, STUDY) for path in ("src/hopplus/runs/studies/study.py", "src/hopplus/doctor/ladder.py"))


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_replaced_phrase_is_left_in_the_docs(phrase):
    pattern, places = phrase_pattern(phrase), []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = (text.count("\n", 0, match.start()) + 1 for match in pattern.finditer(text))
        places += [f"{page.relative_to(ROOT)}:{line}" for line in lines]
    assert places == []


def test_a_phrase_is_found_across_lines_and_as_whole_words():
    assert phrase_pattern("at the table").search("sits At the\n  table.")
    assert not phrase_pattern("dice").search("indices")
    assert phrase_pattern("同桌").search("与同桌一起")
