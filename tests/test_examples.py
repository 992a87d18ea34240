"""The examples run as they are, and the second one plays a run that the first one trained."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hopplus.share import export

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
GOLDEN = Path(__file__).resolve().parent / "golden" / "format_1" / "ppo"
AGENTS = ["ppo", "mappo", "liam", "fcp", "omg", "direct_om", "hop", "hop_plus", "hop_plus_search", "hop_plus_notes"]


def run_example(name: str, *arguments: str) -> list[str]:
    line = [sys.executable, str(EXAMPLES / name), *arguments]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The run folder of the first example, and its output."""
    folder = tmp_path_factory.mktemp("examples") / "run"
    return folder, run_example("train_and_load.py", str(folder))


def test_a_run_is_trained_loaded_evaluated_and_played(trained):
    folder, printed = trained
    assert (folder / "config.json").is_file()
    agents, others = printed[: len(AGENTS)], printed[len(AGENTS) :]
    assert [line.split()[0] for line in agents] == AGENTS
    assert re.fullmatch(r"self-play: \d+\.\d\d per seat, seed by seed \[\d+\.\d+, \d+\.\d+\]", others[0])
    assert [line.split(": ")[0] for line in others[1:]] == ["run:1", "random", "one episode"]


@pytest.mark.parametrize("is_trained", [False, True], ids=["scripts", "trained"])
def test_the_loop_of_pettingzoo_plays_whole_episodes(trained, is_trained):
    folder, _ = trained
    printed = run_example("pettingzoo_loop.py", *([str(folder)] if is_trained else []))
    assert [line.split(":")[0] for line in printed] == ["episode 0", "episode 1", "episode 2"]
    assert all(line.count("player_") == (2 if is_trained else 4) for line in printed)


def test_examples_are_short():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) < (120 if path.name.startswith("own_") else 60), path.name


def test_exported_weights_load_in_torch(tmp_path):
    """The example compares its network with the program that JAX runs."""
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    export(GOLDEN, tmp_path / "exported")
    (printed,) = run_example("load_in_torch.py", str(tmp_path / "exported"))
    assert printed.startswith("probabilities of the first seat: up ")
