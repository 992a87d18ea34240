"""Decisions that are computed again after an episode are those that led to its actions."""

import jax
import numpy as np
import pytest

from hopplus.evaluation.decisions import decisions_of
from hopplus.games.coplayers import Lineup
from hopplus.games.draw import frames
from hopplus.games.lineups import read_policies
from hopplus.games.rollout import play_episode
from hopplus.report.replay import Replay, replay_data
from untrained import GAME, planner, player

POLICY_WEIGHT = 0.1


@pytest.fixture(scope="module", params=["planner", "player"])
def seen(request):
    """An episode with the agent in the second seat, and its decisions."""
    agent = planner("search", policy_weight=POLICY_WEIGHT) if request.param == "planner" else player()
    hare, stag = read_policies("nearest_hare,nearest_stag", GAME)
    env = Lineup((hare, agent, stag))
    episode = jax.jit(lambda key: play_episode(GAME, env, key=key))(jax.random.key(3))
    return episode, decisions_of(agent, GAME, episode.states, seat=1)


def test_they_are_the_decisions_that_it_acted_on(seen):
    episode, decisions = seen
    gone = np.asarray(jax.vmap(GAME.terminated)(episode.states))[:, 1]
    acted = int(gone.argmax()) if gone.any() else GAME.spec.horizon
    liking = np.log(np.maximum(decisions.policy, 1e-30))
    worth = liking if decisions.values is None else decisions.values + POLICY_WEIGHT * liking
    best = np.where(decisions.legal, worth, -np.inf).argmax(axis=-1)
    assert acted >= 1
    np.testing.assert_array_equal(best[:acted], episode.actions[:acted, 1])


def test_beliefs_are_distributions_over_named_goals(seen):
    _, decisions = seen
    assert decisions.goals == ("stag", "hare", "other")
    np.testing.assert_allclose(decisions.beliefs.sum(axis=-1), 1, atol=1e-5)
    assert np.ptp(decisions.beliefs[:, 0], axis=0).max() > 0


def test_the_viewer_is_given_them(seen):
    episode, decisions = seen
    moments = frames(GAME, episode)
    shown = replay_data(Replay("one", GAME.spec, moments, ["H", "ego", "S"], decisions))["decisions"]
    assert shown["seat"] == 1 and shown["plans"] == (decisions.values is not None)
    assert [belief["seat"] for belief in shown["frames"][0]["beliefs"]] == [2, 0]
    assert 1 <= len(shown["frames"]) <= len(moments) - 1
    for step, frame in enumerate(shown["frames"]):
        (taken,) = [action["name"] for action in frame["actions"] if action["taken"]]
        assert taken == GAME.spec.action_names[moments[step + 1].actions[1]]
    assert replay_data(Replay("none", GAME.spec, moments, ["H", "ego", "S"]))["decisions"] is None
