"""A line-up is checked once, when it is made: a player that gives no distribution is named."""

import jax.numpy as jnp
import pytest

from hopplus.games.board import Board
from hopplus.games.coplayers import Policy, Random
from hopplus.games.lineups import check_policy, lineup
from hopplus.games.stag_hunt import StagHunt

GAME = StagHunt(grid=Board(3, 3), num_players=2, num_hares=1, horizon=6)


class Broken(Policy):
    """Uniform over the legal actions, but for what `spoil` makes of it."""

    spoil: str

    def init(self):
        return ()

    def __call__(self, observation, legal, policy_state):
        fair = legal / jnp.sum(legal)
        later = observation["time"] > 0.5
        answers = {
            "nan": jnp.where(later, jnp.nan, fair),
            "negative": fair.at[0].add(-2.0).at[1].add(2.0),
            "sum": 2 * fair,
            "illegal": jnp.ones(legal.shape[0]) / legal.shape[0],
            "shape": fair[:3],
            "nothing": fair,
        }
        return answers[self.spoil], policy_state


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("nan", "the player Broken gives a probability that is not finite"),
        ("negative", "negative probability"),
        ("sum", "do not sum to 1"),
        ("illegal", "an illegal action"),
        ("shape", r"shape \(3,\); give one probability for each of the 7 actions"),
    ],
)
def test_a_player_that_gives_no_distribution_is_refused(spoil, reason):
    with pytest.raises(ValueError, match=reason):
        lineup(["random", Broken(spoil)], GAME)


class Forgetful(Policy):
    """Returns no state, or fails, as `how` says."""

    how: str

    def init(self):
        return ()

    def __call__(self, observation, legal, policy_state):
        if self.how == "branches":
            return (legal / jnp.sum(legal) if observation["time"] > 0.5 else legal), policy_state
        return legal / jnp.sum(legal)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("no state", "the player Forgetful must return two things"),
        ("branches", r"Forgetful fails with TracerBoolConversionError.*test_lineups.py, line.*use jnp.where"),
    ],
)
def test_a_player_that_cannot_be_called_is_refused(how, reason):
    with pytest.raises(ValueError, match=reason):
        lineup(["random", Forgetful(how)], GAME)


def test_names_and_players_make_one_lineup():
    mine = Broken("nothing")
    assert lineup([mine, "random"], GAME).policies == (mine, Random())
    assert lineup("nearest_stag,random", GAME).policies == lineup(["nearest_stag", "random"], GAME).policies


def test_what_is_no_player_and_too_few_players_are_refused():
    with pytest.raises(ValueError, match="int is no player; subclass"):
        lineup(["random", 3], GAME)
    with pytest.raises(ValueError, match="names 1 players, but stag_hunt has 2 seats"):
        lineup([Random()], GAME)


def test_built_in_scripts_pass_the_check():
    for policy in lineup("nearest_stag,patient_stag(2)", GAME).policies:
        assert check_policy(policy, GAME) is policy
