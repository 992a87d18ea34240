"""An export holds the agent that the run holds, and no damaged file does harm."""

import json
import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli.main import main
from hopplus.runs import load
from hopplus.share.card import CardData, model_card
from hopplus.share.exports import CONFIG, FORMAT, PROGRAM_FILES, WEIGHTS, export, read_export, weights_of
from hopplus.share.program import functions, read_programs
from hopplus.share.weights import read_safetensors, write_safetensors

GOLDEN = Path(__file__).parents[1] / "golden"
RUN = GOLDEN / "format_1" / "ppo"
EVERY_FORMAT = sorted(path.parent for path in GOLDEN.glob("format_*/*/config.json"))
IN_CLEAN_PYTHON = """
import sys, numpy as np, jax
from jax import export
assert "hopplus" not in sys.modules
given = dict(np.load(sys.argv[2]))
init, policy, next_episode = (
    export.deserialize(bytearray(open(f"{sys.argv[1]}/{name}.jax_export", "rb").read()))
    for name in ("init", "policy", "next_episode")
)
observation = {name[4:]: array for name, array in given.items() if name.startswith("see_")}
state = next_episode.call(init.call(given["seat"]))
found = []
for _ in range(3):
    probabilities, state = policy.call(given["seat"], observation, given["legal"], state)
    found += [probabilities, *(state[name] for name in sorted(state))]
np.savez(sys.argv[3], *map(np.asarray, found))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return export(RUN, tmp_path_factory.mktemp("export") / "ppo", seed=1)


def situation(run, count=8):
    """Views of every seat after some random steps, with the seats and the legal actions."""
    game = run.game

    def one(key):
        first, act, step = jax.random.split(key, 3)
        state = game.reset(key=first)
        actions = jax.random.randint(act, (game.spec.num_agents,), 0, game.spec.num_actions, jnp.int32)
        state, _ = game.step(state, actions, key=step)
        return game.observe(state), game.legal(state)

    views, legal = jax.vmap(one)(jax.random.split(jax.random.key(0), count))
    seats = jnp.tile(jnp.arange(run.num_learning, dtype=jnp.int32), count)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (views, legal))
    return seats, *flat


def played(init, next_episode, policy, seat, observation, legal):
    """Three steps with the same view: probabilities and states."""
    state, found = next_episode(init(seat)), []
    for _ in range(3):
        probabilities, state = policy(seat, observation, legal, state)
        found += [probabilities, *(state[name] for name in sorted(state))]
    return [np.asarray(each) for each in found]


def test_the_program_plays_as_the_run_does(exported):
    run, read = load(RUN), read_export(exported)
    seats, observation, legal = situation(run)
    found = played(read.init, read.next_episode, read.policy, seats, observation, legal)
    fns = {name: jax.jit(fn) for name, fn in functions(run, 1).items()}
    wanted = played(fns["init"], fns["next_episode"], fns["policy"], seats, observation, legal)
    assert len(found) == len(wanted) and all((one == other).all() for one, other in zip(found, wanted, strict=True))
    for index in (0, 3, 5):
        seat = int(seats[index])
        player = run.policy(seed=1, seat=seat)
        one = jax.tree.map(lambda leaf, index=index: leaf[index], (observation, legal))
        np.testing.assert_allclose(player(*one, player.init())[0], found[0][index], atol=1e-6)


def test_the_weights_are_those_of_the_seed(exported):
    run = load(RUN)
    weights = read_export(exported).weights
    assert set(weights) == set(weights_of(run, 1))
    np.testing.assert_array_equal(weights["policy.heads.bias"], np.asarray(run.params.heads.bias[1]))
    assert weights["policy.trunk.layers.0.weight"].shape[0] == run.num_learning


def test_the_safetensors_of_others_say_the_same(exported):
    library = pytest.importorskip("safetensors.numpy")
    theirs, ours = library.load_file(exported / WEIGHTS), read_safetensors(exported / WEIGHTS)[0]
    assert set(theirs) == set(ours) and all((theirs[name] == ours[name]).all() for name in ours)


@pytest.mark.parametrize(
    "folder",
    [pytest.param(path, marks=() if path.name == "omg" else pytest.mark.heavy) for path in EVERY_FORMAT],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_runs_of_every_format_are_exported(folder, tmp_path):
    assert main(["export", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert read_export(tmp_path / "out").config["run"]["format"] == int(folder.parent.name.removeprefix("format_"))


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory):
    """A new environment with jax, numpy and flatbuffers."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=True)
    packages = [f"jax=={jax.__version__}", f"numpy=={np.__version__}", "flatbuffers"]
    subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages], check=True)
    return str(folder / "bin" / "python")


