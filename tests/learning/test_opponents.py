"""Opponent models learn from real data only, and in every seat equally."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents import opponents as opponent_models
from hopplus.core.streams import at, at_each
from hopplus.games.game import ego_order
from hopplus.games.lineups import read_policies
from hopplus.learning import opponents
from hopplus.learning.goal_losses import goals_loss, pick_steps
from hopplus.learning.learner import PURPOSES, SEAT_PURPOSES, learn
from hopplus.learning.opponent_data import ActionExamples, all_inputs, goal_targets
from hopplus.learning.opponents import OpponentBatch
from hopplus.learning.optim import Trained, clipped, init_trained
from hopplus.learning.state import LearnerData, UpdateContext
from learning.played import (
    CONFIGS,
    GAME,
    NOBODY,
    OPPONENTS,
    TASK,
    first_state,
    keeping_one,
    of_learner,
    program,
    two_updates,
)
from models.boards import boards, drawn_like

SEAT = 1


def test_only_wanted_steps_are_picked_and_none_twice_too_early():
    """Trap 3: of one co-player there is no data at all, and what is picked of it weighs nothing."""
    wanted = np.random.default_rng(0).random((4, 6, 3)) < 0.4
    wanted[..., 1] = False

    pick = jax.jit(lambda key: pick_steps(jnp.asarray(wanted), 32, key=key))
    rows, steps, weights = map(np.asarray, pick(jax.random.key(0)))
    np.testing.assert_array_equal(weights[1], 0.0)
    for other in (0, 2):
        np.testing.assert_array_equal(weights[other], 1.0)
        assert wanted[rows[other], steps[other], other].all()
        count = int(wanted[..., other].sum())
        places = rows[other] * 6 + steps[other]
        assert len(np.unique(places[:count])) == count and len(places) > count
    assert not np.array_equal(rows[0], np.sort(rows[0]))


def test_where_only_rewarded_trajectories_count_the_model_learns_from_no_other_step(own):
    """Labels are events that lie ahead; 2 is none of them, -1 not known."""
    data, config = own[2], CONFIGS["omg"]
    rewarded_only = replace(config, modelling=replace(config.modelling, rewarded_only=True))
    wanted = np.asarray(opponents._wanted(rewarded_only, 2, data))
    labels, valid = np.asarray(data.labels), np.asarray(data.valid)
    np.testing.assert_array_equal(wanted, valid & ((labels == 0) | (labels == 1)))
    plain = np.asarray(opponents._wanted(config, 2, data))
    np.testing.assert_array_equal(plain, valid)
    assert wanted.sum() < valid.sum()


def batch_of(name, params, models, data):
    """Of one seat. Models with hindsight goals learn from the same record: it has as many of them."""
    config = CONFIGS[name]
    examples = opponents.pick_examples(config, GAME, data, key=jax.random.key(4))
    if not config.opponents.goals.is_latent:
        return OpponentBatch((one_seat(examples),), data.valid.size, None, None)
    goal_data = jax.tree.map(lambda leaf: leaf[: config.modelling.goal_envs], data)
    targets = goal_targets(config, GAME, params, models, goal_data)
    return OpponentBatch((one_seat(examples),), data.valid.size, one_seat(goal_data), one_seat(targets))


def one_seat(tree):
    """With a leading axis for the only seat of the learner."""
    return jax.tree.map(lambda leaf: leaf[None], tree)


@cache
def updates(name, **changes):
    """The compiled update of one learner, with other settings where they are given."""
    config = CONFIGS[name]
    config = replace(config, modelling=replace(config.modelling, **changes))

    def update(trained, batch, number):
        key = jax.random.fold_in(jax.random.key(5), number)
        return opponents.update(config, trained, batch, train_prior=True, remaining=jnp.float32(1), keys=key[None])

    return jax.jit(update)


def hindsight_models(scale=0.3):
    shapes = jax.eval_shape(lambda: opponent_models.init(OPPONENTS["hop"], GAME.spec, 3, key=jax.random.key(0)))
    return drawn_like(shapes, scale=scale)


def with_optimizer(models):
    zeros = jax.eval_shape(partial(init_trained, opponents.optimizer()), models).opt_state
    return Trained(models, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), zeros))


@pytest.fixture(scope="module")
def own():
    """One learner's policy, opponent models and data."""
    played = two_updates()[1]
    learners = played.before.learners
    parts = (learners.policy.params, learners.opponents.params, played.opponent_data)
    return tuple(of_learner(each, SEAT) for each in parts)


