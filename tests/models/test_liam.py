"""The encoder learns to tell what the others see and do, and only that."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.coplayers import Lineup
from hopplus.games.fields import num_features
from hopplus.games.presets import make
from hopplus.learning import learner
from hopplus.learning.config import LearnerConfig, PPOConfig
from hopplus.learning.state import Task
from hopplus.models.config import ActorCriticConfig
from hopplus.models.liam import init_liam

GAME = make("stag-hunt-4x4")
SIZE = num_features(GAME.spec.observation)
CONFIG = ActorCriticConfig(hidden=(16,), memory="gru", memory_size=4, reconstruct=True)


def network():
    return init_liam(CONFIG, GAME.spec, key=jax.random.key(1))


def one_view():
    state = GAME.reset(key=jax.random.key(0))
    view = jax.tree.map(lambda leaf: leaf[0], GAME.observe(state))
    return view, GAME.legal(state)[0], jnp.zeros((3, SIZE))


def test_the_objective_of_the_policy_does_not_reach_the_encoder():
    def of_policy(params):
        log_probabilities, value, _ = params.step(jnp.ones(4), *one_view())
        return log_probabilities[4] + value

    gradient = jax.grad(of_policy)(network())
    assert all(not np.any(leaf) for leaf in jax.tree.leaves((gradient.encoder, gradient.before, gradient.decoder)))
    assert np.any(gradient.trunk.layers[0].weight)


def test_the_loss_of_the_decoder_by_hand():
    params = network()
    told = np.zeros((3, SIZE + 7), np.float32)
    told[1, :SIZE] = 2.0  # the second is told 2 everywhere, and sees 0: an error of 4
    told[2, SIZE + 3] = np.log(8.0)  # the third is told action 3, 8 of 14 parts
    weight = jnp.zeros_like(params.decoder_head.weight)
    head = replace(params.decoder_head, weight=weight, bias=jnp.asarray(told.reshape(-1)))
    params = replace(params, decoder_head=head)
    views, actions = jnp.zeros((3, SIZE)), jnp.array([0, 0, 3])
    parts = [np.log(7.0), 4.0 + np.log(7.0), np.log(14.0 / 8.0)]
    for present in ([True, True, True], [False, True, False], [True, False, True]):
        loss = params.auxiliary_loss(jnp.ones(4), views, actions, jnp.array(present))
        assert loss == pytest.approx(np.mean(np.array(parts)[present]), rel=1e-5)
    assert params.auxiliary_loss(jnp.ones(4), views, actions, jnp.zeros(3, bool)) == 0


def test_training_makes_it_tell_more():
    ppo = PPOConfig(minibatch_size=48, learning_rate=5e-3)
    config = LearnerConfig(envs=16, rollout_steps=12, sharing="shared", network=CONFIG, ppo=ppo)
    task = Task(GAME, Lineup(()), 12)

    @jax.jit
    def run(key):
        state = learner.init(config, task, key=key)
        return jax.lax.scan(lambda state, _: learner.train_step(config, task, state), state, None, 12)[1]

    losses = np.asarray(run(jax.random.key(0))["policy/auxiliary_loss"])[:, 0]
    assert losses[-1] < 0.8 * losses[0]
