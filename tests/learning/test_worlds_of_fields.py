"""A game without a board, a time in its views, or a list of rewards: its world is learned, and play in it imagined."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.coplayers import Lineup
from hopplus.games.fields import Field, last_actions_field
from hopplus.games.game import NO_ACTION, Game, GameSpec, ego_order
from hopplus.learning import learner, replay
from hopplus.learning.config import ImaginationConfig, ReplayConfig, WorldTrainingConfig
from hopplus.learning.learner import train_step
from hopplus.learning.rollout import with_times
from hopplus.learning.state import Task
from hopplus.models.config import WorldConfig
from learning.test_seats import CONFIG, OPPONENTS


class CountState(eqx.Module):
    count: jax.Array
    last: jax.Array
    time: jax.Array


class Counting(Game[CountState]):
    """Two seats see a number below 4, to which both actions are added; each is paid what the other added."""

    horizon: int = eqx.field(static=True, default=5)

    @property
    def spec(self):
        number = Field("number", "categories", (1,), below=4, layout="shared")
        share = Field("share", "vector", (1,), layout="shared")
        return GameSpec(
            "counting", 1, 2, ("nothing", "one"), (number, share, last_actions_field(2, 2)), horizon=self.horizon
        )

    def reset(self, *, key):
        return CountState(jax.random.randint(key, (), 0, 4), jnp.full(2, NO_ACTION, jnp.int32), jnp.int32(0))

    def step(self, state, actions, *, key):
        rewards = jnp.where(state.time < self.horizon, actions[::-1], 0).astype(jnp.float32)
        return CountState((state.count + jnp.sum(actions)) % 4, actions, state.time + 1), rewards

    def observe(self, state):
        count = jnp.broadcast_to(state.count, (2, 1))
        return {"number": count, "share": count / 4, "last_actions": state.last[ego_order(2)]}

    def terminated(self, state):
        return jnp.broadcast_to(state.time >= self.horizon, (2,))


SETTINGS = replace(
    CONFIG,
    opponents=OPPONENTS["hop"],
    world=WorldConfig(members=2, kind="fields", hidden=8),
    replay=ReplayConfig(size=128, envs=4),
    world_training=WorldTrainingConfig(minibatches=2, minibatch_size=16),
    imagination=ImaginationConfig(real_ratio=0.5, length=4, counterfactual=0.5, trust=False),
)


@pytest.mark.parametrize("branch", ["last", pytest.param("buffer", marks=pytest.mark.heavy)])
def test_play_is_imagined_in_a_game_without_a_board(branch):
    config = replace(SETTINGS, imagination=replace(SETTINGS.imagination, branch=branch))
    task = Task(Counting(), Lineup(()), 3)
    state = jax.jit(lambda key: learner.init(config, task, key=key))(jax.random.key(0))
    step = jax.jit(lambda state: train_step(config, task, state))
    for _ in range(3):
        state, metrics = step(state)
    assert np.all(np.asarray(metrics["policy/finite"]) == 1)
    assert np.all(np.asarray(metrics["count/samples/imagined"]) > 0)
    kept = state.replay.experience.transition
    times = np.asarray(kept.now.time[0, : int(replay.num_kept(state.replay))])
    assert set(times.tolist()) == set(range(5)), "the views do not show the time"
    ended = np.asarray(kept.after.ended[0, : len(times)])
    np.testing.assert_array_equal(ended.all(axis=-1), times == 4)


def test_times_count_on_from_the_running_episode():
    game = Counting()
    state = jax.jit(lambda key: learner.init(SETTINGS, Task(game, Lineup(()), 1), key=key))(jax.random.key(0))
    played = jax.jit(partial(learner.play, SETTINGS, Task(game, Lineup(()), 1)))(state).steps
    resets = np.zeros(played.reset_before.shape, bool)
    resets[0, 2] = True
    steps = with_times(game.spec, replace(played, reset_before=jnp.asarray(resets)), jnp.full((len(resets), 2), 3.0))
    assert steps.transition is not None
    assert steps.transition.now.time[0, :5].tolist() == [3, 4, 0, 1, 2]
    assert steps.transition.now.time[1, :3].tolist() == [3, 4, 5]
