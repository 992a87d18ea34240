"""A layer applied to every co-player's view at once is the layer applied to each view."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.fields import features, num_features
from hopplus.games.game import view_of
from hopplus.games.matrix import MatrixGame
from hopplus.games.stag_hunt import StagHunt
from hopplus.models.inputs import read_for_others
from hopplus.models.networks import Dense
from models.boards import drawn_like, played

GAMES = {
    "stag hunt": StagHunt(grid=Board(3, 4), num_players=3, num_hares=2, horizon=5),
    "matrix game": MatrixGame(num_players=3, horizon=3),
}


@pytest.mark.parametrize("name", GAMES)
def test_read_for_others_is_the_layer_on_the_features_of_each_view(name):
    game = GAMES[name]
    spec, fields = game.spec, game.spec.observation
    layer = drawn_like(Dense(jnp.zeros((num_features(fields), 5)), jnp.zeros(5)))

    def both(observation):
        views = [view_of(spec, observation, offset) for offset in range(1, spec.num_agents)]
        one_by_one = jnp.stack([layer(features(fields, view)) for view in views])
        return read_for_others(fields, spec.num_agents, layer, features(fields, observation)), one_by_one

    at_once, one_by_one = jax.jit(jax.vmap(both))(played(game)[0])
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-4, atol=1e-4)
    assert np.abs(np.diff(np.asarray(at_once), axis=1)).max() > 0.1, "co-players do not see the same"
