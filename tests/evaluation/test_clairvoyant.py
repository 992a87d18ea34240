"""A planner who is told who its co-players are acts on it, and keeps count of what they remember."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.evaluation.adaptation import returns_in_company
from hopplus.evaluation.clairvoyant import Clairvoyant, goals_of, inform
from hopplus.games.coplayers import Lineup, read_policies
from hopplus.games.rollout import open_table, rollout
from hopplus.games.stag_hunt import HUNT_STAG
from hopplus.learning.minds import MindConfig
from hopplus.models.goals import GoalsConfig
from situations import hunt
from untrained import GAME, planner, player

STAG, HARE, OTHER = np.eye(3, dtype=np.float32)


def told(company):
    policies = read_policies(company, GAME.spec)
    goals = jnp.asarray(goals_of(GAME.spec, company.split(",")))
    return inform(planner("search", opinion=0.0), goals, policies)


def test_what_scripts_are_after():
    found = goals_of(GAME.spec, ("nearest_hare", "random", "patient_stag(3)", "nearest_stag"))
    np.testing.assert_array_equal(found, [HARE, OTHER, STAG, STAG])


@pytest.mark.parametrize(("company", "hunts"), [("nearest_stag,random", True), ("nearest_hare,nearest_hare", False)])
def test_it_hunts_the_stag_with_those_who_will(company, hunts):
    """Everybody stands on the stag: with a partner it is worth half of 10, without one nothing."""
    state = hunt(GAME, players=[(1, 1), (1, 1), (1, 1)], stags=[(1, 1)], hares=[(0, 0)])
    view = jax.tree.map(lambda leaf: leaf[0], GAME.observe(state))
    agent = told(company)
    probabilities, _ = eqx.filter_jit(agent)(view, GAME.legal(state)[0], agent.start())
    assert (probabilities[HUNT_STAG] == 1) == hunts


def test_it_remembers_what_its_co_players_remember():
    """The patience of patient_stag runs out in what the planner foresees when it does at the table."""
    company = "patient_stag(3),nearest_hare"
    agent = told(company)
    table = Lineup((agent, *read_policies(company, GAME.spec)))

    @jax.jit
    def steps(key):
        played = rollout(GAME, table, open_table(GAME, table, key=key), 24, key=jax.random.key(1))[1]
        return played.memory, played.state.present[:, 0]

    (planners, patients, _), sees = jax.vmap(steps)(jax.random.split(jax.random.key(0), 4))
    _, (foreseen, _) = planners
    np.testing.assert_array_equal(foreseen[sees][:, 0], patients[sees][:, 0])
    assert int(jnp.max(patients[sees])) >= 3


def test_rows_are_told_of_their_own_companies():
    companies = [("nearest_stag", "nearest_stag"), ("nearest_hare", "nearest_hare")]
    copies = lambda tree: jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), tree)  # noqa: E731
    agent = copies(planner("search", opinion=0.0))
    found = returns_in_company(GAME, [agent], [0, 0], companies, 6, known="others", key=jax.random.key(0))
    with_hunters, with_others = found.mean(axis=(1, 2))
    assert with_hunters > 2 > 1.01 > with_others


def test_only_planners_can_be_told():
    goals = jnp.asarray(goals_of(GAME.spec, ("random", "random")))
    with pytest.raises(ValueError, match="only who plans can be told"):
        inform(player(), goals, ())
    agent = planner("search")
    aimless = replace(agent, player=replace(agent.player, config=MindConfig(GoalsConfig(kind="none"))))
    with pytest.raises(ValueError, match="give --known others"):
        inform(aimless, goals, ())
    assert isinstance(inform(aimless, goals, read_policies("random,random", GAME.spec)), Clairvoyant)
