"""What is shown of trained players' minds."""

from dataclasses import replace

import jax
import numpy as np

from hopplus.agents import opponents
from hopplus.agents.config import OpponentsConfig
from hopplus.agents.player import Player
from hopplus.cli.play import belief_words, believing_seats, read_beliefs
from hopplus.games.coplayers import Lineup
from hopplus.games.lineups import read_policies
from untrained import GAME, OPPONENTS, networks, player

NO_GOALS = OpponentsConfig(others=OPPONENTS.others)


def without_goals():
    models = jax.jit(lambda key: opponents.init(NO_GOALS, GAME.spec, 0, key=key))(jax.random.key(1))
    return Player(networks()[0], models, GAME, NO_GOALS)


def mind(of, seat):
    """What it believes at the start of an episode."""

    def read(key):
        state = GAME.reset(key=key)
        view = jax.tree.map(lambda leaf: leaf[seat], GAME.observe(state))
        beliefs = jax.tree.map(lambda leaf: leaf[None], of.update_beliefs(view, of.init()))
        return read_beliefs(of, view, beliefs), GAME.legal(state)

    return jax.tree.map(np.asarray, jax.jit(read)(jax.random.key(3)))


def test_players_whose_goals_have_names_say_what_they_believe():
    found, _ = mind(player(), 1)
    np.testing.assert_allclose(found, 1 / found.shape[-1], rtol=1e-5)
    assert belief_words(1, player(), found).startswith("2 believes: 3 stag 33%, 1 ")


def test_players_whose_goals_have_no_names_say_what_they_predict():
    found, legal = mind(without_goals(), 2)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-5)
    assert not found[~legal[[0, 1]]].any(), "seats 1 and 2 are next in the order of seat 3"
    assert found.shape == (2, GAME.spec.num_actions)
    words = belief_words(2, without_goals(), found)
    likely = GAME.spec.action_names[found[0].argmax()]
    assert words.startswith(f"3 predicts: 1 {likely} {found[0].max():.0%}, 2 ")


def test_scripts_and_players_without_models_say_nothing():
    (script,) = read_policies("random", GAME)
    plain = replace(without_goals(), config=OpponentsConfig())
    assert list(believing_seats(Lineup((script, player(), plain)))) == [1]
