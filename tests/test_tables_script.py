"""The script that writes the tables of the pages: what it shows before and after a result is there."""

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "tables.py"
TABLE = {
    "file": "study",
    "over": "variants > *",
    "picture": {"file": "pictures/study.png", "about": {"en": "Returns", "zh": "回报"}},
    "not_yet": ["python benchmarks/study.py"],
    "caption": {"en": "What it found.", "zh": "结果。"},
    "columns": [
        [{"en": "variant", "zh": "变体"}, "{word $1}"],
        ["return", "{return | .2f}"],
        ["says", "{says | word}"],
        ["blames", "{blamed | or -}"],
    ],
}
RESULT = {
    "version": "1",
    "commands": ["python benchmarks/study.py"],
    "variants": {"one step": {"return": 2.5, "says": "yes", "blamed": "a | b"}, "new": {"return": 1, "says": "no"}},
}


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The script, with results in a folder of the test."""
    spec = importlib.util.spec_from_file_location("tables", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "tables", module)
    spec.loader.exec_module(module)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "CHINESE", {"one step": "一步", "yes": "是"})
    return module


def test_a_table_without_results_shows_the_commands_that_make_them(tables):
    written = tables.Writer("en").env(TABLE)
    assert "There are no figures yet" in written and "python benchmarks/study.py" in written
    assert "|" not in written and "![" not in written
    assert "尚无数据" in tables.Writer("zh").env(TABLE)


def test_a_table_with_results_has_its_picture_and_its_rows(tables, tmp_path):
    (tmp_path / "results" / "study.json").write_text(json.dumps(RESULT))
    written = tables.Writer("en").env(TABLE)
    assert written.startswith("![Returns](pictures/study.png)\n\nWhat it found.")
    assert "| one step | 2.50 | yes | a \\| b |" in written and "| new | 1.00 | no | - |" in written
    chinese = tables.Writer("zh").env(TABLE)
    assert chinese.startswith("![回报](pictures/study.png)\n\n结果。")
    assert "| 一步 | 2.50 | 是 | a \\| b |" in chinese, "known words are translated, others stay"
    assert "| new | 1.00 | no | - |" in chinese


def test_a_table_that_needs_results_fails_without_them(tables):
    needed = {key: value for key, value in TABLE.items() if key != "not_yet"}
    with pytest.raises(FileNotFoundError):
        tables.Writer("en").env(needed)
