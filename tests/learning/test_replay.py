"""The replay buffer: what it keeps of real play, and how samples are drawn."""

from dataclasses import replace
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.game import ego_order, views_of_others
from hopplus.learning import replay
from hopplus.learning.config import ReplayConfig
from hopplus.learning.learner import init, seats_of
from hopplus.learning.opponent_data import events_ahead, next_events
from hopplus.learning.replay import Kept
from hopplus.learning.rollout import collect
from hopplus.models.world import Outcome, Situation, Transition
from learning.played import CONFIGS, GAME, TASK

SPEC = GAME.spec
CONFIG = ReplayConfig(size=64, envs=2)
SEAT = 2


def kept(rewards, labels=None, until=None):
    """Steps that differ in the reward, or in the next event, of the first seat."""
    count = len(rewards)
    board = jnp.zeros((count, SPEC.height, SPEC.width, len(SPEC.planes)), jnp.uint8)
    nobody = jnp.zeros((count, 4), bool)
    paid = jnp.zeros((count, 4)).at[:, 0].set(rewards)
    numbers = nobody.astype(jnp.int32)
    now = Situation(board, jnp.zeros(count, jnp.int32), numbers, nobody)
    labels = numbers if labels is None else jnp.broadcast_to(labels[:, None], (count, 4))
    return Kept(
        Transition(now, Outcome(board, paid, nobody)),
        numbers,
        labels,
        numbers if until is None else jnp.tile(until[:, None], 4),
    )


def filled(*parts):
    add = jax.jit(replay.buffer(CONFIG).add)
    buffer = replay.empty(CONFIG, SPEC)
    for part in parts:
        buffer = add(buffer, part)
    return buffer


@cache
def played():
    """Thirty steps in three environments."""
    state = jax.jit(lambda key: init(CONFIGS["hop"], TASK, key=key))(jax.random.key(0))
    envs = jax.tree.map(lambda leaf: leaf[:3], state.envs)
    seats = seats_of(CONFIGS["hop"], TASK, state.learners)
    keys = jax.random.split(jax.random.key(1), 4)
    play = jax.jit(partial(collect, GAME, seats, envs, 30, with_transitions=True))
    return play(seat_keys=keys, env_key=jax.random.key(2))[1]


@cache
def stored():
    return jax.jit(partial(replay.add_steps, CONFIG))(replay.empty(CONFIG, SPEC), played())


def entries(buffer):
    return jax.jit(lambda buffer, key: replay.some_entries(buffer, key=key))(buffer, jax.random.key(7))


def drawn_rewards(buffer, count=30_000):
    kept = entries(buffer)
    draw = jax.jit(lambda kept, key: replay.draw_places(replay.by_reward(SPEC, kept), (count,), key=key))
    places = np.asarray(draw(kept, jax.random.key(0)))
    return places, np.asarray(kept.transition.after.rewards[:, 0])[places]


def test_a_ring_keeps_what_is_newest():
    buffer = filled(*[kept(jnp.full(16, float(update))) for update in range(5)])
    rewards = np.asarray(buffer.experience.transition.after.rewards[0, :, 0])
    assert sorted(set(rewards.tolist())) == [1.0, 2.0, 3.0, 4.0]


def test_rare_rewards_are_drawn_as_often_as_common_ones():
    """Sixty steps without pay, three hares, one stag: half of the draws are of everything, half by size of reward."""
    _, drawn = drawn_rewards(filled(kept(jnp.zeros(64).at[:3].set(1.0).at[3].set(5.0))))
    share = lambda reward: float((drawn == reward).mean())  # noqa: E731
    assert share(5.0) == pytest.approx(0.5 / 3 + 0.5 / 64, abs=0.01)
    assert share(1.0) == pytest.approx(0.5 / 3 + 1.5 / 64, abs=0.01)
    assert share(0.0) == pytest.approx(0.5 / 3 + 30 / 64, abs=0.01)


def test_only_what_is_there_is_drawn():
    """A buffer of 64 with eight entries gives each of them equally often."""
    found = np.asarray(entries(filled(kept(jnp.arange(1.0, 9.0)))).transition.after.rewards[:, 0])
    assert np.unique(found, return_counts=True)[1].tolist() == [8] * 8


def test_a_full_buffer_gives_every_entry_once():
    found = np.asarray(entries(filled(kept(jnp.arange(64.0)))).transition.after.rewards[:, 0])
    assert found.tolist() == list(range(64))


