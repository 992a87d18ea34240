"""The folder of a pretraining: its files, how it resumes, and how a run is initialised from it."""

import csv
import json
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.learning import learner, offline, pretraining
from hopplus.learning.config import LearnerConfig, ModellingConfig
from hopplus.learning.offline import make_episodes, save
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.learning.pretraining import temperature_in
from hopplus.models.config import ActorCriticConfig, GoalsConfig, OthersConfig
from hopplus.runs import pretraining as folders
from hopplus.runs.config import RunConfig
from hopplus.runs.pretraining import check_pretrained, load_pretrained, pretrain, with_pretrained
from learning.played import SMALL
from runs.tiny import read_lines

GAME = "learning.played:small_hunt"
CONFIG = PretrainConfig(
    data=Recipe(game=GAME, samples=400),
    opponents=OpponentsConfig(GoalsConfig(kind="continuous", **SMALL), OthersConfig(models="shared", hidden=8, keys=4)),
    epochs=2,
)
TERMS = {"moa/minibatch_ce", "goal/mismatch", "goal/posterior_kl"} | {
    f"goal/{name}" for name in ("reconstruction", "action", "prior_kl")
}


def compile_once(patch):
    """Programs that are the same for every epoch and every folder are compiled once."""
    episodes, materials, trainers = make_episodes(CONFIG.data), {}, []
    predict_all = jax.jit(lambda models, data: jax.vmap(partial(pretraining._predict_row, CONFIG, models))(data))

    def material(config, game, part):
        if len(part.boards) not in materials:
            materials[len(part.boards)] = prepare(config, game, part)
        return materials[len(part.boards)]

    def trainer(config, data):
        trainers.append(trainers[0] if trainers else pretraining.Trainer(config, data))
        return trainers[0]

    prepare = pretraining.material
    patch.setattr(folders, "make_episodes", lambda _: episodes)
    patch.setattr(folders, "material", material)
    patch.setattr(folders, "Trainer", trainer)
    patch.setattr(folders, "predict", lambda _, *rest: predict_all(*rest))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pretrained twice, at once and with a stop after the first epoch."""
    out, epochs = tmp_path_factory.mktemp("pretraining"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offline, "EPISODES_AT_ONCE", 16)
        patch.setattr(pretraining, "EPISODES_AT_ONCE", 16)
        compile_once(patch)
        pretrain(CONFIG, out / "at once", on_epoch=lambda done, _: epochs.append(done))
        pretrain(replace(CONFIG, epochs=1), out / "stopped")
        (out / "after one epoch").write_bytes((out / "stopped" / "metrics.jsonl").read_bytes())
        pretrain(CONFIG, out / "stopped")
    assert epochs == [1, 2]
    return out


def test_every_epoch_has_a_table_of_actions(folder):
    """Recall and counts agree with one another, and a stop changes nothing."""
    for name in ("actions.csv", "confusion.csv"):
        assert (folder / "at once" / name).read_text() == (folder / "stopped" / name).read_text()
    actions, pairs = (
        list(csv.DictReader((folder / "at once" / name).read_text().splitlines()))
        for name in ("actions.csv", "confusion.csv")
    )
    assert {row["epoch"] for row in actions} == {"1", "2"} and len(pairs) == len(actions) ** 2 / 2
    for row in actions:
        of_action = [one for one in pairs if (one["epoch"], one["taken"]) == (row["epoch"], row["action"])]
        right = next(int(one["count"]) for one in of_action if one["predicted"] == row["action"])
        assert sum(int(one["count"]) for one in of_action) == int(row["support"])
        assert row["recall"] == "" or float(row["recall"]) == pytest.approx(right / int(row["support"]))


def blank_episodes(count):
    """Of players who stay."""
    return offline.Episodes(
        boards=jnp.zeros((count, 6, 4, 4, 7), jnp.uint8),
        actions=jnp.full((count, 6, 4), 4, jnp.int32),
        rewards=jnp.zeros((count, 6, 4)),
        in_game=jnp.ones((count, 6, 4), bool),
        kinds=jnp.zeros((count, 4), jnp.int32),
    )


def assert_same(one, other):
    for leaf, of_other in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(leaf, of_other)


def test_there_is_a_line_for_each_epoch_with_every_term(folder):
    lines = read_lines(folder / "at once" / "metrics.jsonl")
    assert [line["epoch"] for line in lines] == [1, 2]
    judged = {"held_out/top1", "held_out/top3", "held_out/ce_loss"}
    assert all(line.keys() == {"epoch"} | TERMS | judged for line in lines)
    assert all(np.isfinite(list(line.values())).all() for line in lines)
    assert lines[1]["goal/reconstruction"] < lines[0]["goal/reconstruction"]


def test_a_stopped_pretraining_resumes_to_the_bit(folder):
    one, other = folder / "at once", folder / "stopped"
    assert len((folder / "after one epoch").read_text().splitlines()) == 1
    assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    assert (one / "config.json").read_bytes() == (other / "config.json").read_bytes()
    assert_same(load_pretrained(one)[1], load_pretrained(other)[1])


def test_what_is_loaded_is_what_was_trained(folder, monkeypatch):
    """The finished folder is not trained again."""
    monkeypatch.setattr(folders, "make_episodes", lambda _: pytest.fail("played again"))
    models = pretrain(CONFIG, folder / "at once")
    config, loaded = load_pretrained(folder / "at once")
    assert config == CONFIG
    assert_same(models, loaded)


@pytest.mark.parametrize(
    "other",
    [
        replace(CONFIG, data=replace(CONFIG.data, seed=1)),
        replace(CONFIG, held_out=0.2),
        replace(CONFIG, opponents=replace(CONFIG.opponents, goals=replace(CONFIG.opponents.goals, size=4))),
    ],
    ids=["seed", "held out", "goal size"],
)
def test_other_settings_in_the_same_folder_are_refused(folder, other):
    with pytest.raises(ValueError, match="holds a pretraining with other settings"):
        pretrain(other, folder / "at once")
    assert load_pretrained(folder / "at once")[0] == CONFIG


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and holds no pretraining"):
        pretrain(CONFIG, tmp_path)
    with pytest.raises(ValueError, match=r"has no config.json; give the folder that `hopplus pretrain --out` wrote"):
        load_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"agent": "ppo"}))
    with pytest.raises(ValueError, match="holds no pretraining"):
        load_pretrained(tmp_path)


def run_config(folder, **models):
    """A run of two seeds whose seats model each co-player."""
    others = OthersConfig(models="each", hidden=8, keys=4)
    learner_config = LearnerConfig(
        envs=2,
        rollout_steps=4,
        network=ActorCriticConfig(hidden=(8,)),
        opponents=OpponentsConfig(**{"goals": CONFIG.opponents.goals, "others": others, **models}),
    )
    return RunConfig(
        agent="omg", game=GAME, seeds=2, steps=8, pretrained=str(folder / "at once"), learner=learner_config
    )


def test_every_seat_of_every_seed_starts_from_the_same_copy(folder):
    config = run_config(folder)
    check_pretrained(config)
    assert config.task.keep_prior
    init = jax.vmap(lambda key: learner.init(config.learner, config.task, key=key))
    states = jax.jit(init)(jax.random.split(jax.random.key(0), 2))
    given, fresh = with_pretrained(config, states).learners.opponents.params, states.learners.opponents.params
    _, models = load_pretrained(folder / "at once")
    for leaf, copies, own in zip(*map(jax.tree.leaves, (models, given, fresh)), strict=True):
        assert copies.shape == own.shape and copies.dtype == own.dtype
        np.testing.assert_array_equal(copies, np.broadcast_to(leaf, own.shape))
    assert given.others.view.weight.shape[:3] == (2, 4, 3)
    without = replace(config, pretrained=None)
    assert with_pretrained(without, states) is states and not without.task.keep_prior


@pytest.mark.parametrize(
    "models",
    [
        {"goals": replace(CONFIG.opponents.goals, size=4)},
        {"goals": GoalsConfig(kind="discrete", **SMALL)},
        {"others": OthersConfig(models="each", hidden=16, keys=4)},
    ],
    ids=["size", "kind", "width"],
)
def test_models_of_another_size_are_refused(folder, models):
    with pytest.raises(ValueError, match=r"--pretrained: the models in .* give the same goals and sizes"):
        check_pretrained(run_config(folder, **models))


def test_models_of_another_board_are_refused(folder):
    config = replace(run_config(folder), game="stag-hunt-8x8")
    with pytest.raises(ValueError, match=f"are for {GAME} with .* the run is for stag-hunt-8x8"):
        check_pretrained(config)


def test_an_agent_without_models_has_no_use_for_them(folder):
    with pytest.raises(ValueError, match="--pretrained: ppo has no opponent models"):
        replace(run_config(folder), agent="ppo", learner=LearnerConfig())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (replace(CONFIG, epochs=0), "--epochs is 0"),
        (replace(CONFIG, held_out=1.0), "--held-out is 1.0"),
        (
            replace(CONFIG, opponents=replace(CONFIG.opponents, others=OthersConfig(models="each"))),
            "--others.models must be shared",
        ),
        (replace(CONFIG, labels="types", data=replace(CONFIG.data, types=("random",))), "--labels types needs 2 types"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_there_is_a_folder(tmp_path, config, message):
    with pytest.raises(ValueError, match=message):
        pretrain(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_with_too_few_episodes_to_hold_one_out_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "_prepare", lambda _, __, episodes: episodes)  # what it makes of them is not asked
    save(blank_episodes(4), tmp_path / "few.npz")
    with pytest.raises(ValueError, match="episodes"):
        pretrain(replace(CONFIG, epochs=3), tmp_path / "out", episodes=tmp_path / "few.npz")


def test_the_temperature_of_symbols_falls_over_the_epochs():
    config = PretrainConfig(epochs=5, modelling=ModellingConfig(temperature=1.0, final_temperature=0.2))
    found = [float(temperature_in(config, jnp.int32(epoch))) for epoch in range(5)]
    np.testing.assert_allclose(found, [1.0, 0.8, 0.6, 0.4, 0.2], rtol=1e-6)
    assert float(temperature_in(replace(config, epochs=1), jnp.int32(0))) == 1.0
