"""Models of co-players learn from real data only, and at every seat alike."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.coplayers import read_policies
from hopplus.games.game import ego_order
from hopplus.learning import minds, modelling
from hopplus.learning.learner import Circumstances, Learner, learn
from hopplus.learning.modelling import Lesson
from hopplus.learning.streams import at
from hopplus.learning.study import Examples, look_at_all, look_at_some, prepare
from learning.played import (
    CONFIGS,
    GAME,
    MINDS,
    NOBODY,
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

    pick = jax.jit(lambda key: modelling._pick(jnp.asarray(wanted), 32, key=key))
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
    """Labels are deeds that lie ahead; 2 is none of them, -1 not known."""
    seen = own[2]
    config = replace(CONFIGS["omg"].modelling, rewarded_only=True)
    wanted = np.asarray(modelling._wanted(config, MINDS["omg"], 2, seen))
    labels, valid = np.asarray(seen.labels), np.asarray(seen.valid)
    np.testing.assert_array_equal(wanted, valid & ((labels == 0) | (labels == 1)))
    plain = np.asarray(modelling._wanted(CONFIGS["omg"].modelling, MINDS["omg"], 2, seen))
    np.testing.assert_array_equal(plain, valid)
    assert wanted.sum() < valid.sum()


def lesson_of(name, params, mind, seen):
    """A mind that believes in hindsight goals is taught with the same record: it has as many of them."""
    config = CONFIGS[name]
    look = partial(look_at_some, GAME, seen)
    examples = modelling.pick_examples(config.modelling, config.mind, 2, seen, look, key=jax.random.key(4))
    if not config.mind.goals.is_latent:
        return Lesson((examples,), seen.valid.size, None, None)
    goals_seen = jax.tree.map(lambda leaf: leaf[: config.modelling.goal_tables], seen)
    prepared = prepare(config.modelling, config.mind, GAME, params, mind, goals_seen)
    return Lesson((examples,), seen.valid.size, goals_seen, prepared)


@cache
def updates(name, **changes):
    """The compiled update of one learner, with other settings where they are given."""
    config = CONFIGS[name]
    settings = replace(config.modelling, **changes)

    def update(mind, state, lesson, number):
        learner = (mind, state, lesson, jax.random.fold_in(jax.random.key(5), number))
        return modelling.update(settings, config.mind, True, jnp.float32(1), learner)

    return jax.jit(update)


def hindsight_mind(scale=0.3):
    shapes = jax.eval_shape(lambda: minds.init(MINDS["hop"], GAME.spec, key=jax.random.key(0)))
    return drawn_like(shapes, scale=scale)


def start_optimizer(mind):
    zeros = jax.eval_shape(modelling.optimizer_state, mind)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), zeros)


@pytest.fixture(scope="module")
def own():
    """One learner's policy, models and record."""
    played = two_updates()[1]
    return tuple(of_learner(each, SEAT) for each in (played.before.params, played.before.minds, played.study))


@pytest.fixture(scope="module", params=["omg", "hop"])
def taught(request, own):
    """One learner's mind and record, and how it learns from a record."""
    params, mind, seen = own
    mind = mind if request.param == "omg" else hindsight_mind()
    lesson = jax.jit(partial(lesson_of, request.param))
    learn = lambda seen: updates(request.param)(mind, start_optimizer(mind), lesson(params, own[1], seen), 0)  # noqa: E731
    return learn, seen


def altered(seen, places):
    """Other actions, labels and goals at these places."""
    swap = lambda leaf, new: jnp.where(places.reshape(places.shape + (1,) * (leaf.ndim - 3)), new, leaf)  # noqa: E731
    return replace(
        seen,
        actions=swap(seen.actions, (seen.actions + 1) % GAME.spec.num_actions),
        labels=swap(seen.labels, (seen.labels + 1) % 2),
        goals=swap(seen.goals, seen.goals + 1),
    )


