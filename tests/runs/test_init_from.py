"""A run is initialised from another one, seed by seed, or raises with the reason why it cannot be."""

import shutil
from dataclasses import replace

import jax
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.learning import learner
from hopplus.learning.config import UtilitiesConfig
from hopplus.models.config import ActorCriticConfig, GoalsConfig, OthersConfig
from hopplus.runs import init_from
from hopplus.runs.config import RunConfig
from hopplus.runs.init_from import check_init_from, with_init_from
from hopplus.runs.oracles import what_it_saw
from hopplus.runs.training import seed_keys, train
from runs.tiny import compile_rarely, config, last_state


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A trained run of two seeds."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    with pytest.MonkeyPatch.context() as patch:
        compile_rarely(patch)
        train(config(updates=1), folder)
    return folder


def begin(folder, **settings) -> RunConfig:
    return config(updates=1, init_from=str(folder), **settings)


def test_each_seed_is_initialised_from_a_seed_of_the_other(first):
    three = begin(first, seeds=3)
    check_init_from(three)
    fresh = jax.jit(jax.vmap(lambda key: learner.init(three.learner, three.task, key=key)))(seed_keys(three))
    policy, learned = with_init_from(three, fresh).learners.policy, last_state(first).learners.policy
    for new, old in zip(jax.tree.leaves(policy.params), jax.tree.leaves(learned.params), strict=True):
        np.testing.assert_array_equal(new, np.asarray(old)[[0, 1, 0]])
    fresh_optimiser = fresh.learners.policy.opt_state
    for new, old in zip(jax.tree.leaves(policy.opt_state), jax.tree.leaves(fresh_optimiser), strict=True):
        np.testing.assert_array_equal(new, old)
    alone = replace(three, init_from=None)
    assert with_init_from(alone, fresh) is fresh


def test_it_trains_from_there(first, tmp_path, monkeypatch):
    compile_rarely(monkeypatch)
    train(begin(first), tmp_path / "second")
    train(config(updates=1), tmp_path / "alone")
    states = (last_state(tmp_path / name) for name in ("second", "alone"))
    second, alone = (jax.tree.leaves(state.learners.policy.params)[0] for state in states)
    assert not np.array_equal(second, alone)
    assert what_it_saw(begin(first)) == "own self-play"


def test_what_does_not_fit_is_said(first, tmp_path):
    wide = replace(begin(first).learner, network=ActorCriticConfig(hidden=(16,)))
    with pytest.raises(ValueError, match=r"--init-from: .* has ActorCriticConfig\(hidden=\(8,\).* give the same"):
        check_init_from(begin(first, learner=wide))
    with pytest.raises(ValueError, match="plays matrix-stag-hunt, not stag-hunt-4x4"):
        check_init_from(begin(first, game="stag-hunt-4x4"))
    shared = replace(begin(first).learner, sharing="shared")
    with pytest.raises(ValueError, match="give --sharing independent"):
        check_init_from(begin(first, learner=shared))
    with pytest.raises(ValueError, match=r"config\.json"):
        check_init_from(begin(tmp_path / "nothing"))


def test_hidden_utilities_must_be_in_both_runs(first, monkeypatch):
    goals = OpponentsConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="shared"))
    plain = replace(begin(first).learner, opponents=goals)
    mixed = replace(plain, utilities=UtilitiesConfig(share=0.5))
    for own, other, share in ((plain, mixed, "0.75"), (mixed, plain, "0")):
        monkeypatch.setattr(init_from, "read_config", lambda _, other=other: replace(begin(first), learner=other))
        with pytest.raises(ValueError, match=rf"hidden utilities, .*; give --utilities\.share {share}, or another"):
            check_init_from(replace(begin(first), learner=own))


def test_a_run_that_has_begun_does_without_its_source(first, tmp_path, monkeypatch):
    compile_rarely(monkeypatch)
    source = tmp_path / "source"
    shutil.copytree(first, source)
    settings = begin(source)
    train(settings, tmp_path / "run")
    shutil.rmtree(source)
    assert train(settings, tmp_path / "run").num_updates == 1
    with pytest.raises(ValueError, match=r"config\.json"):
        train(settings, tmp_path / "other")
