"""Imagined play carries what real play carries, counts as far as it is trusted, and cannot hide."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.goals import goal_model
from hopplus.learning import opponents, ppo
from hopplus.learning.config import ImaginationConfig, PPOConfig
from hopplus.learning.imagination import (
    Branches,
    ImaginedPlayers,
    branches,
    draw_believed_goals,
    draw_co_player_goals,
    held_out_envs,
    held_out_lineups,
    imagine,
    imagined_batch,
)
from hopplus.learning.learner import bonus_left
from hopplus.learning.ppo import Batch, Source, make_batch
from hopplus.learning.state import UpdateContext
from hopplus.learning.trust import LEAST_WEIGHT, depth_of, mixed, trust_of, weights_by_depth
from hopplus.models import cells_world
from hopplus.models.config import WorldConfig
from learning.played import CONFIGS, GAME, of_learner, two_updates

CONFIG = ImaginationConfig(real_ratio=0.5, length=5, counterfactual=0.5)
LEARNER = replace(CONFIGS["omg"], imagination=CONFIG, world=WorldConfig(2, hidden=8, pooled=4), ppo=PPOConfig())
GOALS = goal_model(LEARNER.opponents, GAME)
NO_ERROR = {name: jnp.float32(0) for name in ("wm/board_error", "wm/reward_error", "wm/end_error")}
NO_ERROR["moa/misfit"] = jnp.zeros(3)


@cache
def agent():
    """One learner's policy and opponent models after an update, and an untrained world."""
    played = two_updates()[1]
    learner = of_learner(played.after.learners, 1)
    players = ImaginedPlayers(learner.policy.params, learner.opponents.params, GAME, LEARNER.opponents)
    keys = jax.random.split(jax.random.key(2), 2)
    members = jax.vmap(lambda key: cells_world.init(LEARNER.world, GAME.spec, key=key))(keys)
    return played, players, members


@cache
def begin():
    played = agent()[0]
    stacked = jax.jit(partial(branches, LEARNER, GAME))(played.after.envs, played.steps)
    return jax.tree.map(lambda leaf: leaf[1], stacked)


@cache
def imagined(config=CONFIG):
    _, players, members = agent()
    member = jax.tree.map(lambda leaf: leaf[0], members)
    return jax.jit(partial(imagine, config))(players, member, begin(), key=jax.random.key(7))


def test_it_starts_where_the_seat_was_in_real_play():
    played = agent()[0]
    views = jax.vmap(GAME.observe)(played.after.envs.state)
    starts: Branches = begin()
    count = CONFIG.num_envs(48, 2)
    np.testing.assert_array_equal(starts.views["planes"], views["planes"][np.arange(count) % len(views["planes"]), 1])
    real = played.steps.observation["planes"][played.steps.reset_before][:, 1]
    assert all(any(np.array_equal(one, other) for other in real) for one in starts.starts["planes"])


@pytest.mark.parametrize(("ratio", "members"), [(0.95, 2), (0.999, 3), (0.5, 3)])
def test_every_member_of_the_world_has_environments_to_imagine(ratio, members):
    """A real ratio near 1 once left fewer of them than members, and so none at all."""
    count = replace(CONFIG, real_ratio=ratio).num_envs(16 * 36, members)
    assert count >= members and count % members == 0


def test_without_a_reset_imagined_episodes_start_where_the_seat_was_in_the_game():
    """Snowdrift lasts 50 steps, a rollout 36: no episode need start in one."""
    played = agent()[0]
    steps = played.steps
    nobody_resets = replace(steps, reset_before=jnp.zeros_like(steps.reset_before))
    stacked = jax.jit(partial(branches, LEARNER, GAME))(played.after.envs, nobody_resets)
    assert stacked is not None
    blank = ~np.any(np.asarray(stacked.starts["planes"]), axis=(-1, -2, -3))
    assert np.asarray(steps.in_game).any(axis=(0, 1)).all() and not blank.any()
    different = {one.tobytes() for one in np.asarray(stacked.starts["planes"][0])}
    assert len(different) == len(stacked.starts["planes"][0]), "not the same view for every environment"


