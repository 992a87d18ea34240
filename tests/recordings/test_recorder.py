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


def test_scalars_of_numpy_are_plain_numbers_in_the_description(tmp_path):
    settings = {"discount": np.float32(0.5), "shared_rewards": np.bool_(True), "clip": np.array(0.25)}
    recorder = Recorder(tmp_path, ["a"], num_actions=np.int64(5), **settings)
    recorder.record(np.int64(3), rewards=np.zeros((1, 1, 2)))
    recorder.record(np.int64(3), "updates", returns=[1.0])
    recording = read_recording(recorder.save())
    assert (recording.updates, recording.num_actions) == ((3,), 5)
    assert (recording.settings.discount, recording.settings.shared_rewards, recording.settings.clip) == (
        0.5,
        True,
        0.25,
    )


def test_an_update_is_a_whole_number(tmp_path):
    with pytest.raises(ValueError, match="give its number"):
        Recorder(tmp_path, ["a"]).record(1.5, rewards=np.zeros((1, 1, 2)))


def recorded_until_a_failure(folder, *last):
    """Two whole updates, and one in which training fails."""
    with Recorder(folder, ["a"]) as recorder:
        for update in range(2):
            recorder.record(update, rewards=np.zeros((1, 1, 2)), values=np.zeros((1, 1, 2)))
        for arrays_ in last:
            recorder.record(2, **arrays_)
        raise RuntimeError("the user's error")


def test_an_update_that_fails_is_left_out(tmp_path):
    with pytest.raises(RuntimeError, match="the user's error"):
        recorded_until_a_failure(tmp_path, {"values": np.zeros((1, 1, 2))})
    assert read_recording(tmp_path).updates == (0, 1)


def test_the_users_error_is_raised_though_nothing_can_be_written(tmp_path):
    with pytest.raises(RuntimeError, match="the user's error") as caught:
        recorded_until_a_failure(tmp_path, {"rewards": np.zeros((1, 1, 9)), "values": np.zeros((1, 1, 2))})
    assert "several shapes" in caught.value.__notes__[0] and not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("recorded", "kept"),
    [
        (range(1, 400, 10), [1, 161, 321]),
        (range(0, 400, 10), [0, 160, 320]),
        (range(5, 400), [5, 133, 261, 389]),
        ([1, *range(10, 400, 10)], [1, 160, 320]),
        (reversed(range(0, 400, 10)), [70, 230, 390]),
    ],
)
def test_updates_of_any_numbering_are_spread_evenly(tmp_path, recorded, kept):
    recorder = Recorder(tmp_path, ["a"], updates=4)
    for update in recorded:
        recorder.record(update, "updates", returns=[update])
    recording = read_recording(recorder.save())
    returns = recording.get("updates", "returns")
    assert returns is not None and returns[:, 0].tolist() == list(recording.updates) == kept


@pytest.mark.parametrize("most", [2, 3, 5, 8])
def test_an_even_or_odd_number_of_updates_is_never_exceeded(tmp_path, most):
    recorder = Recorder(tmp_path, ["a"], updates=most, every=3)
    for update in range(200):
        recorder.record(update, "updates", returns=[update])
        recorder.record(update, "updates", gradient_norms=[update])
    updates = read_recording(recorder.save()).updates
    assert most // 2 <= len(updates) <= most and len(set(np.diff(updates))) <= 1 and updates[0] == 0


def test_arrays_of_an_older_recording_are_removed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "mine.txt").write_text("notes")
    for names in (("rewards", "values"), ("rewards",)):
        recorder = Recorder(tmp_path, ["a"])
        for update in range(len(names)):
            recorder.record(update, **{name: np.zeros((1, 1, 2)) for name in names})
        recorder.save()
    recording = read_recording(tmp_path)
    assert recording.has("real", "rewards") and not recording.has("real", "values")
    assert (tmp_path / "real" / "mine.txt").is_file()


def test_the_recorder_needs_numpy_alone():
    program = "import sys, hopplus_doctor; sys.exit(bool({'jax', 'torch', 'scipy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_right_recording_has_the_sizes_that_the_tests_expect(tmp_path):
    recording = read_recording(write(tmp_path))
    rewards = recording.get("real", "rewards")
    assert rewards is not None and rewards.shape[:2] == (UPDATES, SEATS)
