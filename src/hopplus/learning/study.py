"""What a seat saw of its co-players in a rollout, prepared for its models: who did what, which goal lay ahead.

A subgoal is selected among the states that a co-player came to in the next few steps: the one whose encoding makes the
seat's own value greatest (optimistic) or least (conservative). That looks into the future, so it serves as a target,
and for a while as a teacher of the policy; at the table only the posterior is used.
"""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.games.game import Game, Observation, ego_order, view_of, views_of_others
from hopplus.games.rollout import Table
from hopplus.learning import minds
from hopplus.learning.minds import Evidence, Mind, MindConfig
from hopplus.learning.modelling_config import ModellingConfig
from hopplus.learning.ppo import Batch
from hopplus.learning.rollout import Trajectory
from hopplus.models import actor_critic, goals
from hopplus.models.actor_critic import ActorCritic
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import Look


class Study(eqx.Module):
    """What one learner saw of its co-players. Rows are tables of each seat that it plays, one after the other."""

    observation: Observation | None
    """The seat's own views, [rows, time]; None for episodes that somebody else played."""
    goals: Float32[Array, "*seats rows time others goal"]
    """As they were inferred at the table."""
    actions: Int32[Array, "*seats rows time others"]
    best: Float32[Array, "*seats rows time others"]
    valid: Bool[Array, "*seats rows time others"]
    """Both on the board."""
    labels: Int32[Array, "*seats rows time others"]
    """The next deed of the co-player in this episode, or `other`; -1 where the episode is not over yet."""
    reset_before: Bool[Array, "*seats rows time"]
    before: Float32[Array, "*seats rows others evidence"]
    """The posterior's evidence when the first state was seen."""


class Examples(eqx.Module):
    """Steps of each co-player that the model of its actions learns from."""

    seen: Look
    """[others, samples]"""
    goals: Float32[Array, "*others samples goal"]
    actions: Int32[Array, "*others samples"]
    weights: Float32[Array, "*others samples"]
    """0 for a co-player of whom there is nothing to learn."""


class Prepared(eqx.Module):
    """What is computed once in an update, before any gradient step."""

    seen: Look
    """[rows, time, others]"""
    ahead: Int32[Array, "rows time others"]
    """The last step of this episode with both on the board."""
    selected: Int32[Array, "rows time others"]
    """The step whose state the selector picked."""
    encoded: Float32[Array, "rows time others outputs"]
    """What the prior makes of every state, as of the beginning of the update."""


def study(config: ModellingConfig, game: Game, mind: Mind, tables: Table, steps: Trajectory) -> Study:
    """What the learning seats saw at the first so many tables, [seats, tables, ...]; `tables` as they were before."""
    num_learning = steps.legal.shape[2]
    count = min(config.tables, steps.reset_before.shape[0])
    steps = jax.tree.map(lambda leaf: leaf[:count], steps)
    order = ego_order(game.spec.num_agents)[:num_learning]
    seats_first = lambda leaf: jnp.moveaxis(leaf, 2, 0)  # noqa: E731
    of_others = lambda leaf: seats_first(leaf[:, :, order[:, 1:]])  # noqa: E731
    valid = seats_first(steps.in_game[:, :, order[:, :1]]) & of_others(steps.in_game)
    observation = jax.tree.map(seats_first, steps.observation)
    return Study(
        observation=observation,
        goals=seats_first(steps.goals),
        actions=of_others(steps.actions),
        best=of_others(steps.best),
        valid=valid,
        labels=of_others(next_deeds(steps.did, jnp.all(steps.terminated_after, axis=-1))),
        reset_before=jnp.broadcast_to(steps.reset_before, valid.shape[:3]),
        before=_evidence_before(game, mind, tables, observation, count),
    )


def first_tables(seen: Study | None, count: int) -> Study | None:
    """The same for fewer tables; leading axes: seats, tables."""
    return jax.tree.map(lambda leaf: leaf[:, :count], seen)