@pytest.fixture(scope="module", params=["omg", "hop"])
def taught(request, own):
    """How one learner's opponent models learn from data, and its own data."""
    params, models, data = own
    models = models if request.param == "omg" else hindsight_models()
    batch = jax.jit(partial(batch_of, request.param))

    def learn(data):
        after, metrics = updates(request.param)(with_optimizer(models), batch(params, own[1], data), 0)
        return after.params, metrics

    return learn, data


def altered(data, places):
    """Other actions, labels and goals at these places."""
    swap = lambda leaf, new: jnp.where(places.reshape(places.shape + (1,) * (leaf.ndim - 3)), new, leaf)  # noqa: E731
    return replace(
        data,
        actions=swap(data.actions, (data.actions + 1) % GAME.spec.num_actions),
        labels=swap(data.labels, (data.labels + 1) % 2),
        goals=swap(data.goals, data.goals + 1),
    )


def test_steps_after_a_player_left_are_not_learned_from(taught):
    """Trap 3: neither after the co-player has left nor after the seat itself has."""
    learn, data = taught
    usual, metrics = learn(data)
    learned_from = lambda where: learn(altered(data, where(data.valid)))  # noqa: E731
    gone, gone_metrics = learned_from(jnp.invert)
    there, _ = learned_from(lambda valid: valid)
    assert not np.asarray(data.valid).all(), "nobody left"
    for one, other in zip(jax.tree.leaves((usual, metrics)), jax.tree.leaves((gone, gone_metrics)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(np.any(one != other) for one, other in zip(*map(jax.tree.leaves, (usual, there)), strict=True))


def test_models_learn_from_examples_of_the_buffer(own):
    """In the new data no co-player pursues goal 1; in the buffer, those that did stayed where they were."""
    params, _, data = own
    models, stay = hindsight_models(0.1), GAME.spec.stay
    assert stay is not None
    batch = batch_of("hop", params, models, replace(data, labels=jnp.zeros_like(data.labels)))
    some = batch.examples[0].inputs
    shape = some.legal.shape[:3]
    goal = jnp.broadcast_to(jax.nn.one_hot(1, 3), (*shape, 3))
    past = ActionExamples(some, goal, jnp.full(shape, stay), jnp.ones(shape, jnp.float32))

    def chance_of_staying(batch):
        trained = with_optimizer(models)
        for number in range(10):
            trained, _ = updates("hop")(trained, batch, number)
        one = jax.tree.map(lambda leaf: leaf[0, :, 0], some)
        return float(opponent_models.predict(trained.params, one, goal[0, :, 0])[:, stay].mean())

    assert chance_of_staying(replace(batch, examples=(*batch.examples, past))) > chance_of_staying(batch) + 0.2


def test_models_that_learn_at_no_rate_stay_as_they_are(own):
    """`--modelling.learning-rate 0` keeps pretrained models, to the bit."""
    models = hindsight_models()
    batch = jax.jit(partial(batch_of, "hop"))(*own)
    after, _ = updates("hop", learning_rate=0.0)(with_optimizer(models), batch, 0)
    for one, other in zip(jax.tree.leaves(models), jax.tree.leaves(after.params), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("largest", [0.0, 0.5, 100.0])
def test_a_gradient_is_scaled_down_to_its_largest_norm(largest):
    gradient = {"one": jnp.array([3.0, 0.0]), "other": jnp.array(4.0)}
    factor = 0.1 if largest == 0.5 else 1.0
    after = clipped(gradient, largest)
    np.testing.assert_allclose(after["one"], factor * gradient["one"], rtol=1e-6)
    np.testing.assert_allclose(after["other"], factor * gradient["other"], rtol=1e-6)


def test_recall_of_each_action_by_hand():
    """Four steps up of which three are predicted, one step down that is not, and one step that does not count."""
    actions = jnp.array([0, 0, 0, 0, 1, 1])[None, :, None]
    predicted = jax.nn.one_hot(jnp.array([0, 0, 0, 1, 0, 1]), 3)[None, :, None]
    valid = jnp.array([True, True, True, True, True, False])[None, :, None]
    found = opponents.recall(("up", "down", "hunt stag"), predicted, actions, valid)
    assert {name: float(value) for name, value in found.items() if "stag" not in name} == {
        "moa/recall/up": 0.75,
        "moa/recall/down": 0.0,
    }
    assert np.isnan(found["moa/recall/hunt_stag"])


def test_a_prior_that_is_kept_stays_as_it_is(own):
    """One step of Adam on the losses of goals: the posterior moves, the prior does not, to the bit."""
    config = CONFIGS["omg"]

    @jax.jit
    def step(params, trained, data):
        models = trained.params
        batch = batch_of("omg", params, models, data)
        loss = partial(goals_loss, config, train_prior=False, temperature=jnp.float32(1), key=jax.random.key(0))
        apply = lambda models: loss(models, *of_learner((batch.goal_data, batch.goal_targets), 0))[0]  # noqa: E731
        steps, _ = opponents.optimizer().update(jax.grad(apply)(models), trained.opt_state)
        return jax.tree.map(jnp.add, models, steps)

    params, models, data = own
    after = step(params, with_optimizer(models), data)
    for one, other in zip(jax.tree.leaves(models.prior), jax.tree.leaves(after.prior), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.any(models.posterior.view.weight != after.posterior.view.weight)


def changed_by_learner(before, after):
    """For each learner, whether any of its numbers changed."""
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return np.any([np.any(np.asarray(one != other).reshape(len(one), -1), axis=-1) for one, other in pairs], axis=0)


def assert_every_seat_learns(before, after, metrics, modules):
    """Trap 4: each seat's models have changed, by as many updates on as many samples of as much data."""
    parts = {"others": ("others",), "goals": ("posterior", "prior")}
    for module in modules:
        for name in ("count/updates", "count/samples", "buffer/size"):
            by_seat = np.asarray(metrics[f"{name}/{module}"])
            assert by_seat.shape == (4,) and by_seat[0] > 0 and np.all(by_seat == by_seat[0]), f"{name}/{module}"
        for part in parts[module]:
            models = (learners.opponents.params for learners in (before, after))
            changed = changed_by_learner(*(getattr(each, part) for each in models))
            assert changed.all(), f"{part} of seats {np.flatnonzero(~changed)} did not learn"


def assert_counts(config, metrics):
    settings = config.modelling
    assert metrics["count/updates/others"][0] == settings.minibatches
    assert metrics["count/samples/others"][0] == settings.minibatches * settings.minibatch_size * 3
    assert metrics["buffer/size/others"][0] == settings.envs * config.rollout_steps * 3
    assert metrics["moa/ce_loss"].shape == (4, 3) and np.isfinite(metrics["moa/ce_loss"]).all()


def left_out(state, seat):
    return jax.random.key_data(at(state.keys.learners[seat], "models", jnp.int32(0)))


def test_every_seat_learns_as_much():
    played = two_updates()[0]
    assert_every_seat_learns(played.before.learners, played.after.learners, played.metrics, ("others", "goals"))
    assert_counts(CONFIGS["omg"], played.metrics)


def test_a_seat_whose_models_do_not_learn_is_noticed():
    """Its policy still learns. No gradient of that reaches the opponent models, which stay the same to the bit."""
    state = first_state()
    broken = program()(state, left_out(state, 2))
    before, after = state.learners, broken.after.learners
    with pytest.raises(AssertionError, match=r"others of seats \[2\] did not learn"):
        assert_every_seat_learns(before, after, broken.metrics, ("others", "goals"))
    np.testing.assert_array_equal(
        changed_by_learner(before.opponents.params, after.opponents.params), [True, True, False, True]
    )
    assert changed_by_learner(before.policy.params, after.policy.params).all()


def test_every_seat_with_hindsight_goals_learns_as_much():
    """The part of a training step that learns, for all learners, whole and with one left out."""
    config, played = CONFIGS["hop"], two_updates()[0]
    copies = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), with_optimizer(hindsight_models()))
    before = replace(played.before.learners, opponents=copies)
    batch = jax.tree.map(lambda leaf: leaf.reshape(4, 1, -1, *leaf.shape[3:]), played.batch)
    seen, orders = (jax.tree.map(lambda leaf: leaf[:, None], each) for each in (played.opponent_data, ego_order(4)))
    learner_keys = played.before.keys.learners

    def data():
        keys = at_each(PURPOSES, learner_keys, jnp.int32(0))
        seat_keys = at_each(SEAT_PURPOSES, learner_keys[:, None], jnp.int32(0))
        return LearnerData(batch, seen, None, None, jnp.asarray(orders, jnp.int32), keys, seat_keys)

    @jax.jit
    def learn_all(learners, data, left_out):
        context = UpdateContext(jnp.float32(1), None, None, jnp.bool_(True))
        with keeping_one(left_out):
            return jax.lax.map(lambda part: learn(config, TASK, context, *part), (learners, data))

    after, metrics = learn_all(before, data(), NOBODY)
    assert_every_seat_learns(before, after, metrics, ("others",))
    assert_counts(config, metrics)
    after, metrics = learn_all(before, data(), left_out(played.before, 0))
    with pytest.raises(AssertionError, match=r"others of seats \[0\] did not learn"):
        assert_every_seat_learns(before, after, metrics, ("others",))


def test_a_hunter_is_predicted_better_and_better(own):
    """Thirty updates on what hare hunters do on some boards; scored on others."""
    (hunter,) = read_policies("nearest_hare", GAME)
    rows, steps, num_others = own[2].valid.shape
    hare = jnp.broadcast_to(jnp.array([0.0, 1.0, 0.0]), (rows, steps, num_others, 3))
    generator = np.random.default_rng(0)

    @jax.jit
    def probabilities_of(data):
        inputs = all_inputs(GAME, data)
        act = jax.vmap(jax.vmap(jax.vmap(lambda view, legal: hunter(view, legal, ())[0])))
        return act(inputs.observation, inputs.legal)

    def record(seed):
        views = boards(GAME.spec, np.zeros((4, 4), bool), rows * steps, seed=seed)
        data = replace(
            own[2],
            observation=jax.tree.map(lambda leaf: leaf.reshape(rows, steps, *leaf.shape[1:]), views),
            goals=hare,
            valid=jnp.ones((rows, steps, num_others), bool),
            labels=jnp.ones((rows, steps, num_others), jnp.int32),
        )
        sums = np.cumsum(probabilities_of(data), axis=-1)
        drawn = np.argmax(sums > generator.random((*sums.shape[:-1], 1)) * sums[..., -1:], axis=-1)
        return replace(data, actions=jnp.asarray(drawn, jnp.int32))

    score = jax.jit(lambda models, data: opponents.score(OPPONENTS["hop"], GAME, models, one_seat(data)))
    models, other = hindsight_models(), record(1)
    batch = jax.jit(partial(batch_of, "hop"))(None, models, record(0))
    trained = with_optimizer(models)
    before = score(models, other)
    for number in range(30):
        trained, _ = updates("hop")(trained, batch, number)
    after = score(trained.params, other)
    assert np.mean(after["moa/ce_loss"]) < 0.8 * np.mean(before["moa/ce_loss"])
    assert np.mean(after["moa/top1"]) > np.mean(before["moa/top1"])
