"""The rows of `metrics.jsonl`: which tag holds which number."""

import os
import subprocess
import sys

import numpy as np

from hopplus.runs.metrics import rows


def numbers(*shape):
    """[updates, seeds, ...]: every number is another."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_a_metric_of_pairs_has_a_tag_for_each_pair_each_seat_and_all():
    """Four seats learn: the co-players of seat 3 are 4, 1 and 2, in this order."""
    pairs = numbers(3, 2, 4, 3)
    found = list(rows({"moa/top1": pairs}, 10, 2, 80))
    assert [(row["update"], row["env_steps"]) for row in found] == [(11, 880), (12, 960)]
    of_pairs = {f"moa/top1/player_{seat}_of_{other}" for seat in range(1, 5) for other in range(1, 5) if seat != other}
    of_seats = {f"moa/top1/player_{seat}" for seat in range(1, 5)}
    for index, row in enumerate(found):
        assert row.keys() == {"update", "env_steps", "moa/top1"} | of_pairs | of_seats
        assert row["moa/top1"] == pairs[index].mean(axis=(1, 2)).tolist()
        assert row["moa/top1/player_2"] == pairs[index, :, 1].mean(axis=-1).tolist()
        assert row["moa/top1/player_1_of_2"] == pairs[index, :, 0, 0].tolist()
        assert row["moa/top1/player_1_of_4"] == pairs[index, :, 0, 2].tolist()
        assert row["moa/top1/player_3_of_4"] == pairs[index, :, 2, 0].tolist()
        assert row["moa/top1/player_3_of_1"] == pairs[index, :, 2, 1].tolist()
        assert row["moa/top1/player_3_of_2"] == pairs[index, :, 2, 2].tolist()


def test_one_learning_seat_has_tags_for_its_co_players():
    """Seat 1 learns and three play fixed; the plain tag is the seat's own, and it needs no second one."""
    pairs = numbers(1, 2, 1, 3)
    (row,) = rows({"moa/top1": pairs}, 0, 1, 80)
    tags = {"moa/top1", *(f"moa/top1/player_1_of_{other}" for other in (2, 3, 4))}
    assert row.keys() == {"update", "env_steps"} | tags
    assert row["moa/top1"] == pairs[0, :, 0].mean(axis=-1).tolist()
    assert row["moa/top1/player_1_of_3"] == pairs[0, :, 0, 1].tolist()


def test_metrics_of_seats_and_of_seeds():
    by_seat, by_seed = numbers(1, 2, 2), numbers(1, 2)
    (row,) = rows({"charts/episodic_return": by_seat, "policy/entropy": by_seat, "charts/episodes": by_seed}, 0, 1, 80)
    assert row["charts/episodes"] == [0.0, 1.0]
    assert row["charts/episodic_return/mean"] == row["policy/entropy"] == [0.5, 2.5]
    assert row["charts/episodic_return/player_2"] == row["policy/entropy/player_2"] == [1.0, 3.0]
    assert "charts/episodic_return" not in row


def test_what_is_no_number_is_null():
    """A co-player that was never seen has no accuracy, and the mean over it has none either."""
    pairs = numbers(1, 1, 1, 2)
    pairs[0, 0, 0, 1] = np.nan
    (row,) = rows({"moa/top1": pairs}, 0, 1, 80)
    assert row["moa/top1/player_1_of_2"] == [0.0] and row["moa/top1/player_1_of_3"] == [None]
    assert row["moa/top1"] == [None]


def test_recall_is_a_mean_over_the_co_players_that_took_the_action():
    pairs = numbers(1, 1, 2, 2)
    pairs[0, 0, 0, 1] = pairs[0, 0, 1] = np.nan
    (row,) = rows({"moa/recall/stay": pairs}, 0, 1, 80)
    assert row["moa/recall/stay"] == row["moa/recall/stay/player_1"] == [0.0]
    assert row["moa/recall/stay/player_2"] == row["moa/recall/stay/player_1_of_3"] == [None]
    (row,) = rows({"moa/recall/stay": pairs * np.nan}, 0, 1, 80)
    assert row["moa/recall/stay"] == [None]


def test_the_writer_of_tensorboard_does_not_import_torch(tmp_path):
    (tmp_path / "torch.py").write_text("print('torch was imported')\n")
    program = "from hopplus.runs.metrics import _event_writer; _event_writer(); print('made'); import torch"
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, env=os.environ | path, capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[:2] == ["made", "torch was imported"], said.stderr
