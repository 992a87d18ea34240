"""A pretrained world: its folder, and how a run is initialised from it."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from hopplus.learning.learner import init
from hopplus.learning.pretrain_config import Recipe, WorldPretrainConfig
from hopplus.models.config import ActorCriticConfig, WorldConfig
from hopplus.runs import RunConfig, world_pretraining
from hopplus.runs.training import seed_keys
from hopplus.runs.world_pretraining import check_pretrained_world, load_world, pretrain_world, with_pretrained_world

GAME = "learning.played:small_hunt"
CONFIG = WorldPretrainConfig(
    data=Recipe(game=GAME, types=("random", "nearest_hare"), samples=1_000),
    world=WorldConfig(members=2, hidden=8, pooled=4),
    epochs=2,
    held_out=0.2,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder, and the members that the training returned."""
    out, told = tmp_path_factory.mktemp("worlds") / "first", []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world_pretraining, "EPISODES_AT_ONCE", 128)
        members = pretrain_world(CONFIG, out, on_epoch=lambda done, metrics: told.append((done, metrics)))
    assert [done for done, _ in told] == [1, 2, 3, 4]
    assert told[1][1]["held_out/observation_mse"] < told[0][1]["held_out/observation_mse"]
    return out, members


def test_it_is_saved_and_loaded(trained):
    out, members = trained
    config, loaded = load_world(out)
    assert config == CONFIG and eqx.tree_equal(members, loaded)
    assert eqx.tree_equal(pretrain_world(CONFIG, out), loaded), "a complete folder is read"
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [(line["member"], line["epoch"]) for line in lines] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    first, second = (jax.tree.map(lambda leaf, at=at: leaf[at], loaded) for at in (0, 1))
    assert not eqx.tree_equal(first, second)


def run_config(folder, world=CONFIG.world):
    learner = RunConfig.for_agent("hop_plus", game=GAME).learner
    learner = replace(learner, world=world, envs=2, rollout_steps=8, network=ActorCriticConfig(hidden=(8,)))
    return RunConfig(
        agent="hop_plus", game=GAME, seeds=2, steps=160, pretrained_world=str(folder), learner=learner, arenas="off"
    )


def test_every_learner_of_a_run_starts_from_it(trained):
    out, members = trained
    config = run_config(out)
    check_pretrained_world(config)
    states = jax.jit(jax.vmap(lambda key: init(config.learner, config.task, key=key)))(seed_keys(config))
    after = with_pretrained_world(config, states).learners.world.params
    for given, own in zip(jax.tree.leaves(members), jax.tree.leaves(after), strict=True):
        assert own.shape == (2, 4, *given.shape)
        np.testing.assert_array_equal(own, np.broadcast_to(given, own.shape))


def test_what_does_not_fit_is_refused(trained, tmp_path):
    out, _ = trained
    with pytest.raises(ValueError, match="give the same --world settings"):
        check_pretrained_world(run_config(out, replace(CONFIG.world, hidden=16)))
    with pytest.raises(ValueError, match="ppo has no world; train hop_plus"):
        RunConfig(pretrained_world=str(out))
    with pytest.raises(ValueError, match="another folder with --out"):
        pretrain_world(replace(CONFIG, epochs=3), out)
    with pytest.raises(ValueError, match="give the folder that `hopplus pretrain --world --out` wrote"):
        load_world(tmp_path)
    (tmp_path / "config.json").write_text('{"settings": {}}')
    with pytest.raises(ValueError, match="holds no world"):
        load_world(tmp_path)
    with pytest.raises(ValueError, match=r"--world\.members is 0"):
        pretrain_world(replace(CONFIG, world=WorldConfig()), tmp_path / "none")
