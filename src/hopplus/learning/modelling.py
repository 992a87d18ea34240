"""How a seat's models of its co-players learn from play, on line: the same for every seat, from its own view alone.

Data are the steps in which the seat and the co-player were both on the board. Predictions are scored before they are
learned from. Each gradient step takes the same number of samples of every co-player, so that no seat learns more.

    others      cross-entropy of what the co-player did, its goal being what the seat inferred, or its hindsight label;
                in the latter case also of what is kept in `replay`, every kind of goal alike
    posterior   mismatch(goal drawn from q, selected goal) + w KL(q || encoding of the selected state)
    prior       as in `models.goals`, unless it was pretrained: then it is left alone
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.game import NO_ACTION, Game, Observation
from hopplus.learning import minds
from hopplus.learning.devices import dealt_out
from hopplus.learning.minds import Mind, MindConfig
from hopplus.learning.modelling_config import ModellingConfig, PriorLoss
from hopplus.learning.ppo import Metrics, descend, falling
from hopplus.learning.study import Examples, Prepared, Study, look_at_all
from hopplus.models import goals, others
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import Look

SCORED = 8
"""Rows that are scored in each update: over some updates that is plenty."""
FINAL_RATE = 0.2
"""The learning rate falls to this share of itself over a run, as what is predicted changes less and less."""


def optimizer() -> optax.GradientTransformation:
    """Adam without its learning rate, which changes over a run."""
    return optax.scale_by_adam()


def optimizer_state(mind: Any) -> PyTree[Array]:
    return optimizer().init(mind)


def posterior_outputs(mind: Mind, seen: Look, study: Study) -> Float32[Array, "rows time others outputs"]:
    """The posterior at every step, from all that was done before it."""
    posterior = mind.posterior
    assert posterior is not None
    num_actions = seen.legal.shape[-1]
    everywhere = lambda fn: jax.vmap(jax.vmap(jax.vmap(fn)))  # noqa: E731
    embedded = everywhere(lambda view: goals.embed(posterior, view, num_actions))(seen.observation)
    acted = jnp.where(study.valid, study.actions, NO_ACTION)
    added = everywhere(lambda one, action: goals.evidence_of(posterior, one, action, num_actions))(embedded, acted)

    def forwards(total, step):
        added, new = step
        now = jnp.where(new[:, None, None], 0.0, total)
        return now + added, now

    steps = (jnp.moveaxis(added, 1, 0), study.reset_before.T)
    totals = jnp.moveaxis(jax.lax.scan(forwards, study.before, steps)[1], 0, 1)
    return everywhere(partial(goals.infer, posterior))(embedded, totals)


def score(mind_config: MindConfig, game: Game, mind: Mind, study: Study) -> Metrics:
    """How well the seat predicted each co-player, before it learned from it: [others] each, of some rows."""
    every = max(len(study.valid) // SCORED, 1)
    study = jax.tree.map(lambda leaf: leaf[::every], study)
    seen = look_at_all(game, study)
    predict = jax.vmap(jax.vmap(partial(minds.expected, mind_config, mind)))
    predicted = predict(seen, study.goals)
    mean = lambda numbers: jnp.sum(jnp.where(study.valid, numbers, 0.0), (0, 1)) / jnp.sum(study.valid, (0, 1))  # noqa: E731
    taken = jnp.take_along_axis(predicted, study.actions[..., None], axis=-1)[..., 0]
    rank = jnp.sum(predicted > taken[..., None], axis=-1)
    return {
        "moa/ce_loss": mean(-jnp.log(jnp.maximum(taken, others.LEAST))),
        "moa/top1": mean(jnp.argmax(predicted, axis=-1) == study.actions),
        "moa/top3": mean(rank < 3),
        "moa/ceiling": mean(study.best),
        "moa/misfit": misfit(predicted, seen.legal, study.actions, study.valid),
    }


def misfit(
    predicted: Float32[Array, "rows time others actions"],
    legal: Bool[Array, "rows time others actions"],
    actions: Int32[Array, "rows time others"],
    valid: Bool[Array, "rows time others"],
) -> Float32[Array, " others"]:
    """How wrong a model is, from 0 to 1, the worse of two:

    it is surer than it is right    1 - E p(what was done) / E sum_a p(a)^2
    mere frequencies are better     1 - exp(its cross-entropy less than theirs)

    A model that knows all that can be known has 0 even where a co-player rolls dice.
    """
    total = lambda numbers: jnp.sum(jnp.where(valid, numbers, 0.0), (0, 1))  # noqa: E731
    done = jnp.arange(predicted.shape[-1]) == actions[..., None]
    chance = lambda given: jnp.sum(jnp.where(done, given, 0.0), axis=-1)  # noqa: E731
    unsure = 1 - total(chance(predicted)) / jnp.maximum(total(jnp.sum(jnp.square(predicted), axis=-1)), 1e-6)
    frequencies = jnp.sum(done & valid[..., None], (0, 1)) + 1e-3
    marginal = jnp.where(legal, frequencies, 0.0)
    marginal = marginal / jnp.sum(marginal, axis=-1, keepdims=True)
    surprise = lambda given: -jnp.log(jnp.maximum(chance(given), others.LEAST))  # noqa: E731
    worse = total(surprise(predicted) - surprise(marginal)) / jnp.maximum(total(1.0), 1)
    return jnp.clip(jnp.maximum(unsure, 1 - jnp.exp(-jnp.maximum(worse, 0.0))), 0.0, 1.0)


class Lesson(eqx.Module):
    """What one learner's models learn from in one update."""

    examples: tuple[Examples, ...]
    """For the model of actions, a minibatch of each for every gradient step."""
    num_studied: int = eqx.field(static=True)
    """How many steps of co-players the first of them were picked from."""
    goal_study: Study | None
    """What goals are learned from; None where they are not."""
    prepared: Prepared | None
    """The same."""


