"""Training treats every seat equally: rotate the seats before training, and the whole result is rotated."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig, PlanningConfig
from hopplus.core.mesh import MeshConfig
from hopplus.core.streams import with_keys, without_keys
from hopplus.doctor.update_checks import modules
from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup
from hopplus.games.harvest import Harvest
from hopplus.games.presets import make
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning import learner
from hopplus.learning.config import (
    ImaginationConfig,
    LearnerConfig,
    ModellingConfig,
    PPOConfig,
    ReplayConfig,
    UtilitiesConfig,
    WorldTrainingConfig,
)
from hopplus.learning.learner import train_step
from hopplus.learning.rollout import collect
from hopplus.learning.state import Task
from hopplus.models.config import ActorCriticConfig, GoalsConfig, OthersConfig, WorldConfig
from hopplus.planning.config import SearchConfig

CONFIG = LearnerConfig(
    envs=8,
    rollout_steps=12,
    network=ActorCriticConfig(hidden=(16,)),
    modelling=ModellingConfig(envs=4, minibatches=2, minibatch_size=8, lookahead=3),
    ppo=PPOConfig(minibatch_size=16, epochs=2, learning_rate=1e-2),
)
NUM_UPDATES = 4


def turned_spawns(game, shift):
    """The same game, but every episode begins with the players' places turned by `shift` seats."""

    class Turned(type(game)):
        def reset(self, *, key):
            order = (jnp.arange(self.spec.num_agents, dtype=jnp.int32) + shift) % self.spec.num_agents
            return self.permute(super().reset(key=key), order)

    return Turned(**{name: getattr(game, name) for name in game.__dataclass_fields__})


def turn(tree, shift):
    return jax.tree.map(lambda leaf: jnp.roll(leaf, -shift, axis=0), tree)


def start_of(config, task):
    return jax.jit(lambda key: learner.init(config, task, key=key))(jax.random.key(0))


@partial(jax.jit, static_argnums=(1, 2))
def turn_start(state, game, shift):
    """Keys, parameters and the first boards of every seat move on by `shift` seats."""
    order = (jnp.arange(game.spec.num_agents, dtype=jnp.int32) + shift) % game.spec.num_agents
    keys = replace(state.keys, seats=turn(state.keys.seats, shift), learners=turn(state.keys.learners, shift))
    return replace(
        state,
        learners=turn(state.learners, shift),
        keys=keys,
        envs=replace(state.envs, state=jax.vmap(lambda s: game.permute(s, order))(state.envs.state)),
    )


def trainer(game, config, num_updates=NUM_UPDATES):
    """One program for the seats in their own order and for the rotated ones: compiling takes longer than running."""
    turned = lambda shift: Task(turned_spawns(game, shift), Lineup(()), NUM_UPDATES)  # noqa: E731

    @jax.jit
    def train(state, shift):
        def one_update(numbers, _):
            after, metrics = train_step(config, turned(shift), with_keys(state, numbers))
            return without_keys(after), metrics

        numbers, history = jax.lax.scan(one_update, without_keys(state), length=num_updates)
        return with_keys(state, numbers), history

    return lambda state, shift: train(state, jnp.int32(shift))


SMALL = {"hidden": 8, "size": 3, "evidence": 4}
OPPONENTS = {
    "none": OpponentsConfig(),
    "omg": OpponentsConfig(GoalsConfig(kind="continuous", **SMALL), OthersConfig(models="each", hidden=8, keys=4)),
    "hop": OpponentsConfig(GoalsConfig(kind="hindsight", **SMALL), OthersConfig(models="each", hidden=8, keys=4)),
}

OPPONENTS["any player"] = OpponentsConfig(others=OthersConfig(models="shared", hidden=16, keys=4))
USES = {"hop_plus": "hop", "hop_plus, views sum the others": "any player", "mappo": "none", "liam": "none"}
"""Agents with the opponent models of another."""
BASELINES = {
    "mappo": ActorCriticConfig(hidden=(16,), critic="central"),
    "liam": ActorCriticConfig(hidden=(16,), memory="gru", memory_size=4, reconstruct=True),
}

IMAGINING = {
    "world": WorldConfig(members=2, hidden=8, pooled=4),
    "replay": ReplayConfig(size=128, envs=4),
    "world_training": WorldTrainingConfig(minibatches=2, minibatch_size=16),
    "imagination": ImaginationConfig(real_ratio=0.5, length=4, counterfactual=0.5, trust=False),
    "utilities": UtilitiesConfig(share=0.5),
    "network": ActorCriticConfig(hidden=(16,), destinations=4),
}


