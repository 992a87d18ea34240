"""Verdicts on how seats predict each other, from arrays made by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.evaluation.others import Seen, Watched, judge, use_of_goals
from hopplus.games.presets import make

GAME = make("matrix-stag-hunt")
SPEC = GAME.spec
SEEDS, ENVS, STEPS = 2, 3, 4
BATCH = (SEEDS, ENVS, STEPS)


def watched(expected, *, in_game=None, policy=(0.9, 0.1), replaced=(0.9, 0.1)):
    """Two seats that always play (.75, .25) and take the first action; `expected` is what each predicts."""
    whole = lambda *tail, fill=0.0: np.full((*BATCH, *tail), fill, np.float32)  # noqa: E731
    spread = lambda pair: np.broadcast_to(np.asarray(pair, np.float32), (*BATCH, 2, 2)).copy()  # noqa: E731
    agents = SPEC.num_agents
    view = {
        "planes": jnp.zeros((*BATCH, agents, SPEC.height, SPEC.width, len(SPEC.planes)), jnp.uint8),
        "time": jnp.asarray(np.broadcast_to(np.linspace(0, 0.9, STEPS, dtype=np.float32)[:, None], (*BATCH, agents))),
        "last_actions": jnp.zeros((*BATCH, agents, agents), jnp.int32),
    }
    seen = Seen(
        observation=view,
        legal=jnp.ones((*BATCH, agents, 2), bool),
        actions=jnp.zeros((*BATCH, agents), jnp.int32),
        probabilities=jnp.asarray(spread((0.75, 0.25))),
        in_game=jnp.ones((*BATCH, agents), bool) if in_game is None else jnp.asarray(in_game),
        over=jnp.zeros(BATCH, bool),
        goals=jnp.asarray(whole(2, 1, 1)),
    )
    return Watched(
        seen=seen,
        expected=jnp.asarray(spread(expected)[..., None, :]),
        policy=jnp.asarray(spread(policy)),
        shuffled=jnp.asarray(spread(replaced)),
        mean=jnp.asarray(spread(policy)),
    )


def test_the_matrix_game_has_two_seats():
    assert SPEC.num_agents == 2 and SPEC.num_actions == 2


def test_a_prediction_of_the_likelier_action_reaches_the_ceiling():
    found = judge(GAME, watched((0.6, 0.4)), ["one", "other"])
    assert [pair["ratio"] for pair in found["pairs"]] == [1.0, 1.0]
    assert [pair["ceiling"] for pair in found["pairs"]] == pytest.approx([0.75, 0.75])
    assert [(pair["player"], pair["other"]) for pair in found["pairs"]] == [
        ("player_1", "player_2"),
        ("player_2", "player_1"),
    ]
    assert found["models"]["others"]["samples"] == 2 * SEEDS * ENVS * STEPS


def test_a_prediction_of_the_other_action_gets_its_share():
    found = judge(GAME, watched((0.4, 0.6)), ["one", "other"])
    assert [pair["ratio"] for pair in found["pairs"]] == pytest.approx([1 / 3, 1 / 3])
    assert found["models"]["others"]["cross_entropy"] == pytest.approx(-np.log(0.4), rel=1e-4)


def test_steps_with_one_of_them_gone_are_no_data():
    in_game = np.ones((*BATCH, 2), bool)
    in_game[:, 0, :, 1] = False
    found = judge(GAME, watched((0.6, 0.4), in_game=in_game), ["one", "other"])
    assert found["models"]["others"]["samples"] == 2 * SEEDS * (ENVS - 1) * STEPS


def test_the_use_of_goals_is_how_far_policies_move():
    used = use_of_goals(watched((0.6, 0.4), policy=(0.9, 0.1), replaced=(0.2, 0.8)))
    assert used["shuffled"]["total_variation"] == pytest.approx(0.7, rel=1e-5)
    assert used["shuffled"]["other_likeliest_action"] == 1.0
    assert used["mean"] == {"total_variation": 0.0, "other_likeliest_action": 0.0}
