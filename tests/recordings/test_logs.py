"""Logs of all three kinds are read, tags are guessed, shown and corrected, and planted faults are named."""

import json
import struct

import numpy as np
import pytest

from hopplus_doctor.log_questions import examine_logs
from hopplus_doctor.logs import read_logs
from hopplus_doctor.main import main
from hopplus_doctor.tags import guess


def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def message(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def event(step, tag, value, as_tensor=False):
    """A record of TensorBoard, by the description of its format; checksums are not read."""
    scalar = message(1, tag.encode())
    if as_tensor:
        scalar += message(8, b"\x08\x01" + message(4, struct.pack("<f", value)))
    else:
        scalar += varint(2 << 3 | 5) + struct.pack("<f", value)
    data = b"\x09" + struct.pack("<d", 0.0) + b"\x10" + varint(step) + message(5, message(1, scalar))
    return struct.pack("<Q", len(data)) + bytes(4) + data + bytes(4)


TAGS = {
    "charts/episodic_return/player_1": lambda t: 1.0 + t,
    "charts/episodic_return/player_2": lambda t: 1.0 + t,
    "losses/value_loss": lambda t: 2.0 - t,
    "losses/entropy": lambda t: 1.0 - 0.5 * t,
    "losses/approx_kl": lambda _: 0.01,
    "losses/clipfrac": lambda _: 0.1,
    "losses/explained_variance": lambda t: t,
    "time/fps": lambda _: 100.0,
}


def write_events(folder, tags=TAGS, noise=0.0):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(int(noise * 1e6))
    records = [
        event(step, tag, curve(step / 100) + noise * random.normal(), as_tensor=step % 2 == 0)
        for step in range(100)
        for tag, curve in tags.items()
    ]
    (folder / "events.out.tfevents.1.host").write_bytes(b"".join(records))
    return folder


def alarms(folders, tags=None):
    examination, _ = examine_logs(folders, tags)
    return {
        finding.check: finding.module for finding in examination.findings if finding.verdict in ("suspicious", "broken")
    }


def test_events_are_read(tmp_path):
    curves = read_logs(write_events(tmp_path / "log"))
    assert set(curves) == set(TAGS)
    assert curves["losses/value_loss"].steps.tolist() == list(range(100))
    np.testing.assert_allclose(curves["losses/value_loss"].values, 2.0 - np.arange(100) / 100, rtol=1e-6)


def test_events_of_a_common_writer_are_read(tmp_path):
    writer = pytest.importorskip("tensorboardX", reason="tensorboardX comes with hopplus, not with the doctor alone")
    with writer.SummaryWriter(str(tmp_path)) as written:
        for step in range(5):
            written.add_scalar("losses/value_loss", step / 2, step)
    assert read_logs(tmp_path)["losses/value_loss"].values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_csv_and_json_lines_say_the_same(tmp_path):
    (tmp_path / "a.csv").write_text("# a comment\nglobal_step,ep_rew_mean,name\n10,1.5,x\n20,2.5,y\n")
    rows = [{"global_step": 10, "train": {"ep_rew_mean": 1.5}}, {"global_step": 20, "train": {"ep_rew_mean": 2.5}}]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)))
    curves = read_logs(tmp_path)
    assert curves["ep_rew_mean"].steps.tolist() == curves["train/ep_rew_mean"].steps.tolist() == [10, 20]
    assert curves["ep_rew_mean"].values.tolist() == curves["train/ep_rew_mean"].values.tolist() == [1.5, 2.5]


def test_an_export_of_weights_and_biases_is_read(tmp_path):
    """A column `_step`, others of no use, and empty cells."""
    (tmp_path / "history.csv").write_text("_step,note,losses/value_loss\n0,a,1.5\n100,b,\n200,c,0.5\n")
    curve = read_logs(tmp_path)["losses/value_loss"]
    assert curve.steps.tolist() == [0, 200] and curve.values.tolist() == [1.5, 0.5]


def test_tags_of_common_libraries_are_guessed():
    meanings = {tag: str(meaning) for tag, meaning in guess([*TAGS, *KNOWN]).items() if meaning}
    assert {tag: meanings.get(tag) for tag in KNOWN} == KNOWN
    assert meanings["charts/episodic_return/player_1"] == "return player_1" and "time/fps" not in meanings


def test_of_several_returns_of_a_seat_those_of_episodes_count():
    """A run of hopplus logs the rewards of steps and the critic's returns of each seat too."""
    seats = ("player_1", "player_2")
    tags = [
        f"{tag}/{seat}" for tag in ("charts/episodic_return", "real/reward_mean", "real/return_max") for seat in seats
    ]
    meanings = {tag: str(meaning) for tag, meaning in guess([*tags, "charts/episodic_return/mean"]).items() if meaning}
    assert sorted(meanings.values()) == ["return", "return player_1", "return player_2"]
    assert all("episodic" in tag for tag in meanings)
    alone = guess(["charts/episodic_return/mean", "agent_0/return"])
    assert str(alone["agent_0/return"]) == "return agent_0"


