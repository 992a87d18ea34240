"""Environments of PettingZoo as games: a compiled rollout has the bits of a bare loop over the same environments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv

from chase import HUNTERS, Chase, Odd
from hopplus.games import contract, make
from hopplus.games.bridges import environments
from hopplus.games.bridges.from_pettingzoo import import_env
from hopplus.games.coplayers import Lineup, Random
from hopplus.games.game import capabilities
from hopplus.games.rollout import init_env, rollout
from hopplus.runs import RunConfig, load, train, training
from hopplus.runs.progress import ProgressDisplay

CHASE = "pettingzoo:chase.Chase"


class InTurn(AECEnv):
    """An environment whose agents act in turn."""


def play(game, num_envs=6, num_steps=12, seed=0):
    """Observations, legal actions, actions, rewards, terminations, seeds and resets of random play."""
    players = Lineup((Random(),) * game.spec.num_agents)

    def one_env(key):
        first, rest = jax.random.split(key)
        env = init_env(game, players, key=first)
        return rollout(game, players, env, num_steps, key=rest)[1]

    return jax.jit(jax.vmap(one_env))(jax.random.split(jax.random.key(seed), num_envs))


@pytest.mark.parametrize("masked", [False, True])
def test_a_rollout_has_the_bits_of_a_bare_loop(masked):
    game, env = import_env(lambda: Chase(masked=masked), "chase"), Chase(masked=masked)
    steps = play(game)
    left_early = 0
    for each in range(6):
        for time in range(12):
            at = jax.tree.map(lambda leaf, where=(each, time): np.asarray(leaf[where]), steps)
            if at.reset_before:
                seen, infos = env.reset(seed=int(at.state.seed))
            for index, agent in enumerate(env.possible_agents):
                size = env.observation_space(agent).shape[0]
                wanted, mask = np.zeros(3, np.float32), np.arange(3) == 0
                if agent in env.agents:
                    wanted[:size] = seen[agent]
                    mask = infos[agent].get("action_mask", np.arange(3) < size)
                np.testing.assert_array_equal(at.observation["observation"][index], wanted)
                np.testing.assert_array_equal(at.legal[index], mask)
            actions = dict(zip(env.possible_agents, at.actions.tolist(), strict=True))
            seen, rewards, _, _, infos = env.step({agent: actions[agent] for agent in env.agents})
            paid = [rewards.get(agent, 0.0) for agent in env.possible_agents]
            np.testing.assert_array_equal(at.rewards, np.asarray(paid, np.float32))
            gone = [agent not in env.agents for agent in env.possible_agents]
            np.testing.assert_array_equal(at.terminated_after, gone)
            left_early += gone == [False, False, True]
    assert left_early > 3


def test_the_spec_says_what_the_environment_has():
    spec = import_env(Chase, "chase").spec
    assert spec.roles == ("hunter", "hunter", "prey")
    assert (spec.horizon, spec.action_names, spec.stay) == (5, ("0", "1", "2"), 0)
    assert [(field.kind, field.shape) for field in spec.observation] == [("vector", (3,))]
    game = import_env(lambda: Odd(sees=spaces.Box(0, 1, (2,)), observe=lambda view: view[:2]), "odd", horizon=3)
    assert game.spec.roles == ("hunter", "hunter", "prey")
    assert (game.spec.horizon, game.spec.stay) == (3, None)
    assert not game.is_compiled
    assert "relabel" not in capabilities(game)


def test_namesakes_with_different_spaces_have_different_roles():
    class Alike(Chase):
        def __init__(self):
            super().__init__()
            self.possible_agents = ["hunter_0", "hunter_1", "hunter_2"]

    assert import_env(Alike, "alike").spec.roles == ("hunter_1", "hunter_1", "hunter_2")


def test_the_contract_holds(monkeypatch):
    monkeypatch.setattr(contract, "NUM_ENVS_IN_PYTHON", 8)
    contract.check(import_env(lambda: Chase(masked=True), "chase"))


def test_any_state_can_be_stepped_again():
    """Also by another pool: a state holds its seed and actions."""
    game = import_env(Chase, "chase")
    steps = play(game)

    def again(game):
        step = lambda state, actions: game.step(state, actions, key=jax.random.key(0))  # noqa: E731
        return jax.jit(lambda: jax.lax.map(lambda each: jax.vmap(step)(*each), (steps.state, steps.actions)))()

    for other in (game, import_env(Chase, "chase")):
        after, rewards = again(other)
        np.testing.assert_array_equal(rewards, steps.rewards)
        assert all(map(np.array_equal, jax.tree.leaves(after), jax.tree.leaves(steps.after)))


def test_batches_of_batches_and_equal_environments():
    game = import_env(Chase, "chase")
    state = jax.jit(lambda: game.reset(key=jax.random.key(3)))()
    actions = jnp.array([[0, 1, 1], [2, 2, 0]], jnp.int32)
    many = jnp.stack([actions, actions])
    step = lambda actions: game.step(state, actions, key=jax.random.key(0))  # noqa: E731
    after, rewards = jax.jit(jax.vmap(jax.vmap(step)))(many)
    for outer in range(2):
        for inner in range(2):
            alone, paid = step(actions[inner])
            np.testing.assert_array_equal(paid, rewards[outer, inner])
            np.testing.assert_array_equal(alone.observation, after.observation[outer, inner])


def test_environments_are_used_again():
    made = []

    def make_one():
        made.append(Chase())
        return made[-1]

    play(import_env(make_one, "chase"), num_envs=6, num_steps=40)
    assert len(made) <= 7


def test_a_small_pool_replays(monkeypatch):
    wide = play(import_env(Chase, "chase"))
    monkeypatch.setattr(environments, "SPARE", -4)
    narrow = play(import_env(Chase, "chase"))
    assert all(map(np.array_equal, jax.tree.leaves(wide.after), jax.tree.leaves(narrow.after)))


def test_an_illegal_action_acts_as_the_first_legal_one():
    game = import_env(lambda: Chase(masked=True), "chase")
    state = game.reset(key=jax.random.key(0))
    state, _ = game.step(state, jnp.array([0, 1, 0], jnp.int32), key=jax.random.key(0))
    assert np.asarray(state.legal).tolist() == [[False, True, True], [True, False, True], [True, True, False]]
    tried, played = (
        game.step(state, jnp.array(actions, jnp.int32), key=jax.random.key(0))[0].observation
        for actions in ([0, 1, 2], [1, 0, 0])
    )
    np.testing.assert_array_equal(tried, played)


@pytest.mark.parametrize(
    ("settings", "kind", "shape", "num_actions"),
    [
        ({"acts": spaces.MultiDiscrete([2, 3])}, "vector", (3,), 6),
        ({"acts": spaces.Discrete(3, start=2)}, "vector", (3,), 3),
        (
            {
                "sees": spaces.Box(0, 255, (2, 2, 1), np.uint8),
                "observe": lambda view: np.uint8(view[:2, None, None].repeat(2, 1)),
            },
            "planes",
            (2, 2, 1),
            3,
        ),
        (
            {
                "sees": spaces.Dict({"here": spaces.Discrete(4), "there": spaces.Box(0, 1, (2,))}),
                "observe": lambda view: {"here": 1, "there": view[:2]},
            },
            "vector",
            (6,),
            3,
        ),
        (
            {
                "sees": spaces.Dict({"observation": spaces.Box(0, 1, (2,)), "action_mask": spaces.MultiBinary(3)}),
                "observe": lambda view: {"observation": view[:2], "action_mask": np.array([1, 0, 1], np.int8)},
            },
            "vector",
            (2,),
            3,
        ),
    ],
)
def test_other_spaces(settings, kind, shape, num_actions):
    game = import_env(lambda: Odd(**settings), "odd")
    field = game.spec.observation[0]
    assert (field.kind, field.shape, game.spec.num_actions) == (kind, shape, num_actions)
    state = game.reset(key=jax.random.key(0))
    last = jnp.full(3, num_actions - 1, jnp.int32)
    state, _ = game.step(state, last, key=jax.random.key(0))
    assert game.observe(state)["observation"].shape == (3, *shape)
    if "action_mask" in str(settings):
        assert np.asarray(game.legal(state)).tolist() == [[True, False, True]] * 3


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        (lambda: Odd(acts=spaces.Box(0, 1, (2,))), r"acts in Box.*needs a Discrete space"),
        (lambda: Odd(acts=spaces.MultiDiscrete([9, 9])), "up to 64 joint actions"),
        (lambda: Odd(sees=spaces.Sequence(spaces.Discrete(2))), "no fixed number of entries"),
        (InTurn, "pettingzoo.utils.aec_to_parallel"),
        (lambda: 3, "gives a int"),
        (lambda: Chase(max_cycles=None), "horizon=200"),
    ],
)
def test_what_cannot_be_imported_is_refused(factory, reason):
    with pytest.raises(ValueError, match=reason):
        import_env(factory, "odd")


def test_a_turn_based_environment_is_refused():
    class Waiting(Chase):
        def _infos(self):
            return {agent: {"action_mask": np.full(3, agent == "hunter_0")} for agent in HUNTERS} | {"prey_0": {}}

    with pytest.raises(ValueError, match="hunter_1 no legal action; turn-based"):
        import_env(Waiting, "waiting")


def test_a_name_holds_settings():
    game = make(f"{CHASE}?max_cycles=7&leaves=False")
    assert game.spec.horizon == 7
    assert make(f"{CHASE}?max_cycles=7&leaves=False") == game
    assert make(f"{CHASE}?horizon=3").spec.horizon == 3
    for name, reason in {
        f"{CHASE}?horizon=few": "whole number",
        f"{CHASE}?max_cycles": "setting=value",
        f"{CHASE}?speed=3": "cannot be made.*speed",
        "pettingzoo:chase.missing": "cannot load the environment",
    }.items():
        with pytest.raises(ValueError, match=reason):
            make(name)


class Stopped(ProgressDisplay):
    """A display that stops the run after its first update."""

    def block(self, row, updates_done, steps_per_second):
        if updates_done == 1:
            raise InterruptedError


def test_it_is_trained_and_resumed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(training, "MOST_UPDATES", 1)
    learner = {"envs": 4, "rollout_steps": 8}
    config = RunConfig.for_agent("ppo", game=CHASE, seeds=2, steps=64, checkpoint_every=1, learner=learner)
    with pytest.raises(InterruptedError), Stopped() as display:
        train(config, tmp_path / "run", watcher=display)
    assert "exact resume" not in capsys.readouterr().err
    with ProgressDisplay() as display:
        train(config, tmp_path / "run", watcher=display)
    assert "exact resume is not promised" in capsys.readouterr().err
    assert load(tmp_path / "run").num_updates == 2


def test_mpe2():
    pytest.importorskip("mpe2")
    from mpe2 import simple_tag_v3

    game = make("pettingzoo:mpe2.simple_tag_v3.parallel_env?max_cycles=4")
    assert game.spec.roles == ("adversary",) * 3 + ("agent",)
    steps, env = play(game, num_envs=2, num_steps=6), simple_tag_v3.parallel_env(max_cycles=4)
    for time in range(6):
        at = jax.tree.map(lambda leaf, time=time: np.asarray(leaf[1, time]), steps)
        if at.reset_before:
            seen, _ = env.reset(seed=int(at.state.seed))
        np.testing.assert_array_equal(at.observation["observation"][0], seen["adversary_0"])
        np.testing.assert_array_equal(at.observation["observation"][3, :14], seen["agent_0"])
        seen, rewards, *_ = env.step(dict(zip(env.agents, at.actions.tolist(), strict=True)))
        np.testing.assert_array_equal(at.rewards, np.asarray(list(rewards.values()), np.float32))