@pytest.mark.parametrize(
    ("game", "devices", "shift", "models"),
    [
        (StagHunt(grid=Board(4, 4), horizon=9), 1, 1, "none"),
        (StagHunt(grid=Board(4, 4), horizon=9), 2, 3, "none"),
        (Snowdrift(grid=Board(4, 4), horizon=9), 2, 1, "none"),
        (StagHunt(grid=Board(4, 4), horizon=9), 1, 3, "mappo"),
        (StagHunt(grid=Board(4, 4), horizon=9), 1, 1, "liam"),
        (StagHunt(grid=Board(4, 4), horizon=9), 1, 1, "omg"),
        (StagHunt(grid=Board(4, 4), horizon=9), 2, 3, "hop"),
        (StagHunt(grid=Board(4, 4), horizon=9), 1, 1, "hop_plus"),
    ],
    ids=["stag hunt, one device", "stag hunt, two", "snowdrift, two", "mappo", "liam", "omg", "hop", "hop_plus"],
)
def test_training_is_equivariant_to_the_bit(game, devices, shift, models):
    config = replace(CONFIG, mesh=MeshConfig(envs=devices), opponents=OPPONENTS[USES.get(models, models)])
    if models in BASELINES:
        config = replace(config, network=BASELINES[models])
    if models == "hop_plus":
        config = replace(config, **IMAGINING)
    if models == "hop":
        few = SearchConfig(trees=2, simulations=8, depth=3)
        config = replace(config, planning=PlanningConfig(kind="search", search=few))
    start = start_of(config, Task(game, Lineup(()), NUM_UPDATES))
    train = trainer(game, config)
    state, metrics = train(start, 0)
    turned_state, turned_metrics = train(turn_start(start, game, shift), shift)
    leaves = zip(*(jax.tree.leaves(jax.device_get(each.learners)) for each in (state, turned_state)), strict=True)
    assert all(np.array_equal(np.roll(one, -shift, axis=0), other) for one, other in leaves)
    for name, values in metrics.items():
        expected = values if values.ndim == 1 else np.roll(values, -shift, axis=1)
        np.testing.assert_array_equal(expected, turned_metrics[name], err_msg=name)
    assert any(np.ptp(values[-1]) > 0 for values in metrics.values() if values.ndim > 1)


@pytest.mark.parametrize("models", ["none", "omg", "hop_plus", "hop_plus, views sum the others"])
def test_shared_parameters_are_equivariant_up_to_the_order_of_a_sum(models):
    """The opponent models of hop_plus once learned the past of every seat but the first."""
    game = StagHunt(grid=Board(4, 4), horizon=9)
    config = replace(CONFIG, sharing="shared", opponents=OPPONENTS[USES.get(models, models)])
    if models.startswith("hop_plus"):
        config = replace(config, **IMAGINING)
    if config.opponents.others.models == "shared":
        game = Harvest(grid=Board(4, 4), num_players=5, horizon=9, away_steps=2, others="summed")
        config = replace(config, utilities=UtilitiesConfig())
    start = start_of(config, Task(game, Lineup(()), NUM_UPDATES))
    turned = turn_start(start, game, 1)
    turned = replace(turned, learners=start.learners, keys=replace(turned.keys, learners=start.keys.learners))
    train = trainer(game, config, num_updates=1)
    (one, _), (other, _) = train(start, 0), train(turned, 1)
    trained = start.learners, one.learners, other.learners
    for module, before in modules(trained[0]).items():
        after, turned_after = (jax.tree.leaves(modules(each)[module]) for each in trained[1:])
        moved, off = 0.0, 0.0
        for old, leaf, turned_leaf in zip(jax.tree.leaves(before), after, turned_after, strict=True):
            moved, off = moved + np.sum(np.square(leaf - old)), off + np.sum(np.square(leaf - turned_leaf))
        assert moved > 0 and np.sqrt(off / moved) < 0.01, (module, off, moved)


class OneSeatIsPaid(type(make("matrix-stag-hunt"))):
    """Only the seat with index 1 ever gets anything: 1 for each round."""

    def step(self, state, actions, *, key):
        after, _ = super().step(state, actions, key=key)
        return after, jnp.where(jnp.arange(self.num_players) == 1, 1.0, 0.0)


