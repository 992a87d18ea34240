"""Games whose answers are known: what the learner must have learned, and the exact value of what it plays."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from hopplus.games.coplayers import Lineup
from hopplus.games.game import NO_ACTION
from hopplus.games.lineups import read_policies
from hopplus.games.matrix import STAG_HUNT, MatrixGame
from hopplus.learning import learner
from hopplus.learning.config import LearnerConfig, PPOConfig
from hopplus.learning.state import Task
from hopplus.models import actor_critic
from hopplus.models.config import ActorCriticConfig
from reference.matrix import Rules
from reference.matrix_solver import values as exact_values

CONFIG = LearnerConfig(
    envs=64,
    rollout_steps=10,
    network=ActorCriticConfig(hidden=(32,)),
    ppo=PPOConfig(minibatch_size=160, learning_rate=1e-2, entropy_coefficient=0.01, final_entropy_coefficient=0.0),
)
LONGEST = 4


@cache
def program(_kind, updates, config, co_players):
    """Training in any game of a kind: numbers of the game are numbers of the program, which is compiled once."""

    def task(game):
        return Task(game, Lineup(read_policies(co_players, game) if co_players else ()), updates)

    @eqx.debug.assert_max_traces(max_traces=1)
    def block(game, key):
        one_seed = jax.vmap(lambda key: learner.init(config, task(game), key=key))(key[None])
        return learner.train_block(config, task(game), one_seed, jnp.array([updates, updates], jnp.int32), updates)

    return jax.jit(block)


def train(game, updates, config=CONFIG, co_players="", seed=0):
    states, metrics = program(type(game), updates, config, co_players)(game, jax.random.key(seed))
    return jax.tree.map(lambda leaf: leaf[0], states), metrics


def ask(params, learner_index, game, time, last_actions):
    """The action probabilities and the value of one learner in a situation."""
    one = jax.tree.map(lambda leaf: leaf[learner_index], params)
    observation = {
        "time": jnp.float32(time / game.horizon),
        "last_actions": jnp.array(last_actions, jnp.int32),
    }
    legal, goals = jnp.ones(len(game.payoff), bool), jnp.zeros((1, 0))
    logs, value = jax.jit(actor_critic.apply)(one, observation, legal, goals)
    return np.exp(np.asarray(logs, np.float64)), float(value)


class Rounds(MatrixGame):
    """A matrix game that ends after some of its rounds."""

    horizon: int = eqx.field(static=True, default=LONGEST)
    rounds: Array = eqx.field(default=LONGEST, converter=jnp.int32)

    def terminated(self, state):
        return jnp.broadcast_to(state.time >= self.rounds, (self.num_players,))


class Probe(Rounds):
    """A matrix game whose rewards are decided otherwise."""

    payoff: tuple[tuple[float, ...], ...] = eqx.field(static=True, default=((1.0, 1.0), (1.0, 1.0)))
    pays: Array = eqx.field(default=0, converter=jnp.float32)
    """[rounds, own action, last action of the other]"""

    def step(self, state, actions, *, key):
        after, _ = super().step(state, actions, key=key)
        return after, self.pays[state.time, actions, jnp.roll(state.last_actions, 1)]


def probe(rounds, pay):
    """`pay` is of the round, the own action, and the last action of the other, which is there from the second on."""
    pays = [[[pay(time, own, seen) for seen in (0, 1)] for own in (0, 1)] for time in range(LONGEST)]
    return Probe(rounds=rounds, pays=pays)


ONE_STEP = probe(1, lambda *_: 1)
"""One round that pays 1 whatever is done: the value is 1."""
LATER_REWARD = probe(3, lambda time, *_: time == 2)
"""Three rounds, paid only in the last: values are discount^2, discount, 1."""
RIGHT_ACTION = probe(1, lambda _time, own, _seen: own == 1)
"""One round that pays 1 for action 1."""
REMEMBERED_ACTION = probe(2, lambda time, own, seen: time == 1 and own == seen)
"""Two rounds; the second pays for repeating what the other did in the first."""
DISCOUNT = 0.5


def learn(game):
    return train(game, 100, replace(CONFIG, ppo=replace(CONFIG.ppo, discount=DISCOUNT)))


def test_value_of_one_step():
    game = ONE_STEP
    state, _ = learn(game)
    for seat in (0, 1):
        assert ask(state.learners.policy.params, seat, game, 0, [NO_ACTION] * 2)[1] == pytest.approx(1, abs=0.02)


def test_value_of_a_later_reward_is_discounted():
    game = LATER_REWARD
    state, _ = learn(game)
    for time, expected in enumerate([0.25, 0.5, 1.0]):
        last = [NO_ACTION] * 2 if time == 0 else [0, 0]
        assert ask(state.learners.policy.params, 0, game, time, last)[1] == pytest.approx(expected, abs=0.05)


def test_the_right_action_is_found():
    game = RIGHT_ACTION
    state, _ = learn(game)
    for seat in (0, 1):
        assert ask(state.learners.policy.params, seat, game, 0, [NO_ACTION] * 2)[0][1] > 0.95


def test_what_was_seen_decides():
    game = REMEMBERED_ACTION
    state, _ = learn(game)
    for other in (0, 1):
        probabilities, value = ask(state.learners.policy.params, 0, game, 1, [0, other])
        assert probabilities[other] > 0.9 and value == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("horizon", [1, 4], ids=["one-shot", "repeated"])
def test_the_critic_of_a_matrix_stag_hunt_is_exact(horizon):
    """The learned value of the first round equals the exact value of the policies that were learned."""
    game = Rounds(payoff=STAG_HUNT, rounds=horizon)
    state, _ = train(game, 150, replace(CONFIG, envs=128))
    policies = [
        lambda time, seen, seat=seat: list(ask(state.learners.policy.params, seat, game, time, seen)[0])
        for seat in (0, 1)
    ]
    exact = exact_values(Rules(payoff=STAG_HUNT, horizon=horizon), policies, discount=0.99)
    learned = [ask(state.learners.policy.params, seat, game, 0, [NO_ACTION] * 2)[1] for seat in (0, 1)]
    assert learned == pytest.approx([float(value) for value in exact], rel=0.02)
    equilibria = [payoff * sum(0.99**round_ for round_ in range(horizon)) for payoff in (3, 4)]
    assert min(abs(learned[0] - value) for value in equilibria) < 0.1


def test_one_seat_learns_the_best_answer_to_fixed_co_players():
    """Against a player at random in the one-shot stag hunt, a sure 3 is better than 4 or 0."""
    game = MatrixGame(payoff=STAG_HUNT, horizon=1)
    state, metrics = train(game, 150, co_players="random")
    assert jax.tree.leaves(state.learners.policy.params)[0].shape[0] == 1
    probabilities, value = ask(state.learners.policy.params, 0, game, 0, [NO_ACTION] * 2)
    assert probabilities[1] > 0.95 and value == pytest.approx(3, abs=0.1)
    assert metrics["charts/episodic_return"].shape[-1] == 2