def next_deeds(
    did: Bool[Array, "envs time deeds agents"], over_after: Bool[Array, "envs time"]
) -> Int32[Array, "envs time agents"]:
    """Hindsight labels: what each seat does next in its episode that the game counts, numbered as in the spec.

    One more than the last where it does nothing more; -1 where the record stops before the episode does.
    """
    return deeds_ahead(did, over_after)[0]


def deeds_ahead(
    did: Bool[Array, "envs time deeds agents"], over_after: Bool[Array, "envs time"]
) -> tuple[Int32[Array, "envs time agents"], Int32[Array, "envs time agents"]]:
    """The next deed of each seat, and how many steps later it does it; any number where it does nothing more."""
    num_deeds = did.shape[2]

    def backwards(ahead, step):
        label, steps = ahead
        over, did = step
        does = jnp.any(did, axis=1)
        label = jnp.where(does, _first(did), jnp.where(over[:, None], num_deeds, label))
        ahead = label, jnp.where(does | over[:, None], 0, steps + 1)
        return ahead, ahead

    by_time = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (over_after, did))
    zeros = jnp.zeros((did.shape[0], did.shape[3]), jnp.int32)
    _, ahead = jax.lax.scan(backwards, (zeros - 1, zeros), by_time, reverse=True)
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), ahead)


def _first(did: Bool[Array, "envs deeds agents"]) -> Int32[Array, "envs agents"]:
    numbers = jnp.arange(did.shape[1], dtype=jnp.int32)[:, None]
    return jnp.min(jnp.where(did, numbers, did.shape[1]), axis=1, initial=did.shape[1])


def _evidence_before(
    game: Game, mind: Mind, tables: Table, observation: Observation, count: int
) -> Float32[Array, "seats tables others evidence"]:
    """The sum that was kept, and what the last action before the record adds to it."""
    thought, _ = tables.memory
    kept = jax.tree.map(lambda leaf: jnp.moveaxis(leaf[:count], 1, 0), thought.impression.kept)
    acted = observation.last_actions[:, :, 0, 1:]
    if not isinstance(kept, Evidence):
        return jnp.zeros((*acted.shape, 0))

    def one(posterior, total, embedded, action):
        return total + goals.evidence_of(posterior, embedded, action, game.spec.num_actions)

    over_others = jax.vmap(one, in_axes=(None, 0, 0, 0))
    over_tables = jax.vmap(over_others, in_axes=(None, 0, 0, 0))
    return jax.vmap(over_tables)(mind.posterior, kept.total, kept.embedded, acted)


def prepare(
    config: ModellingConfig, mind_config: MindConfig, game: Game, params: ActorCritic, mind: Mind, study: Study
) -> Prepared:
    """Look at everything once, and select the goals that lie ahead: for goals that are learned."""
    ahead = last_step_together(study.valid, study.reset_before)
    prior = mind.prior
    assert prior is not None and study.observation is not None
    encoded = jax.vmap(jax.vmap(lambda view: goals.encode_others(prior, game.spec, view)))(study.observation)
    selected = select(config, mind_config.goals, params, study, encoded, ahead)
    return Prepared(look_at_all(game, study), ahead, selected, encoded)


def look_at_all(game: Game, study: Study) -> Look:
    """Every co-player at every step, as its model reads it."""
    assert study.observation is not None
    views = jax.vmap(jax.vmap(partial(views_of_others, game.spec)))(study.observation)
    return jax.vmap(jax.vmap(partial(minds.look_at, game)))(views)


def look_at_some(
    game: Game, study: Study, rows: Int32[Array, "others samples"], steps: Int32[Array, "others samples"]
) -> Look:
    """The same at some steps only, others for each co-player: [others, samples]."""
    observation = study.observation
    assert observation is not None

    def one_other(offset: int, rows: Int32[Array, " samples"], steps: Int32[Array, " samples"]) -> Look:
        own = jax.tree.map(lambda leaf: leaf[rows, steps], observation)
        return minds.look_at(game, jax.vmap(lambda view: view_of(game.spec, view, offset))(own))

    looks = [one_other(index + 1, rows[index], steps[index]) for index in range(len(rows))]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *looks)


