"""A run ends when its held-out returns stop improving: a rule over recorded numbers, so resume stays exact."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hopplus.cli.main import main
from hopplus.learning.config import LearnerConfig
from hopplus.runs import RunConfig, stopping, train
from hopplus.runs.stopping import TAG, Stopping, ended_at, has_stopped_improving
from runs import tiny


def test_it_goes_on_while_the_last_window_is_the_best():
    rising = np.linspace(0, 3, 40)
    assert not has_stopped_improving(rising, 10, first=0)
    flat = np.concatenate([rising, np.full(10, 2.6)])
    assert has_stopped_improving(flat, 10, first=0)
    assert not has_stopped_improving(flat, 10, first=60), "the schedule is not over"
    assert not has_stopped_improving(flat[:-1], 10, first=0), "decisions are made at whole windows"
    assert not has_stopped_improving(flat[:10], 10, first=0), "nothing to compare with"


@pytest.mark.parametrize(("gain", "stops"), [(0.02, True), (0.04, False)])
def test_a_small_gain_is_not_worth_another_window(gain, stops):
    history = np.concatenate([np.full(10, 2.0), np.full(10, 2.0 * (1 + gain))])
    assert has_stopped_improving(history, 10, first=0) == stops


def test_noise_is_not_taken_for_improvement():
    noise = np.random.default_rng(0).normal(2, 1, (200, 30))
    stopped = [has_stopped_improving(row, 10, first=0) for row in noise]
    assert np.mean(stopped) > 0.75


@pytest.fixture
def ending(monkeypatch):
    """A tiny run whose held-out return rises for two windows of three updates and then stays."""
    record = tiny.training.train_block

    def block(config, task, states, counts, most):
        states, metrics = record(config, task, states, counts, most)
        done = states.num_updates[0] - counts[0]
        updates = done + 1 + np.arange(most)
        held_out = np.ones((most, 1)) * (updates[:, None].clip(0, 6) * 0.5)
        return states, metrics | {TAG: held_out * np.ones((1, len(states.num_updates)))}

    monkeypatch.setattr(tiny.training, "train_block", block)
    monkeypatch.setattr(RunConfig, "__post_init__", lambda _: None)
    usual = tiny.config(updates=30)
    learner = replace(usual.learner, schedule=240)
    return replace(usual, early_stop=3 * tiny.STEPS_PER_UPDATE, arenas="default", learner=learner)


def test_all_seeds_end_together_and_the_folder_says_so(ending, tmp_path, capsys):
    run = train(ending, tmp_path / "run")
    assert run.num_updates == 12 == ended_at(tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 12 and lines[-1][TAG] == [3.0, 3.0]
    before = sorted(path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("metrics.jsonl"))
    assert train(ending, tmp_path / "run").num_updates == 12
    assert before == sorted(path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("metrics.jsonl"))
    assert main(["runs", str(tmp_path)]) == 0
    assert "100%" in capsys.readouterr().out


def test_a_resumed_run_decides_alike(ending, tmp_path):
    train(replace(ending, steps=4 * tiny.STEPS_PER_UPDATE), tmp_path / "run")
    assert ended_at(tmp_path / "run") is None
    resumed = Stopping(ending, tmp_path / "run", 4)
    assert resumed._history == [0.5, 1.0, 1.5, 2.0] and resumed.to_boundary(4, 32) == 2
    assert train(ending, tmp_path / "run").num_updates == 12
    train(ending, tmp_path / "whole")
    tiny.assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_it_needs_held_out_returns():
    with pytest.raises(ValueError, match=r"--imagination\.held-out"):
        RunConfig(early_stop=20_000)
    with pytest.raises(ValueError, match="9216 steps or more"):
        RunConfig(early_stop=10, learner=LearnerConfig())
    assert stopping.ENDED == "ended.json"
