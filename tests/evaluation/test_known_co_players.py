"""A planner that knows its co-players acts on it, and follows their policy states."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.evaluation.adaptation import first_seat_returns
from hopplus.evaluation.known_co_players import KnownCoPlayers, goals_of, inform
from hopplus.games.coplayers import Lineup
from hopplus.games.lineups import read_policies
from hopplus.games.rollout import init_env, rollout
from hopplus.games.stag_hunt import HUNT_STAG
from hopplus.models.config import GoalsConfig
from situations import hunt
from untrained import GAME, planner, player

STAG, HARE, OTHER = np.eye(3, dtype=np.float32)


def informed(lineup):
    policies = read_policies(lineup, GAME)
    goals = jnp.asarray(goals_of(GAME.spec, lineup.split(",")))
    return inform(planner("search", policy_weight=0.0), goals, policies)


def test_what_scripts_are_after():
    found = goals_of(GAME.spec, ("nearest_hare", "random", "patient_stag(3)", "nearest_stag"))
    np.testing.assert_array_equal(found, [HARE, OTHER, STAG, STAG])


@pytest.mark.parametrize(("lineup", "hunts"), [("nearest_stag,random", True), ("nearest_hare,nearest_hare", False)])
def test_it_hunts_the_stag_with_those_who_will(lineup, hunts):
    """Everybody stands on the stag: with a partner it is worth half of 10, without one nothing."""
    state = hunt(GAME, players=[(1, 1), (1, 1), (1, 1)], stags=[(1, 1)], hares=[(0, 0)])
    view = jax.tree.map(lambda leaf: leaf[0], GAME.observe(state))
    agent = informed(lineup)
    probabilities, _ = eqx.filter_jit(agent)(view, GAME.legal(state)[0], agent.init())
    assert (probabilities[HUNT_STAG] == 1) == hunts


def test_it_follows_the_policy_states_of_its_co_players():
    """The patience of patient_stag runs out in the planner's model when it does in the game."""
    lineup = "patient_stag(3),nearest_hare"
    agent = informed(lineup)
    env = Lineup((agent, *read_policies(lineup, GAME)))

    @jax.jit
    def steps(key):
        played = rollout(GAME, env, init_env(GAME, env, key=key), 24, key=jax.random.key(1))[1]
        return played.policy_state, played.state.present[:, 0]

    (planners, patients, _), sees = jax.vmap(steps)(jax.random.split(jax.random.key(0), 4))
    _, (modelled, _) = planners
    np.testing.assert_array_equal(modelled[sees][:, 0], patients[sees][:, 0])
    assert int(jnp.max(patients[sees])) >= 3


def test_every_row_knows_its_own_line_up():
    lineups = [("nearest_stag", "nearest_stag"), ("nearest_hare", "nearest_hare")]
    copies = lambda tree: jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), tree)  # noqa: E731
    agent = copies(planner("search", policy_weight=0.0))
    found = first_seat_returns(GAME, [agent], [0, 0], lineups, 6, known="others", key=jax.random.key(0))
    with_hunters, with_others = found.mean(axis=(1, 2))
    assert with_hunters > 2 > 1.01 > with_others


def test_only_planners_can_know_their_co_players():
    goals = jnp.asarray(goals_of(GAME.spec, ("random", "random")))
    with pytest.raises(ValueError, match="needs an agent that plans"):
        inform(player(), goals, ())
    agent = planner("search")
    aimless = replace(agent, player=replace(agent.player, config=OpponentsConfig(GoalsConfig(kind="none"))))
    with pytest.raises(ValueError, match="give --known-co-players others"):
        inform(aimless, goals, ())
    assert isinstance(inform(aimless, goals, read_policies("random,random", GAME)), KnownCoPlayers)
