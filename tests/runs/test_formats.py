"""Golden run folders: every version reads those of all formats since the first."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from hopplus.agents.named import NAMES
from hopplus.cli.main import main
from hopplus.doctor.examination import examine
from hopplus.runs import formats, load, train
from hopplus.runs.folder import CONFIG, EVALUATION, read_config
from hopplus.runs.formats import FORMAT, Migration
from hopplus.runs.studies.study import open_study

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDERS = sorted(path.parent for path in GOLDEN.glob(f"format_*/*/{CONFIG}"))
every_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
some_in_ci = pytest.mark.parametrize(
    "folder",
    [pytest.param(path, marks=() if path.name == "ppo" else pytest.mark.heavy) for path in FOLDERS],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)


@pytest.fixture
def copy(tmp_path):
    """A copy of the golden folder of ppo, in this version's format."""
    return shutil.copytree(GOLDEN / f"format_{FORMAT}" / "ppo", tmp_path / "run")


def edit(folder, **changes):
    """Change settings of a folder; None takes one away."""
    content = json.loads((folder / CONFIG).read_text()) | changes
    (folder / CONFIG).write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


def complaint(capsys, line):
    assert main(line) == 2
    return capsys.readouterr().err


def test_every_agent_has_a_golden_folder_of_this_format_and_all_are_small():
    assert set(NAMES) | {"ppo_gru"} == {path.name for path in FOLDERS if path.parent.name == f"format_{FORMAT}"}
    assert {path.parent.name for path in FOLDERS} == {f"format_{number}" for number in range(1, FORMAT + 1)}
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 166_000 * len(FOLDERS)


@every_folder
def test_the_stored_returns_are_played_again(folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / folder.name)
    stored = json.loads((copied / EVALUATION).read_text())
    assert main(["evaluate", str(copied), "--episodes", str(stored["episodes"])]) == 0
    again = json.loads((copied / EVALUATION).read_text())
    assert {**again, "commands": None, "version": None} == {**stored, "commands": None, "version": None}


@some_in_ci
def test_a_report_is_written(folder, tmp_path):
    assert main(["report", str(folder), "--episodes", "1", "--out", str(tmp_path / "page.html")]) == 0
    assert "Mean return over training" in (tmp_path / "page.html").read_text()


@some_in_ci
def test_the_doctor_examines(folder):
    findings = [finding for answer in examine(folder).answers for finding in answer.findings]
    assert findings and not [finding for finding in findings if finding.kind == "exact" and finding.verdict == "broken"]


def test_a_folder_from_before_the_first_format_names_the_version_that_reads_it(copy, capsys):
    edit(copy, format=None, version="0.5.0")
    for verb in ("evaluate", "report", "doctor"):
        said = complaint(capsys, [verb, str(copy)])
        assert "written by hopplus 0.5.0, before run folders had a format number; use hopplus 0.5.0" in said


def test_a_folder_of_a_later_format_names_the_version_that_reads_it(copy, capsys):
    edit(copy, format=FORMAT + 1, version="9.1.0")
    said = complaint(capsys, ["evaluate", str(copy)])
    assert f"this version reads formats up to {FORMAT}; use hopplus 9.1.0 or a later one" in said


@pytest.fixture
def next_format(monkeypatch):
    """A version with one more format, in which discounts are half as large and all arrays of policies larger by 1."""

    def settings(written):
        learner = written["learner"]
        ppo = {**learner["ppo"], "discount": learner["ppo"]["discount"] / 2}
        return {**written, "learner": {**learner, "ppo": ppo}}

    def arrays(written, arrays):
        assert written["learner"]["ppo"]["discount"] < 0.5, "settings are migrated first"
        is_policy = {name: name.startswith("learners.policy.params") for name in arrays}
        return {
            name: np.asarray(array + is_policy[name]) if is_policy[name] else array for name, array in arrays.items()
        }

    def begin():
        monkeypatch.setattr(formats, "MIGRATIONS", (*formats.MIGRATIONS, Migration(settings, arrays)))
        monkeypatch.setattr(formats, "FORMAT", FORMAT + 1)
        monkeypatch.setattr("hopplus.runs.folder.FORMAT", FORMAT + 1)

    return begin


def test_a_migration_changes_settings_and_arrays_and_not_the_folder(copy, next_format):
    before = load(copy)
    files = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    next_format()
    after = load(copy)
    assert after.config.learner.ppo.discount == before.config.learner.ppo.discount / 2
    for old, new in zip(jax.tree.leaves(before.params), jax.tree.leaves(after.params), strict=True):
        np.testing.assert_array_equal(np.asarray(old) + 1, np.asarray(new))
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == files


def test_an_older_format_is_read_but_not_resumed(copy, next_format):
    config = read_config(copy)
    next_format()
    with pytest.raises(ValueError, match=f"has format {FORMAT}.* resumes only format {FORMAT + 1}"):
        train(replace(config, steps=2 * config.steps), copy)


def test_a_study_from_before_the_first_format_is_refused(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"about": "", "trials": 1, "questions": [], "variants": {}}))
    with pytest.raises(ValueError, match="before run folders had a format number"):
        open_study(tmp_path)
