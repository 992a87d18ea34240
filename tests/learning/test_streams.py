"""Every consumer of random numbers has a stream of its own."""

from dataclasses import replace

import jax

from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning import initial, learner
from hopplus.learning.config import ImaginationConfig, ReplayConfig
from hopplus.learning.state import Task
from hopplus.models.config import WorldConfig
from learning.played import CONFIGS

CONFIG = replace(
    CONFIGS["omg"],
    world=WorldConfig(members=2, hidden=4, pooled=2),
    replay=ReplayConfig(size=64, envs=2),
    imagination=ImaginationConfig(real_ratio=0.5, length=2),
)


def test_no_name_serves_both_the_first_state_and_an_update(monkeypatch):
    """The stream "world" once gave the world's parameters and the samples it was trained on."""
    at_start, in_updates = [], []

    def noting(function, names):
        return lambda key, name, *rest, **named: names.append(name) or function(key, name, *rest, **named)

    monkeypatch.setattr(initial, "stream", noting(initial.stream, at_start))
    monkeypatch.setattr(learner, "at", noting(learner.at, in_updates))
    at_each = learner.at_each
    monkeypatch.setattr(learner, "at_each", lambda names, *rest: in_updates.extend(names) or at_each(names, *rest))
    task = Task(StagHunt(grid=Board(3, 3), num_players=2, num_hares=1, horizon=4), Lineup(()), 4)
    first = jax.eval_shape(lambda: learner.init(CONFIG, task, key=jax.random.key(0)))
    jax.eval_shape(lambda first: learner.train_step(CONFIG, task, first), first)
    assert {"network", "mind", "world parameters"} <= set(at_start) and {"world", "models"} <= set(in_updates)
    assert not set(at_start) & set(in_updates)
