"""What one seat can tell of another: its view and its legal actions, from the own view alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.coplayers import Lineup, Random
from hopplus.games.foraging import Foraging
from hopplus.games.game import others_in_view, views_of_others
from hopplus.games.harvest import Harvest
from hopplus.games.presets import make
from hopplus.games.rollout import init_env, rollout
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt

GAMES = {
    "open": StagHunt(grid=Board(4, 4), horizon=9),
    "walls": StagHunt(grid=Board(8, 8, obstacle_pieces=5)),
    "arenas": StagHunt(grid=Board(5, 5, arena_sides=(3, 5))),
    "snowdrift": Snowdrift(grid=Board(4, 4), horizon=9, num_drifts=3),
    "coins": Coins(grid=Board(4, 4), num_players=3, horizon=9),
    "foraging": Foraging(grid=Board(4, 4), horizon=9, num_foods=3),
    "harvest": Harvest(grid=Board(4, 4), num_players=3, horizon=9, away_steps=2),
    "matrix": make("matrix-chicken"),
    "others summed": Harvest(grid=Board(4, 4), num_players=5, horizon=9, away_steps=2, others="summed"),
}


def orders_of(game, state):
    """Each seat, then its co-players as its view has them."""
    others = others_in_view(game.spec, game.board(state))
    return jnp.concatenate([jnp.arange(game.spec.num_agents)[:, None], others], axis=-1)


@pytest.mark.parametrize("name", GAMES)
def test_a_seat_can_tell_what_another_sees_and_may_do(name):
    game = GAMES[name]
    agents = game.spec.num_agents
    players = Lineup((Random(),) * agents)

    def played(key):
        env = init_env(game, players, key=key)
        return rollout(game, players, env, 40, key=jax.random.fold_in(key, 1))[1]

    steps = jax.jit(jax.vmap(played))(jax.random.split(jax.random.key(0), 16))
    rotated = jax.vmap(jax.vmap(jax.vmap(lambda view: views_of_others(game.spec, view))))(steps.observation)
    legal = np.asarray(jax.vmap(jax.vmap(jax.vmap(jax.vmap(game.legal_in_view))))(rotated))
    present = ~np.asarray(jax.vmap(jax.vmap(game.terminated))(steps.state))
    others = np.asarray(jax.vmap(jax.vmap(lambda state: orders_of(game, state)))(steps.state))
    for seat in range(agents):
        for offset in range(1, agents):
            other = others[:, :, seat, offset]
            both = present[..., seat] & np.take_along_axis(present, other[..., None], axis=-1)[..., 0]
            seen, guessed = steps.observation, jax.tree.map(lambda leaf: leaf[:, :, seat, offset - 1], rotated)  # noqa: B023
            rows = np.nonzero(both)
            for own, guess in zip(jax.tree.leaves(seen), jax.tree.leaves(guessed), strict=True):
                np.testing.assert_array_equal(np.asarray(own)[(*rows, other[rows])], np.asarray(guess)[rows])
            np.testing.assert_array_equal(
                np.asarray(steps.legal)[(*rows, other[rows])], legal[:, :, seat, offset - 1][rows]
            )
            assert both.any()
    assert jnp.any(steps.reset_before)


@pytest.mark.parametrize("name", GAMES)
def test_a_view_tells_the_whole_state(name):
    game = GAMES[name]
    agents = game.spec.num_agents
    players = Lineup((Random(),) * agents)

    def outcome_of(state, actions, key):
        """What is seen, allowed and paid now and a step later, of the state and of what a view tells of it."""
        after, rewards = game.step(state, actions, key=key)
        return game.observe(state), game.legal(state), rewards, game.observe(after), game.terminated(after)

    def one_seat(step, seat):
        view = jax.tree.map(lambda leaf: leaf[seat], step.observation)
        order, key = orders_of(game, step.state)[seat], jax.random.key(0)
        actions = step.actions[order]
        true = outcome_of(game.permute(step.state, order), actions, key)
        rebuilt = outcome_of(game.from_view(view), actions, jax.random.clone(key))
        same = jax.tree.map(lambda one, other: jnp.all(one == other), true, rebuilt)
        return jnp.all(jnp.stack(jax.tree.leaves(same))), ~game.terminated(step.state)[seat]

    def played(key):
        env = init_env(game, players, key=key)
        steps = rollout(game, players, env, 40, key=jax.random.fold_in(key, 1))[1]
        return jax.vmap(lambda step: jax.vmap(lambda seat: one_seat(step, seat))(jnp.arange(agents)))(steps)

    same, plays = jax.jit(jax.vmap(played))(jax.random.split(jax.random.key(0), 16))
    assert np.all(np.asarray(same)[np.asarray(plays)])
    assert np.asarray(plays).sum() > 100


def test_a_view_does_not_tell_when_an_early_end_comes():
    game = StagHunt(grid=Board(4, 4), steps_after_first_catch=3)
    view = jax.tree.map(lambda leaf: leaf[0], game.observe(game.reset(key=jax.random.key(0))))
    with pytest.raises(NotImplementedError, match="steps_after_first_catch"):
        game.from_view(view)