def test_goals_are_those_that_the_seat_infers():
    """Trap 2: no imagined step with goal = 0 where a real one would carry an inferred goal."""
    models = agent()[1].opponents
    steps, _ = imagined()
    drawn = draw_co_player_goals(CONFIG, GOALS, len(steps.actions), 3, key=_goals_key())
    is_counterfactual = drawn.is_counterfactual
    assert 0 < int(is_counterfactual.sum()) < len(is_counterfactual)

    def infer(view, beliefs):
        return GOALS.update(models, view, beliefs).goals

    first = jax.tree.map(lambda leaf: leaf[:, 0, 0], steps.observation)
    fresh = GOALS.start()
    for env in np.flatnonzero(steps.in_game[:, 0, 0]):
        beliefs = jax.tree.map(lambda leaf, at=env: leaf[at], begin().beliefs)
        view = jax.tree.map(lambda leaf, at=env: leaf[at], first)
        expected = infer(view, fresh if is_counterfactual[env] else beliefs)
        np.testing.assert_allclose(steps.goals[env, 0, 0], expected, rtol=1e-5, atol=1e-6)
    assert np.any(steps.goals[:, 1:] != steps.goals[:, :1])


def _goals_key():
    return jax.random.split(jax.random.key(7), 3)[0]


def test_every_multiset_of_goals_is_equally_likely():
    """Three co-players, three goals: ten multisets, "all want hares" among them."""
    hindsight = goal_model(CONFIGS["hop"].opponents, GAME)
    draw = jax.jit(lambda key: draw_co_player_goals(CONFIG, hindsight, 40_000, 3, key=key).goals)
    counts = np.asarray(draw(jax.random.key(0))).sum(axis=1)
    multisets, frequencies = np.unique(counts, axis=0, return_counts=True)
    assert len(multisets) == 10
    np.testing.assert_allclose(frequencies / 40_000, 0.1, atol=0.006)


def test_vectors_of_co_players_come_from_the_posterior():
    """Where nothing is counterfactual they are those that were drawn from the belief; elsewhere, any of them."""
    believed = jax.random.normal(jax.random.key(0), (50, 3, GOALS.size))
    draw = lambda share: draw_co_player_goals(  # noqa: E731
        replace(CONFIG, counterfactual=share), GOALS, 50, 3, believed, key=jax.random.key(1)
    )
    np.testing.assert_array_equal(draw(0.0).goals, believed)
    known = {tuple(goal) for goal in np.asarray(believed).reshape(-1, GOALS.size).tolist()}
    drawn = np.asarray(draw(1.0).goals).reshape(-1, GOALS.size).tolist()
    assert {tuple(goal) for goal in drawn} <= known and drawn != np.asarray(believed).reshape(-1, GOALS.size).tolist()


def test_goals_are_drawn_around_the_inferred_ones():
    players, starts = agent()[1], begin()
    draw = jax.jit(lambda key: draw_believed_goals(players, starts, key=key))
    drawn = np.stack([draw(key) for key in jax.random.split(jax.random.key(2), 400)])
    inferred = jax.vmap(lambda view, beliefs: GOALS.update(players.opponents, view, beliefs).goals)
    expected = inferred(starts.views, starts.beliefs)
    spread = drawn.std(axis=0)
    assert np.all(spread > 0)
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - expected), 5 * spread / 20)
    hindsight = replace(players, config=CONFIGS["hop"].opponents)
    assert draw_believed_goals(hindsight, starts, key=jax.random.key(3)) is None


def test_held_out_lineups_of_goals_are_in_no_other_environment():
    hindsight, config = goal_model(CONFIGS["hop"].opponents, GAME), replace(CONFIG, held_out=0.1)
    draw = jax.jit(lambda key: draw_co_player_goals(config, hindsight, 10_000, 3, key=key))
    drawn = jax.device_get(draw(jax.random.key(0)))
    counts, there = drawn.goals.sum(axis=1), held_out_envs(config, 10_000)
    assert there.sum() == 1000 and drawn.is_counterfactual[there].all()
    kept, others = ({tuple(row) for row in counts[where].tolist()} for where in (there, ~there))
    assert kept == {(2, 0, 1), (0, 2, 1)} and len(others) == 8 and not kept & others
    with pytest.raises(ValueError, match="two co-players or more"):
        held_out_lineups(3, 1)


def test_an_imagined_episode_ends_when_the_ego_leaves():
    """What the others do afterwards is not used."""
    steps, _ = imagined()
    ego_left, reset = np.asarray(steps.terminated_after[:, :-1, 0]), np.asarray(steps.reset_before[:, 1:])
    np.testing.assert_array_equal(ego_left, reset)
    assert ego_left.any() and np.all(steps.in_game[:, 1:, 0])


