"""The loss against arithmetic by hand, and what must and must not move a learner."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hopplus.games.presets import make
from hopplus.learning import ppo
from hopplus.learning.config import PPOConfig
from hopplus.learning.optim import init_trained
from hopplus.learning.ppo import Batch, Source
from hopplus.models import actor_critic
from hopplus.models.config import ActorCriticConfig

SPEC = make("matrix-stag-hunt").spec
CONFIG = PPOConfig(minibatch_size=4, epochs=1)


def params_of(seed=0):
    return actor_critic.init(ActorCriticConfig(hidden=(8,)), SPEC, key=jax.random.key(seed))


def batch_of(count, *, advantages=None, active=None, seed=1):
    """Samples of one seat as the policy with seed 0 would have drawn them."""
    random = np.random.default_rng(seed)
    observation = {
        "time": jnp.asarray(random.random(count), jnp.float32),
        "last_actions": jnp.asarray(random.integers(-1, 2, (count, 2)), jnp.int32),
    }
    legal = jnp.ones((count, 2), bool)
    goals = jnp.zeros((len(legal), 1, 0))
    log_probabilities, values = jax.vmap(actor_critic.apply, in_axes=(None, 0, 0, 0))(
        params_of(), observation, legal, goals
    )
    actions = jnp.asarray(random.integers(0, 2, count), jnp.int32)
    return Batch(
        observation=observation,
        legal=legal,
        goals=goals,
        actions=actions,
        log_probabilities=log_probabilities[jnp.arange(count), actions],
        values=values,
        advantages=jnp.asarray(random.normal(size=count) if advantages is None else advantages, jnp.float32),
        active=jnp.ones(count, bool) if active is None else jnp.asarray(active, bool),
    )


def loss_of(config, params, batch, entropy=0.0):
    return ppo.loss(config, 1.0, params, batch, jnp.float32(entropy))


def test_the_first_minibatch_has_ratio_1():
    _, metrics = loss_of(CONFIG, params_of(), batch_of(6))
    assert float(metrics["approx_kl"]) == pytest.approx(0, abs=1e-6)
    assert float(metrics["clip_fraction"]) == 0
    # With ratio 1 the policy loss is minus the mean of normalised advantages, which is 0.
    assert float(metrics["policy_loss"]) == pytest.approx(0, abs=1e-6)


def test_the_loss_by_hand():
    """Two samples; old log-probabilities are shifted so that the ratios are 2 and 1/2, and clip at 1.2 and .8."""
    batch = batch_of(2, advantages=[3.0, 1.0])
    shifted = replace(batch, log_probabilities=batch.log_probabilities + jnp.log(jnp.array([0.5, 2.0])))
    shifted = replace(shifted, values=batch.values - jnp.array([0.5, 0.1]), advantages=jnp.array([3.5, 1.1]))
    # Advantages 3.5 and 1.1 are normalised to +1 and -1. Surrogate: min(2 * 1, 1.2 * 1) = 1.2 and
    # min(.5 * -1, .8 * -1) = -.8, so the policy loss is -(1.2 - .8) / 2 = -.2.
    # Values moved by +.5 and +.1 towards targets that are 3.5 and 1.1 above the old values. Clipped at .2, they are
    # 3.3 and 1.0 away; unclipped 3.0 and 1.0. Half the mean of the larger squares: (3.3^2 + 1.0^2) / 4 = 2.9725.
    total, metrics = loss_of(replace(CONFIG, value_coefficient=1.0), params_of(), shifted)
    assert float(metrics["policy_loss"]) == pytest.approx(-0.2, abs=1e-5)
    assert float(metrics["value_loss"]) == pytest.approx((3.0**2 + 1.0**2) / 4, rel=1e-5)
    assert float(total) == pytest.approx(-0.2 + 2.9725, rel=1e-5)
    assert float(metrics["clip_fraction"]) == 1.0


def test_a_planned_policy_is_learned_by_cross_entropy():
    """Neither advantages nor the probabilities that actions were drawn with count then."""
    batch = batch_of(2, advantages=[3.0, -1.0])
    planned = replace(batch, planned=jnp.array([[0.25, 0.75], [1.0, 0.0]]))
    blank = params_of()
    blank = replace(blank, heads=replace(blank.heads, weight=jnp.zeros_like(blank.heads.weight)))
    only_policy = replace(CONFIG, value_coefficient=0.0)
    total, _ = loss_of(only_policy, blank, planned)
    assert float(total) == pytest.approx(np.log(2), rel=1e-6)
    other = replace(planned, advantages=-batch.advantages, log_probabilities=batch.log_probabilities - 3.0)
    gradients = [jax.grad(lambda p, b=b: loss_of(only_policy, p, b)[0])(params_of()) for b in (planned, other)]
    for one, same in zip(*map(jax.tree.leaves, gradients), strict=True):
        np.testing.assert_array_equal(one, same)
    assert any(np.any(leaf != 0) for leaf in jax.tree.leaves(gradients[0]))


def test_entropy_of_a_uniform_choice_of_two_is_log_2():
    params = params_of()
    blank = replace(params, heads=replace(params.heads, weight=jnp.zeros_like(params.heads.weight)))
    total, metrics = loss_of(replace(CONFIG, value_coefficient=0.0), blank, batch_of(3), entropy=2.0)
    assert float(metrics["entropy"]) == pytest.approx(np.log(2), rel=1e-6)
    assert float(total) == pytest.approx(float(metrics["policy_loss"]) - 2 * np.log(2), rel=1e-5)


def test_what_is_not_active_is_no_data():
    """Absurd numbers where a seat had left change neither the loss nor the gradient."""
    active = [True, True, False, True, False]
    batch = batch_of(5, active=active)
    mask = ~batch.active
    absurd = replace(
        batch,
        advantages=jnp.where(mask, 1e6, batch.advantages),
        values=jnp.where(mask, -1e6, batch.values),
        log_probabilities=jnp.where(mask, -30.0, batch.log_probabilities),
    )
    gradients = [jax.grad(lambda p, b=b: loss_of(CONFIG, p, b)[0])(params_of()) for b in (batch, absurd)]
    for one, other in zip(*map(jax.tree.leaves, gradients), strict=True):
        np.testing.assert_array_equal(one, other)


def run_update(batch, config=CONFIG, params=None, seed=5):
    params = params_of() if params is None else params
    one_seat = jax.tree.map(lambda leaf: leaf[None], batch)
    policy = init_trained(ppo.optimizer(config), params)
    key = jax.random.key(seed)
    policy, metrics = ppo.update(config, policy, one_seat, value_scale=1.0, remaining=jnp.float32(1), key=key)
    return policy.params, metrics


def test_every_active_sample_is_used_once_in_an_epoch_and_no_other():
    active = jnp.array([[True, False, True, True, True, False, True, True, True, True, True]])
    order = ppo.shuffle(active, jax.random.key(3))
    count = active.sum(axis=-1, dtype=jnp.int32)
    numbered = batch_of(11, advantages=np.arange(11), active=active[0])
    seats = jax.tree.map(lambda leaf: leaf[None], numbered)
    parts = [ppo.minibatch_of(seats, count, jnp.int32(3), 4, order, part) for part in range(3)]
    seen = np.concatenate([np.asarray(part.advantages)[np.asarray(part.active)] for part in parts])
    assert sorted(seen) == [0, 2, 3, 4, 6, 7, 8, 9, 10]
    assert [int(part.active.sum()) for part in parts] == [3, 3, 3]
    assert not np.array_equal(order, ppo.shuffle(active, jax.random.key(4)))


@pytest.mark.parametrize("times", [1, 3, 0])
def test_imagined_samples_are_used_in_some_of_the_epochs(times):
    imagined = jnp.arange(10) >= 4
    source = Source(imagined, jnp.ones(10), jnp.ones(10))
    batch = jax.tree.map(lambda leaf: leaf[None], replace(batch_of(10, active=np.arange(10) != 9), source=source))
    config = replace(CONFIG, epochs=4, imagined_epochs=times)
    used = sum(np.asarray(ppo.in_epoch(config, batch, jnp.int32(epoch)), int)[0] for epoch in range(4))
    assert used.tolist() == [4] * 4 + [times or 4] * 5 + [0]
    _, metrics = run_update(jax.tree.map(lambda leaf: leaf[0], batch), config)
    assert float(metrics["steps"]) == {1: 4 * 2, 3: 4 * 2, 0: 4 * 3}[times]


def test_an_update_makes_good_actions_likelier_and_reports_its_steps():
    batch = batch_of(8)
    better = replace(batch, advantages=jnp.where(batch.actions == 1, 1.0, -1.0))
    params, metrics = run_update(better, replace(CONFIG, epochs=10, learning_rate=1e-2, value_coefficient=0.0))
    before, after = (
        jax.vmap(actor_critic.apply, in_axes=(None, 0, 0, 0))(p, batch.observation, batch.legal, batch.goals)[0][
            :, 1
        ].mean()
        for p in (params_of(), params)
    )
    assert after > before + 0.1
    assert float(metrics["steps"]) == 20


def test_the_entropy_bonus_follows_a_straight_line():
    config = replace(CONFIG, entropy_coefficient=0.5, final_entropy_coefficient=0.1)
    bonuses = [float(ppo.entropy_bonus(config, jnp.float32(remaining))) for remaining in (1.0, 0.5, 0.0)]
    assert bonuses == pytest.approx([0.5, 0.3, 0.1])


def test_gradients_are_clipped_for_each_learner_apart():
    """Trap 12: learners with gradients of 100 and of .1, updated together, move as each would alone."""
    small, large = batch_of(4, seed=2), batch_of(4, seed=3)
    large = replace(large, values=large.values - 1000)
    config = replace(CONFIG, value_clip=0.0)
    alone = [run_update(batch, config)[0] for batch in (small, large)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[:, None], small, large)
    params = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), params_of())
    policies = jax.vmap(lambda p: init_trained(ppo.optimizer(config), p))(params)
    keys = jax.random.wrap_key_data(jnp.stack([jax.random.key_data(jax.random.key(5))] * 2))

    def update(data):
        policy, batch, key = data
        return ppo.update(config, policy, batch, value_scale=1.0, remaining=jnp.float32(1), key=key)

    together, metrics = jax.lax.map(update, (policies, stacked, keys))
    norms = np.asarray(metrics["gradient_norm"])
    assert norms[1] > 100 * norms[0]
    for index in (0, 1):
        for one, other in zip(jax.tree.leaves(alone[index]), jax.tree.leaves(together.params), strict=True):
            np.testing.assert_allclose(one, other[index], rtol=1e-6, atol=1e-7)


def test_clipping_across_seats_would_be_seen():
    """The figures of STYLE: outside the mapped function 100 and .1 become 1 and .001, inside 1 and .1."""
    clip = optax.clip_by_global_norm(1.0)
    gradients = jnp.array([[100.0], [0.1]])
    coupled, _ = clip.update(gradients, clip.init(gradients))
    apart = jax.vmap(lambda gradient: clip.update(gradient, clip.init(gradient))[0])(gradients)
    np.testing.assert_allclose(coupled, [[1.0], [0.001]], rtol=1e-4)
    np.testing.assert_allclose(apart, [[1.0], [0.1]], rtol=1e-5)