KNOWN = {
    "rollout/ep_rew_mean": "return",
    "train/value_loss": "value_loss",
    "train/entropy_loss": "entropy",
    "train/clip_fraction": "clip_fraction",
    "learner/policy_1/vf_loss": "value_loss policy_1",
    "agent0/critic_loss": "value_loss agent0",
    "policy/value_loss_imagined": "value_loss_imagined",
    "policy/value_loss_real": "value_loss_real",
    "agent_2/grad_norm": "gradient_norm agent_2",
    "moa/ce_loss": "others_loss",
}


def test_a_sound_log_raises_no_alarm_and_faults_are_named(tmp_path):
    assert alarms([write_events(tmp_path / "sound")]) == {}
    lost = TAGS | {"losses/value_loss": lambda t: 1.0 if t < 0.5 else float("nan")}
    assert alarms([write_events(tmp_path / "lost", lost)]) == {"finite losses/value_loss": "critic"}
    large = TAGS | {"losses/clipfrac": lambda _: 0.9, "losses/approx_kl": lambda _: 2.0}
    assert set(alarms([write_events(tmp_path / "large", large)])) == {"clip fraction", "approx kl"}
    imagined = TAGS | {"policy/value_loss_real": lambda _: 1.0, "policy/value_loss_imagined": lambda _: 40.0}
    assert alarms([write_events(tmp_path / "imagined", imagined)]) == {"value loss by source": "imagination"}


def test_a_seat_that_always_wins_shows_over_seeds(tmp_path):
    wins = TAGS | {"charts/episodic_return/player_1": lambda t: 3.0 + t}
    folders = [write_events(tmp_path / str(seed), wins, noise=1e-3 * (seed + 1)) for seed in range(5)]
    assert alarms(folders) == {"returns": "seats"} and alarms(folders[:2]) == {}


def test_several_tags_of_one_meaning_are_one_seed(tmp_path):
    """A return of training and one of evaluation, in two logs: two seeds are not four."""
    both = {f"{where}/ep_rew_mean/player_{seat}": lambda t, s=seat: s + t for where in "ab" for seat in (1, 2)}
    folders = [write_events(tmp_path / str(seed), both, noise=1e-3 * (seed + 1)) for seed in range(3)]
    examination, _ = examine_logs(folders[:2])
    (finding,) = [finding for finding in examination.findings if finding.check == "returns"]
    assert finding.verdict == "not enough evidence"
    assert alarms(folders) == {"returns": "seats"}


def test_an_explained_variance_may_be_unknown_but_not_to_the_end(tmp_path):
    begins = TAGS | {"losses/explained_variance": lambda t: t if t else float("nan")}
    assert alarms([write_events(tmp_path / "begins", begins)]) == {}
    stays = TAGS | {"losses/explained_variance": lambda t: t if t < 0.5 else float("nan")}
    assert alarms([write_events(tmp_path / "stays", stays)]) == {"finite losses/explained_variance": "critic"}


def test_the_mapping_is_shown_written_and_read_again(tmp_path, capsys):
    log = write_events(tmp_path / "log", {"alice": lambda t: t, "vl": lambda _: float("inf")})
    path = tmp_path / "tags.toml"
    assert main(["logs", str(log), "--tags", str(path)]) == 0
    assert '"vl" = ""' in capsys.readouterr().out and '"vl" = ""' in path.read_text()
    path.write_text('[tags]\n"alice" = "return alice"\n"vl" = "value_loss"\n')
    assert main(["logs", str(log), "--tags", str(path)]) == 1
    assert "critic" in capsys.readouterr().out and (log / "doctor.html").is_file()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tags", "is no TOML"),
        ("tags = 1", "has no [tags]"),
        ('[tags]\n"alice" = "luck"', "the roles are return"),
        ('[tags]\n"bob" = "return"', "delete the line"),
        ('[tags]\n"alice" = 1', "in quotes"),
    ],
)
def test_a_wrong_mapping_is_named(tmp_path, capsys, text, words):
    log = write_events(tmp_path / "log", {"alice": lambda t: t})
    (tmp_path / "tags.toml").write_text(text)
    assert main(["logs", str(log), "--tags", str(tmp_path / "tags.toml")]) == 2
    assert words in capsys.readouterr().err


def cut(data):
    return data[: len(data) // 2 + 3]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nothing.txt", b"", "holds no scalars"),
        ("events.out.tfevents.1", b"\xff" * 40, "no events file"),
        ("events.out.tfevents.1", struct.pack("<Q", 8) + bytes(4) + b"\x0f" * 8 + bytes(4), "no events file"),
        ("events.out.tfevents.1", b"", "holds no scalars"),
        ("log.jsonl", b'{"a": 1}\n{"a": ', "line 2: no JSON"),
        ("log.jsonl", b"[1]\n", "line 1: no object"),
        ("log.jsonl", b"[" * 100_000, "no JSON"),
        ("log.csv", b"\0\xff\n\0", "holds no scalars"),
    ],
)
def test_a_damaged_log_is_named_with_what_to_do(tmp_path, capsys, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert main(["logs", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_is_cut_off_is_read_up_to_there(tmp_path):
    log = write_events(tmp_path / "log")
    path = next(log.iterdir())
    path.write_bytes(cut(path.read_bytes()))
    assert 40 <= len(read_logs(log)["losses/value_loss"].values) < 60