def test_legal_actions_are_those_of_the_imagined_board():
    """Trap 6."""
    steps, _ = imagined()
    legal = jax.vmap(jax.vmap(jax.vmap(GAME.legal_in_view)))(steps.observation)
    playing = np.asarray(steps.in_game[:, :, :1])
    np.testing.assert_array_equal(np.asarray(steps.legal)[playing], np.asarray(legal)[playing])
    taken = np.take_along_axis(np.asarray(steps.legal[:, :, 0]), np.asarray(steps.actions[:, :, :1]), axis=-1)
    assert np.all(taken[playing])
    assert not np.all(steps.legal)


def test_imagined_rewards_can_be_left_out():
    steps, _ = imagined(replace(CONFIG, reward="zero"))
    assert not np.any(steps.rewards)
    assert np.any(imagined()[0].rewards)


def test_depth_counts_from_the_last_real_state():
    resets = jnp.array([[False, False, True, False, False], [True, False, False, False, True]])
    np.testing.assert_array_equal(depth_of(resets), [[0, 1, 0, 1, 2], [0, 1, 2, 3, 0]])


def test_distrust_shortens_and_ends():
    depth = jnp.arange(4, dtype=jnp.int32)[None]
    full = weights_by_depth(trust_of(CONFIG, NO_ERROR), depth)
    np.testing.assert_array_equal(full, 1.0)
    half = weights_by_depth(trust_of(CONFIG, NO_ERROR | {"wm/board_error": jnp.float32(0.4)}), depth)
    np.testing.assert_allclose(half, [[0.6, 0.36, 0.0, 0.0]], rtol=1e-6)
    assert LEAST_WEIGHT > 0.6**3
    one_of_three = trust_of(CONFIG, NO_ERROR | {"moa/misfit": jnp.array([0.0, 0.62, 0.0])})
    np.testing.assert_allclose(weights_by_depth(one_of_three, depth), [[0.4, 0.0, 0.0, 0.0]], rtol=1e-5)


@pytest.mark.parametrize("name", ["wm/reward_error", "wm/end_error"])
def test_wrong_rewards_or_ends_are_no_data_at_any_depth(name):
    wrong = NO_ERROR | {name: jnp.float32(4.0)}
    depth = jnp.zeros((1, 2), jnp.int32)
    assert not np.any(weights_by_depth(trust_of(CONFIG, wrong), depth))
    assert not np.any(weights_by_depth(trust_of(CONFIG, NO_ERROR, jnp.bool_(False)), depth))
    assert np.all(weights_by_depth(trust_of(replace(CONFIG, trust=False), wrong), depth) == 1)


def small_batch(count, *, advantages=1.0):
    """Samples of one seat that differ in nothing that the critic sees."""
    played, players, _ = agent()
    batch = jax.jit(partial(make_batch, PPOConfig()))(played.steps, jnp.zeros(played.steps.values.shape[::2]))
    rows = jax.tree.map(lambda leaf: leaf[1].reshape(-1, *leaf.shape[3:])[None, :count], batch)
    return players.params, replace(rows, advantages=jnp.full((1, count), advantages), active=jnp.ones((1, count), bool))


@pytest.mark.parametrize(("critic", "expected"), [("all", 1.0), ("real", 0.0), ("weighted", 0.5)])
def test_what_the_critic_learns_from(critic, expected):
    _, real = small_batch(4)
    weights = jnp.array([[0.5, 0.0, 0.5, 0.5]])
    both: Batch = mixed(replace(CONFIG, critic=critic), real, real, weights)
    assert isinstance(both.source, Source)
    np.testing.assert_array_equal(both.active, [[True] * 5 + [False] + [True] * 2])
    np.testing.assert_array_equal(both.source.weights[0, 4:], weights[0])
    counted = both.source.critic_weights[0][np.array([4, 6, 7])]
    np.testing.assert_array_equal(counted, expected)
    np.testing.assert_array_equal(both.source.critic_weights[0, :4], 1.0)


