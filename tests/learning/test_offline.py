"""Offline episodes: the same recipe gives the same data, and the record is what was played."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.lineups import read_policies
from hopplus.games.presets import make
from hopplus.games.rollout import play_episode
from hopplus.learning import offline
from hopplus.learning.offline import Cast, make_episodes, play_cast, read, save, script_predictions, scripts_of, views
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.learning.pretraining import _labels, check_data
from learning.played import GAME

RECIPE = Recipe(game="learning.played:small_hunt", types=("nearest_hare", "patient_stag(1)", "random"), samples=400)
KINDS = jnp.array([1, 0, 2, 1], jnp.int32)


@pytest.fixture(scope="module")
def episodes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offline, "EPISODES_AT_ONCE", 16)
        return make_episodes(RECIPE), make_episodes(RECIPE)


@pytest.fixture(scope="module")
def replayed():
    """Four episodes whose states are known, with views and legal actions from the states and from the record."""
    scripts = scripts_of(RECIPE)

    def one(key):
        record = play_cast(GAME, scripts, KINDS, key=jax.random.clone(key))
        states = jax.tree.map(lambda leaf: leaf[:-1], play_episode(GAME, Cast(scripts, KINDS), key=key).states)
        return record, jax.vmap(GAME.observe)(states), jax.vmap(GAME.legal)(states)

    def everything(keys):
        record, observed, legal = jax.vmap(one)(keys)
        predict = jax.vmap(lambda *seat: script_predictions(scripts, *seat), in_axes=1, out_axes=1)
        return record, (observed, legal), views(GAME, record), jax.vmap(predict)(observed, legal)

    return jax.device_get(jax.jit(everything)(jax.random.split(jax.random.key(0), 4)))


def assert_same(one, other):
    for leaf, of_other in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert leaf.dtype == of_other.dtype
        np.testing.assert_array_equal(leaf, of_other)


def test_the_same_recipe_is_the_same_data(episodes):
    assert_same(*episodes)
    assert len(np.unique(episodes[0].boards, axis=0)) == len(episodes[0].boards), "an episode comes twice"


def test_there_are_as_many_samples_as_wanted(episodes):
    """The last episode is the one that makes it enough."""
    data = episodes[0]
    count = len(data.boards)
    assert data.num_samples >= RECIPE.samples > data.part(0.0, (count - 1) / count).num_samples
    assert set(np.unique(data.kinds)) == {0, 1, 2}


def test_parts_of_episodes_are_all_of_them_once(episodes):
    parts = [episodes[0].part(0.0, 0.9), episodes[0].part(0.9, 1.0)]
    assert_same(jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts), episodes[0])


def test_views_are_what_the_seats_saw(replayed):
    record, (observed, legal), (seen, might), _ = replayed
    assert_same(seen, observed)
    np.testing.assert_array_equal(might, legal)
    assert not record.in_game.all(), "nobody left"


def test_a_player_acts_as_its_own_script_would(replayed):
    """Steps of patient hunters too, who remember something."""
    record, _, _, predicted = replayed
    taken = np.take_along_axis(predicted, record.actions[:, :, :, None, None], axis=-1)[..., 0]
    own = np.take_along_axis(taken, np.broadcast_to(record.kinds[:, None, :, None], (*taken.shape[:-1], 1)), axis=-1)
    assert np.all(own[..., 0][record.in_game] > 0)
    assert np.any(taken[..., 0][record.in_game] == 0), "another script would have done the same"
    np.testing.assert_allclose(predicted.sum(axis=-1), 1.0, rtol=1e-5)


def test_a_cast_plays_each_seat_by_its_own_script():
    scripts = read_policies("nearest_stag,random,patient_stag(0)", GAME)
    kinds = jnp.array([0, 1, 2, 1], jnp.int32)

    @jax.jit
    def both(key):
        state = GAME.reset(key=key)
        observation, legal = GAME.observe(state), GAME.legal(state)
        cast = Cast(scripts, kinds)
        probabilities, _ = cast(observation, legal, cast.init())
        each = [jax.vmap(lambda *seat, s=script: s(*seat, s.init())[0])(observation, legal) for script in scripts]
        return probabilities, jnp.stack(each)

    probabilities, each = both(jax.random.key(3))
    np.testing.assert_allclose(probabilities, np.asarray(each)[np.asarray(kinds), np.arange(4)], rtol=1e-6)
    assert np.any(each[0] != each[1])


def test_episodes_go_out_and_come_in_as_they_are(episodes, tmp_path):
    save(episodes[0], tmp_path / "episodes.npz")
    assert_same(read(tmp_path / "episodes.npz", GAME), episodes[0])


def test_episodes_that_are_read_are_what_they_are_said_to_be(episodes, tmp_path):
    save(episodes[0], tmp_path / "episodes.npz")
    read(tmp_path / "episodes.npz", GAME)


def write(path, data, **changes):
    """An `.npz` file of the first five episodes, with other arrays in some places; None leaves one out."""
    arrays = {name: getattr(data, name)[:5] for name in ("boards", "actions", "rewards", "in_game", "kinds", "events")}
    np.savez(path, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return path


def test_kinds_may_be_unknown_and_types_wider(episodes, tmp_path):
    """Programs of others write 64 bits."""
    wide = episodes[0].actions[:5].astype(np.int64)
    path = write(tmp_path / "episodes.npz", episodes[0], kinds=None, actions=wide)
    found = read(path, GAME)
    np.testing.assert_array_equal(found.kinds, -1)
    first = jax.tree.map(lambda leaf: leaf[:5], episodes[0])
    assert all(
        found_leaf.dtype == leaf.dtype for found_leaf, leaf in zip(*map(jax.tree.leaves, (found, first)), strict=True)
    )
    np.testing.assert_array_equal(found.actions, first.actions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda _: {"rewards": None}, "has no array 'rewards'; it needs boards, actions, rewards, in_game"),
        (lambda _: {"actions": None}, "has no array 'actions'"),
        (
            lambda data: {"boards": data.boards[:5, :, :3]},
            r"'boards' in .* has shape \(5, 6, 3, 4, 7\); stag_hunt needs",
        ),
        (lambda data: {"actions": data.actions[:5, :, :3]}, r"actions in .* have shape \(5, 6, 3\)"),
        (lambda _: {"actions": np.zeros((5, 7, 4), np.int32)}, "with at most 6 steps"),
        (lambda _: {"actions": np.full((5, 6, 4), 7)}, "are not all from 0 to 6"),
        (lambda _: {"actions": np.full((5, 6, 4), -1)}, "are not all from 0 to 6"),
        (lambda _: {"in_game": np.zeros((5, 6, 4), bool)}, "or there are none"),
    ],
    ids=["an array", "actions", "board", "seats", "steps", "too large", "negative", "nobody"],
)
def test_a_file_that_does_not_fit_is_refused_with_the_fault(episodes, tmp_path, changes, message):
    path = write(tmp_path / "episodes.npz", episodes[0], **changes(episodes[0]))
    with pytest.raises(ValueError, match=message):
        read(path, GAME)


def write_nothing(path):
    path.write_bytes(b"")


def write_one_array(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


@pytest.mark.parametrize(
    "write_file",
    [
        lambda path: path.write_text("boards, actions\n"),
        lambda path: path.write_bytes(b"PK\x03\x04 cut off"),
        lambda _: None,
        write_nothing,
        write_one_array,
    ],
    ids=["text", "cut off", "missing", "empty", "an array"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # NumPy leaves a cut-off file open
def test_a_file_of_another_kind_is_refused(tmp_path, write_file):
    path = tmp_path / "episodes.npz"
    write_file(path)
    with pytest.raises(ValueError, match=r"cannot be read as an \.npz file"):
        read(path, GAME)


def test_actions_that_are_no_whole_numbers_are_refused(episodes, tmp_path):
    path = write(tmp_path / "episodes.npz", episodes[0], actions=episodes[0].actions[:5] + 0.5)
    with pytest.raises(ValueError, match="actions"):
        read(path, GAME)


def check(config):
    """As a pretraining run does: first the settings alone, then whether they fit the game."""
    config.check()
    check_data(config)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (replace(RECIPE, samples=0), "--data.samples is 0"),
        (replace(RECIPE, types=()), "--data.types is empty"),
        (replace(RECIPE, types=("nearest_drift",)), "there is no script called 'nearest_drift'"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(recipe, message):
    with pytest.raises(ValueError, match=message):
        check(PretrainConfig(data=recipe))


def test_events_that_rewards_do_not_tell_are_recorded(monkeypatch, tmp_path):
    """Coins of its own and of others: a player is paid for both."""
    monkeypatch.setattr(offline, "EPISODES_AT_ONCE", 8)
    recipe = Recipe(game="coins-3x3", types=("any_coins", "random"), samples=400)
    game, episodes = make(recipe.game), jax.tree.map(jnp.asarray, make_episodes(recipe))
    config = PretrainConfig(data=recipe)
    labels = _labels(config, game, episodes, views(game, episodes)[1])
    assert {0, 1} <= set(np.asarray(labels[episodes.in_game]).tolist())
    save(episodes, tmp_path / "with.npz")
    np.testing.assert_array_equal(read(tmp_path / "with.npz", game).events, episodes.events)
    without = replace(episodes, events=None)
    save(without, tmp_path / "without.npz")
    assert read(tmp_path / "without.npz", game).events is None
    with pytest.raises(ValueError, match="do not tell which events of coins happened"):
        _labels(config, game, without, views(game, without)[1])
