"""Files that are missing, cut off, wrong, huge or hostile: no traceback, nothing executed, and words on what to do."""

import io
import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest

from hopplus_doctor.examination import examine_recordings
from hopplus_doctor.main import main
from recordings.made import write

ARRAY = "real/rewards.npy"


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def text(words):
    return lambda folder: (folder / "recording.json").write_text(words)


def about(**changes):
    def change(folder):
        path = folder / "recording.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def array(values, path=ARRAY):
    def change(folder):
        (folder / path).parent.mkdir(exist_ok=True)
        np.save(folder / path, values(np.load(folder / ARRAY)) if callable(values) else values)

    return change


def raw(make, path=ARRAY):
    return lambda folder: (folder / path).write_bytes(make((folder / ARRAY).read_bytes()))


def objects(folder):
    np.save(folder / ARRAY, np.array([Hostile()], object), allow_pickle=True)


def huge(folder):
    with (folder / ARRAY).open("r+b") as file:
        file.truncate(1 << 40)


def promised(shape, descr="'<f8'"):
    """A header that promises more than the file holds."""

    def make(_):
        head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(64)

    return make


def zipped(_):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", b"")
    return stream.getvalue()


def remove(folder):
    (folder / "recording.json").unlink()


def instead(kind):
    def change(folder):
        (folder / ARRAY).unlink()
        {
            "folder": lambda: (folder / ARRAY).mkdir(),
            "pipe": lambda: os.mkfifo(folder / ARRAY),
            "loop": lambda: (folder / ARRAY).symlink_to(folder / ARRAY),
            "device": lambda: (folder / ARRAY).symlink_to("/dev/zero"),
        }[kind]()

    return change


FILES = {
    "no description": (remove, "recording.json"),
    "empty description": (text(""), "Recorder.save"),
    "no JSON": (text("{'format': 1}"), "Recorder.save"),
    "no object": (text("[1]"), "format"),
    "deep JSON": (text("[" * 100_000), "Recorder.save"),
    "long JSON": (text(" " * (1 << 21)), "bytes"),
    "pickled description": (
        lambda folder: (folder / "recording.json").write_bytes(pickle.dumps(Hostile())),
        "Recorder.save",
    ),
    "no format": (about(format=None), "format 1"),
    "later format": (about(format=2), "format 1"),
    "true as format": (about(format=True), "format 1"),
    "no seats": (about(seats=[]), '"seats"'),
    "a seat twice": (about(seats=["red", "red", "blue"]), "of its own"),
    "seats as a number": (about(seats=3), "list of names"),
    "a seat that clears the terminal": (about(seats=["red\x1b[2J", "blue", "green"]), "list of names"),
    "a seat with a long name": (about(seats=["red" * 1000, "blue", "green"]), "list of names"),
    "another number of seats": (about(seats=["red", "blue"]), "along seats"),
    "no updates": (about(updates=[]), '"updates"'),
    "updates as text": (about(updates=["1"]), '"updates"'),
    "infinite discount": (about(settings={"discount": float("inf")}), "from 0 to 1"),
    "discount above 1": (about(settings={"discount": 1.5}), "from 0 to 1"),
    "unknown setting": (about(settings={"gamma": 0.9}), "the settings are"),
    "settings as a list": (about(settings=[]), "write an object"),
    "wrong scope": (about(settings={"clip_gradients": "world"}), "one of all, seat, none"),
    "scope as a list": (about(settings={"clip_gradients": ["seat"]}), "one of all, seat, none"),
    "groups of no seats": (about(settings={"shared_parameters": [["red", "bear"]]}), "groups of seats"),
    "a seat in two groups": (about(settings={"shared_parameters": [["red"], ["red", "blue"]]}), "groups of seats"),
    "no groups": (about(settings={"shared_parameters": [1]}), "groups of seats"),
    "no actions": (about(num_actions=0), "num_actions"),
    "empty array": (raw(lambda _: b""), "numpy.save"),
    "cut off": (raw(lambda data: data[:-7]), "numpy.save"),
    "cut off header": (raw(lambda data: data[:20]), "numpy.save"),
    "text as array": (raw(lambda _: b"1,2,3\n"), "numpy.save"),
    "zip as array": (raw(zipped), "numpy.save"),
    "pickle as array": (raw(lambda _: pickle.dumps(Hostile())), "numpy.save"),
    "objects": (objects, "plain numbers"),
    "promised terabytes": (raw(promised("(1099511627776,)")), "numpy.save"),
    "negative shape": (raw(promised("(-1, 3, 4, 30)")), "write"),
    "code as shape": (raw(promised("(__import__('os').mkdir('executed'),)")), "numpy.save"),
    "objects in the header": (raw(promised("(3, 3, 4, 30)", "'|O'")), "write"),
    "terabyte with holes": (huge, "fewer updates or envs"),
    "text inside": (array(np.full((3, 3, 4, 30), "1")), "plain numbers"),
    "dates inside": (array(np.zeros((3, 3, 4, 30), "datetime64[s]")), "plain numbers"),
    "complex numbers": (array(lambda old: old.astype(complex)), "plain numbers"),
    "records": (array(np.zeros((3, 3, 4, 30), [("a", "f4")])), "plain numbers"),
    "too few axes": (array(lambda old: old[0]), "updates, seats, envs, time"),
    "too few updates": (array(lambda old: old[:-1]), "along updates"),
    "another length": (array(lambda old: old[..., :-1]), "along time"),
    "nothing": (array(lambda old: old[..., :0]), "one entry or more"),
    "actions as floats": (array(lambda old: old, "real/actions.npy"), "int64"),
    "flags of two": (array(lambda old: np.full(old.shape, 2), "real/terminated.npy"), "0 and 1"),
    "misspelt array": (array(lambda old: old, "real/reward.npy"), "the arrays are"),
    "misspelt folder": (array(lambda old: old, "reel/rewards.npy"), "the folders are"),
    "a folder": (instead("folder"), "is no file"),
    "a pipe": (instead("pipe"), "is no file"),
    "a loop": (instead("loop"), "cannot be read"),
    "a device": (instead("device"), "is no file"),
}


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    return write(tmp_path_factory.mktemp("right"))