def test_bad_imagined_targets_cannot_hide_and_cannot_poison_a_real_critic():
    """Trap 10: losses by source; and with critic = real, the critic's gradient does not see imagined targets."""
    params, real = small_batch(6)
    _, absurd = small_batch(6, advantages=50.0)
    config = PPOConfig(clip=1e9, value_clip=0.0, entropy_coefficient=0.0)

    def loss_of(batch):
        one_seat = jax.tree.map(lambda leaf: leaf[0], batch)
        return ppo.loss(config, 1.0, params, one_seat, jnp.float32(0))[1]

    with_critic = lambda critic: mixed(replace(CONFIG, critic=critic), real, absurd, jnp.ones((1, 6)))  # noqa: E731
    alone, together = loss_of(real), loss_of(with_critic("all"))
    np.testing.assert_allclose(together["value_loss_real"], alone["value_loss_real"], rtol=1e-5)
    assert together["value_loss_imagined"] > 1000 * together["value_loss_real"]
    np.testing.assert_allclose(loss_of(with_critic("real"))["value_loss"], alone["value_loss"], rtol=1e-5)
    assert together["value_loss"] > 100 * alone["value_loss"]


def test_a_whole_batch_has_real_and_imagined_samples_and_says_so():
    _, players, members = agent()
    _, real = small_batch(48)
    stacked = jax.tree.map(lambda leaf: leaf[None], begin())
    program = jax.jit(partial(imagined_batch, LEARNER))
    trust = trust_of(CONFIG, NO_ERROR)
    batch, metrics = program(players, members, trust=trust, real=real, begin=stacked, keys=jax.random.key(0)[None])
    assert isinstance(batch.source, Source)
    imagined_samples = np.asarray(batch.source.imagined)
    assert imagined_samples.sum() == CONFIG.num_envs(48, 2) * CONFIG.length
    assert float(metrics["count/samples/imagined"]) == (np.asarray(batch.active) & imagined_samples).sum() > 0
    assert {"imagined/reward_mean", "imagined/return_max", "imagined/old_value_std"} <= set(metrics)
    assert np.all(np.isfinite(batch.targets))


def test_nothing_is_learned_from_held_out_environments():
    _, players, members = agent()
    _, real = small_batch(48)
    stacked = jax.tree.map(lambda leaf: leaf[None], begin())
    trust, played = trust_of(CONFIG, NO_ERROR), {}
    for held_out in (0.0, 0.5):
        learner = replace(LEARNER, imagination=replace(CONFIG, held_out=held_out))
        program = jax.jit(partial(imagined_batch, learner))
        played[held_out] = program(
            players, members, trust=trust, real=real, begin=stacked, keys=jax.random.key(0)[None]
        )
    (batch, metrics), (without, other_metrics) = played[0.5], played[0.0]
    per_member = CONFIG.num_envs(48, 2) // 2
    there = np.tile(np.repeat(held_out_envs(replace(CONFIG, held_out=0.5), per_member), CONFIG.length), 2)
    assert there.any() and not np.asarray(batch.active)[0, 48:][there].any()
    assert np.asarray(without.active)[0, 48:][there].any() and np.asarray(batch.active)[0, 48:][~there].any()
    assert 0 <= float(metrics["held_out/return"]) <= 10 and "held_out/return" not in other_metrics


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        pytest.param([0.7, 0.2, 0.1], 0.0, 0.03, id="knows all there is"),
        pytest.param([0.98, 0.01, 0.01], 0.2, 0.5, id="overconfident"),
        pytest.param([1 / 3, 1 / 3, 1 / 3], 0.15, 0.4, id="worse than mere frequencies"),
        pytest.param([0.01, 0.01, 0.98], 0.8, 1.0, id="wrong"),
    ],
)
def test_misfit_measures_the_model_not_the_random_draws(given, low, high):
    count = 4000
    actions = jax.random.choice(jax.random.key(0), 3, (count,), p=jnp.array([0.7, 0.2, 0.1])).astype(jnp.int32)
    shape = (count, 1, 1)
    legal = jnp.ones((*shape, 3), bool)
    predicted = jnp.broadcast_to(jnp.array(given, jnp.float32), legal.shape)
    misfit = opponents.misfit(predicted, legal, actions.reshape(shape), jnp.ones(shape, bool))
    assert low <= float(misfit[0]) <= high


def test_the_entropy_bonus_is_larger_until_all_events_were_seen():
    config = replace(LEARNER, imagination=replace(CONFIG, explore=5.0))
    for seen, expected in ((False, 2.5), (True, 0.5)):
        context = UpdateContext(jnp.float32(0.5), None, None, jnp.bool_(seen))
        assert float(bonus_left(config, context)) == expected