def update(
    config: ModellingConfig,
    mind_config: MindConfig,
    train_prior: bool,
    remaining: Float32[Array, ""],
    learner: tuple[Mind, PyTree[Array], Lesson, Key[Array, ""]],
) -> tuple[Mind, PyTree[Array], Metrics]:
    """All gradient steps of one learner, `remaining` being the share of the run that is left."""
    mind, optimizer_state, lesson, key = learner
    transform = optimizer()
    rate = falling(config.learning_rate, FINAL_RATE, remaining)
    rows_key, steps_key = jax.random.split(key)
    num_rows = lesson.goal_study.valid.shape[0] if lesson.goal_study else 1
    rows_each = max(min(config.minibatch_tables, num_rows // config.minibatches), 1)
    order = jax.random.permutation(rows_key, num_rows)

    def one_step(carry: tuple[Any, Any], index: Int32[Array, ""]):
        mind, optimizer_state = carry
        rows = jax.lax.dynamic_slice_in_dim(order, (index * rows_each) % num_rows, rows_each)
        goal_part = jax.tree.map(lambda leaf: leaf[rows], (lesson.goal_study, lesson.prepared))
        step_key = jax.random.fold_in(steps_key, index)

        def loss(mind: Mind) -> tuple[Float32[Array, ""], Metrics]:
            ce_loss = others_loss(config, mind, lesson, index)
            metrics = {"moa/minibatch_ce": jnp.mean(ce_loss)}
            if lesson.goal_study is None:
                return jnp.sum(ce_loss), metrics
            of_goals, found = goals_loss(config, mind_config, train_prior, mind, *goal_part, key=step_key)
            return jnp.sum(ce_loss) + of_goals, metrics | found

        gradient, metrics = jax.grad(loss, has_aux=True)(mind)
        steps, optimizer_state = transform.update(gradient, optimizer_state)
        return (descend(mind, steps, rate), optimizer_state), metrics

    steps = jnp.arange(config.minibatches)
    (mind, optimizer_state), metrics = jax.lax.scan(one_step, (mind, optimizer_state), steps)
    return mind, optimizer_state, jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), metrics) | _counts(config, lesson)


