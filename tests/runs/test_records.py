"""A run folder is read as it was written, a killed run too; whatever cannot be read says how to mend it."""

import json

import numpy as np
import pytest

from hopplus.runs.records import read_run
from report.run_folders import metric_lines, write_run


def test_what_was_written_is_read(tmp_path):
    lines = metric_lines(num_updates=10, num_seeds=3)
    run = read_run(write_run(tmp_path / "a-run", lines))

    assert run.name == "a-run" and run.config["learner"]["ppo"] == {"clip": 0.2}
    np.testing.assert_array_equal(run.env_steps, 100 * np.arange(1, 11))
    assert run.num_updates == 10 and run.num_seeds == 3
    for tag, values in run.metrics.items():
        np.testing.assert_array_equal(values, [line[tag] for line in lines])
    np.testing.assert_array_equal(run.timing["charts/steps_per_second"], [19001.0, 19002.0, 19003.0])
    assert run.evaluation is not None and run.evaluation["episodes"] == 10000


def test_null_and_unmentioned_entries_are_nan(tmp_path):
    lines = metric_lines(num_updates=3)
    lines[0]["charts/stag_rate"] = [None, 0.5, None]
    lines[2]["wm/loss"] = [1.0, 2.0, 3.0]
    run = read_run(write_run(tmp_path, lines))
    np.testing.assert_array_equal(run.metrics["charts/stag_rate"][0], [np.nan, 0.5, np.nan])
    np.testing.assert_array_equal(run.metrics["wm/loss"], [[np.nan] * 3, [np.nan] * 3, [1.0, 2.0, 3.0]])


def test_a_run_without_an_evaluation_has_none(tmp_path):
    assert read_run(write_run(tmp_path, evaluation=False)).evaluation is None


def test_a_run_is_complete_after_its_whole_updates(tmp_path):
    learner = {"envs": 20, "rollout_steps": 5}
    assert read_run(write_run(tmp_path / "cut", steps=1090, learner=learner)).planned_steps == 1000
    assert read_run(write_run(tmp_path / "whole", steps=1000, learner=learner)).planned_steps == 1000
    assert read_run(write_run(tmp_path / "unknown", steps=1090)).planned_steps == 1090
    assert read_run(write_run(tmp_path / "damaged", steps="many", learner=learner)).planned_steps is None


@pytest.mark.parametrize("cut", [b'{"update": 11, "env_st', '{"update": 11, "näme'.encode()[:-3]])
def test_a_last_line_that_was_cut_off_is_ignored(tmp_path, cut):
    folder = write_run(tmp_path)
    for name in ("metrics.jsonl", "timing.jsonl"):
        with (folder / name).open("ab") as file:
            file.write(cut)
    run = read_run(folder)
    assert run.num_updates == 10 and len(run.timing["seconds"]) == 3


def test_an_update_that_was_written_twice_counts_once_and_the_later_line_holds(tmp_path):
    lines = metric_lines(num_updates=4)
    again = {**lines[1], "charts/stag_rate": [7.0, 8.0, 9.0]}
    run = read_run(write_run(tmp_path, [*lines, again]))
    np.testing.assert_array_equal(run.env_steps, [100, 200, 300, 400])
    np.testing.assert_array_equal(run.metrics["charts/stag_rate"][1], [7.0, 8.0, 9.0])


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "timing.jsonl"])
def test_a_missing_file_is_named_with_the_mend(tmp_path, name):
    folder = write_run(tmp_path)
    (folder / name).unlink()
    _complains(folder, rf"has no {name}; is it a run folder\? give the folder that `hopplus train --out` wrote")


def test_a_missing_folder_is_named_with_the_mend(tmp_path):
    _complains(tmp_path / "nowhere", r"there is no folder .*; give the folder that")


DAMAGE = {
    "config.json": [("{", "damaged at line 1 .*; restore it"), ("[]", "no JSON object; restore it")],
    "evaluation.json": [("{,}", "damaged at line 1 .*; restore it")],
    "metrics.jsonl": [
        ("", "no complete line yet; wait for the first update"),
        ('{"update": 1\n{"update": 2}\n', "damaged at line 1 .*; remove that line"),
        ("3\n", "line 1 of .* is no JSON object; remove that line"),
        ('{"env_steps": 3}\n', "no whole number 'update'; remove that line"),
        ('{"update": 1, "env_steps": 3}\n', "no metrics, only steps; give a folder"),
        ('{"update": 1, "env_steps": 3, "a": 2.0}\n', "update 1 .* a is no list of one number per seed .*; remove"),
        ('{"update": 1, "env_steps": 3, "a": [2.0], "b": [1, 2]}\n', "b is no list of one number per seed"),
        ('{"update": 1, "env_steps": 3, "a": ["2"]}\n', "a is no list of one number per seed"),
    ],
    "timing.jsonl": [('{"seconds": "long"}\n', "seconds is not always a number; remove the lines")],
}


@pytest.mark.parametrize(
    ("name", "text", "reason"), [(name, text, reason) for name, cases in DAMAGE.items() for text, reason in cases]
)
def test_a_damaged_file_says_where_and_how_to_mend_it(tmp_path, name, text, reason):
    folder = write_run(tmp_path)
    (folder / name).write_text(text)
    _complains(folder, reason)


def test_a_config_without_what_the_page_needs_says_so(tmp_path):
    folder = write_run(tmp_path)
    (folder / "config.json").write_text(json.dumps({"agent": "ppo", "game": "x"}))
    _complains(folder, "does not say seeds, steps; give a folder")


def _complains(folder, reason):
    with pytest.raises(ValueError, match=reason) as complaint:
        read_run(folder)
    assert "\n" not in str(complaint.value)