@pytest.mark.heavy
@pytest.mark.parametrize("agent", ["ppo", "omg", "hop_plus"])
def test_a_clean_python_with_jax_alone_gets_the_same_bits(agent, clean_python, tmp_path):
    run, out = load(RUN.parent / agent), export(RUN.parent / agent, tmp_path / "export")
    seats, observation, legal = situation(run)
    named = {f"see_{name}": np.asarray(array) for name, array in observation.items()}
    np.savez(tmp_path / "given.npz", seat=np.asarray(seats), legal=np.asarray(legal), **named)
    files = [str(out), str(tmp_path / "given.npz"), str(tmp_path / "found.npz")]
    subprocess.run([clean_python, "-I", "-c", IN_CLEAN_PYTHON, *files], check=True)
    read = read_export(out)
    wanted = played(read.init, read.next_episode, read.policy, seats, observation, legal)
    with np.load(tmp_path / "found.npz") as found:
        assert len(found) == len(wanted)
        assert all((found[f"arr_{index}"] == array).all() for index, array in enumerate(wanted))


# Malformed files: each change makes an export that must be refused with a message.


def header_of(folder):
    content = (folder / WEIGHTS).read_bytes()
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(change):
    """Rewrite the header of the weights."""

    def apply(folder):
        header, data = header_of(folder)
        header = change(header) or header
        text = json.dumps(header).encode()
        (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + data)

    return apply


def with_entry(**fields):
    return with_header(lambda header: header["policy.heads.bias"].update(fields))


def with_bytes(name, change):
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def with_config(**fields):
    def apply(folder):
        config = json.loads((folder / CONFIG).read_text()) | fields
        (folder / CONFIG).write_text(json.dumps(config))

    return apply


