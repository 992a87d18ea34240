"""A policy that also reads the predicted actions of its co-players."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig, PlanningConfig
from hopplus.agents.goals import num_policy_inputs
from hopplus.agents.planner import Planner
from hopplus.agents.player import Player
from hopplus.learning import learner
from hopplus.learning.config import ImaginationConfig
from hopplus.models import actor_critic
from hopplus.models.config import GoalsConfig, OthersConfig, WorldConfig
from hopplus.planning.config import SearchConfig
from learning.played import CONFIGS, GAME, OPPONENTS, TASK

READING = replace(OPPONENTS["hop"], others=replace(OPPONENTS["hop"].others, as_input=True))
CONFIG = replace(
    CONFIGS["hop"], sharing="shared", opponents=READING, ppo=replace(CONFIGS["hop"].ppo, minibatch_size=200)
)
IMAGINING = replace(
    CONFIG,
    world=WorldConfig(1, hidden=8, pooled=4),
    imagination=ImaginationConfig(real_ratio=0.5, length=4, trust=False),
)


@pytest.fixture(scope="module", params=["real", pytest.param("imagined", marks=pytest.mark.heavy)])
def played(request):
    """The first state of a seed, what it plays, and the metrics of its update, a single gradient step."""
    config = CONFIG if request.param == "real" else IMAGINING

    def run(key):
        state = learner.init(config, TASK, key=key)
        experience = learner.play(config, TASK, state)
        return state, experience, learner.learn_all(config, TASK, state, experience)[1]

    return jax.jit(run)(jax.random.key(0))


def test_the_inputs_are_the_goals_and_the_predicted_legal_actions(played):
    _, experience, _ = played
    steps, size = experience.steps, num_policy_inputs(READING, GAME) - GAME.spec.num_actions
    np.testing.assert_array_equal(steps.inputs[..., :size], steps.goals)
    predicted = np.asarray(steps.inputs[..., size:])
    assert (predicted >= 0).all()
    in_game = np.asarray(steps.in_game)
    for seat in range(GAME.spec.num_agents):
        other = (seat + 1) % GAME.spec.num_agents
        both = in_game[..., seat] & in_game[..., other]
        np.testing.assert_allclose(predicted[:, :, seat, 0].sum(axis=-1)[both], 1.0, rtol=1e-5)
    assert predicted.std(axis=(0, 1)).max() > 0


def test_the_update_reads_what_the_policy_read_when_it_acted(played, request):
    """Otherwise the first gradient step would have ratios other than 1, on real or on imagined play."""
    state, experience, metrics = played
    params, batch = jax.tree.map(lambda leaf: leaf[0], state.learners.policy.params), experience.batch
    apply = actor_critic.apply
    for _ in range(3):
        apply = jax.vmap(apply, in_axes=(None, 0, 0, 0))
    log_probabilities, values = apply(params, batch.observation, batch.legal, batch.goals)
    taken = jnp.take_along_axis(log_probabilities, batch.actions[..., None], axis=-1)[..., 0]
    active = np.asarray(batch.active)
    np.testing.assert_allclose(np.asarray(taken)[active], np.asarray(batch.log_probabilities)[active], atol=1e-5)
    np.testing.assert_allclose(np.asarray(values)[active], np.asarray(batch.values)[active], atol=1e-5)
    assert float(metrics["policy/steps"][0]) == 1
    assert request.node.callspec.params["played"] == "real" or float(metrics["count/samples/imagined"][0]) > 0
    assert abs(float(metrics["policy/approx_kl"][0])) < 1e-5


def test_players_and_planners_read_them_too(played):
    state, experience, _ = played
    seat = jax.tree.map(lambda leaf: leaf[0], state.learners)
    player = Player(seat.policy.params, seat.opponents.params, GAME, READING)
    steps = experience.steps
    view, legal = jax.tree.map(lambda leaf: leaf[0, 0, 0], (steps.observation, steps.legal))
    probabilities, beliefs = eqx.filter_jit(player)(view, legal, player.init())
    acted = int(steps.actions[0, 0, 0])
    assert float(jnp.log(probabilities[acted])) == pytest.approx(float(steps.log_probabilities[0, 0, 0]), abs=1e-5)
    planning = PlanningConfig(kind="search", search=SearchConfig(trees=2, simulations=8, depth=2))
    plan = eqx.filter_jit(Planner(player, GAME, planning, 0.99).plan)(view, beliefs)
    assert np.isfinite(np.asarray(plan.values)[np.asarray(legal)]).all()


@pytest.mark.parametrize("goals", ["continuous", "none"])
def test_settings_that_make_no_sense_are_refused(goals):
    models = "each" if goals == "continuous" else "none"
    with pytest.raises(ValueError, match=r"others\.as-input"):
        OpponentsConfig(GoalsConfig(kind=goals), OthersConfig(models=models, as_input=True)).check()
