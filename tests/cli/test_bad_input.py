"""Whatever cannot be done: exit code 2, and one line that says why and what to do about it."""

import json
import shutil
import sys

import pytest

from hopplus.cli.main import main
from hopplus.runs import load
from runs.tiny import train_line

HUNT = "--game stag-hunt-4x4 --envs 2 --rollout-steps 4 --steps 8"
CHICKEN = "--game matrix-chicken --steps 80 --seeds 1"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two small runs; the tests damage copies of the first."""
    folder = tmp_path_factory.mktemp("trained")
    assert main(train_line(folder / "run", "--checkpoint-every 2", updates=4)) == 0
    assert main(train_line(folder / "chicken", CHICKEN)) == 0
    return folder


@pytest.fixture
def here(trained, tmp_path, monkeypatch):
    """A working folder with copies of the runs, a file, a folder with something in it, and an empty one."""
    for name in ("run", "chicken"):
        shutil.copytree(trained / name, tmp_path / name)
    (tmp_path / "file").write_text("a file")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("not to be written over")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(capsys, line):
    """What a command that must fail says, the frame that the parser draws taken off."""
    capsys.readouterr()
    try:
        code = main(line)
    except SystemExit as stopped:
        code = stopped.code
    said = capsys.readouterr().err
    assert code == 2, (code, said)
    assert "Traceback" not in said
    lines = [line for line in said.split("\n") if line.strip()]
    if not any(line.startswith("hopplus: ") for line in lines):
        return " ".join(said.replace("│", " ").split())
    assert [line for line in lines if line.startswith("hopplus: ")] == [lines[-1]], "the reason is one line, the last"
    return lines[-1]


NUMBERS = {
    "--seeds 0": "--seeds is 0; give 1 or more",
    "--seeds -3": "--seeds is -3; give 1 or more",
    "--seed -1": "--seed is -1; give a whole number from 0 to 4294967295",
    "--seed 4294967296": "--seed is 4294967296; give a whole number from 0",
    "--seed 99999999999999999999999": "give a whole number from 0 to 4294967295",
    "--checkpoint-every 0": "--checkpoint-every is 0; give 1 or more",
    "--steps 79": "--steps is 79, less than one update of 80 (--envs x --rollout-steps); give more steps",
    "--steps -1": "--steps is -1, less than one update",
    "--envs 0": "--envs is 0; give 1 or more",
    "--rollout-steps 0": "--rollout-steps is 0; give 1 or more",
    "--mesh.envs 0": "--mesh.envs is 0; give 1 or more",
    "--mesh.envs 64": "need 64 devices, but JAX has 2; give fewer",
    "--mesh.seeds 0": "--mesh.seeds is 0; give 1 or more",
    "--mesh.seeds 3": "--mesh.seeds is 3, but --seeds is 2; give that many seeds at most",
    "--hosts.count 2": "--hosts.count and --hosts.index need --hosts.coordinator ADDRESS:PORT",
    "--hosts.coordinator here": "--hosts.coordinator is here; give ADDRESS:PORT, or auto",
    "--hosts.coordinator here:1 --hosts.index 3": "--hosts.index is 3; give 0 to 0",
    "--network.hidden 0": "give one width or more, each at least 1",
    "--network.hidden 8 -8": "give one width or more, each at least 1",
    "--ppo.discount 1.5": "--ppo.discount is 1.5; give a number between 0 and 1",
    "--ppo.discount nan": "--ppo.discount is nan; give a number between 0 and 1",
    "--ppo.gae-lambda -0.1": "--ppo.gae-lambda is -0.1; give a number between 0 and 1",
    "--ppo.clip 0": "--ppo.clip is 0.0; give a number above 0",
    "--ppo.value-clip -1": "--ppo.value-clip is -1.0; give a number of 0 or more",
    "--ppo.value-coefficient -1": "--ppo.value-coefficient is -1.0; give a number of 0 or more",
    "--ppo.entropy-coefficient -1": "--ppo.entropy-coefficient is -1.0; give a number of 0 or more",
    "--ppo.final-entropy-coefficient -1": "--ppo.final-entropy-coefficient is -1.0; give a number of 0 or more",
    "--ppo.learning-rate 0": "--ppo.learning-rate is 0.0; give a number above 0",
    "--ppo.max-gradient-norm 0": "--ppo.max-gradient-norm is 0.0; give a number above 0",
    "--ppo.epochs 0": "--ppo.epochs is 0; give a number of 1 or more",
    "--ppo.minibatch-size 0": "--ppo.minibatch-size is 0; give a number of 1 or more",
    "--goals.size 0": "--goals.size is 0; give 1 or more",
    "--others.hidden 0": "--others.hidden is 0; give 1 or more",
    "--modelling.epsilon 1.5": "--modelling.epsilon is 1.5; give a number between 0 and 1",
    "--modelling.goal-envs 0": "--modelling.goal-envs is 0; give a number of 1 or more",
    "--modelling.posterior-kl -1": "--modelling.posterior-kl is -1.0; give a number of 0 or more",
    "--world.members -1": "--world.members is -1; give 0 or more",
    "--replay.size 0": "--replay.size is 0; give a number of 1 or more",
    "--imagination.real-ratio 0": "--imagination.real-ratio is 0.0; give a number above 0, and 1 at most",
    "--imagination.counterfactual 2": "--imagination.counterfactual is 2.0; give a number between 0 and 1",
}
CHOICES = {
    "--game no-such-game": "there is no game called 'no-such-game'; give one of stag-hunt-4x4",
    "--game no_such_module:game": "give MODULE:FACTORY that can be imported from here",
    "--co-players nobody": "no script called 'nobody' for matrix; give one of random, noisy",
    "--co-players nearest_stag": "no script called 'nearest_stag' for matrix; give one of random, noisy",
    "--co-players random,random": "names 2 players for the 2 seats of matrix-stag-hunt; name 1 at most",
    "--co-players random,,random": "write names with commas",
    "--co-players noisy(random)": "write nearest_stag, patient_stag(3) or noisy(nearest_stag, 0.1)",
    "--arenas 3 8": "--arenas 3 8: matrix-stag-hunt has no board; leave --arenas out",
    "--game stag-hunt-8x8 --arenas 5 9": "--arenas 5 9: arena_sides (5, 9) does not fit a 8x8 board; give 1 <= low",
    "--game stag-hunt-8x8 --arenas 8 5": "does not fit a 8x8 board; give 1 <= low <= high <= 8",
    "--game stag-hunt-8x8 --arenas 2 8": "9 players and prey need a cell each, but there may be only 4; take a larger",
    "--wandb project": "pip install wandb, or leave --wandb out",
    "--goals.kind continuous": "--goals.kind needs opponent models; give --others.models each or shared",
    "--imagination.real-ratio 0.5": "there is no world or no opponent model to imagine with",
    "--world.members 2": "ppo cannot learn matrix-stag-hunt: a learned world (--world.members) needs a board",
    "--pretrained nowhere": "--pretrained: ppo has no opponent models; train omg or hop",
    "--others.models each --pretrained nowhere": "nowhere has no config.json; give the folder that `hopplus pretrain",
    "--others.models each --pretrained run": "run holds no pretraining; give the folder that `hopplus pretrain --out`",
}
PRETRAINING = {
    "--epochs 0": "--epochs is 0; give 1 or more",
    "--held-out 1.5": "--held-out is 1.5; give a share between 0 and 1",
    "--data.samples 0": "--data.samples is 0; give 1 or more",
    "--data.types nobody": "there is no script called 'nobody'",
    "--data.game no-such-game": "there is no game called 'no-such-game'",
    "--others.models each": "--others.models must be shared for pretraining",
    "--labels types --data.types random": "--labels types needs 2 types for the goals stag, hare",
    "--export episodes.txt": "--export is episodes.txt; give a name that ends in .npz",
    "--episodes nowhere.npz": "nowhere.npz cannot be read as an .npz file",
    "--episodes file": "file cannot be read as an .npz file",
}


@pytest.mark.parametrize(("flags", "reason"), [*NUMBERS.items(), *CHOICES.items()])
def test_settings_that_make_no_sense_are_refused_before_there_is_a_folder(here, capsys, monkeypatch, flags, reason):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert reason in complaint(capsys, train_line(here / "fresh", flags))
    assert not (here / "fresh").exists()


@pytest.mark.parametrize(("flags", "reason"), PRETRAINING.items())
def test_pretraining_that_makes_no_sense_is_refused_before_there_is_a_folder(here, capsys, flags, reason):
    line = f"pretrain --data.game stag-hunt-4x4 --out fresh {flags}"
    assert reason in complaint(capsys, line.split())
    assert not (here / "fresh").exists()


@pytest.mark.parametrize(
    ("flags", "reason"),
    {
        "--others": "run is a run of ppo, which has no opponent models; train omg or hop",
        "--world": "run is a run of ppo, which learns no world; train hop_plus",
        "--world --rotate 1": "--world sets the line-ups itself",
        "--others --adaptation": "--others goes with --co-players alone",
        "--others --rotate 1": "--others goes with --co-players alone",
        "--adaptation --kinds nearest_stag": "--kinds is nearest_stag; give some of random, noisy or MODULE:FACTORY",
    }.items(),
)
def test_questions_that_a_run_cannot_answer(here, capsys, flags, reason):
    assert reason in complaint(capsys, f"evaluate {here / 'run'} {flags}".split())


@pytest.mark.parametrize(
    "line",
    [
        "train",
        "train sarsa --out fresh",
        "train ppo --out fresh --no-such-flag 3",
        "train ppo --out fresh --seeds many",
        "train ppo --out fresh --seeds 2.5",
        "train ppo --out fresh --ppo.clip wide",
        "train ppo --out fresh --arenas 3",
        "train ppo --out fresh --sharing everything",
        "evaluate",
        "evaluate run --episodes few",
        "evaluate run other --json",
        "report",
        "runs one two",
    ],
)
def test_what_the_parser_cannot_read_exits_with_2(here, capsys, line):
    assert complaint(capsys, line.split())
    assert not (here / "fresh").exists()


@pytest.mark.parametrize(
    ("out", "flags", "reason"),
    [
        ("file", "", "file is a file; give a folder for the run with --out"),
        ("file/run", "", "cannot make the folder file/run (Not a directory); give another with --out"),
        ("full", "", "full is not empty and holds no run; give another folder with --out"),
        ("run", "--seed 1", "holds a run with --seed 0, not 1; give the same settings to resume it, or another"),
        ("run", "--seeds 3", "holds a run with --seeds 2, not 3; give the same settings"),
        ("run", "--game matrix-chicken", "holds a run with --game matrix-stag-hunt, not matrix-chicken; give the same"),
        ("run", "--ppo.learning-rate 0.1", "holds a run with --ppo.learning-rate 0.0005, not 0.1; give the same"),
        ("run", "--network.hidden 8 8", "holds a run with --network.hidden [8], not [8, 8]; give the same settings"),
        ("run", "--co-players random", "holds a run with --co-players None, not random; give the same settings"),
        ("run", "--envs 10", "holds a run with --envs 8, not 10; give the same settings"),
        ("run", "--steps 80", "holds a run of 320 steps; give as many with --steps, or more to continue it"),
        ("run", "--steps 800", "give --steps 320, or another folder with --out"),
    ],
)
def test_a_folder_that_is_something_else_is_left_as_it_is(here, capsys, out, flags, reason):
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert reason in complaint(capsys, train_line(out, flags, updates=4))
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


READERS = ("evaluate nowhere", "report nowhere", "evaluate file", "report file", "evaluate empty", "report full")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        *((line, "give the folder that `hopplus train --out` wrote") for line in READERS),
        ("runs nowhere", "there is no folder nowhere; give the one that holds your runs"),
        ("runs file", "there is no folder file; give the one that holds your runs"),
        ("runs empty", "there is no run below empty; give another folder"),
        ("evaluate run --episodes 0", "--episodes is 0; give 1 or more"),
        ("evaluate run --episodes -5", "--episodes is -5; give 1 or more"),
        ("evaluate run --seed -1", "--seed is -1; give a whole number from 0"),
        ("evaluate run --seed 99999999999999999999999", "give a whole number from 0"),
        ("evaluate run --rotate 2", "--rotate is 2; give 0 to 1, since matrix-stag-hunt has 2 seats"),
        ("evaluate run --rotate -1", "--rotate is -1; give 0 to 1"),
        ("evaluate run --co-players nobody", "no script called 'nobody' for matrix; give one of random, noisy"),
        ("evaluate run --co-players nobody:1", "there is no run folder nobody; give a run, as in runs/other, or a"),
        ("evaluate run --co-players no/where", "there is no run folder no/where; give a run, as in runs/other, or a"),
        ("evaluate run --co-players empty", "empty has no config.json; is it a run folder? give the folder"),
        ("evaluate run --co-players random,random", "they must fill the 2 seats of matrix-stag-hunt, one of them"),
        ("evaluate run --co-players random,random,random", "they must fill the 2 seats of matrix-stag-hunt"),
        ("evaluate run --co-players run:0", "run has no seat 0; give 1 to 2, as in run:1"),
        ("evaluate run --co-players run:3", "run has no seat 3; give 1 to 2, as in run:1"),
        ("evaluate run --co-players run:one", "run has no seat one; give 1 to 2, as in run:1"),
        (
            "evaluate run --co-players chicken",
            "plays matrix-chicken, not matrix-stag-hunt; give a run of the same game",
        ),
        ("evaluate run --co-players noisy(random,2)", "as in noisy(nearest_stag, 0.1)"),
        ("report run --episodes 0", "--episodes is 0; give 1 or more"),
        ("report run --seed -1", "--seed is -1; give a whole number from 0"),
        ("report run --out empty", "empty is a folder; give a file for the page, as in --out empty/report.html"),
        ("report run --out no/where.html", "there is no folder no to write where.html into; give another --out"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_reader_says_what_to_give_instead(capsys, line, reason):
    assert reason in complaint(capsys, line.split())


def test_an_empty_lineup_is_refused(here, capsys):
    assert "write names with commas" in complaint(capsys, ["evaluate", str(here / "run"), "--co-players", ""])


def edited(path, **changes):
    """The settings with some of them changed; a dot leads into those of a part, and None takes one away."""
    settings = json.loads(path.read_text())
    for name, value in changes.items():
        *parts, last = name.split("__")
        place = settings
        for part in parts:
            place = place[part]
        place[last] = value
    return json.dumps(settings)


SETTINGS = {
    "cut off": (lambda path: path.read_text()[:200], "config.json cannot be read"),
    "empty": (lambda _: "", "config.json cannot be read"),
    "not JSON": (lambda _: "game: matrix-stag-hunt\n", "config.json cannot be read"),
    "a list": (lambda _: "[]", "config.json is not the settings of a run"),
    "another file": (lambda _: '{"name": "somebody"}', "config.json is not the settings of a run"),
    "of an unknown setting": (lambda path: edited(path, speed=3), "cannot use (unknown: speed)"),
    "of an unknown setting of the objective": (
        lambda path: edited(path, learner__ppo__speed=3),
        "cannot use (unknown: learner.ppo.speed)",
    ),
    "without a setting": (
        lambda path: path.read_text().replace('"seeds": 2,', ""),
        "cannot use (missing: seeds)",
    ),
    "of a word for a number": (lambda path: edited(path, steps="many"), "cannot use (steps is 'many')"),
    "of a broken number": (lambda path: edited(path, seeds=2.5), "cannot use (seeds is 2.5)"),
    "of a wrong number": (lambda path: edited(path, learner__envs=0), "cannot use (--envs is 0; give 1 or more)"),
    "of an unknown choice": (
        lambda path: edited(path, learner__sharing="all"),
        "cannot use (learner.sharing is 'all')",
    ),
    "of a part that is none": (lambda path: edited(path, learner=3), "cannot use (missing: learner.envs)"),
    "of sides that are no pair": (lambda path: edited(path, arenas=[3]), "cannot use (arenas is [3])"),
    "of another agent": (lambda path: edited(path, agent="sarsa"), "cannot use (there is no agent called 'sarsa'"),
    "of an unknown game": (lambda path: edited(path, game="chess"), "cannot use (there is no game called 'chess'"),
    "of an older hopplus": (
        lambda path: edited(path, learner__mind=3, version="0.1.0"),
        "cannot use (unknown: learner.mind); use hopplus 0.1.0, which wrote them, or train again into another folder",
    ),
    "of other rules": (
        lambda path: edited(path, game_version=7, version="9.9"),
        "was trained on version 7 of matrix, but this hopplus has version 1 of matrix; use hopplus 9.9",
    ),
}


@pytest.mark.parametrize("verb", ["evaluate", "train"])
@pytest.mark.parametrize("fault", SETTINGS)
def test_damaged_settings_are_named(here, capsys, fault, verb):
    path = here / "run" / "config.json"
    damage, reason = SETTINGS[fault]
    path.write_text(damage(path))
    line = ["evaluate", "run"] if verb == "evaluate" else train_line("run", updates=4)
    said = complaint(capsys, line)
    assert reason in said and "train again into another folder" in said


def test_settings_that_are_no_text_are_named(here, capsys):
    (here / "run" / "config.json").write_bytes(b"\xff\xfe\x00{}")
    assert "config.json cannot be read" in complaint(capsys, ["evaluate", "run"])


OTHER_SHAPES = "holds arrays of other shapes than the settings of the run ask for; put back the config.json"


@pytest.mark.parametrize(
    "changes", [{"seeds": 3}, {"learner__network__hidden": [16]}, {"learner__envs": 4}, {"co_players": "random"}]
)
def test_a_checkpoint_of_other_settings_is_not_read(here, capsys, changes):
    path = here / "run" / "config.json"
    path.write_text(edited(path, **changes))
    assert OTHER_SHAPES in complaint(capsys, ["evaluate", "run"])


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def checkpoint_files(folder, pattern):
    paths = [path for path in (folder / "run" / "checkpoints" / "4").rglob(pattern) if path.is_file()]
    assert paths, pattern
    return paths


@pytest.mark.parametrize("harm", [cut, lambda path: path.unlink(), lambda path: path.write_bytes(b"\0" * 100)])
@pytest.mark.parametrize("pattern", ["d/*", "manifest.ocdbt", "_METADATA", "_CHECKPOINT_METADATA"])
def test_a_damaged_checkpoint_is_named_or_does_not_matter(here, capsys, pattern, harm):
    """Where a file holds nothing that is needed, the run is read as if it were whole; nothing else may come of it."""
    for path in checkpoint_files(here, pattern):
        harm(path)
    if pattern == "_CHECKPOINT_METADATA":
        assert load("run").num_updates == 4
        return
    said = complaint(capsys, ["evaluate", "run"])
    assert "checkpoints/4 cannot be read (" in said and "delete it to resume from the one before it" in said
    shutil.rmtree(here / "run" / "checkpoints" / "4")
    assert load("run").num_updates == 2


@pytest.mark.parametrize("verb", ["evaluate", "report"])
def test_a_run_without_a_checkpoint_is_to_be_trained_first(here, capsys, verb):
    shutil.rmtree(here / "run" / "checkpoints")
    assert "has no checkpoint yet; train it first" in complaint(capsys, [verb, "run"])
    (here / "run" / "checkpoints").mkdir()
    assert "has no checkpoint yet; train it first" in complaint(capsys, [verb, "run"])


def test_a_file_in_the_place_of_the_checkpoints_is_named(here, capsys):
    shutil.rmtree(here / "run" / "checkpoints")
    (here / "run" / "checkpoints").write_text("")
    said = complaint(capsys, train_line("run", updates=4))
    assert "checkpoints is not a folder; remove it, or train again into another folder" in said


METRICS = {
    "a line in the middle is damaged": (lambda lines: [lines[0], b'{"update": 2, "env\n', *lines[2:]], "at line 2;"),
    "a line is not text": (lambda lines: [b"\xff\xff\n", *lines[1:]], "at line 1;"),
    "a line is missing": (lambda lines: [lines[0], *lines[2:]], "at line 2;"),
    "a line is there twice": (lambda lines: [lines[0], *lines], "at line 2;"),
    "a line is a number": (lambda lines: [b"3\n", *lines[1:]], "at line 1;"),
    "the file is cut": (lambda lines: lines[:1], "ends at update 1, but the checkpoint is of update 2;"),
    "the file is empty": (lambda _: [], "ends at update 0, but the checkpoint is of update 2;"),
}


@pytest.mark.parametrize("fault", METRICS)
def test_a_run_does_not_go_on_after_damaged_metrics(here, capsys, fault):
    shutil.rmtree(here / "run" / "checkpoints" / "4")
    path = here / "run" / "metrics.jsonl"
    damage, reason = METRICS[fault]
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    before = path.read_bytes()
    said = complaint(capsys, train_line("run", "--checkpoint-every 2", updates=4))
    assert "metrics.jsonl" in said and reason in said and "put the file back, or train again" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("verb", ["report", "runs"])
def test_damaged_metrics_are_named_by_readers(here, capsys, verb):
    path = here / "run" / "metrics.jsonl"
    path.write_text("{\n" + path.read_text())
    if verb == "report":
        assert "damaged at line 1" in complaint(capsys, ["report", "run"])
    else:  # one bad run is shown as such and does not hide the others
        assert main(["runs", "."]) == 0
        printed = capsys.readouterr().out
        assert "?" in printed and "chicken" in printed
        assert "run: run/metrics.jsonl is damaged at line 1" in printed


@pytest.mark.parametrize("changes", [{"steps": 0}, {"steps": "many"}, {"seeds": [1]}, {"agent": "[/]"}])
@pytest.mark.usefixtures("here")
def test_runs_lists_what_it_can(here, capsys, changes):
    path = here / "run" / "config.json"
    path.write_text(edited(path, **changes))
    assert main(["runs", "."]) == 0
    assert "chicken" in capsys.readouterr().out
