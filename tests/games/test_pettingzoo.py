"""The PettingZoo bridge: PettingZoo's own tests, and that what comes through it is exactly the game."""

import importlib
import logging
import pickle
import re
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import parallel_api_test, parallel_seed_test

from every_preset import EVERY_PRESET
from hopplus.games.board import Board
from hopplus.games.bridges.pettingzoo import GameEnv, parallel_env
from hopplus.games.matrix import MatrixGame
from hopplus.games.presets import make
from hopplus.games.stag_hunt import StagHunt

UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
BOARD_OF_HARES = StagHunt(grid=Board(1, 4), num_players=2, num_stags=0, num_hares=2, horizon=6)
"""Every cell holds a player or a hare, so that catches can be played by hand."""
GAMES = {name: make(name) for name in ("stag-hunt-8x8-obstacles", "snowdrift-8x8", "matrix-chicken")} | {
    "prey-moves": StagHunt(grid=Board(4, 4), prey_moves=0.5),
    "three-players": MatrixGame(num_players=3, horizon=4),
}
"""A preset of each kind, a game whose steps are random, and one without a board for more than two."""

every_preset = pytest.mark.parametrize("name", EVERY_PRESET)
every_game = pytest.mark.parametrize("name", GAMES)


def random_actions(env: GameEnv, views, generator, legal_only: bool):
    """For the seats that play: half of them uniform over all actions, unless only legal ones are wanted."""
    actions = {}
    for agent in env.agents:
        mask = views[agent]["action_mask"] > 0
        if not legal_only and generator.random() < 0.5:
            mask = np.ones_like(mask)
        actions[agent] = generator.choice(np.flatnonzero(mask))
    return actions


def play_to_the_end(env: GameEnv, views, action_seed=0, legal_only=False):
    """The rest of an episode: what was done and what came back, step by step."""
    generator = np.random.default_rng(action_seed)
    steps = []
    while env.agents:
        actions = random_actions(env, views, generator, legal_only)
        views, *rest = env.step(actions)
        steps.append((actions, views, *rest))
    return steps


def walk_to_the_hares(env: GameEnv):
    """On the BOARD_OF_HARES: the actions that take each seat to a hare of its own, in as many steps as that needs."""
    board = env.state()[0]
    players = [int(np.argmax(board[:, seat])) for seat in range(2)]
    hares = np.flatnonzero(board[:, -1])
    nearest, farther = np.argsort(players)
    targets = {nearest: hares[0], farther: hares[1]}
    steps = [targets[seat] - players[seat] for seat in range(2)]
    return [[RIGHT if step > 0 else LEFT] * abs(step) for step in steps]


@every_preset
def test_pettingzoos_own_api_test(name):
    parallel_api_test(parallel_env(make(name)), num_cycles=2 * make(name).spec.horizon)


@every_preset
def test_pettingzoos_own_seed_test(name):
    parallel_seed_test(lambda: parallel_env(make(name)))


@every_game
def test_a_seed_names_a_stream_of_whole_episodes(name):
    """PettingZoo's own seed test stops after one step."""
    one, other = parallel_env(GAMES[name]), parallel_env(GAMES[name])
    first = [env.reset(seed=7)[0] for env in (one, other)]
    assert data_equivalence(*first, exact=True)
    assert data_equivalence(play_to_the_end(one, first[0]), play_to_the_end(other, first[1]), exact=True)
    second = [env.reset()[0] for env in (one, other)]
    assert data_equivalence(*second, exact=True)
    again = play_to_the_end(one, second[0], action_seed=1)
    assert len(again) > 1
    assert data_equivalence(again, play_to_the_end(other, second[1], action_seed=1), exact=True)
    assert data_equivalence(first[0], one.reset(seed=7)[0], exact=True)
    if GAMES[name].spec.planes:
        others = [second[0], one.reset(seed=8)[0], one.reset()[0], parallel_env(GAMES[name]).reset()[0]]
        assert not any(data_equivalence(first[0], views, exact=True) for views in others)


def test_how_an_episode_is_played_does_not_change_the_next():
    long, short = parallel_env(make("stag-hunt-8x8")), parallel_env(make("stag-hunt-8x8"))
    play_to_the_end(long, long.reset(seed=3)[0])
    short.reset(seed=3)
    assert data_equivalence(long.reset()[0], short.reset()[0], exact=True)


