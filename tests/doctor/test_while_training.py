"""`train --doctor-every`: what it says of a right run and of one with a fault; it changes no bit of training."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from hopplus.doctor import while_training
from hopplus.doctor.while_training import Checkup
from hopplus.report.page import page
from hopplus.runs import train
from hopplus.runs.records import read_run
from hopplus_doctor.answer import Answer, Finding, Significance
from runs import tiny


@pytest.fixture(scope="module", autouse=True)
def _compile_rarely():
    with pytest.MonkeyPatch.context() as patch:
        tiny.compile_rarely(patch)
        yield


@pytest.fixture
def config():
    """A tiny run of three updates, with a checkpoint after each."""
    return replace(tiny.config(updates=3), checkpoint_every=1)


def checked(config, folder, monkeypatch, most=1e9, first_rollout=0.0):
    monkeypatch.setattr(while_training, "MOST", most)
    monkeypatch.setattr(while_training, "FIRST_ROLLOUT", first_rollout)
    said = []
    checkup = Checkup(config, folder, 1, said.append)
    train(config, folder, on_checkpoint=checkup)
    path = folder / "checkups.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else [], said


def test_a_right_run_has_no_alarm_and_the_same_bits(config, tmp_path, monkeypatch):
    rows, said = checked(config, tmp_path / "asked", monkeypatch)
    assert [row["update"] for row in rows] == [1, 2, 3] and said == []
    assert all(row["broken"] == row["suspicious"] == 0 and row["asked"] >= 5 for row in rows)
    train(config, tmp_path / "plain")
    assert (tmp_path / "asked/metrics.jsonl").read_bytes() == (tmp_path / "plain/metrics.jsonl").read_bytes()
    assert "Asked at 3 checkpoints" in page(read_run(tmp_path / "asked"), [])
    assert "while training" not in page(read_run(tmp_path / "plain"), [])


def test_a_policy_that_is_never_updated_is_said_at_the_first_checkpoint(config, tmp_path, monkeypatch):
    first = {}

    def fixed(params):
        """The checksums of a run whose second learner of the first seed keeps its policy."""
        sums, finite = checksums(params)
        first.setdefault("sums", sums)
        sums = np.array(sums)
        sums[0, 0, 1] = first["sums"][0, 0, 1]
        return sums, finite

    checksums = while_training.checksums_of
    monkeypatch.setattr(while_training, "checksums_of", fixed)
    rows, said = checked(config, tmp_path / "run", monkeypatch, first_rollout=1e9)
    assert rows[0]["broken"] == 1 and rows[0]["findings"][0]["module"] == "policy"
    assert len(said) == 1 and "doctor, update 1: broken: policy" in said[0], "it is said once"
    assert "broken: policy" in page(read_run(tmp_path / "run"), [])


def test_parameters_that_are_not_finite_are_found():
    sums, finite = while_training.checksums_of([{"weight": np.array([[[1.0, np.nan]]])}, (), None])
    assert sums.shape == (1, 3, 1) and not finite


def test_a_longer_run_has_no_more_false_alarms():
    """Checkups test at shares of the level that sum to less than one."""
    finding = Finding("returns", "seats", "test", "fine", "", test=Significance(1e-6, 0.1))
    answer = Answer("seats", "?", (finding,))
    levels = []
    for number in range(1, 1000):
        (adjusted,) = while_training._for_many_checkups(answer, number).findings
        assert adjusted.test is not None
        levels.append(1e-6 / adjusted.test.p_value)
    assert levels[0] == pytest.approx(0.5) and 0.99 < sum(levels) < 1


def test_it_waits_when_it_has_taken_its_share(config, tmp_path, monkeypatch):
    rows, _ = checked(config, tmp_path / "run", monkeypatch, most=0.0)
    assert rows == []
    with pytest.raises(ValueError, match="--doctor-every is 0"):
        Checkup(config, tmp_path, 0, print)


def test_the_checkup_leaves_the_states_alone(config, tmp_path):
    seen = []
    checkup = Checkup(config, tmp_path / "run", 1, print)

    def on_checkpoint(done, states):
        before = jax.device_get(jax.tree.leaves(while_training.learned_params(states)))
        checkup(done, states)
        after = jax.device_get(jax.tree.leaves(while_training.learned_params(states)))
        seen.append(all(np.array_equal(one, other) for one, other in zip(before, after, strict=True)))

    train(config, tmp_path / "run", on_checkpoint=on_checkpoint)
    assert seen and all(seen)