POLICY, INIT = PROGRAM_FILES["policy"], PROGRAM_FILES["init"]
PICKLE = b"cposix\nsystem\n(S'touch /tmp/pickle_was_loaded'\ntR."
DAMAGED = {
    "weights: empty": with_bytes(WEIGHTS, lambda _: b""),
    "weights: seven bytes": with_bytes(WEIGHTS, lambda content: content[:7]),
    "weights: header cut": with_bytes(WEIGHTS, lambda content: content[:40]),
    "weights: data cut": with_bytes(WEIGHTS, lambda content: content[:-1]),
    "weights: data too long": with_bytes(WEIGHTS, lambda content: content + b"more"),
    "weights: huge header": with_bytes(WEIGHTS, lambda content: b"\xff" * 8 + content[8:]),
    "weights: header no JSON": with_bytes(WEIGHTS, lambda content: content[:8] + b"x" + content[9:]),
    "weights: header no text": with_bytes(WEIGHTS, lambda content: content[:8] + b"\xff\xfe" + content[10:]),
    "weights: a pickle": with_bytes(WEIGHTS, lambda _: PICKLE),
    "weights: deep JSON": with_bytes(WEIGHTS, lambda _: (10**5).to_bytes(8, "little") + b"[" * 10**5),
    "weights: a list": with_header(lambda header: [header]),
    "weights: nothing in it": with_header(lambda _: {"__metadata__": {}}),
    "weights: metadata of numbers": with_header(lambda header: header.update(__metadata__={"a": 1})),
    "weights: no offsets": with_header(lambda header: header["policy.heads.bias"].pop("data_offsets")),
    "weights: unknown type": with_entry(dtype="PY"),
    "weights: another type": with_entry(dtype="F64"),
    "weights: negative shape": with_entry(shape=[-1, 8]),
    "weights: shape of text": with_entry(shape="48"),
    "weights: shape of floats": with_entry(shape=[4.0, 8.0]),
    "weights: huge shape": with_entry(shape=[2**40, 2**40]),
    "weights: offsets outside": with_entry(data_offsets=[0, 2**62]),
    "weights: offsets backwards": with_entry(data_offsets=[9, 3]),
    "weights: offsets of text": with_entry(data_offsets=["0", "4"]),
    "weights: overlapping": with_entry(data_offsets=[4, 132]),
    "weights: an entry of text": with_header(lambda header: header.update(x="y")),
    "weights: of another thing": with_header(
        lambda header: {name.replace("policy", "picture"): entry for name, entry in header.items()}
    ),
    "program: empty": with_bytes(POLICY, lambda _: b""),
    "program: cut": with_bytes(POLICY, lambda content: content[: len(content) // 2]),
    "program: text": with_bytes(POLICY, lambda _: b"import os" * 100),
    "program: a pickle": with_bytes(POLICY, lambda _: PICKLE),
    "program: zeros in the middle": with_bytes(POLICY, lambda content: content[:300] + bytes(900) + content[1200:]),
    "program: every 50th byte": with_bytes(
        POLICY, lambda content: bytes(255 - byte if place % 50 == 0 else byte for place, byte in enumerate(content))
    ),
    "program: another one": lambda folder: shutil.copy(folder / INIT, folder / POLICY),
    "program: init is the policy": lambda folder: shutil.copy(folder / POLICY, folder / INIT),
    "config: no JSON": with_bytes(CONFIG, lambda content: content[:-5]),
    "config: a list": with_bytes(CONFIG, lambda _: b"[]"),
    "config: no text": with_bytes(CONFIG, lambda _: b"\xff\xff"),
    "config: deep JSON": with_bytes(CONFIG, lambda _: b"[" * 10**5),
    "config: later format": with_config(export_format=FORMAT + 1),
    "config: no agents": with_config(num_agents=None),
    "config: actions of numbers": with_config(action_names=[1, 2]),
    "config: more actions": with_config(action_names=["a"] * 9),
    "config: no fields": with_config(observation=[]),
    "config: unknown field": with_config(observation=[{"name": "x", "kind": "code", "shape": []}]),
    "config: another field": with_config(observation=[{"name": "x", "kind": "vector", "shape": [3]}]),
    "config: field of huge shape": with_config(observation=[{"name": "x", "kind": "vector", "shape": [2**60]}]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_malformed_export_is_refused(exported, tmp_path, name):
    """Checksums are corrected after the change, so that the checks behind them are tested too."""
    assert len(DAMAGED) >= 30
    folder = shutil.copytree(exported, tmp_path / "damaged")
    DAMAGED[name](folder)
    try:
        config = json.loads((folder / CONFIG).read_text())
        config["sha256"] = {each: sha256((folder / each).read_bytes()).hexdigest() for each in config["sha256"]}
        (folder / CONFIG).write_text(json.dumps(config))
    except (ValueError, TypeError, RecursionError):
        assert name.startswith("config")
    with pytest.raises(ValueError, match=r"export|format"):
        read_export(folder)
    assert not Path("/tmp/pickle_was_loaded").exists()


def test_damage_is_found_by_the_checksum(exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "damaged")
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(ValueError, match="its checksum differs"):
        read_export(folder)
    (folder / WEIGHTS).unlink()
    with pytest.raises(ValueError, match=f"has no {WEIGHTS}"):
        read_export(folder)


def test_a_program_that_calls_something_outside_itself_is_refused():
    def shout(array):
        return jax.pure_callback(lambda given: given, jax.ShapeDtypeStruct(array.shape, array.dtype), array)

    disabled = [jax.export.DisabledSafetyCheck.custom_call("xla_ffi_python_cpu_callback")]
    try:
        program = jax.export.export(jax.jit(shout), disabled_checks=disabled)(jnp.zeros(2)).serialize()
    except (NotImplementedError, ValueError):  # JAX itself refuses to write one
        return
    with pytest.raises(ValueError, match="outside of itself"):
        read_programs({"policy": bytes(program)})


# The card.


def card(folder, **settings):
    run = load(folder)
    return model_card(CardData.of(run, settings.get("seed", 0), "cc-by-4.0", {"model.safetensors": 1000}))


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(RUN, tmp_path / "run")


FINDING = {"check": "targets", "module": "returns", "kind": "exact", "says": "seat 2 learns from another's reward."}


def doctor_says(folder, verdict):
    answer = {"question": "critic", "findings": [FINDING | {"verdict": verdict}, FINDING | {"verdict": "fine"}]}
    content = {"verdict": verdict, "answers": [answer], "command": f"hopplus doctor {folder}"}
    (folder / "doctor.json").write_text(json.dumps(content))


def test_a_broken_verdict_stands_on_top_of_the_card(copy):
    doctor_says(copy, "broken")
    text = card(copy)
    body = text.split("---\n", 2)[2].lstrip()
    assert body.startswith("> **This run is broken") and FINDING["says"] in body.split("# ")[0]
    doctor_says(copy, "fine")
    assert "This run is broken" not in card(copy) and "**fine** (2 fine)" in card(copy)


def test_the_card_says_what_was_measured_and_what_was_not(copy):
    text = card(copy)
    stored = json.loads((copy / "evaluation.json").read_text())
    assert text.startswith("---\nlicense: cc-by-4.0\nlibrary_name: hopplus\n")
    assert f"{stored['interval']['estimate']:.2f} ({stored['interval']['low']:.2f} to" in text
    assert "hopplus train ppo --game stag-hunt-4x4 --seeds 2 --steps 64" in text and str(copy.parent) not in text
    assert "Not examined. `hopplus doctor" in text and "--adaptation` measures it" in text
    (copy / "evaluation.json").unlink()
    assert "Not measured. `hopplus evaluate" in card(copy) and "model-index" not in card(copy)


def test_the_adaptation_table_is_that_of_the_run(copy):
    result = json.loads((GOLDEN.parents[1] / "results" / "adaptation_4x4_ppo.json").read_text())
    (copy / "adaptation.json").write_text(json.dumps(result))
    row = result["lineups"][0]
    assert f"| {row['lineup']} | {row['sampled']['estimate']:.2f} (" in card(copy)


def test_a_result_that_is_not_complete_is_named(copy):
    (copy / "doctor.json").write_text("{}")
    with pytest.raises(ValueError, match="not complete"):
        card(copy)
    (copy / "doctor.json").write_text("{")
    with pytest.raises(ValueError, match=r"doctor\.json cannot be read"):
        card(copy)


def test_bad_input_is_refused(copy, capsys):
    assert main(["export", str(copy), "--seed", "9"]) == 2 and "no seed 9" in capsys.readouterr().err
    assert main(["export", str(copy), "--licence", "a b"]) == 2 and "--licence" in capsys.readouterr().err
    assert main(["export", str(copy), "--out", str(copy)]) == 2 and "is not empty" in capsys.readouterr().err


def test_arrays_survive_the_file(tmp_path):
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(True), "c": np.zeros((0, 4), np.int32)}
    write_safetensors(tmp_path / "x", arrays, {"say": "hello"})
    found, about = read_safetensors(tmp_path / "x")
    assert about == {"say": "hello"} and set(found) == set(arrays)
    assert all((found[name] == array).all() and found[name].dtype == array.dtype for name, array in arrays.items())
    with pytest.raises(ValueError, match="has the type complex"):
        write_safetensors(tmp_path / "y", {"z": np.zeros(1, complex)}, {})


def test_the_example_loads_the_weights_in_torch(exported):
    pytest.importorskip("torch")
    pytest.importorskip("safetensors.torch")
    example = Path(__file__).parents[2] / "examples" / "load_in_torch.py"
    line = [sys.executable, str(example), str(exported)]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("probabilities of the first seat: ")
