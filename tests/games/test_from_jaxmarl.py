"""Environments of JaxMARL as games: every bit is the environment's, and what does not fit is refused in words."""

import pickle
import re
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games import contract, make
from hopplus.games.bridges.from_jaxmarl import make_jaxmarl
from hopplus.games.bridges.imported import read_name, write_name
from hopplus.games.roles import roles_of

TAG = "MPE_simple_tag_v3?num_adversaries=2"
SPEAKER = "MPE_simple_speaker_listener_v4"
COINS = "coin_game?num_inner_steps=3&num_outer_steps=2&shared_rewards=True"
NUM_STEPS = 8


@eqx.filter_jit
def begin(game, seed=1):
    return game.reset(key=jax.random.key(seed))


def random_play(game, num_steps=NUM_STEPS):
    """A trajectory of the game with random actions: states, actions, rewards and terminations of each step."""
    sizes = np.array(game.source.sizes)
    state = begin(game)
    step = jax.jit(lambda state, actions, key: game.step(state, actions, key=key))
    random = np.random.RandomState(0)
    played = []
    for time in range(num_steps):
        legal = np.asarray(game.legal(state))
        actions = np.array([random.choice(np.flatnonzero(row)) for row in legal], np.int32)
        assert (actions < sizes).all()
        after, rewards = step(state, jnp.asarray(actions), jax.random.key(100 + time))
        played.append((state, actions, np.asarray(rewards), after))
        state = after
    return played


def by_seat(tree, agents):
    """What belongs to each seat, in another way than the bridge's."""
    if isinstance(tree, dict):
        return [tree[agent] for agent in agents]
    return list(tree)


@pytest.mark.parametrize("name", ["switch_riddle", TAG, SPEAKER, COINS, "storm_2p"])
def test_the_same_keys_and_actions_give_the_bits_of_the_bare_environment(name):
    game = make(f"jaxmarl:{name}")
    env = game.source.env
    seen, env_state = env.reset(jax.random.PRNGKey(1))
    bare_step = jax.jit(env.step_env)
    for time, (state, actions, rewards, after) in enumerate(random_play(game)):
        for seat, view in enumerate(by_seat(seen, env.agents)):
            parts = view if isinstance(view, dict) else {"observation": view}
            for field, part in parts.items():
                ours, part = np.asarray(state.views[field][seat]).ravel(), np.asarray(part).ravel()
                assert np.array_equal(ours[: part.size], part) and not ours[part.size :].any()
        if bool(state.gone.all()):
            break
        joint = {agent: jnp.int32(actions[seat]) for seat, agent in enumerate(env.agents)}
        seen, env_state, paid, dones, _ = bare_step(jax.random.PRNGKey(100 + time), env_state, joint)
        assert [float(each) for each in by_seat(paid, env.agents)] == rewards.tolist()
        assert bool(dones["__all__"]) == bool(after.gone.all())
    assert time > 1


def test_roles_and_padding_of_predators_and_prey():
    game = make(f"jaxmarl:{TAG}&horizon=5")
    spec = game.spec
    assert spec.roles == ("adversary", "adversary", "agent") and spec.seats_by_role["agent"] == [2]
    assert spec.horizon == 5 and spec.num_actions == 5 and spec.stay is None
    played = random_play(game, 5)
    views = np.asarray(played[-1][-1].views["observation"])
    assert spec.observation[0].shape == (14,) and (views[2, 12:] == 0).all() and (views[:2, 12:] != 0).any()
    assert [bool(after.gone.any()) for *_, after in played] == [False] * 4 + [True]


def test_fewer_actions_are_a_mask_and_an_illegal_one_acts_as_the_first():
    game = make(f"jaxmarl:{SPEAKER}")
    assert game.spec.roles == ("speaker", "listener") and game.spec.num_actions == 5
    state = begin(game)
    assert np.asarray(game.legal(state)).tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    step = jax.jit(lambda actions: game.step(state, actions, key=jax.random.key(1)))
    tried, first = (step(jnp.array([action, 1], jnp.int32)) for action in (4, 0))
    jax.tree.map(np.testing.assert_array_equal, tried, first)


def test_episodes_are_as_long_as_the_environments_own():
    for name, horizon in ((TAG, 26), ("switch_riddle", 6), (COINS, 6), ("storm_2p", 152)):
        assert make_jaxmarl(name).spec.horizon == horizon


