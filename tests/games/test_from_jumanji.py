"""Environments of Jumanji as games: every bit is the environment's, and every seat sees itself first."""

import re
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games import contract, make
from hopplus.games.bridges.from_jumanji import make_jumanji
from hopplus.games.game import capabilities

FORAGING = "LevelBasedForaging-v0?grid_size=5&fov=5&num_food=1&time_limit=6"
CLEANER = "Cleaner-v0?num_rows=4&num_cols=4&time_limit=6"
CONNECTOR = "Connector-v3?grid_size=4&num_agents=2"
WAREHOUSE = "RobotWarehouse-v0?num_agents=2"
NUM_STEPS = 6


def random_play(game, reset, step):
    """States and outcomes of the game and of the bare environment, side by side, with random legal actions."""
    first = jax.jit(lambda key: game.reset(key=key))(jax.random.key(1))
    advance = jax.jit(lambda state, actions: game.step(state, actions, key=jax.random.key(0)))
    (bare, timestep), state, rewards = reset(jax.random.PRNGKey(1)), first, None
    random = np.random.RandomState(0)
    for _ in range(NUM_STEPS):
        yield state, rewards, timestep
        if bool(state.gone.all()):
            break
        legal = np.asarray(timestep.observation.action_mask)
        actions = jnp.asarray([random.choice(np.flatnonzero(row)) for row in legal], jnp.int32)
        assert np.array_equal(game.legal(state), legal)
        state, rewards = advance(state, actions)
        bare, timestep = step(bare, actions)


@pytest.mark.parametrize("name", [FORAGING, CLEANER, CONNECTOR, WAREHOUSE])
def test_the_same_keys_and_actions_give_the_bits_of_the_bare_environment(name):
    game = make(f"jumanji:{name}")
    env, seats = game.source.env, range(game.spec.num_agents)
    gone = np.zeros(len(seats), bool)
    for time, (state, rewards, timestep) in enumerate(random_play(game, jax.jit(env.reset), jax.jit(env.step))):
        seen, views = timestep.observation, jax.tree.map(np.asarray, state.views)
        assert (views["time"] == np.float32(time) / np.float32(env.time_limit)).all()
        if "agents_view" in seen._fields:
            assert np.array_equal(views["observation"], np.asarray(seen.agents_view).reshape(len(seats), -1))
        if name == CLEANER:
            assert (views["grid"] == np.asarray(seen.grid)).all()
            for seat in seats:
                assert np.array_equal(views["places"][seat], np.roll(seen.agents_locations, -seat, axis=0))
        if name == CONNECTOR:
            grid = np.asarray(seen.grid)
            assert np.array_equal(views["grid"][0], grid)
            other = np.where(grid > 3, grid - 3, np.where(grid > 0, grid + 3, 0))
            assert np.array_equal(views["grid"][1], other)
        if rewards is not None:
            paid = np.where(gone, 0, np.broadcast_to(timestep.reward, len(seats)))
            assert np.array_equal(rewards, paid)
        gone = np.asarray(state.gone)
        assert bool(timestep.last()) == gone.all()
    assert time > 1


def test_the_horizon_is_the_environments_time_limit():
    assert make_jumanji("LevelBasedForaging-v0").spec.horizon == 100
    game = make_jumanji("LevelBasedForaging-v0", horizon=7)
    assert game.spec.horizon == 7 == game.source.env.time_limit
    assert game.spec.num_agents == 2 and game.spec.num_actions == 6 and game.spec.roles == ()
    assert eqx.tree_equal(game, make("jumanji:LevelBasedForaging-v0?horizon=7"))


def test_a_seat_knows_its_co_players_views_where_all_see_the_same():
    assert "others' views" in capabilities(make(f"jumanji:{CLEANER}"))
    assert "others' views" not in capabilities(make(f"jumanji:{FORAGING}"))


def test_the_contract_holds(monkeypatch):
    monkeypatch.setattr(contract, "NUM_ENVS", 32)
    assert not [finding for finding in contract.check(make(f"jumanji:{CLEANER}")) if finding.fault]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "LevelBasedForagin-v0",
            "no environment of Jumanji called 'LevelBasedForagin-v0'; give one of LevelBasedForaging",
        ),
        ("Snake-v1", "no environment of Jumanji with several agents and numbered actions called 'Snake-v1'"),
        ("Cleaner-v0?num_agent=2", "no setting of Cleaner-v0 called 'num_agent'; give one of num_agents"),
        ("LevelBasedForaging-v0?fov=20", "Jumanji cannot make LevelBasedForaging-v0 with"),
    ],
)
def test_what_does_not_fit_is_refused(name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make(f"jumanji:{name}")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "hopplus.games.bridges.from_jumanji")
    monkeypatch.setitem(sys.modules, "jumanji", None)
    with pytest.raises(ImportError, match=re.escape('pip install "hopplus[jumanji]"')):
        make("jumanji:Cleaner-v0")
