"""A run on several devices is the run on one: to the bit along seeds (ppo), to rounding along environments."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from runs.tiny import assert_same_run, last_state, read_lines

TOLERANCE = 1e-5
"""Of parameters after six updates, where sums over environments are made in another order."""
KINDS = {
    "independent": ("ppo", "independent", ("2x1",), ()),
    "independent, more devices": ("ppo", "independent", ("3x1", "8x1"), ("1x2", "1x8", "2x4")),
    "shared": ("ppo", "shared", ("2x1",), ("1x8",)),
    "imagining": ("hop_plus", "shared", ("2x1",), ("1x2",)),
}
"""Agent, sharing, and meshes, seeds x environments: those along seeds alone, and the others."""


def laid_out(folder: Path, agent: str, sharing: str, *meshes: str) -> None:
    program = Path(__file__).parent / "laid_out.py"
    line = [sys.executable, str(program), str(folder), agent, sharing, *meshes]
    as_users = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # tests compile otherwise
    ended = subprocess.run(line, env=as_users, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """A folder with a run for each mesh, and the meshes."""
    agent, sharing, along_seeds, others = KINDS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    laid_out(folder, agent, sharing, "1x1", *along_seeds, *others)
    return folder, along_seeds, others


def learned(folder: Path) -> list[np.ndarray]:
    state = last_state(folder)
    parts = (state.learners.policy, state.learners.opponents, state.learners.world)
    return [np.asarray(leaf) for part in parts if part is not None for leaf in jax.tree.leaves(part.params)]


@pytest.mark.parametrize(
    "runs",
    ["independent", *(pytest.param(kind, marks=pytest.mark.heavy) for kind in ("independent, more devices", "shared"))],
    indirect=True,
)
def test_devices_change_nothing_along_seeds_and_rounding_along_environments(runs):
    folder, along_seeds, others = runs
    for mesh in along_seeds:
        assert_same_run(folder / mesh, folder / "1x1")
    single, curve = learned(folder / "1x1"), returns(folder / "1x1")
    for mesh in others:
        for leaf, expected in zip(learned(folder / mesh), single, strict=True):
            np.testing.assert_allclose(leaf, expected, rtol=0, atol=TOLERANCE, err_msg=mesh)
        np.testing.assert_allclose(returns(folder / mesh), curve, rtol=1e-5, err_msg=mesh)


@pytest.mark.heavy  # minutes of compiling
@pytest.mark.parametrize("runs", ["imagining"], indirect=True)
def test_where_a_world_is_learned_and_imagined_in_an_update_is_the_same_up_to_rounding(runs):
    """XLA compiles so large a program otherwise for two devices than for one, along either axis. From the second update
    on, a draw that falls otherwise is another sample."""
    folder, along_seeds, others = runs
    first = read_lines(folder / "1x1" / "metrics.jsonl")[0]
    for mesh in (*along_seeds, *others):
        found = read_lines(folder / mesh / "metrics.jsonl")[0]
        for tag in ("policy/value_loss", "wm/loss", "moa/minibatch_ce", "charts/episodic_return/mean"):
            np.testing.assert_allclose(none_as_nan(found[tag]), none_as_nan(first[tag]), rtol=1e-3, err_msg=tag)


def returns(folder: Path) -> list[list[float]]:
    return [none_as_nan(line["charts/episodic_return/mean"]) for line in read_lines(folder / "metrics.jsonl")]


def none_as_nan(values: list[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]
