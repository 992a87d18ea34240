"""How a world is trained on line: what is kept, what is drawn, how errors are counted."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.presets import make
from hopplus.learning.worlds import WorldTrainingConfig, draw_places, empty_replay, remember, reward_misses
from hopplus.models.world import Outcome, Situation, Transition

SPEC = make("stag-hunt-4x4").spec
CONFIG = WorldTrainingConfig(replay=64, tables=2, minibatches=2, minibatch_size=8)


def happened(rewards):
    """Transitions [tables, steps] that differ in what the first seat got."""
    tables, steps = rewards.shape
    board = jnp.zeros((tables, steps, SPEC.height, SPEC.width, len(SPEC.planes)), jnp.uint8)
    nobody = jnp.zeros((tables, steps, 4), bool)
    paid = jnp.zeros((tables, steps, 4)).at[..., 0].set(rewards)
    now = Situation(board, jnp.zeros((tables, steps), jnp.int32), nobody.astype(jnp.int32), nobody)
    return Transition(now, Outcome(board, paid, nobody))


def test_the_first_tables_are_kept_in_a_ring():
    keep = jax.jit(partial(remember, CONFIG))
    replay = empty_replay(CONFIG, SPEC)
    for update in range(5):
        replay, rows = keep(replay, happened(jnp.full((3, 8), float(update))))
        assert len(rows.now.time) == 16
    kept = np.asarray(replay.experience.after.rewards[0, :, 0])
    assert sorted(set(kept.tolist())) == [1.0, 2.0, 3.0, 4.0]
    assert remember(CONFIG, None, None) == (None, None)


def test_rare_rewards_are_drawn_as_often_as_common_ones():
    """Sixty steps without pay, three hares, one stag: half of the draws are of everything, half by size of reward."""
    rewards = jnp.zeros((2, 32)).at[0, :3].set(1.0).at[0, 3].set(5.0)
    replay, _ = remember(CONFIG, empty_replay(CONFIG, SPEC), happened(rewards))
    places = jax.jit(partial(draw_places, SPEC, shape=(30_000,)))(replay, key=jax.random.key(0))
    drawn = np.asarray(replay.experience.after.rewards[0, :, 0])[np.asarray(places)]
    share = lambda reward: float((drawn == reward).mean())  # noqa: E731
    assert share(5.0) == pytest.approx(0.5 / 3 + 0.5 / 64, abs=0.01)
    assert share(1.0) == pytest.approx(0.5 / 3 + 1.5 / 64, abs=0.01)
    assert share(0.0) == pytest.approx(0.5 / 3 + 30 / 64, abs=0.01)


def test_only_what_is_there_is_drawn():
    replay, _ = remember(CONFIG, empty_replay(CONFIG, SPEC), happened(jnp.ones((2, 4))))
    places = jax.jit(partial(draw_places, SPEC, shape=(1000,)))(replay, key=jax.random.key(1))
    assert set(np.asarray(places).tolist()) == set(range(8))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([5.0, 1.0, 1.0, 1.0, 0.0, 0.0], 0.0),
        ([0.0, 1.0, 1.0, 1.0, 0.0, 0.0], 0.5),  # the only stag, one of two sizes
        ([5.0, 1.0, 1.0, 0.0, 0.0, 0.0], 1 / 6),  # a third of the hares
        ([5.0, 1.0, 1.0, 1.0, 1.0, 0.0], 0.25),  # one made up, where four were paid
        ([25.0, 5.0, 5.0, 5.0, 0.0, 0.0], 1.0),
    ],
)
def test_every_size_of_reward_counts_alike(told, expected):
    true = jnp.array([[5.0], [1.0], [1.0], [1.0], [0.0], [0.0]])
    found = reward_misses(SPEC, jnp.array(told)[:, None], true, jnp.ones((6, 1), bool))
    assert float(found) == pytest.approx(expected, abs=1e-6)
