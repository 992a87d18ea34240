"""How a seat's models of its co-players learn from play, on line: the same for every seat, from its own view alone.

Data are the steps in which the seat and the co-player were both on the board. Predictions are scored before they are
learned from. Each gradient step takes the same number of samples of every co-player, so that no seat learns more.

    others      cross-entropy of what the co-player did, its goal being what the seat inferred, or its hindsight label
    posterior   mismatch(goal drawn from q, selected goal) + w KL(q || encoding of the selected state)
    prior       as in `models.goals`, unless it was pretrained: then it is left alone
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.game import NO_ACTION, Observation
from hopplus.learning import minds
from hopplus.learning.minds import Mind, MindConfig
from hopplus.learning.modelling_config import ModellingConfig, PriorLoss
from hopplus.learning.study import Prepared, Study, encodings
from hopplus.models import goals, others
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import Look

Metrics = dict[str, Array]


def optimizer(config: ModellingConfig) -> optax.GradientTransformation:
    return optax.adam(config.learning_rate)


def optimizer_state(config: ModellingConfig, mind: Any) -> PyTree[Array]:
    return optimizer(config).init(mind)


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


def score(mind_config: MindConfig, mind: Mind, study: Study, prepared: Prepared) -> Metrics:
    """How well the seat predicted each co-player, before it learned from it: [others] each."""
    predict = jax.vmap(jax.vmap(partial(minds.expected, mind_config, mind)))
    predicted = predict(prepared.seen, study.goals)
    mean = lambda numbers: jnp.sum(jnp.where(study.valid, numbers, 0.0), (0, 1)) / jnp.sum(study.valid, (0, 1))  # noqa: E731
    taken = jnp.take_along_axis(predicted, study.actions[..., None], axis=-1)[..., 0]
    rank = jnp.sum(predicted > taken[..., None], axis=-1)
    return {
        "moa/ce_loss": mean(-jnp.log(jnp.maximum(taken, others.LEAST))),
        "moa/top1": mean(jnp.argmax(predicted, axis=-1) == study.actions),
        "moa/top3": mean(rank < 3),
        "moa/ceiling": mean(study.best),
    }


def update(
    config: ModellingConfig,
    mind_config: MindConfig,
    train_prior: bool,
    learner: tuple[Mind, PyTree[Array], Study, Prepared, Key[Array, ""]],
) -> tuple[Mind, PyTree[Array], Metrics]:
    """All gradient steps of one learner."""
    mind, optimizer_state, study, prepared, key = learner
    transform = optimizer(config)
    num_rows = study.valid.shape[0]
    order_key, steps_key = jax.random.split(key)
    rows_each = max(num_rows // config.minibatches, 1)
    order = jax.random.permutation(order_key, num_rows)

    def one_step(carry: tuple[Any, Any], index: Int32[Array, ""]):
        mind, optimizer_state = carry
        rows = jax.lax.dynamic_slice_in_dim(order, (index * rows_each) % num_rows, rows_each)
        part, seen = jax.tree.map(lambda leaf: leaf[rows], (study, prepared))
        loss = partial(_loss, config, mind_config, train_prior, part, seen, jax.random.fold_in(steps_key, index))
        gradient, metrics = jax.grad(loss, has_aux=True)(mind)
        steps, optimizer_state = transform.update(gradient, optimizer_state)
        return (jax.tree.map(jnp.add, mind, steps), optimizer_state), metrics

    steps = jnp.arange(config.minibatches)
    (mind, optimizer_state), metrics = jax.lax.scan(one_step, (mind, optimizer_state), steps)
    samples = config.minibatches * config.minibatch_size * study.valid.shape[-1]
    counts = {
        "count/updates/others": jnp.float32(config.minibatches),
        "count/samples/others": jnp.float32(samples),
        "buffer/size/others": jnp.float32(study.valid.size),
    }
    if mind_config.goals.is_latent:
        counts |= {name.replace("others", "goals"): value for name, value in counts.items()}
    return mind, optimizer_state, jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), metrics) | counts


def _loss(
    config: ModellingConfig,
    mind_config: MindConfig,
    train_prior: bool,
    study: Study,
    prepared: Prepared,
    key: Key[Array, ""],
    mind: Mind,
) -> tuple[Float32[Array, ""], Metrics]:
    """The loss of all models over a few rows."""
    pick_key, posterior_key, prior_key = jax.random.split(key, 3)
    wanted, inferred = study.valid, study.goals
    metrics: Metrics = {}
    total = jnp.float32(0)
    outputs = None
    if mind_config.goals.kind == "hindsight":
        num_goals = study.goals.shape[-1]
        wanted &= (study.labels >= 0) & (study.labels < num_goals - 1)
        inferred = jax.nn.one_hot(study.labels, num_goals)
    elif mind_config.goals.is_latent:
        outputs = posterior_outputs(mind, prepared.seen, study)
        mean_goal = jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, mind_config.goals))))
        inferred = jax.lax.stop_gradient(mean_goal(outputs))
    rows, steps, weights = _pick(wanted, config.minibatch_size, pick_key)
    at = lambda leaf: jax.vmap(lambda row, step, other: leaf[row, step, other])(  # noqa: E731
        rows, steps, jnp.arange(wanted.shape[-1])
    )
    seen, goal, actions = jax.tree.map(at, (prepared.seen, inferred, study.actions))
    by_other = _by_other(mind, wanted.shape[-1])
    of_others, _ = jax.vmap(others.loss)(by_other, seen, goal, actions, weights)
    total += jnp.sum(of_others)
    metrics["moa/minibatch_ce"] = jnp.mean(of_others)
    if outputs is not None:
        target_outputs = at(encodings(mind, prepared.seen, prepared.selected))
        loss, found = _posterior_loss(
            config, mind_config.goals, at(outputs), target_outputs, weights, key=posterior_key
        )
        total += loss
        metrics |= found
        if train_prior:
            loss, found = _prior_loss(
                config, mind_config, mind, by_other, prepared, rows, steps, seen, actions, weights, key=prior_key
            )
            total += loss
            metrics |= found
    return total, metrics


def _pick(
    wanted: Bool[Array, "rows time others"], count: int, key: Key[Array, ""]
) -> tuple[Int32[Array, "others samples"], Int32[Array, "others samples"], Float32[Array, "others samples"]]:
    """So many samples of each co-player: without repeats as long as there are enough."""
    num_steps = wanted.shape[1]
    flat = jnp.moveaxis(wanted, -1, 0).reshape(wanted.shape[-1], -1)
    noise = jax.random.bits(key, flat.shape[-1:], jnp.uint32) >> 1
    order = jnp.argsort(jnp.where(flat, noise, jnp.uint32(2**32 - 1)), axis=-1)
    found = jnp.sum(flat, axis=-1, dtype=jnp.int32)
    places = jnp.arange(count) % jnp.maximum(found, 1)[:, None]
    chosen = jnp.take_along_axis(order, places, axis=-1).astype(jnp.int32)
    weights = jnp.broadcast_to((found > 0)[:, None], chosen.shape).astype(jnp.float32)
    return chosen // num_steps, chosen % num_steps, weights


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
    by_other: Any,
    prepared: Prepared,
    rows: Int32[Array, "others samples"],
    steps: Int32[Array, "others samples"],
    seen: Look,
    actions: Int32[Array, "others samples"],
    weights: Float32[Array, "others samples"],
    *,
    key: Key[Array, ""],
) -> tuple[Float32[Array, ""], Metrics]:
    """Of states that lie a few steps ahead."""
    draw_key, ahead_key = jax.random.split(key)
    which = jnp.broadcast_to(jnp.arange(len(rows))[:, None], rows.shape)
    ahead = steps + 1 + jax.random.randint(ahead_key, steps.shape, 0, config.lookahead)
    ahead = jnp.minimum(ahead, prepared.ahead[rows, steps, which])
    future = jax.tree.map(lambda leaf: leaf[rows, ahead, which], prepared.seen.observation)
    keys = jax.random.split(draw_key, len(rows))
    assert mind.prior is not None
    terms = jax.vmap(partial(prior_terms, mind_config.goals, mind.prior))(
        by_other, seen, future, actions, weights, jax.random.key_data(keys)
    )
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