def test_what_happened_after_somebody_left_teaches_nothing(taught):
    """Trap 3: neither after the co-player has left nor after the seat itself has."""
    learn, seen = taught
    usual, _, metrics = learn(seen)
    learned_from = lambda where: learn(altered(seen, where(seen.valid)))  # noqa: E731
    gone, _, gone_metrics = learned_from(jnp.invert)
    there, _, _ = learned_from(lambda valid: valid)
    assert not np.asarray(seen.valid).all(), "nobody left"
    for one, other in zip(jax.tree.leaves((usual, metrics)), jax.tree.leaves((gone, gone_metrics)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(np.any(one != other) for one, other in zip(*map(jax.tree.leaves, (usual, there)), strict=True))


def test_what_is_recalled_is_learned_from(own):
    """Nobody at the table goes after goal 1 any more; on recalled boards whoever did stayed where it was."""
    params, _, seen = own
    mind, stay = hindsight_mind(0.1), GAME.spec.stay
    lesson = lesson_of("hop", params, mind, replace(seen, labels=jnp.zeros_like(seen.labels)))
    some = lesson.examples[0].seen
    shape = some.legal.shape[:2]
    goal = jnp.broadcast_to(jax.nn.one_hot(1, 3), (*shape, 3))
    past = Examples(some, goal, jnp.full(shape, stay), jnp.ones(shape, jnp.float32))

    def chance_of_staying(lesson):
        state, after = start_optimizer(mind), mind
        for number in range(10):
            after, state, _ = updates("hop")(after, state, lesson, number)
        one = jax.tree.map(lambda leaf: leaf[:, 0], some)
        return float(minds.predict(after, one, goal[:, 0])[:, stay].mean())

    assert chance_of_staying(replace(lesson, examples=(*lesson.examples, past))) > chance_of_staying(lesson) + 0.2


def test_models_that_learn_at_no_rate_stay_as_they_are(own):
    """`--modelling.learning-rate 0` keeps pretrained models, to the bit."""
    mind = hindsight_mind()
    lesson = jax.jit(partial(lesson_of, "hop"))(*own)
    after = updates("hop", learning_rate=0.0)(mind, start_optimizer(mind), lesson, 0)[0]
    for one, other in zip(jax.tree.leaves(mind), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_prior_that_is_kept_stays_as_it_is(own):
    """One step of Adam on the losses of goals: the posterior moves, the prior does not, to the bit."""
    config = CONFIGS["omg"]

    @jax.jit
    def step(params, mind, seen, state):
        lesson = lesson_of("omg", params, mind, seen)
        loss = partial(modelling.goals_loss, config.modelling, config.mind, False)
        apply = lambda mind: loss(mind, lesson.goal_study, lesson.prepared, key=jax.random.key(0))[0]  # noqa: E731
        steps, _ = modelling.optimizer().update(jax.grad(apply)(mind), state)
        return jax.tree.map(jnp.add, mind, steps)

    params, mind, seen = own
    after = step(params, mind, seen, start_optimizer(mind))
    for one, other in zip(jax.tree.leaves(mind.prior), jax.tree.leaves(after.prior), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.any(mind.posterior.view.weight != after.posterior.view.weight)


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
            changed = changed_by_learner(getattr(before.minds, part), getattr(after.minds, part))
            assert changed.all(), f"{part} of seats {np.flatnonzero(~changed)} did not learn"


def assert_counts(config, metrics):
    settings = config.modelling
    assert metrics["count/updates/others"][0] == settings.minibatches
    assert metrics["count/samples/others"][0] == settings.minibatches * settings.minibatch_size * 3
    assert metrics["buffer/size/others"][0] == settings.tables * config.rollout_steps * 3
    assert metrics["moa/ce_loss"].shape == (4, 3) and np.isfinite(metrics["moa/ce_loss"]).all()


def left_out(state, seat):
    return jax.random.key_data(at(state.learner_keys[seat], "models", jnp.int32(0)))


def test_every_seat_learns_as_much():
    played = two_updates()[0]
    assert_every_seat_learns(played.before, played.after, played.metrics, ("others", "goals"))
    assert_counts(CONFIGS["omg"], played.metrics)


def test_a_seat_whose_models_do_not_learn_is_noticed():
    """Its policy learns all the same: no gradient of that reaches a model, which is left to the bit."""
    before = first_state()
    broken = program()(before, left_out(before, 2))
    with pytest.raises(AssertionError, match=r"others of seats \[2\] did not learn"):
        assert_every_seat_learns(before, broken.after, broken.metrics, ("others", "goals"))
    np.testing.assert_array_equal(changed_by_learner(before.minds, broken.after.minds), [True, True, False, True])
    assert changed_by_learner(before.params, broken.after.params).all()


def test_every_seat_with_hindsight_goals_learns_as_much():
    """The part of a training step that learns, for all learners, whole and with one left out."""
    config, played = CONFIGS["hop"], two_updates()[0]
    one = hindsight_mind()
    copies = lambda tree: jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), tree)  # noqa: E731
    before = replace(played.before, minds=copies(one), mind_optimizer=copies(start_optimizer(one)))
    batch = jax.tree.map(lambda leaf: leaf.reshape(4, 1, -1, *leaf.shape[3:]), played.batch)

    @jax.jit
    def learn_all(state, batch, seen, left_out):
        models = (state.minds, state.mind_optimizer, state.worlds, state.world_optimizer)
        orders = jnp.asarray(ego_order(4), jnp.int32)
        learners = Learner(state.params, state.optimizer, *models, orders, state.learner_keys)
        with keeping_one(left_out):
            learn_one = partial(learn, config, TASK, Circumstances(jnp.float32(1), jnp.int32(0), None, None))
            after, metrics = jax.lax.map(learn_one, (learners, batch, seen, None, None))
        return replace(state, params=after.params, minds=after.mind), metrics

    after, metrics = learn_all(before, batch, played.study, NOBODY)
    assert_every_seat_learns(before, after, metrics, ("others",))
    assert_counts(config, metrics)
    after, metrics = learn_all(before, batch, played.study, left_out(before, 0))
    with pytest.raises(AssertionError, match=r"others of seats \[0\] did not learn"):
        assert_every_seat_learns(before, after, metrics, ("others",))


def test_a_hunter_is_predicted_better_and_better(own):
    """Thirty updates on what hare hunters do on some boards; scored on others."""
    (hunter,) = read_policies("nearest_hare", GAME.spec)
    rows, steps, num_others = own[2].valid.shape
    hare = jnp.broadcast_to(jnp.array([0.0, 1.0, 0.0]), (rows, steps, num_others, 3))
    generator = np.random.default_rng(0)

    @jax.jit
    def look(seen):
        found = look_at_all(GAME, seen)
        act = jax.vmap(jax.vmap(jax.vmap(lambda view, legal: hunter(view, legal, ())[0])))
        return act(found.observation, found.legal)

    def record(seed):
        views = boards(GAME.spec, np.zeros((4, 4), bool), rows * steps, seed=seed)
        seen = replace(
            own[2],
            observation=jax.tree.map(lambda leaf: leaf.reshape(rows, steps, *leaf.shape[1:]), views),
            goals=hare,
            valid=jnp.ones((rows, steps, num_others), bool),
            labels=jnp.ones((rows, steps, num_others), jnp.int32),
        )
        sums = np.cumsum(look(seen), axis=-1)
        drawn = np.argmax(sums > generator.random((*sums.shape[:-1], 1)) * sums[..., -1:], axis=-1)
        return replace(seen, actions=jnp.asarray(drawn, jnp.int32))

    score = jax.jit(lambda mind, seen: modelling.score(MINDS["hop"], GAME, mind, seen))
    mind, other = hindsight_mind(), record(1)
    taught = jax.jit(partial(lesson_of, "hop"))(None, mind, record(0))
    state = start_optimizer(mind)
    before = score(mind, other)
    for number in range(30):
        mind, state, _ = updates("hop")(mind, state, taught, number)
    after = score(mind, other)
    assert np.mean(after["moa/ce_loss"]) < 0.8 * np.mean(before["moa/ce_loss"])
    assert np.mean(after["moa/top1"]) > np.mean(before["moa/top1"])
