"""What stands in the rows of a seat that has left is padding: it is not read."""

import numpy as np
import pytest

from hopplus_doctor.examination import examine_recordings
from hopplus_doctor.recorder import Recorder
from recordings.made import ACTIONS, ENVS, NAMES, SEATS, TIME, advantages_of, arrays, write

LEFT = 20
"""The step with which the second seat has left, in every env."""


def left(data, padding):
    """The data in which the second seat leaves. Nobody's episode ends before, and no other begins."""
    none = np.zeros_like(data["terminated"])
    there = np.ones_like(none)
    there[1, :, LEFT:] = False
    ends = none.copy()
    ends[1, :, LEFT - 1] = True
    kept = {"actions": np.where(there, data["actions"], padding), "in_game": there, "learned": there}
    last_values = data["last_values"].copy()
    last_values[1] = np.nan
    kept |= {"terminated": ends, "truncated": none, "resets": none, "last_values": last_values}
    paid = {name: data[name] for name in ("rewards", "env_rewards", "values")}
    final = np.full_like(paid["values"], np.nan)
    advantages = advantages_of(paid["rewards"], paid["values"], ends, none, final, last_values)
    return paid | kept | {"advantages": advantages, "targets": advantages + paid["values"]}


def test_a_value_after_a_seat_left_may_be_no_number(tmp_path):
    examination = examine_recordings([write(tmp_path, lambda data: left(data, -1))])
    assert examination.suspects == ()


def test_a_value_of_a_seat_that_plays_on_is_a_number(tmp_path):
    def wrong(data):
        data = left(data, -1)
        data["last_values"][0, 0] = np.nan
        return data

    finding = examine_recordings([write(tmp_path, wrong)]).answers[0].findings[0]
    assert finding.verdict == "broken" and "real/last_values of red has 3 entries" in finding.says


@pytest.mark.parametrize("order", ["ego", "seats"])
@pytest.mark.parametrize("fault", [False, True])
def test_labels_of_co_players_that_left_are_not_read(tmp_path, order, fault):
    recorder = Recorder(tmp_path, NAMES, others_order=order, num_actions=ACTIONS)
    for update in range(3):
        data = left(arrays(update), padding=-1)
        labels = np.zeros((SEATS, ENVS, TIME, SEATS - 1), int)
        for seat in range(SEATS):
            ahead = [(seat + step) % SEATS for step in range(1, SEATS)]
            others = ahead if order == "ego" else sorted(ahead)
            labels[seat] = np.moveaxis(np.where(data["in_game"], data["actions"], 0)[others], 0, -1)
        if fault:
            labels[0, :, LEFT:, :] += 1
        recorder.record(update, **{name: data[name] for name in ("actions", "in_game")})
        recorder.record(update, "others", actions=labels)
    (finding,) = [
        finding for finding in examine_recordings([recorder.save()]).findings if finding.check == "labels of co-players"
    ]
    assert finding.verdict == ("broken" if fault else "fine")


def predictions(num_actions, probabilities):
    random = np.random.default_rng(0)
    return {
        "probabilities": np.broadcast_to(probabilities, (1, 4, 200, 1, num_actions)),
        "actions": random.integers(num_actions, size=(1, 4, 200, 1)),
    }


def test_without_a_common_action_recall_is_unknown(tmp_path):
    recorder = Recorder(tmp_path, ["a"])
    recorder.record(0, "others", **predictions(60, np.full(60, 1 / 60)))
    found = {finding.check: finding for finding in examine_recordings([recorder.save()]).findings}
    assert found["recall of actions"].verdict == "not enough evidence" and "calibration" in found


def test_a_world_without_a_valid_step_is_unknown(tmp_path):
    recorder = Recorder(tmp_path, ["a"])
    numbers, steps = np.zeros((1, 4, 5, 2)), np.zeros((1, 4, 5))
    recorder.record(0, "world", predicted_observations=numbers, observations=numbers, valid=steps > 0)
    recorder.record(0, "world", predicted_rewards=steps, rewards=steps, predicted_ends=steps, ends=steps > 0)
    recorder.record(0, "others", **predictions(3, np.full(3, 1 / 3)))
    found = {finding.check: finding for finding in examine_recordings([recorder.save()]).findings}
    for check in ("predicted observations", "predicted rewards", "predicted ends"):
        assert found[check].verdict == "not enough evidence"
    assert "leaves out" in found["predicted observations"].says and "recall of actions" in found