def _counts(config: ModellingConfig, lesson: Lesson) -> Metrics:
    """How much each module of a seat was trained in one update, and on how much it could draw."""
    num_others = lesson.examples[0].weights.shape[0]
    sizes = {"others": (len(lesson.examples) * config.minibatch_size, lesson.num_studied)}
    if lesson.goal_study is not None:
        sizes["goals"] = (config.goal_minibatch_size, lesson.goal_study.valid.size)
    counts = {}
    for module, (size, available) in sizes.items():
        counts[f"count/updates/{module}"] = jnp.float32(config.minibatches)
        counts[f"count/samples/{module}"] = jnp.float32(config.minibatches * size * num_others)
        counts[f"buffer/size/{module}"] = jnp.float32(available)
    return counts


def _wanted(
    config: ModellingConfig, mind_config: MindConfig, num_deeds: int, study: Study
) -> Bool[Array, "rows time others"]:
    """The steps that the model of actions learns from."""
    if mind_config.goals.kind != "hindsight" and not config.rewarded_only:
        return study.valid
    return study.valid & (study.labels >= 0) & (study.labels < num_deeds)


def _pick(
    wanted: Bool[Array, "rows time others"], size: int, *, key: Key[Array, ""]
) -> tuple[Int32[Array, "others samples"], Int32[Array, "others samples"], Float32[Array, "others samples"]]:
    """Row, step and weight of so many wanted steps of each co-player: in random order, none twice before all came."""
    flat = jnp.moveaxis(wanted, -1, 0).reshape(wanted.shape[-1], -1)
    noise = jax.random.bits(key, flat.shape[-1:], jnp.uint32) >> 1
    order = jnp.argsort(jnp.where(flat, noise, jnp.uint32(2**32 - 1)), axis=-1).astype(jnp.int32)
    count = jnp.sum(flat, axis=-1, keepdims=True, dtype=jnp.int32)
    chosen = jnp.take_along_axis(order, jnp.arange(size) % jnp.maximum(count, 1), axis=-1)
    weights = jnp.broadcast_to(count > 0, chosen.shape).astype(jnp.float32)
    return chosen // wanted.shape[1], chosen % wanted.shape[1], weights


def at_samples(tree: Any, rows: Int32[Array, "others samples"], steps: Int32[Array, "others samples"]) -> Any:
    """Those samples of arrays [rows, time, others, ...], as [others, samples, ...]."""
    which = jnp.broadcast_to(jnp.arange(len(rows))[:, None], rows.shape)
    return jax.tree.map(lambda leaf: leaf[rows, steps, which], tree)


def pick_examples(
    config: ModellingConfig,
    mind_config: MindConfig,
    num_deeds: int,
    study: Study,
    look: Callable[[Int32[Array, "others samples"], Int32[Array, "others samples"]], Look],
    *,
    key: Key[Array, ""],
) -> Examples:
    """Examples for all gradient steps of an update; `look` tells what was seen in some steps of some rows.

    The goal of a co-player is what was inferred at the table, or what it came to in the end.
    """
    rows, steps, weights = _pick(_wanted(config, mind_config, num_deeds, study), config.num_examples, key=key)
    goal, actions, labels = at_samples((study.goals, study.actions, study.labels), rows, steps)
    if mind_config.goals.kind == "hindsight":
        goal = jax.nn.one_hot(labels, goal.shape[-1])
    return Examples(look(rows, steps), goal, actions, weights)


def others_loss(
    config: ModellingConfig, mind: Mind, lesson: Lesson, index: Int32[Array, ""]
) -> Float32[Array, " others"]:
    """Cross-entropy of what each co-player did, in the minibatch of that number."""
    size = config.minibatch_size
    batches = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, index * size, size, 1), lesson.examples)
    batches = dealt_out(batches, axis=1)
    models = _by_other(mind, batches[0].weights.shape[0])
    losses = [jax.vmap(others.loss)(models, each.seen, each.goals, each.actions, each.weights)[0] for each in batches]
    return jnp.sum(jnp.stack(losses), axis=0)


