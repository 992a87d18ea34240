"""A run begins with what another one learned, seed by seed, or says why it cannot."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from hopplus.learning import learner
from hopplus.models.actor_critic import ActorCriticConfig
from hopplus.runs.beginning import check_beginning, with_beginning
from hopplus.runs.config import RunConfig
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
    return config(updates=1, begin_with=str(folder), **settings)


def test_each_seed_begins_with_a_seed_of_the_other(first):
    three = begin(first, seeds=3)
    check_beginning(three)
    fresh = jax.vmap(lambda key: learner.init(three.learner, three.task, key=key))(seed_keys(three))
    begun, learned = with_beginning(three, fresh), last_state(first)
    for new, old in zip(jax.tree.leaves(begun.params), jax.tree.leaves(learned.params), strict=True):
        np.testing.assert_array_equal(new, np.asarray(old)[[0, 1, 0]])
    for new, old in zip(jax.tree.leaves(begun.optimizer), jax.tree.leaves(fresh.optimizer), strict=True):
        np.testing.assert_array_equal(new, old)
    alone = replace(three, begin_with=None)
    assert with_beginning(alone, fresh) is fresh


def test_it_trains_from_there(first, tmp_path, monkeypatch):
    compile_rarely(monkeypatch)
    train(begin(first), tmp_path / "second")
    train(config(updates=1), tmp_path / "alone")
    second, alone = (jax.tree.leaves(last_state(tmp_path / name).params)[0] for name in ("second", "alone"))
    assert not np.array_equal(second, alone)
    assert what_it_saw(begin(first)) == "own self-play"


def test_what_does_not_fit_is_said(first, tmp_path):
    wide = replace(begin(first).learner, network=ActorCriticConfig(hidden=(16,)))
    with pytest.raises(ValueError, match=r"--begin-with: .* has ActorCriticConfig\(hidden=\(8,\).* give the same"):
        check_beginning(begin(first, learner=wide))
    with pytest.raises(ValueError, match="plays matrix-stag-hunt, not stag-hunt-4x4"):
        check_beginning(begin(first, game="stag-hunt-4x4"))
    shared = replace(begin(first).learner, sharing="shared")
    with pytest.raises(ValueError, match="give --sharing independent"):
        check_beginning(begin(first, learner=shared))
    with pytest.raises(ValueError, match=r"config\.json"):
        check_beginning(begin(tmp_path / "nothing"))
