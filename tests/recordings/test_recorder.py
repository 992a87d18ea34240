"""The recorder keeps a bounded, even sample, turns axes, and refuses what it cannot keep."""

import subprocess
import sys

import numpy as np
import pytest

from hopplus_doctor import Recorder, checksum
from hopplus_doctor.recording import read_recording
from recordings.made import NAMES, SEATS, UPDATES, arrays, write


def test_what_is_written_is_read_in_the_order_of_the_format(tmp_path):
    recorder = Recorder(tmp_path, NAMES, axes="time envs seats", discount=0.9)
    data = arrays(0)
    turned = {name: np.moveaxis(array, (0, 1, 2), (2, 1, 0)) for name, array in data.items() if name != "last_values"}
    recorder.record(7, **turned, last_values=data["last_values"].T)
    recording = read_recording(recorder.save())
    assert recording.updates == (7,) and recording.seats == NAMES and recording.settings.discount == 0.9
    for name, array in data.items():
        np.testing.assert_allclose(recording.groups["real"][name][0], array, rtol=1e-6)


def test_memory_is_bounded_and_updates_are_spread_evenly(tmp_path):
    recorder = Recorder(tmp_path, ["a"], updates=4, envs=2)
    for update in range(100):
        if recorder.wants(update):
            recorder.record(update, rewards=np.full((1, 50, 5), update))
            recorder.record(update, "updates", returns=[update])
        assert len(recorder._kept) <= 4
    recording = read_recording(recorder.save())
    assert len(recording.updates) in (3, 4) and len(set(np.diff(recording.updates))) == 1
    rewards = recording.get("real", "rewards")
    assert rewards is not None and rewards.shape == (len(recording.updates), 1, 2, 5)
    assert rewards[:, 0, 0, 0].tolist() == list(recording.updates)


def test_checksums_tell_parameters_apart(tmp_path):
    one = [np.ones(3), np.zeros((2, 2))]
    assert checksum(one) == checksum([each.copy() for each in one]) != checksum([np.ones(3), np.eye(2)])
    recorder = Recorder(tmp_path, ["a", "b"], modules=["policy"])
    recorder.checksums(0, "before", {"policy": [one, one]})
    with pytest.raises(ValueError, match="modules"):
        recorder.checksums(0, "after", {"critic": [one, one]})


@pytest.mark.parametrize(
    ("group", "given", "words"),
    [
        ("nothing", {}, "give one of real, imagined"),
        ("real", {"reward": np.zeros((3, 1, 1))}, "give one of observations"),
        ("real", {"rewards": np.zeros((3, 1))}, "give 3: seats, envs, time"),
        ("real", {"rewards": np.zeros((2, 1, 1))}, "check axes"),
        ("real", {"rewards": np.full((3, 1, 1), None)}, "give numbers or flags"),
    ],
)
def test_what_cannot_be_kept_is_said_at_once(tmp_path, group, given, words):
    with pytest.raises(ValueError, match=words):
        Recorder(tmp_path, NAMES).record(0, group, **given)


def test_an_array_must_be_there_in_every_update(tmp_path):
    recorder = Recorder(tmp_path, ["a"])
    recorder.record(0, rewards=np.zeros((1, 1, 2)), values=np.zeros((1, 1, 2)))
    recorder.record(1, rewards=np.zeros((1, 1, 2)))
    with pytest.raises(ValueError, match="real/values is missing in update 1"):
        recorder.save()


def test_a_recording_is_saved_when_training_fails(tmp_path):
    def fail():
        with Recorder(tmp_path, ["a"]) as recorder:
            recorder.record(0, rewards=np.zeros((1, 1, 2)))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert read_recording(tmp_path).has("real", "rewards")


def test_the_recorder_needs_numpy_alone():
    program = "import sys, hopplus_doctor; sys.exit(bool({'jax', 'torch', 'scipy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_right_recording_has_the_sizes_that_the_tests_expect(tmp_path):
    recording = read_recording(write(tmp_path))
    rewards = recording.get("real", "rewards")
    assert rewards is not None and rewards.shape[:2] == (UPDATES, SEATS)
