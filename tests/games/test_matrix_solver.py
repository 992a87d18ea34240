"""The exact solver of matrix games: hand-worked numbers, brute force, and the JAX game played by the same policies."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.matrix import CHICKEN, PRISONERS_DILEMMA, STAG_HUNT, MatrixGame
from reference import NO_ACTION
from reference.matrix import Rules
from reference.matrix_solver import Joint, Number, Policy, best_response, values

COOPERATE, DEFECT = 0, 1
HALF = Fraction(1, 2)
START = (NO_ACTION, NO_ACTION)


def cooperates_with(chance: Number) -> list[Number]:
    return [chance, 1 - chance]


def always(chance: Number) -> Policy:
    """Cooperates with this probability, whatever happens."""
    return lambda _time, _last: cooperates_with(chance)


def tit_for_tat(_time: int, last: Joint) -> list[Number]:
    """Cooperates unless somebody else has just defected."""
    return cooperates_with(Fraction(DEFECT not in last[1:]))


def win_stay_lose_shift(_time: int, last: Joint) -> list[Number]:
    """Cooperates after the same choice by both."""
    return cooperates_with(Fraction(last[0] == last[1]))


def fickle(time: int, last: Joint) -> list[Number]:
    """A policy for which everything matters: the time, its own action and the other's, and chance."""
    return cooperates_with(Fraction(1 + time + 2 * (last[0] == COOPERATE) + 3 * (last[1] == COOPERATE), 9))


def first_two_rounds(time: int, _last: Joint) -> list[Number]:
    return cooperates_with(Fraction(time < 2))


def rewards_in_jax(game: MatrixGame, actions: np.ndarray) -> np.ndarray:
    """[games, rounds, agents] -> the rewards of each round."""

    def play(actions: jax.Array) -> jax.Array:
        def step(state, joint):
            return game.step(state, joint, key=jax.random.key(0))

        return jax.lax.scan(step, game.reset(key=jax.random.key(0)), actions)[1]

    return np.asarray(jax.jit(jax.vmap(play))(jnp.asarray(actions, jnp.int32)))


def values_in_jax(game: MatrixGame, policies: Sequence[Policy], discount: Number = 1) -> list[Fraction]:
    """The exact value by playing every sequence of joint actions in the JAX game, each with its probability."""
    joints = list(product(range(len(game.payoff)), repeat=len(policies)))
    sequences = list(product(joints, repeat=game.horizon))
    rewards = rewards_in_jax(game, np.asarray(sequences)).tolist()
    expected = [Fraction(0) for _ in policies]
    for sequence, rounds in zip(sequences, rewards, strict=True):
        chance, last = Fraction(1), (NO_ACTION,) * len(policies)
        for time, joint in enumerate(sequence):
            for seat, policy in enumerate(policies):
                chance *= policy(time, last[seat:] + last[:seat])[joint[seat]]
            last = joint
        for seat in range(len(policies)):
            expected[seat] += chance * sum(
                discount**time * Fraction(reward[seat]) for time, reward in enumerate(rounds)
            )
    return expected


def play_by_observation(game: MatrixGame, policies: Sequence[Policy]) -> list[float]:
    """The returns of policies without chance, which see what the game shows them."""
    state = game.reset(key=jax.random.key(0))
    returns = np.zeros(len(policies))
    while not bool(game.terminated(state).all()):
        seen = np.asarray(game.observe(state)["last_actions"]).tolist()
        actions = [policy(int(state.time), tuple(seen[seat])).index(1) for seat, policy in enumerate(policies)]
        state, rewards = game.step(state, jnp.asarray(actions, jnp.int32), key=jax.random.key(0))
        returns += np.asarray(rewards)
    return returns.tolist()


def test_prisoners_dilemma_against_tit_for_tat() -> None:
    rules = Rules(PRISONERS_DILEMMA, horizon=3)
    answer = best_response(rules, [tit_for_tat, tit_for_tat], seat=0)
    # Cooperate, cooperate, then defect when it can no longer be paid back: 3 + 3 + 5.
    assert answer.value == 11
    # Defect at once: 5, then 0 to make up for it, then 5 again.
    assert answer.action_values[0, START] == [11, 10]
    # It has just been cheated on: to forgive gives 0 + 5, to defect on gives 1 + 1.
    assert answer.action_values[1, (DEFECT, COOPERATE)] == [5, 2]
    assert values(rules, [answer.policy, tit_for_tat]) == [11, 6]
    assert values(rules, [always(0), tit_for_tat]) == [7, 2]
    assert values(rules, [tit_for_tat, tit_for_tat]) == [9, 9]
    assert best_response(Rules(PRISONERS_DILEMMA, horizon=10), [tit_for_tat, tit_for_tat], seat=1).value == 9 * 3 + 5


def test_impatience_changes_the_best_response() -> None:
    rules = Rules(PRISONERS_DILEMMA, horizon=3)
    answer = best_response(rules, [tit_for_tat, tit_for_tat], seat=0, discount=HALF)
    # Defect, make up, defect: 5 + 0/2 + 5/4; to cooperate first: 3 + 3/2 + 5/4.
    assert answer.action_values[0, START] == [Fraction(23, 4), Fraction(25, 4)]


