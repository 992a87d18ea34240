"""The examples of recordings run, their clean recordings raise no broken verdict, and planted faults are named.

Those in PyTorch are skipped where it is not installed: hopplus and its tests need no PyTorch otherwise.
"""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from hopplus_doctor.examination import examine_recordings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "recordings"


@pytest.fixture(autouse=True)
def _examples_can_be_imported(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])


def loop(name):
    if name.endswith("torch"):
        pytest.importorskip("torch", reason="PyTorch is not installed, so its examples are not tested here")
    return import_module(name)


def examined(name, folder, **settings):
    return examine_recordings([loop(name).train(folder, **settings)])


@pytest.mark.parametrize("name", ["ppo_jax", "ppo_torch", "notes_torch"])
def test_a_clean_recording_is_not_broken(tmp_path, name):
    examination = examined(name, tmp_path, seed=1, updates=4)
    assert examination.verdict != "broken", [f for f in examination.findings if f.verdict == "broken"]
    fine = {finding.check for finding in examination.findings if finding.verdict == "fine"}
    assert {"targets, real", "ends and resets", "first ratio"} <= fine


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("ppo_torch", "advantages_across_episodes"),
        ("ppo_torch", "memory_reset_late"),
        ("notes_torch", "imagined_rewards_times_5"),
    ],
)
def test_a_planted_fault_is_named_first(tmp_path, name, fault):
    part = loop(name).FAULTS[fault]
    assert examined(name, tmp_path, fault=fault, updates=4).suspects[0] == part


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["ppo_torch", "notes_torch"])
def test_every_planted_fault_is_named_first(tmp_path, name):
    faults = loop(name).FAULTS
    named = [examined(name, tmp_path / fault, fault=fault).suspects[:1] == (part,) for fault, part in faults.items()]
    assert sum(named) >= 0.85 * len(named)


@pytest.mark.heavy
def test_what_rllib_samples_is_recorded_by_a_callback(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("ray.rllib", reason="RLlib is not installed", exc_type=ImportError)
    folder = import_module("rllib_callback").train(tmp_path, updates=2)
    examination = examine_recordings([folder])
    assert examination.verdict != "broken", [f for f in examination.findings if f.verdict == "broken"]
    fine = {finding.check for finding in examination.findings if finding.verdict == "fine"}
    assert {"rewards", "ends and resets", "log-probabilities", "changing observations"} <= fine