def test_without_a_seed_every_environment_is_different():
    one, other = (parallel_env(make("stag-hunt-8x8")).reset()[0] for _ in range(2))
    assert not data_equivalence(one, other, exact=True)


def reference(game, seed, actions):
    """The same episode by the JAX game alone: all seats at every step, the first moment included."""
    _, reset_key, steps_key = jax.random.split(jax.random.key(seed), 3)

    def moment(state):
        return game.observe(state), game.legal(state), game.terminated(state), game.board(state)

    def one_step(carry, joint_action):
        state, key = carry
        key, step_key = jax.random.split(key)
        state, rewards = game.step(state, joint_action, key=step_key)
        return (state, key), (moment(state), rewards)

    @jax.jit
    def episode(reset_key, steps_key, actions):
        state = game.reset(key=reset_key)
        _, (later, rewards) = jax.lax.scan(one_step, (state, steps_key), actions)
        return jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest]), moment(state), later), rewards

    moments, rewards = jax.tree.map(np.asarray, episode(reset_key, steps_key, actions))
    return *moments, rewards


def assert_same_view(view, seen, legal, seat):
    expected = {
        "observation": seen["planes"][seat] if "planes" in seen else seen["last_actions"][seat],
        "action_mask": legal[seat].astype(np.int8),
        "time": seen["time"][seat, None],
        "last_actions": seen["last_actions"][seat],
    }
    assert data_equivalence(view, expected, exact=True)


@every_game
def test_an_episode_is_exactly_the_games(name):
    game = GAMES[name]
    env = parallel_env(game)
    first, _ = env.reset(seed=11)
    first_state, steps = env.state(), play_to_the_end(env, first)
    stay = game.spec.stay or 0
    actions = np.array([[played.get(agent, stay) for agent in env.possible_agents] for played, *_ in steps], np.int32)
    seen, legal, terminated, boards, rewards = reference(game, 11, actions)

    assert np.array_equal(first_state, boards[0] if game.spec.planes else seen["last_actions"][0, 0])
    assert terminated[-1].all() and not terminated[:-1].all(axis=-1).any()
    moments = [first, *(views for _, views, *_ in steps)]
    for time, views in enumerate(moments):
        now = jax.tree.map(lambda leaf, time=time: leaf[time], seen)
        playing = [seat for seat in range(game.spec.num_agents) if time == 0 or not terminated[time - 1, seat]]
        assert list(views) == [env.possible_agents[seat] for seat in playing]
        for seat in playing:
            assert_same_view(views[env.possible_agents[seat]], now, legal[time], seat)
    for time, (_, _, paid, ended, truncated, infos) in enumerate(steps):
        playing = np.flatnonzero(~terminated[time])
        names = [env.possible_agents[seat] for seat in playing]
        assert paid == dict(zip(names, rewards[time, playing].tolist(), strict=True))
        assert ended == dict(zip(names, terminated[time + 1, playing].tolist(), strict=True))
        assert truncated == dict.fromkeys(names, False)
        assert infos == {agent: {} for agent in names}


@every_preset
def test_views_are_in_their_spaces(name):
    env = parallel_env(make(name))
    views, _ = env.reset(seed=5)
    for _, shown, *_ in [(None, views), *play_to_the_end(env, views, legal_only=True)]:
        for agent, view in shown.items():
            assert env.observation_space(agent).contains(view)
        assert env.state_space.contains(env.state())
    spaces = [env.action_space(agent) for agent in env.possible_agents]
    assert len(set(map(id, spaces))) == len(spaces), "seats that share a space object would share its random numbers"