def test_targets_are_made_of_the_seats_own_reward():
    """Trap 1: with seat 0's reward for everybody, or anybody else's, these targets would differ."""
    game = OneSeatIsPaid(num_players=3, horizon=4)
    task = Task(game, Lineup(()), 1)
    config = replace(CONFIG, rollout_steps=4, ppo=replace(CONFIG.ppo, gae_lambda=1.0, discount=0.5))
    state = start_of(config, task)
    seats = learner.seats_of(config, task, state.learners)
    _, steps, last_values = collect(game, seats, state.envs, 4, seat_keys=state.keys.seats, env_key=jax.random.key(1))
    batch = learner.make_batch(config.ppo, steps, last_values)
    expected = np.zeros((3, 8, 4))
    expected[1] = [1.875, 1.75, 1.5, 1.0]
    np.testing.assert_allclose(batch.targets, expected, atol=1e-6)


def test_the_critic_catches_up_with_targets_of_ten():
    """Trap 11: a critic that starts at 0 and faces 10 a step later; clipped values move in the game's own unit."""

    class PaysTen(type(make("matrix-stag-hunt"))):
        def step(self, state, actions, *, key):
            after, rewards = super().step(state, actions, key=key)
            return after, jnp.full_like(rewards, 10.0)

    game = PaysTen(payoff=((10.0, 10.0), (10.0, 10.0)), horizon=1)
    task = Task(game, Lineup(()), 40)
    config = replace(CONFIG, rollout_steps=4)
    state = start_of(config, task)
    step = jax.jit(lambda state: train_step(config, task, state))
    for _ in range(40):
        state, metrics = step(state)
    np.testing.assert_allclose(metrics["real/old_value_mean"], 10.0, atol=0.5)
    assert config.ppo.gae_lambda < 1


def test_seats_draw_from_streams_of_their_own():
    """Trap 12: with one set of parameters and one view for all, seats would act alike if they shared a stream."""
    game = make("matrix-stag-hunt")
    task = Task(game, Lineup(()), 1)
    config = replace(CONFIG, sharing="shared", envs=64)
    state = start_of(config, task)

    def played(*seeds):
        keys = jax.random.wrap_key_data(jnp.stack([jax.random.key_data(jax.random.key(seed)) for seed in seeds]))
        seats = learner.seats_of(config, task, state.learners)
        return collect(game, seats, state.envs, 1, seat_keys=keys, env_key=jax.random.key(1))[1].actions[:, 0]

    actions, changed = played(1, 2), played(1, 99)
    assert 0.2 < np.mean(actions[:, 0] == actions[:, 1]) < 0.8
    np.testing.assert_array_equal(actions[:, 0], changed[:, 0])
    assert np.any(actions[:, 1] != changed[:, 1])


def test_the_noise_of_searches_differs_between_updates_and_seeds():
    """It was drawn from the view alone: the noise at a view that recurs never averaged out, and all seeds shared it."""
    game = StagHunt(grid=Board(3, 3), horizon=6)
    task = Task(game, Lineup(()), 2)
    few = PlanningConfig(kind="search", search=SearchConfig(trees=2, simulations=4, depth=3))
    config = replace(CONFIG, opponents=OPPONENTS["hop"], planning=few, rollout_steps=1)
    state = start_of(config, task)
    play = jax.jit(lambda state: learner.play(config, task, state).steps.planned)
    another = jax.random.split(jax.random.key(9), 4)
    planned = [
        play(each)
        for each in (
            state,
            state,
            replace(state, num_updates=state.num_updates + 1),
            replace(state, keys=replace(state.keys, seats=another)),
        )
    ]
    np.testing.assert_array_equal(planned[0], planned[1])
    for other in planned[2:]:
        assert np.mean(np.any(planned[0] != other, axis=-1)) > 0.5


def test_a_seat_that_has_left_is_no_data():
    game = StagHunt(grid=Board(4, 4), horizon=9)
    task = Task(game, Lineup(()), 1)
    state = start_of(CONFIG, task)
    _, steps, last = collect(
        game,
        learner.seats_of(CONFIG, task, state.learners),
        state.envs,
        30,
        seat_keys=state.keys.seats,
        env_key=jax.random.key(1),
    )
    batch = learner.make_batch(CONFIG.ppo, steps, last)
    np.testing.assert_array_equal(np.moveaxis(np.asarray(steps.in_game), 2, 0), batch.active)
    gone = ~np.asarray(steps.in_game)
    assert gone.any() and not np.asarray(steps.rewards)[gone].any()
    assert np.all(np.asarray(steps.terminated_after)[gone])