def test_one_round_answers_to_fixed_chances() -> None:
    def answers(payoff: tuple[tuple[float, ...], ...], chance: Fraction) -> list[Number]:
        return best_response(Rules(payoff, horizon=1), [always(chance)] * 2, seat=1).action_values[0, START]

    # A stag is worth 4 times the chance of a partner, a hare is worth 3.
    assert answers(STAG_HUNT, Fraction(3, 4)) == [3, 3]
    assert answers(STAG_HUNT, HALF) == [2, 3]
    assert answers(STAG_HUNT, Fraction(1)) == [4, 3]
    assert answers(PRISONERS_DILEMMA, HALF) == [Fraction(3, 2), 3]
    assert answers(CHICKEN, HALF) == [2, Fraction(5, 2)]
    assert answers(CHICKEN, Fraction(1, 3)) == [Fraction(5, 3), Fraction(5, 3)]


def test_answer_to_a_policy_that_knows_the_time() -> None:
    answer = best_response(Rules(CHICKEN, horizon=3), [first_two_rounds] * 2, seat=0)
    # Defect on the cooperator twice, then give way: 5 + 5 + 1.
    assert answer.value == 11
    assert values(Rules(CHICKEN, horizon=3), [answer.policy, first_two_rounds]) == [11, 1 + 1 + 5]


def test_three_players_get_the_mean_over_pairs() -> None:
    rules = Rules(PRISONERS_DILEMMA, horizon=2)
    answer = best_response(rules, [tit_for_tat] * 3, seat=2)
    # Cooperate, then defect on both: 3 + 5; defect first and both defect after it: 5 + 1.
    assert answer.action_values[0, (NO_ACTION,) * 3] == [8, 6]
    # The cheated get 3 and then the mean of 3 (from each other) and 0.
    assert values(rules, [tit_for_tat, tit_for_tat, answer.policy]) == [Fraction(9, 2), Fraction(9, 2), 8]


def test_uniform_play_is_worth_the_mean_of_the_table() -> None:
    assert values(Rules(PRISONERS_DILEMMA, horizon=10), [always(HALF)] * 2) == [Fraction(90, 4)] * 2
    discounted = values(Rules(STAG_HUNT, horizon=3), [always(HALF)] * 2, discount=HALF)
    assert discounted == [Fraction(10, 4) * Fraction(7, 4)] * 2


@pytest.mark.parametrize("payoff", [STAG_HUNT, PRISONERS_DILEMMA, CHICKEN])
def test_best_response_is_the_best_of_all_policies(payoff: tuple[tuple[float, ...], ...]) -> None:
    rules = Rules(payoff, horizon=2)
    situations = [(0, START), *((1, last) for last in product(range(2), repeat=2))]
    best = max(
        values(rules, [lambda time, last, plan=plan: cooperates_with(plan[situations.index((time, last))]), fickle])[0]
        for plan in product([Fraction(0), Fraction(1)], repeat=len(situations))
    )
    answer = best_response(rules, [fickle, fickle], seat=0)
    assert answer.value == best == values(rules, [answer.policy, fickle])[0]


@pytest.mark.parametrize("payoff", [STAG_HUNT, PRISONERS_DILEMMA, CHICKEN])
@pytest.mark.parametrize("discount", [1, Fraction(9, 10)])
def test_jax_game_gives_the_exact_values(payoff: tuple[tuple[float, ...], ...], discount: Number) -> None:
    game, rules = MatrixGame(payoff=payoff, horizon=3), Rules(payoff, horizon=3)
    answer = best_response(rules, [fickle, fickle], seat=1, discount=discount)
    for policies in ([fickle, fickle], [win_stay_lose_shift, fickle], [fickle, answer.policy]):
        assert values_in_jax(game, policies, discount) == values(rules, policies, discount)
    assert values(rules, [fickle, answer.policy], discount)[1] == answer.value


def test_jax_game_of_three_players_gives_the_exact_values() -> None:
    game, rules = MatrixGame(payoff=CHICKEN, num_players=3, horizon=2), Rules(CHICKEN, horizon=2)
    policies = [fickle, always(Fraction(2, 3)), tit_for_tat]
    assert values_in_jax(game, policies) == values(rules, policies)


def test_policies_that_see_the_jax_game_get_their_values() -> None:
    rules = Rules(PRISONERS_DILEMMA, horizon=3)
    for seat, expected in ((0, [11.0, 6.0]), (1, [6.0, 11.0])):
        policies: list[Policy] = [tit_for_tat, tit_for_tat]
        policies[seat] = best_response(rules, policies, seat).policy
        assert play_by_observation(MatrixGame(payoff=PRISONERS_DILEMMA, horizon=3), policies) == expected
    cheat = best_response(Rules(PRISONERS_DILEMMA, horizon=2), [tit_for_tat] * 3, seat=1).policy
    game = MatrixGame(payoff=PRISONERS_DILEMMA, num_players=3, horizon=2)
    assert play_by_observation(game, [tit_for_tat, cheat, tit_for_tat]) == [4.5, 8.0, 4.5]