def test_a_seat_that_has_left_disappears_and_never_comes_back():
    env = parallel_env(BOARD_OF_HARES)
    env.reset(seed=2)
    way, other_way = walk_to_the_hares(env)
    for action in way:
        env.step({"player_1": action})
    views, rewards, terminations, truncations, infos = env.step({"player_1": HUNT_HARE})
    assert rewards == {"player_1": 1.0, "player_2": 0.0}
    assert terminations == {"player_1": True, "player_2": False}
    assert truncations == {"player_1": False, "player_2": False}
    assert set(views) == set(infos) == {"player_1", "player_2"}
    assert not views["player_1"]["observation"].any()
    assert np.flatnonzero(views["player_1"]["action_mask"]).tolist() == [STAY]
    assert env.agents == ["player_2"]

    for action in [*other_way, HUNT_HARE]:
        assert env.agents == ["player_2"]
        for by_seat in (result := env.step({"player_1": None, "player_2": action})):
            assert list(by_seat) == ["player_2"]
    assert result[1:4] == ({"player_2": 1.0}, {"player_2": True}, {"player_2": False})
    assert env.agents == [] and env.possible_agents == ["player_1", "player_2"]
    env.reset()
    assert env.agents == ["player_1", "player_2"]


def test_seats_leave_one_by_one_in_random_play():
    env = parallel_env(make("stag-hunt-4x4"))
    left_early = 0
    for seed in range(20):
        steps = play_to_the_end(env, env.reset(seed=seed)[0], legal_only=True)
        playing = [set(views) for _, views, *_ in steps]
        assert playing[0] == set(env.possible_agents)
        for before, after, (_, _, _, ended, *_) in zip(playing, playing[1:], steps, strict=False):
            assert after == {agent for agent in before if not ended[agent]}
        left_early += len(playing[0] - playing[-1])
    assert left_early > 20


def test_the_horizon_is_an_end_and_no_truncation():
    env = parallel_env(BOARD_OF_HARES)
    env.reset(seed=0)
    steps = [env.step({}) for _ in range(BOARD_OF_HARES.horizon)]
    for _, _, terminations, truncations, _ in steps[:-1]:
        assert not any(terminations.values()) and not any(truncations.values())
    views, _, terminations, truncations, _ = steps[-1]
    assert all(terminations.values()) and not any(truncations.values())
    assert views["player_1"]["time"] == np.float32(1.0)
    assert env.agents == []


def test_illegal_and_missing_actions_act_as_stay():
    """On a board of one column, where moves to the side are illegal."""
    results = []
    for actions in ({}, {"player_1": STAY}, {"player_1": LEFT, "player_2": HUNT_STAG}):
        env = parallel_env(replace(BOARD_OF_HARES, grid=Board(4, 1)))
        env.reset(seed=0)
        results.append(env.step(actions))
    assert data_equivalence(results[0], results[1], exact=True)
    assert data_equivalence(results[0], results[2], exact=True)
    assert results[0][0]["player_1"]["last_actions"].tolist() == [STAY, STAY]


@pytest.mark.parametrize("action", [5, np.int64(5), np.array(5), jnp.int32(5)])
def test_an_action_may_be_any_kind_of_integer(action):
    env = parallel_env(make("stag-hunt-4x4"))
    env.reset(seed=0)
    env.step({"player_1": action})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"player_1": 7}, "player_1 cannot do 7; give the number of an action: 0 up, .* 6 hunt hare"),
        ({"player_2": -1}, "player_2 cannot do -1; give the number of an action"),
        ({"player_2": 1.0}, r"player_2 cannot do 1\.0; give the number of an action"),
        ({"player_3": None}, "player_3 cannot do None; give the number of an action"),
        ({"agent_0": 4}, "there is no agent called 'agent_0'; give actions of player_1, player_2, player_3, player_4"),
    ],
)
def test_a_wrong_action_is_an_error_that_changes_nothing(actions, message):
    env = parallel_env(make("stag-hunt-4x4"))
    env.reset(seed=0)
    before = env.state()
    with pytest.raises(ValueError, match=message):
        env.step(actions)
    assert np.array_equal(env.state(), before) and len(env.agents) == 4


def test_a_missing_action_is_an_error_where_there_is_no_stay():
    env = parallel_env(make("matrix-chicken"))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"no action for player_2, .* no stay .*; give one for each of env\.agents"):
        env.step({"player_1": 0})