def test_a_large_buffer_gives_entries_from_everywhere(monkeypatch):
    monkeypatch.setattr(replay, "AT_ONCE", 16)
    found = np.asarray(entries(filled(kept(jnp.arange(64.0)))).transition.after.rewards[:, 0])
    assert (found // 4).tolist() == list(range(16))


def test_nothing_is_kept_without_a_world():
    assert replay.add_steps(CONFIG, None, replace(played(), transition=None)) == (None, None)


def drawn_examples(buffer, count=512, seat=SEAT):
    order = jnp.asarray(ego_order(4)[seat], jnp.int32)
    draw = jax.jit(lambda kept, key: replay.draw_examples(GAME, kept, order, num_samples=count, key=key))
    return draw(entries(buffer), jax.random.key(3))


def test_examples_of_a_co_player_are_steps_that_the_seat_saw():
    """View, action and label of every sample are those of one step of real play, with both on the board."""
    steps = played()
    past = jax.tree.map(np.asarray, drawn_examples(stored()[0]))
    labels = np.asarray(next_events(steps.events, jnp.all(steps.terminated_after, axis=-1)))
    views = jax.vmap(jax.vmap(partial(views_of_others, SPEC)))(
        jax.tree.map(lambda leaf: leaf[:2, :, SEAT], steps.observation)
    )
    real = [np.asarray(leaf).reshape(60, 3, -1) for leaf in (views["planes"], views["time"], views["last_actions"])]
    np.testing.assert_array_equal(past.weights, 1.0)
    for other, seat in enumerate(ego_order(4)[SEAT][1:]):
        valid = np.asarray(steps.in_game[:2, :, SEAT] & steps.in_game[:2, :, seat]).reshape(-1)
        of_real = {
            (*np.concatenate([leaf[place, other] for leaf in real]).tolist(), action, label)
            for place, (action, label) in enumerate(
                zip(np.asarray(steps.actions)[:2, :, seat].ravel(), labels[:2, :, seat].ravel(), strict=True)
            )
            if valid[place] and 0 <= label < 2
        }
        seen = past.inputs.observation
        samples = zip(
            seen["planes"][other].reshape(512, -1),
            seen["time"][other][:, None],
            seen["last_actions"][other],
            past.actions[other],
            past.goals[other].argmax(axis=-1),
            strict=True,
        )
        drawn = {(*np.concatenate(sample[:3]).tolist(), *sample[3:]) for sample in samples}
        assert drawn == of_real and len(drawn) > 2


@pytest.mark.parametrize("ahead", [False, True])
def test_examples_without_labels_have_the_goal_of_the_state_that_followed(ahead):
    """The goal is what the encoder makes of a view: here, its time and how much is on its board."""
    order = jnp.asarray(ego_order(4)[SEAT], jnp.int32)
    encode = lambda view: jnp.array([view["time"], jnp.sum(view["planes"])], jnp.float32)  # noqa: E731
    draw = partial(replay.draw_any_examples, GAME, encode=encode, ahead=ahead, num_samples=64)
    past = jax.jit(lambda kept, key: draw(kept, order, key=key))(entries(stored()[0]), jax.random.key(4))
    now, steps = past.inputs.observation, played()
    np.testing.assert_array_equal(past.weights, 1.0)
    passed = np.round((np.asarray(past.goals[..., 0]) - np.asarray(now["time"])) * SPEC.horizon, 3)
    assert set(np.unique(passed)) == ({0.0, 1.0} if ahead else {0.0}), "the last step of a player is its own goal"
    assert passed.mean() > 0.5 or not ahead
    on_board = np.asarray(now["planes"]).sum(axis=(-1, -2, -3))
    assert (past.goals[..., 1] <= on_board).all() and (past.goals[..., 1] > 0).all()
    for other, seat in enumerate(ego_order(4)[SEAT][1:]):
        valid = np.asarray(steps.in_game[:2, :, SEAT] & steps.in_game[:2, :, seat])
        taken = set(np.asarray(steps.actions)[:2, :, seat][valid].tolist())
        assert set(np.asarray(past.actions[other]).tolist()) <= taken


def test_rare_goals_are_drawn_as_often_as_common_ones():
    """Fifty steps on the way to a stag, four to a hare, ten to nothing that counts."""
    labels = jnp.zeros(64, jnp.int32).at[50:54].set(1).at[54:].set(2)
    past = drawn_examples(filled(kept(jnp.zeros(64), labels)), 10_000)
    shares = past.goals.mean(axis=(0, 1))
    np.testing.assert_allclose(shares, [0.5, 0.5, 0.0], atol=0.01)


def test_steps_just_before_an_event_are_drawn_most():
    """Half of the steps are at the hare, half of them three steps before; the actions say which."""
    before = jnp.arange(64, dtype=jnp.int32) % 2 * 3
    record = kept(jnp.zeros(64), jnp.ones(64, jnp.int32), before)
    record = eqx.tree_at(lambda one: one.transition.now.actions, record, record.until)
    actions = drawn_examples(filled(record), 10_000).actions
    assert float((actions == 3).mean()) == pytest.approx(replay.FADING**3 / (1 + replay.FADING**3), abs=0.01)


def test_events_are_counted_down_to():
    """An event in the third of five steps, the episode's end in the fourth."""
    events = jnp.zeros((1, 5, 2, 1), bool).at[0, 2, 1, 0].set(True)
    over = jnp.array([[False, False, False, True, False]])
    np.testing.assert_array_equal(events_ahead(events, over)[1][0, :3, 0], [2, 1, 0])


def test_where_nothing_is_known_nothing_counts():
    past = drawn_examples(filled(kept(jnp.zeros(64), jnp.full(64, -1, jnp.int32))), 8)
    np.testing.assert_array_equal(past.weights, 0.0)


@pytest.mark.parametrize(("stags", "seen"), [(0, False), (1, False), (3, True)])
def test_events_count_as_seen_after_two_steps(stags, seen):
    """Of forty steps, in twelve a hare is caught, and in some a stag; stags that are still far off do not count."""
    labels = jnp.full(40, -1).at[:12].set(1).at[12:24].set(0)
    until = jnp.zeros(40, jnp.int32).at[12 + stags : 24].set(3)
    buffer = filled(kept(jnp.zeros(40), labels, until))
    found = jax.jit(partial(replay.all_events_seen, SPEC))(buffer, entries(buffer))
    assert bool(found) == seen
