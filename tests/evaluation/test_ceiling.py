"""The Bayes ceiling on a case that can be worked by hand: two scripts that differ in how often they cooperate."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hopplus.evaluation.ceiling import best_predictions
from hopplus.games.coplayers import Policy


class Always(Policy):
    """The same distribution whatever it sees."""

    probabilities: tuple[float, ...] = eqx.field(static=True)

    def init(self):
        return ()

    def __call__(self, observation, legal, policy_state):
        return jnp.array(self.probabilities, jnp.float32), policy_state


class Learner(Policy):
    """Cooperates the first time, then defects: a script with a state."""

    def init(self):
        return jnp.int32(0)

    def __call__(self, observation, legal, policy_state):
        return jnp.where(policy_state == 0, jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])), policy_state + 1


def predictions(scripts, kind, actions):
    steps = len(actions)
    observation = {
        "time": jnp.zeros((1, steps, 1)),
        "last_actions": jnp.full((1, steps, 1, 2), -1, jnp.int32),
    }
    legal, in_game = jnp.ones((1, steps, 1, 2), bool), jnp.ones((1, steps, 1), bool)
    played = jnp.array(actions, jnp.int32).reshape(1, steps, 1)
    return best_predictions(scripts, jnp.array([[kind]], jnp.int32), observation, legal, played, in_game)


def test_two_scripts_by_hand():
    """0.9 and 0.3 for action 0; after action 0 the posterior of the first is .9 / (.9 + .3) = .75."""
    best = predictions((Always((0.9, 0.1)), Always((0.3, 0.7))), 1, [0, 1, 1])
    np.testing.assert_allclose(best.known[0, :, 0], [[0.3, 0.7]] * 3, rtol=1e-6)
    believed = [0.5, 0.75, 0.75 * 0.1 / (0.75 * 0.1 + 0.25 * 0.7)]
    np.testing.assert_allclose(best.beliefs[0, :, 0, 0], believed, rtol=1e-5)
    inferred = [b * 0.9 + (1 - b) * 0.3 for b in believed]
    np.testing.assert_allclose(best.inferred[0, :, 0, 0], inferred, rtol=1e-5)
    ceilings = np.mean(np.max(best.known, axis=-1)), np.mean(np.max(best.inferred, axis=-1))
    np.testing.assert_allclose(ceilings, (0.7, np.mean([0.6, 0.75, 1 - (0.3 * 0.9 + 0.7 * 0.3)])), rtol=1e-5)


def test_a_script_with_a_state_is_followed():
    best = predictions((Learner(), Always((1.0, 0.0))), 0, [0, 1, 1])
    np.testing.assert_allclose(best.beliefs[0, :, 0], [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(best.inferred[0, :, 0], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], atol=1e-6)