def test_a_step_outside_an_episode_is_an_error():
    env = parallel_env(make("matrix-chicken"))
    for call in (lambda: env.step({}), env.state):
        with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
            call()
    play_to_the_end(env, env.reset()[0])
    with pytest.raises(RuntimeError, match=r"the episode is over; call reset\(\)"):
        env.step({"player_1": 0, "player_2": 0})


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_jax_would_fold_onto_another_is_an_error(seed):
    with pytest.raises(ValueError, match=f"seed is {seed}; give a whole number from 0 to 4294967295"):
        parallel_env(make("matrix-chicken")).reset(seed=seed)


def test_views_belong_to_the_caller():
    kept, changed = parallel_env(make("stag-hunt-4x4")), parallel_env(make("stag-hunt-4x4"))
    views, _ = kept.reset(seed=4)
    spoilt, _ = changed.reset(seed=4)
    for view in spoilt.values():
        for array in view.values():
            array[...] = 1
    assert data_equivalence(kept.step({}), changed.step({}), exact=True)
    assert not data_equivalence(views, spoilt, exact=True)


def compiled(caplog, call) -> int:
    """How many programs JAX compiles during the call."""
    caplog.clear()
    with caplog.at_level(logging.WARNING), jax.log_compiles():
        call()
    return sum(record.getMessage().startswith("Compiling") for record in caplog.records)


def test_a_second_environment_of_an_equal_game_compiles_nothing(caplog):
    def play():
        env = parallel_env(StagHunt(grid=Board(3, 3), num_hares=2, horizon=5))
        for seed in (0, None):
            play_to_the_end(env, env.reset(seed=seed)[0])

    assert compiled(caplog, play) >= 2
    assert compiled(caplog, play) == 0


def test_an_environment_can_be_sent_to_another_process():
    env = parallel_env(GAMES["prey-moves"])
    views, _ = env.reset(seed=1)
    copy = pickle.loads(pickle.dumps(env))
    assert data_equivalence(play_to_the_end(env, views), play_to_the_end(copy, views), exact=True)
    assert data_equivalence(env.reset()[0], copy.reset()[0], exact=True)


def test_text_shows_the_moment_and_the_catch():
    env = parallel_env(BOARD_OF_HARES, render_mode="ansi")
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.render()
    env.reset(seed=2)
    assert "step 0 of 6" in plain(env.render())
    way, _ = walk_to_the_hares(env)
    for action in way:
        env.step({"player_1": action, "player_2": UP})
    env.step({"player_1": HUNT_HARE, "player_2": UP})
    text = plain(env.render())
    assert f"step {len(way) + 1} of 6" in text
    assert "player_1 caught a hare, +1.0" in text
    assert re.search(r"1 +hunt hare +1\.0", text)
    assert re.search(r"2 +stay +0\.0", text), "an illegal action is shown as what it acted as"
    env.step({})
    text = plain(env.render())
    assert "caught" not in text and re.search(r"1 +has left +1\.0", text)
    env.reset()
    text = plain(env.render())
    assert "step 0 of 6" in text and re.search(r"1 +- +0\.0", text)


def plain(text: str) -> str:
    """Without the colours."""
    assert "\x1b[" in text
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("name", ["stag-hunt-4x4", "matrix-chicken"])
def test_a_picture_changes_with_the_game(name):
    env = parallel_env(make(name), render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.step(dict.fromkeys(env.agents, 0))
    second = env.render()
    for image in (first, second):
        assert image.dtype == np.uint8 and image.ndim == 3 and image.shape[-1] == 3
        assert len(np.unique(image.reshape(-1, 3), axis=0)) > 4
    assert first.shape == second.shape and (first != second).any()


def test_render_modes_are_named():
    env = parallel_env(make("matrix-chicken"))
    assert env.metadata == {"name": "matrix_v1", "render_modes": ["ansi", "rgb_array"]}
    with pytest.raises(ValueError, match="there is no render mode 'human'; take one of ansi, rgb_array, or None"):
        parallel_env(make("matrix-chicken"), render_mode="human")
    env.reset()
    with pytest.warns(UserWarning, match="render_mode='ansi' or 'rgb_array'"):
        assert env.render() is None


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "hopplus.games.bridges.pettingzoo")
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(ImportError, match=re.escape('pip install "hopplus[pettingzoo]"')):
        importlib.import_module("hopplus.games.bridges.pettingzoo")