def last_step_together(
    valid: Bool[Array, "rows time others"], reset_before: Bool[Array, "rows time"]
) -> Int32[Array, "rows time others"]:
    """For each step the last one of the same episode with both on the board; the step itself where there is none."""
    num_steps = valid.shape[1]

    def backwards(later, step):
        index, valid, next_is_new = step
        goes_on = valid & ~next_is_new[:, None] & (later >= 0)
        last = jnp.where(valid, jnp.where(goes_on, later, index), -1)
        return last, jnp.where(last >= 0, last, index)

    next_is_new = jnp.concatenate([reset_before[:, 1:], jnp.ones_like(reset_before[:, :1])], axis=1)
    steps = (jnp.arange(num_steps, dtype=jnp.int32), jnp.moveaxis(valid, 1, 0), next_is_new.T)
    nobody = jnp.full(valid[:, 0].shape, -1, jnp.int32)
    return jnp.moveaxis(jax.lax.scan(backwards, nobody, steps, reverse=True)[1], 0, 1)


def select(
    config: ModellingConfig,
    goals_config: GoalsConfig,
    params: ActorCritic,
    study: Study,
    encoded: Float32[Array, "rows time others outputs"],
    ahead: Int32[Array, "rows time others"],
) -> Int32[Array, "rows time others"]:
    """Among the next states of each co-player, the one whose encoding the seat's own critic likes best, or least."""
    num_actions = params.heads.bias.shape[-1] - 1
    meant = jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, goals_config))))(encoded)
    now = jnp.arange(ahead.shape[1])[None, :, None]
    options = jnp.minimum(now[..., None] + 1 + jnp.arange(config.lookahead), ahead[..., None])

    def one_step(observation, inferred, options, of_row):
        """options [others, options]; of_row [time, others, goal]."""
        offered = jax.vmap(lambda other, at: of_row[at, other])(jnp.arange(len(options)), options)
        values = actor_critic.values_under(params, observation, num_actions, inferred, offered)
        values = values if config.selector == "optimistic" else -values
        return jnp.take_along_axis(options, jnp.argmax(values, axis=-1)[:, None], axis=-1)[:, 0]

    over_time = jax.vmap(one_step, in_axes=(0, 0, 0, None))
    return jax.vmap(over_time)(study.observation, study.goals, options, meant)


def give_selected(
    goals_config: GoalsConfig,
    params: ActorCritic,
    batch: Batch,
    seen: Study,
    prepared: Prepared,
    share: Float32[Array, ""],
    *,
    key: Key[Array, ""],
) -> Batch:
    """Let the policy learn from some samples as if it had been told the selected goals.

    What it thought of them is computed anew, so that the first gradient step still has a ratio of 1; what it was paid
    stays, so the targets do.
    """
    num_seats = batch.actions.shape[0]
    by_seat = lambda leaf: leaf.reshape(num_seats, -1, *leaf.shape[2:])  # noqa: E731
    outputs = jnp.take_along_axis(prepared.encoded, prepared.selected[..., None], axis=1)
    selected = by_seat(jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, goals_config))))(outputs))
    count = selected.shape[1]
    told = jax.random.bernoulli(key, share, (num_seats, count))[..., None] & by_seat(seen.valid)
    first = jax.tree.map(lambda leaf: leaf[:, :count], batch)
    given = jnp.where(told[..., None], selected, first.goals)
    over_samples = jax.vmap(jax.vmap(actor_critic.apply, in_axes=(None, 0, 0, 0)), in_axes=(None, 0, 0, 0))
    log_probabilities, values = over_samples(params, first.observation, first.legal, given)
    taken = jnp.take_along_axis(log_probabilities, first.actions[..., None], axis=-1)[..., 0]
    changed = jnp.any(told, axis=-1)
    values = jnp.where(changed, values, first.values)
    put = lambda leaf, new: leaf.at[:, :count].set(new)  # noqa: E731
    return replace(
        batch,
        goals=put(batch.goals, given),
        log_probabilities=put(batch.log_probabilities, jnp.where(changed, taken, first.log_probabilities)),
        values=put(batch.values, values),
        advantages=put(batch.advantages, first.targets - values),
    )