def examined(folder, capsys):
    code = main(["recording", str(folder), "--json"])
    return code, capsys.readouterr()


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_named_with_what_to_do(name, right, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "bad"
    shutil.copytree(right, folder)
    monkeypatch.chdir(tmp_path)
    change, advice = FILES[name]
    change(folder)
    code, said = examined(folder, capsys)
    assert code == 2 and said.out == ""
    assert advice in said.err and "Traceback" not in said.err and len(said.err) < 4000
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["rewards", "values", "targets"])
def test_numbers_that_are_not_finite_are_a_finding(bad, name, right, tmp_path):
    folder = tmp_path / "bad"
    shutil.copytree(right, folder)
    values = np.load(folder / "real" / f"{name}.npy")
    values[1, 2, 0, 3] = bad
    np.save(folder / "real" / f"{name}.npy", values)
    finding = examine_recordings([folder]).answers[0].findings[0]
    assert finding.verdict == "broken" and f"real/{name} of green" in finding.says


def test_every_array_may_be_missing(right, tmp_path, capsys):
    """Each alone: never an error, and never an alarm. All together: the page says what to write."""
    names = sorted(path.relative_to(right) for path in right.glob("*/*.npy"))
    for removed in names:
        folder = tmp_path / "part"
        shutil.copytree(right, folder)
        (folder / removed).unlink()
        assert examine_recordings([folder]).suspects == (), removed
        shutil.rmtree(folder)
    shutil.copytree(right, folder)
    for removed in names:
        (folder / removed).unlink()
    assert main(["recording", str(folder)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "not enough evidence" in said and 'Recorder.record(update, "real", ...)' in said
    assert (folder / "doctor.html").is_file()


def test_there_are_enough_of_them():
    assert len(FILES) >= 45