def goals_loss(
    config: ModellingConfig,
    mind_config: MindConfig,
    train_prior: bool,
    mind: Mind,
    study: Study,
    prepared: Prepared,
    *,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """The losses of posterior and prior over a few rows."""
    pick_key, posterior_key, prior_key = jax.random.split(key, 3)
    outputs = posterior_outputs(mind, prepared.seen, study)
    target = jnp.take_along_axis(prepared.encoded, prepared.selected[..., None], axis=1)
    rows, steps, weights = _pick(study.valid, config.goal_minibatch_size, key=pick_key)
    outputs, target = at_samples((outputs, target), rows, steps)
    total, metrics = _posterior_loss(config, mind_config.goals, outputs, target, weights, key=posterior_key)
    if train_prior:
        of_prior, found = _prior_loss(config, mind_config, mind, study, prepared, rows, steps, weights, key=prior_key)
        total, metrics = total + of_prior, metrics | found
    return total, metrics


def _by_other(mind: Mind, num_others: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_others, *leaf.shape[1:])), mind.others)


def _posterior_loss(
    config: ModellingConfig,
    goals_config: GoalsConfig,
    outputs: Float32[Array, "others samples outputs"],
    target: Float32[Array, "others samples outputs"],
    weights: Float32[Array, "others samples"],
    *,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    keys = jax.random.key_data(jax.random.split(key, weights.shape))

    def one(outputs, target, key_data):
        goal = goals.draw_goal(goals_config, outputs, key=jax.random.wrap_key_data(key_data))
        wanted = goals.mean_goal(goals_config, target)
        return goals.mismatch(goals_config, goal, wanted), goals.divergence(goals_config, outputs, target)

    mismatch, kl = (jnp.mean(each * weights) for each in jax.vmap(jax.vmap(one))(outputs, target, keys))
    return mismatch + config.posterior_kl * kl, {"goal/mismatch": mismatch, "goal/posterior_kl": kl}


def _prior_loss(
    config: ModellingConfig,
    mind_config: MindConfig,
    mind: Mind,
    study: Study,
    prepared: Prepared,
    rows: Int32[Array, "others samples"],
    steps: Int32[Array, "others samples"],
    weights: Float32[Array, "others samples"],
    *,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """Of states that lie a few steps ahead."""
    draw_key, ahead_key = jax.random.split(key)
    later = steps + 1 + jax.random.randint(ahead_key, steps.shape, 0, config.lookahead)
    seen, actions, last = at_samples((prepared.seen, study.actions, prepared.ahead), rows, steps)
    future = at_samples(prepared.seen.observation, rows, jnp.minimum(later, last))
    assert mind.prior is not None
    keys = jax.random.key_data(jax.random.split(draw_key, len(rows)))
    over_others = jax.vmap(partial(prior_terms, mind_config.goals, mind.prior))
    terms = over_others(_by_other(mind, len(rows)), seen, future, actions, weights, keys)
    terms = jax.tree.map(jnp.mean, terms)
    loss = prior_total(config.prior_loss, config.prior_kl, terms)
    return loss, {f"goal/{name}": term for name, term in terms.items()}


def prior_terms(
    goals_config: GoalsConfig,
    prior: goals.Prior,
    head: others.Others,
    seen: Look,
    future: Observation,
    actions: Int32[Array, " samples"],
    weights: Float32[Array, " samples"],
    key_data: Array,
) -> Metrics:
    """Every term of the VAE's loss, named, over samples of one co-player."""
    num_actions = seen.legal.shape[-1]
    outputs = jax.vmap(lambda view: goals.encode(prior, view, num_actions))(future)
    keys = jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key_data), len(actions)))
    draw = lambda one, data: goals.draw_goal(goals_config, one, key=jax.random.wrap_key_data(data))  # noqa: E731
    drawn = jax.vmap(draw)(outputs, keys)
    mean = lambda numbers: jnp.sum(numbers * weights) / jnp.maximum(jnp.sum(weights), 1)  # noqa: E731
    kl = jax.vmap(lambda one: goals.divergence(goals_config, one, jnp.zeros_like(one)))(outputs)
    action, _ = others.loss(head, seen, drawn, actions, weights)
    rebuilt = jax.vmap(partial(goals.reconstruction, prior))(future, drawn)
    return {"reconstruction": mean(rebuilt), "action": action, "prior_kl": mean(kl)}


def prior_total(kind: PriorLoss, kl_weight: float, terms: Metrics) -> Float32[Array, ""]:
    """The loss of that kind."""
    chosen = {"reconstruction": ("reconstruction",), "action": ("action",), "both": ("reconstruction", "action")}[kind]
    return sum((terms[name] for name in chosen), kl_weight * terms["prior_kl"])
