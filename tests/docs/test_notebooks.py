"""The notebooks of docs/notebooks run, have their outputs stored, and become pages without running."""

import base64
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import notebooks as runner
from docs_site import notebooks, pages

ROOT = Path(__file__).resolve().parents[2]
WANTED = {"first_run", "beliefs", "value_loss", "your_environment"}
needs_jupyter = pytest.mark.skipif(importlib.util.find_spec("nbclient") is None, reason="needs the extra docs")


def cells(name: str) -> list[dict]:
    return json.loads((runner.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_there_is_a_notebook_for_each_question():
    assert {*runner.names()} == WANTED


@needs_jupyter
@pytest.mark.parametrize("name", sorted(WANTED))
def test_every_cell_runs_and_complains_of_nothing(name):
    line = [sys.executable, str(ROOT / "scripts" / "notebooks.py"), "--check", name]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, timeout=900)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]


@pytest.mark.parametrize("name", sorted(WANTED))
def test_outputs_are_stored_and_name_no_machine(name):
    outputs = [output for cell in cells(name) if cell["cell_type"] == "code" for output in cell["outputs"]]
    texts = "".join("".join(output.get("text", [])) for output in outputs)
    assert len(outputs) >= 3 and len(texts) > 50
    assert all(output["output_type"] in ("stream", "display_data", "execute_result") for output in outputs)
    assert not any(place in texts for place in ("/tmp/", "/home/", "/root/", "Traceback", "Warning", " at 0x"))
    assert any("image/png" in output.get("data", {}) for output in outputs) or name == "your_environment"


def test_a_notebook_becomes_a_page_with_its_stored_outputs(tmp_path):
    picture = base64.b64encode(b"a picture").decode()
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["two\n", "\x1b[31mlines\x1b[0m\n"]},
        {"output_type": "display_data", "data": {"image/png": picture}, "metadata": {}},
        {"output_type": "execute_result", "data": {"text/plain": ["42"]}, "metadata": {}},
    ]
    content = [
        {"cell_type": "markdown", "source": ["# A title\n", "\n", "Some text."]},
        {"cell_type": "code", "source": ["raise SystemExit  # never executed"], "outputs": outputs},
    ]
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps({"cells": content}))
    text = notebooks.page(path, tmp_path / "drawn")
    assert text.startswith("# A title\n\n*This page is [small.ipynb](small.ipynb)")
    assert "```python\nraise SystemExit  # never executed\n```" in text and "```text\ntwo\nlines\n```" in text
    assert "](drawn/small_1_1.png)" in text and "```text\n42\n```" in text
    assert (tmp_path / "drawn" / "small_1_1.png").read_bytes() == b"a picture"


def test_notebooks_are_pages_of_the_site(tmp_path):
    assert {f"notebooks/{name}" for name in WANTED} <= pages.names(ROOT)
    assert pages.collect(ROOT, tmp_path / "site") == []
    for name in WANTED:
        text = (tmp_path / "site" / "notebooks" / f"{name}.md").read_text(encoding="utf-8")
        assert f"[{name}.ipynb]({name}.ipynb)" in text and text.count("```text") >= 2
        assert (tmp_path / "site" / "notebooks" / f"{name}.ipynb").exists()


def test_a_cell_that_complains_is_seen():
    nbformat = pytest.importorskip("nbformat", reason="needs the extra docs")
    cell = nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", name="stderr", text="careful")])
    assert runner.complaints(nbformat.v4.new_notebook(cells=[cell])) == ["careful"]
    cell.outputs[0].name = "stdout"
    assert runner.complaints(nbformat.v4.new_notebook(cells=[cell])) == []


def test_an_unknown_name_is_refused(capsys):
    pytest.importorskip("nbformat", reason="needs the extra docs")
    assert runner.main(["--check", "nothing"]) == 2 and "first_run" in capsys.readouterr().err