def test_views_of_three_axes_are_images_and_layouts_have_names():
    game = make("jaxmarl:overcooked?layout=coord_ring&shaped_reward=2.0&horizon=40")
    (field,) = game.spec.observation
    assert (field.kind, field.shape, field.planes) == ("planes", (5, 5, 26), ()) and game.spec.roles == ()
    assert game.spec.horizon == 40 and game.source.env.max_steps == 40
    assert jax.eval_shape(begin, game).views["observation"].dtype == jnp.uint8
    fields = make("jaxmarl:storm_2p").spec.observation
    assert {field.name: field.kind for field in fields} == {"observation": "planes", "inventory": "vector"}


def test_the_shaped_reward_is_added_with_its_weight(monkeypatch):
    game = make("jaxmarl:overcooked?shaped_reward=0.5")
    env, state = game.source.env, begin(game)
    agents, views = env.agents, state.views["observation"]

    def step_env(_key, env_state, _actions):
        seen, paid, dones = dict(zip(agents, views, strict=True)), dict.fromkeys(agents, 20.0), {"__all__": False}
        return seen, env_state, paid, dones, {"shaped_reward": {"agent_0": 3.0, "agent_1": 0.0}}

    monkeypatch.setattr(env, "step_env", step_env)
    assert game.step(state, jnp.array([4, 4], jnp.int32), key=jax.random.key(1))[1].tolist() == [21.5, 20.0]


def test_the_contract_holds(monkeypatch):
    monkeypatch.setattr(contract, "NUM_ENVS", 32)
    for name in ("switch_riddle", SPEAKER):
        assert not [finding for finding in contract.check(make(f"jaxmarl:{name}")) if finding.fault]


def test_games_of_one_name_are_one_game():
    game, same = make("jaxmarl:MPE_simple_tag_v3?horizon=9&num_adversaries=2"), make_jaxmarl(TAG, horizon=9)
    other = make(f"jaxmarl:{TAG}")
    assert eqx.tree_equal(game, same) and hash(game) == hash(same) and game.source is same.source
    assert not eqx.tree_equal(game, other)
    assert pickle.loads(pickle.dumps(game)) == game
    traces = []

    @jax.jit
    def first(game, key):
        traces.append(game)
        return game.reset(key=key)

    first(game, jax.random.key(0)), first(same, jax.random.key(1))
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MPE_simple_tga_v3", "no environment of JaxMARL called 'MPE_simple_tga_v3'; give one of MPE_simple_tag_v3"),
        (
            "MPE_simple_tag_v3?num_adversarie=2",
            "no setting of MPE_simple_tag_v3 called 'num_adversarie'; give one of num_adv",
        ),
        ("MPE_simple_tag_v3?num_adversaries", "give settings as in NAME?setting=value"),
        ("MPE_simple_facmac_v1", "are a Box, and agents here choose among numbered actions"),
        ("hanabi", "hanabi has no limit of its own; give one, as in hanabi?horizon=100"),
        ("switch_riddle?horizon=7", "it ends after 6 steps; give 6 or less"),
        ("switch_riddle?horizon=few", "give a whole number of steps"),
        ("switch_riddle?shaped_reward=1.0", "tells of no shaped reward"),
        ("switch_riddle?num_agents=2", "cannot make switch_riddle"),
        ("overcooked?layout=cramped_rom", "no layout of overcooked called 'cramped_rom'; give one of cramped_room"),
        ("SMAX?scenario=3n", "no scenario of SMAX called '3n'"),
    ],
)
def test_what_does_not_fit_is_refused(name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make(f"jaxmarl:{name}")


def test_names_and_settings_are_written_in_one_way():
    assert read_name("a?x=1&y=two&z=[1, 2]") == ("a", {"x": 1, "y": "two", "z": [1, 2]})
    assert write_name("a?y=1", {"x": "1", "w": "two"}) == "a?w=two&x='1'&y=1"
    with pytest.raises(ValueError, match="give numbers, booleans, words"):
        write_name("a", {"x": np.zeros(2)})


def test_seats_of_one_name_but_of_other_sizes_have_roles():
    assert roles_of([0, 1], [5, 5]) == () == roles_of(["agent_0", "agent_1"], [5, 5])
    assert roles_of(["agent_0", "agent_1", "agent_2"], [5, 3, 5]) == ("agent_1", "agent_2", "agent_1")


def test_importing_says_nothing():
    program = "import hopplus.games.bridges.from_jaxmarl"
    silent = subprocess.run([sys.executable, "-c", program], check=True, timeout=300, capture_output=True, text=True)
    assert silent.stdout == ""


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "hopplus.games.bridges.from_jaxmarl")
    monkeypatch.setitem(sys.modules, "jaxmarl", None)
    with pytest.raises(ImportError, match=re.escape('pip install "hopplus[jaxmarl]"')):
        make("jaxmarl:switch_riddle")
