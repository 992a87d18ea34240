"""Seats may share their parameters with all others, with none, or with their team."""

import numpy as np
import pytest

from hopplus_doctor.examination import examine_recordings
from hopplus_doctor.recorder import Recorder

TEAMS = ["wolf_1", "wolf_2", "sheep_1", "sheep_2"]


@pytest.mark.parametrize(
    ("shared", "networks", "verdict"),
    [
        (None, "wwss", "not enough evidence"),
        (None, "wwww", "not enough evidence"),
        (None, "wxst", "fine"),
        (True, "wwss", "broken"),
        (True, "wwww", "fine"),
        (False, "wwss", "broken"),
        (False, "wxst", "fine"),
        ([TEAMS[:2], TEAMS[2:]], "wwss", "fine"),
        ([TEAMS[:2], TEAMS[2:]], "wwst", "broken"),
        ([TEAMS[:2], TEAMS[2:]], "wwww", "broken"),
        ([TEAMS[:2]], "wwst", "fine"),
        ([TEAMS[:2]], "wwss", "broken"),
    ],
)
def test_parameters_may_be_shared_within_a_team(tmp_path, shared, networks, verdict):
    recorder = Recorder(tmp_path, TEAMS, modules=["policy"], shared_parameters=shared)
    for update in range(3):
        for when in ("before", "after"):
            arrays_ = [np.full(3, ord(network) + update + (when == "after")) for network in networks]
            recorder.checksums(update, when, {"policy": arrays_})
    (finding,) = [
        finding for finding in examine_recordings([recorder.save()]).findings if finding.check == "parameters of policy"
    ]
    assert finding.verdict == verdict
    assert (finding.next is None) == (verdict == "fine")
    if verdict == "not enough evidence":
        assert "groups that share" in str(finding.next)


@pytest.mark.parametrize("shared", ["wolf_1", ["wolf_1", "wolf_2"], [["wolf_1"], ["wolf_1"]], [["bear_1"]], 1])
def test_groups_of_seats_are_lists_of_their_names(tmp_path, shared):
    with pytest.raises(ValueError, match="groups of seats"):
        Recorder(tmp_path, TEAMS, shared_parameters=shared)
