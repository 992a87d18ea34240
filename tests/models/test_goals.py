"""Goals against numbers worked by hand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.game import NO_ACTION, view_of
from hopplus.games.presets import make
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt
from hopplus.models import goals
from hopplus.models.config import GoalsConfig
from models.boards import boards, drawn_like

VECTOR = GoalsConfig(kind="continuous", size=2, hidden=8, evidence=4)
SYMBOLS = GoalsConfig(kind="discrete", size=2, hidden=8, evidence=4)
GAME = StagHunt(grid=Board(4, 4), horizon=6)
NOTHING = np.zeros((4, 4), bool)
PRIOR = jax.eval_shape(lambda: goals.init_prior(VECTOR, GAME.spec, key=jax.random.key(0)))


def logits(*probabilities):
    return jnp.log(jnp.array(probabilities, jnp.float32))


def test_divergence_of_gaussians_by_hand():
    """Unit Gaussians that are 1 apart: 1/2 a dimension. Twice the deviation: (4 - 1) / 2 - ln 2."""
    unit, apart = jnp.zeros(4), jnp.array([1.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(goals.divergence(VECTOR, unit, apart), 1.0, rtol=1e-6)
    np.testing.assert_allclose(goals.divergence(VECTOR, apart, unit), 1.0, rtol=1e-6)
    wide = jnp.array([0.0, 0.0, np.log(2.0), 0.0], jnp.float32)
    np.testing.assert_allclose(goals.divergence(VECTOR, wide, unit), 1.5 - np.log(2), rtol=1e-5)
    np.testing.assert_allclose(goals.divergence(VECTOR, unit, wide), 0.5 * (0.25 - 1) + np.log(2), rtol=1e-5)


def test_divergence_of_two_symbols_by_hand():
    one, other = logits(0.75, 0.25), logits(0.5, 0.5)
    np.testing.assert_allclose(
        goals.divergence(SYMBOLS, one, other), 0.75 * np.log(1.5) + 0.25 * np.log(0.5), rtol=1e-5
    )
    np.testing.assert_allclose(goals.divergence(SYMBOLS, other, one), 0.5 * np.log(2 / 3) + 0.5 * np.log(2), rtol=1e-5)
    np.testing.assert_allclose(goals.divergence(SYMBOLS, one, jnp.zeros(2)), goals.divergence(SYMBOLS, one, other))


@pytest.mark.parametrize(
    ("config", "outputs"), [(VECTOR, jnp.array([0.3, -2.0, 0.5, -1.0])), (SYMBOLS, jnp.array([0.3, -2.0]))]
)
def test_nothing_diverges_from_itself(config, outputs):
    np.testing.assert_allclose(goals.divergence(config, outputs, outputs), 0.0, atol=1e-6)


def test_means_and_draws_of_a_vector():
    outputs = jnp.array([3.0, -1.0, np.log(0.5), 0.0], jnp.float32)
    np.testing.assert_array_equal(goals.mean_goal(VECTOR, outputs), [3.0, -1.0])
    drawn = jax.vmap(lambda key: goals.draw_goal(VECTOR, outputs, key=key))(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(drawn.mean(axis=0), [3.0, -1.0], atol=0.08)
    np.testing.assert_allclose(drawn.std(axis=0), [0.5, 1.0], atol=0.05)


def test_means_and_draws_of_symbols():
    """The largest entry of a Gumbel draw is a draw of the symbols themselves."""
    outputs = logits(0.8, 0.2)
    np.testing.assert_allclose(goals.mean_goal(SYMBOLS, outputs), [0.8, 0.2], rtol=1e-5)
    drawn = jax.vmap(lambda key: goals.draw_goal(SYMBOLS, outputs, key=key))(jax.random.split(jax.random.key(1), 4000))
    np.testing.assert_allclose(drawn.sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.mean(np.argmax(drawn, axis=-1) == 0), 0.8, atol=0.03)


def test_a_low_temperature_draws_almost_one_symbol():
    def mean_largest(temperature):
        draw = lambda key: goals.draw_goal(SYMBOLS, logits(0.5, 0.5), temperature, key=key).max()  # noqa: E731
        return jax.vmap(draw)(jax.random.split(jax.random.key(2), 500)).mean()

    largest = [mean_largest(temperature) for temperature in (0.05, 1.0, 20.0)]
    assert largest[0] > 0.97 and largest[0] > largest[1] > largest[2] and largest[2] < 0.55


def test_mismatch_by_hand():
    """(1 + 9) / 2, and - .25 ln .5 - .75 ln .5."""
    np.testing.assert_allclose(goals.mismatch(VECTOR, jnp.array([1.0, 0.0]), jnp.array([2.0, 3.0])), 5.0)
    mismatch = goals.mismatch(SYMBOLS, jnp.array([0.5, 0.5]), jnp.array([0.25, 0.75]))
    np.testing.assert_allclose(mismatch, np.log(2), rtol=1e-4)
    np.testing.assert_allclose(goals.mismatch(SYMBOLS, jnp.array([1.0, 0.0]), jnp.array([1.0, 0.0])), 0.0, atol=1e-5)


def test_a_board_that_is_told_perfectly_costs_nothing():
    seen = jax.tree.map(lambda leaf: leaf[0], boards(GAME.spec, NOTHING))
    prior = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), PRIOR)
    logits = jnp.where(seen["planes"].reshape(-1) > 0, 30.0, -30.0)
    perfect = eqx.tree_at(lambda prior: prior.cells.bias, prior, logits)
    np.testing.assert_allclose(goals.reconstruction(perfect, seen, jnp.zeros(2)), 0.0, atol=1e-6)
    np.testing.assert_allclose(goals.reconstruction(prior, seen, jnp.zeros(2)), np.log(2), rtol=1e-6)


def test_a_step_without_an_action_is_no_evidence():
    posterior = drawn_like(jax.eval_shape(lambda: goals.init_posterior(VECTOR, GAME.spec, key=jax.random.key(0))))
    embedded = jnp.ones(VECTOR.hidden)
    none = goals.evidence_of(posterior, embedded, jnp.int32(NO_ACTION), GAME.spec.num_actions)
    np.testing.assert_array_equal(none, jnp.zeros(VECTOR.evidence))
    some = [goals.evidence_of(posterior, embedded, jnp.int32(action), GAME.spec.num_actions) for action in (0, 1)]
    assert np.all(np.asarray(some[0]) != 0) and np.any(some[0] != some[1])


@pytest.mark.parametrize("config", [VECTOR, SYMBOLS])
def test_the_decoder_of_a_conditional_posterior_reads_noise(config):
    """Without noise it gives its most usual goal; draws differ, and those of symbols are one symbol each."""
    config = replace(config, posterior="conditional")
    shapes = jax.eval_shape(lambda: goals.init_posterior(config, GAME.spec, key=jax.random.key(0)))
    posterior = drawn_like(shapes)
    known = jnp.ones(config.hidden), jnp.ones(config.evidence)
    assert goals.noise_size(posterior) == config.size
    usual = goals.infer(posterior, *known)
    np.testing.assert_array_equal(usual, goals.infer(posterior, *known, jnp.zeros(config.size)))
    assert np.any(usual != goals.infer(posterior, *known, jnp.ones(config.size)))
    found = goals.recognise(posterior, *known, usual)
    assert found.shape == (2 * config.size,) and np.any(found != goals.recognise(posterior, *known, usual + 1))
    keys = jax.random.split(jax.random.key(3), 50)
    drawn = jax.vmap(lambda key: goals.draw_for_play(config, posterior, *known, key=key))(keys)
    assert len(np.unique(drawn, axis=0)) > 1
    if config.kind == "discrete":
        assert set(np.unique(drawn)) == {0.0, 1.0} and np.all(drawn.sum(axis=-1) == 1)


def test_an_additive_posterior_is_drawn_from_for_play():
    posterior = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape),
        jax.eval_shape(lambda: goals.init_posterior(VECTOR, GAME.spec, key=jax.random.key(0))),
    )
    outputs = jnp.array([3.0, -1.0, np.log(0.5), 0.0], jnp.float32)
    posterior = eqx.tree_at(lambda posterior: posterior.code.bias, posterior, outputs)
    known = jnp.ones(VECTOR.hidden), jnp.ones(VECTOR.evidence)
    keys = jax.random.split(jax.random.key(4), 4000)
    drawn = jax.vmap(lambda key: goals.draw_for_play(VECTOR, posterior, *known, key=key))(keys)
    np.testing.assert_allclose(drawn.mean(axis=0), [3.0, -1.0], atol=0.08)
    np.testing.assert_allclose(drawn.std(axis=0), [0.5, 1.0], atol=0.05)


def test_the_encoding_of_others_is_that_of_their_views():
    prior, mine = drawn_like(PRIOR), jax.tree.map(lambda leaf: leaf[0], boards(GAME.spec, NOTHING))

    def both(mine):
        own = [goals.encode(prior, view_of(GAME.spec, mine, offset)) for offset in (1, 2, 3)]
        return goals.encode_others(prior, GAME.spec, mine), jnp.stack(own)

    np.testing.assert_allclose(*jax.jit(both)(mine), rtol=1e-4, atol=1e-4)


def test_the_goals_of_a_game_have_names():
    assert goals.goal_names(GAME.spec) == ("stag", "hare", "other")
    assert goals.goal_names(Snowdrift(grid=Board(4, 4)).spec) == ("removals", "other")
    assert goals.goal_names(make("matrix-stag-hunt").spec) == ("paid", "other")
    sizes = {"none": 0, "continuous": 5, "discrete": 5, "hindsight": 3}
    assert {kind: goals.goal_size(GoalsConfig(kind=kind, size=5), GAME.spec) for kind in sizes} == sizes
    assert GoalsConfig(kind="continuous", size=5).num_outputs == 10
    assert GoalsConfig(kind="discrete", size=5).num_outputs == 5


def test_a_size_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"--goals\.size is 0; give 1 or more"):
        GoalsConfig(kind="discrete", size=0).check()
