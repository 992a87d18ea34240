"""The critic reads all views, and the policy one."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.fields import features, num_features
from hopplus.games.game import ego_order
from hopplus.games.presets import make
from hopplus.models.central_critic import init_central_critic, views_of_the_others
from hopplus.models.config import ActorCriticConfig

GAME = make("stag-hunt-4x4")
NUM_FEATURES = num_features(GAME.spec.observation)


def seen():
    state = GAME.reset(key=jax.random.key(0))
    return GAME.observe(state), GAME.legal(state)


def network():
    return init_central_critic(ActorCriticConfig(hidden=(16,), critic="central"), GAME.spec, key=jax.random.key(1))


def test_the_views_of_the_others_come_in_seat_order_after_the_viewer():
    views, _ = seen()
    read = jax.vmap(partial(features, GAME.spec.observation))(views)
    others = views_of_the_others(GAME.spec.observation, views, ego_order(4))
    assert others.shape == (4, 3, NUM_FEATURES)
    np.testing.assert_array_equal(others[1], read[jnp.array([2, 3, 0])])
    np.testing.assert_array_equal(others[3], read[jnp.array([0, 1, 2])])


def test_only_the_critic_reads_them():
    views, legal = seen()
    view = jax.tree.map(lambda leaf: leaf[0], views)
    none, some = jnp.zeros((3, NUM_FEATURES)), jnp.ones((3, NUM_FEATURES))
    (policy, value), (same_policy, other_value) = (network()(view, legal[0], others) for others in (none, some))
    np.testing.assert_array_equal(policy, same_policy)
    assert abs(float(value - other_value)) > 1e-3


def test_the_policy_can_be_played_where_nobody_knows_the_other_views():
    views, legal = seen()
    view = jax.tree.map(lambda leaf: leaf[2], views)
    known, _ = network()(view, legal[2], jnp.ones((3, NUM_FEATURES)))
    played, value = network()(view, legal[2], jnp.zeros((3, 0)))
    np.testing.assert_array_equal(played, known)
    assert np.isfinite(value)
