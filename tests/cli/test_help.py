"""`hopplus train AGENT --help` lists the flags that the agent uses; the others are accepted, and listed on request."""

import re
import subprocess
import sys

import pytest

from hopplus.agents.named import NAMES
from hopplus.cli.main import CLOSED_PIPE, main
from hopplus.cli.verbs.train import read

FOR_ALL = {"", "network", "ppo", "mesh", "hosts"}
OF_OTHERS = {"others", "modelling"}
GROUPS = {
    "ppo": FOR_ALL,
    "mappo": FOR_ALL,
    "liam": FOR_ALL,
    "fcp": FOR_ALL | {"population"},
    "omg": FOR_ALL | OF_OTHERS | {"goals"},
    "direct_om": FOR_ALL | OF_OTHERS | {"planning"},
    "hop": FOR_ALL | OF_OTHERS | {"goals", "planning"},
    "hop_plus": FOR_ALL | OF_OTHERS | {"goals", "replay", "world", "world-training", "imagination", "utilities"},
    "hop_plus_search": FOR_ALL | OF_OTHERS | {"goals", "planning", "replay", "world", "world-training"},
    "hop_plus_notes": FOR_ALL | OF_OTHERS | {"goals", "replay", "world", "world-training", "imagination"},
}
MOST = {
    "ppo": 40,
    "mappo": 36,
    "liam": 38,
    "fcp": 43,
    "omg": 61,
    "direct_om": 54,
    "hop": 57,
    "hop_plus": 68,
    "hop_plus_search": 67,
    "hop_plus_notes": 81,
}
"""Flags in the help of an agent; all of them together are about ninety, switches counted once."""


def flags_in_help(capsys, *typed):
    assert main(["train", *typed]) == 0
    printed = capsys.readouterr().out
    return set(re.findall(r"^(?:  |│ )(?:-h, )?--([a-z][a-z.-]+)", printed, re.MULTILINE)), printed


@pytest.mark.parametrize("agent", NAMES)
def test_help_lists_what_the_agent_uses(agent, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    flags, printed = flags_in_help(capsys, agent, "--help")
    assert {flag.rpartition(".")[0] for flag in flags} == GROUPS[agent]
    assert len(flags) <= MOST[agent]
    assert {"out", "game", "steps", "ppo.learning-rate"} <= flags
    assert printed.rstrip().splitlines()[-1].endswith(f"hopplus train {agent} --help-all")
    assert flags_in_help(capsys, agent, "-h") == (flags, printed)


def test_all_flags_are_listed_on_request(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    everything = {agent: flags_in_help(capsys, agent, "--help-all")[0] for agent in NAMES}
    assert all(flags == everything["ppo"] for flags in everything.values())
    assert len(everything["ppo"]) > 75 and {"world.members", "imagination.trust", "goals.kind"} <= everything["ppo"]
    assert flags_in_help(capsys, "hop", "--help")[0] < everything["hop"]


def test_flags_that_help_does_not_list_are_accepted():
    typed = "ppo --out run --world.members 1 --others.models each --modelling.epsilon 0.25 --replay.size 64"
    learner = read(typed.split()).config.learner
    assert (learner.world.members, learner.opponents.others.models, learner.replay.size) == (1, "each", 64)
    assert learner.modelling.epsilon == 0.25
    typed = "hop --out run --goals.kind discrete --goals.size 4"
    hop = read(typed.split()).config.learner
    assert (hop.opponents.goals.kind, hop.opponents.goals.size) == ("discrete", 4)


@pytest.mark.parametrize(
    ("typed", "folder"),
    [("ppo", "runs/ppo-stag-hunt-4x4"), ("omg --game=jaxmarl:coin_game --seeds 2", "runs/omg-jaxmarl-coin_game")],
)
def test_the_run_folder_has_a_default(typed, folder):
    assert str(read(typed.split()).out) == folder


def test_help_of_the_verb_lists_the_agents(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert all(agent in printed for agent in NAMES)


SLOW = ("jax", "jaxlib", "equinox", "optax", "orbax", "ray", "scipy", "matplotlib", "tensorboardX", "torch", "numpy")
HELP_OF_ALL = f"""
import contextlib, io, sys
from hopplus.cli.main import VERBS, main
lines = [[], *([verb] for verb in VERBS), ["train", "hop_plus"], ["doctor", "game"], ["study", "run"]]
for line in lines:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main([*line, "--help"])
    assert "usage: hopplus" in out.getvalue(), line
    slow = [name for name in {SLOW} if name in sys.modules]
    assert not slow, (line, slow)
"""


def test_help_imports_nothing_that_is_slow():
    subprocess.run([sys.executable, "-c", HELP_OF_ALL], check=True)


def test_a_closed_pipe_ends_a_command_without_a_message():
    """As in `hopplus games | head`."""
    program = (
        "import sys; from hopplus.cli.main import entry; sys.argv = ['hopplus', '--cache', 'off', 'games']; entry()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (CLOSED_PIPE, b"")
