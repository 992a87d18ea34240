import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.contract import Eager
from hopplus.games.coplayers import Lineup, Random, scripts_for
from hopplus.games.lineups import lineup, read_policies, seat_names
from hopplus.games.presets import make

GAME = make("stag-hunt-4x4")


def test_every_seat_gets_the_policy_that_it_is_named():
    """Scripts that occur twice are computed together; the rows must come back to their own seats."""
    state = GAME.reset(key=jax.random.key(0))
    seen, legal = GAME.observe(state), GAME.legal(state)
    text = "nearest_hare,random,nearest_hare,nearest_stag"
    players, policies = lineup(text, GAME), read_policies(text, GAME)

    @jax.jit
    def both(seen, legal):
        one_by_one = [
            policy(jax.tree.map(lambda leaf, seat=seat: leaf[seat], seen), legal[seat], policy.init())[0]
            for seat, policy in enumerate(policies)
        ]
        return players(seen, legal, players.init())[0], jnp.stack(one_by_one)

    together, alone = both(seen, legal)
    np.testing.assert_array_equal(together, alone)
    assert not np.array_equal(together[0], together[1])


def test_equal_scripts_share_one_group():
    groups = lineup("random,nearest_stag,random,random", GAME).groups()
    assert [seats.tolist() for _, seats in groups] == [[0, 2, 3], [1]]


def test_patience_is_counted_for_each_seat_apart():
    players = lineup("patient_stag(2),patient_stag(2),patient_stag(2),patient_stag(2)", GAME)
    state = GAME.reset(key=jax.random.key(1))
    stag, elsewhere = state.prey_position[0], state.prey_position[1]
    state = dataclasses.replace(state, position=jnp.stack([stag, elsewhere, elsewhere, elsewhere]))
    policy_state = players.init()
    hunts = []
    act = jax.jit(lambda policy_state: players(GAME.observe(state), GAME.legal(state), policy_state))
    for _ in range(4):
        probabilities, policy_state = act(policy_state)
        hunts.append(float(probabilities[0, 5]))
    assert hunts == [1.0, 1.0, 0.0, 0.0]
    np.testing.assert_array_equal(policy_state[0], [4, 0, 0, 0])


def test_names_of_seats_keep_their_values():
    assert seat_names(" nearest_stag, patient_stag(3),noisy(random,0.5)") == [
        "nearest_stag",
        "patient_stag(3)",
        "noisy(random, 0.5)",
    ]


def test_scripts_fit_their_game():
    assert "nearest_drift" not in scripts_for(GAME.spec)
    assert scripts_for(make("snowdrift-8x8").spec) == ["nearest_drift", "idler", "random", "noisy"]
    assert scripts_for(make("coins-3x3").spec) == ["own_coins", "any_coins", "random", "noisy"]
    foragers = ["nearest_food", "strongest_food", "easy_food"]
    assert scripts_for(make("foraging-8x8").spec) == [*foragers, "random", "noisy"]
    assert scripts_for(make("harvest-8x8").spec) == ["greedy", "sustainable", "random", "noisy"]
    assert scripts_for(make("harvest-8x8-beam").spec) == ["greedy", "sustainable", "zapper", "random", "noisy"]
    assert scripts_for(make("matrix-chicken").spec) == ["random", "noisy"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("random,random", "names 2 players, but stag_hunt has 4 seats"),
        ("", "cannot read the line-up"),
        ("random,,random,random", "cannot read the line-up"),
        ("nobody,random,random,random", "no script called 'nobody' for stag_hunt; give one of nearest_stag"),
        ("nearest_drift,random,random,random", "no script called 'nearest_drift'"),
        ("patient_stag,random,random,random", "wrong number of values in brackets"),
        ("patient_stag(1,2),random,random,random", "wrong number of values in brackets"),
        ("patient_stag(-1),random,random,random", "there is no script called"),
        ("patient_stag(1.5),random,random,random", "takes a number of steps"),
        ("patient_stag(True),random,random,random", "takes a number of steps"),
        ("noisy(random,2),random,random,random", "takes a script and a probability"),
        ("noisy(0.1,random),random,random,random", "takes a script and a probability"),
        ("__import__('os'),random,random,random", "no script called '__import__'"),
        ("random*4", "no script called"),
    ],
)
def test_a_wrong_line_up_says_what_is_wrong(text, reason):
    with pytest.raises(ValueError, match=r"(?s).*") as caught:
        lineup(text, GAME)
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_a_policy_with_arrays_can_sit_in_two_seats():
    eager = Eager(jnp.ones(7))
    players = Lineup((eager, Random(), eager, Random()))
    state = GAME.reset(key=jax.random.key(2))
    probabilities, _ = players(GAME.observe(state), GAME.legal(state), players.init())
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
