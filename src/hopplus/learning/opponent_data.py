"""What a seat saw of its co-players in a rollout, as training data of its opponent models.

A subgoal is selected among the states that a co-player reached in the next few steps: the one whose encoding makes the
seat's own value greatest (optimistic) or least (conservative). This uses the future, so it is a training target, and
early in training an input of the policy; when acting only the posterior is used.
"""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.agents.goals import GoalModel, goal_model
from hopplus.agents.opponents import OpponentModels, modelled_players, modelled_views, opponent_inputs
from hopplus.games.fields import Observation
from hopplus.games.game import NO_ACTION, Game, view_of
from hopplus.games.rollout import EnvState
from hopplus.learning.config import LearnerConfig, ModellingConfig
from hopplus.learning.ppo import Batch
from hopplus.learning.rollout import Trajectory, acts_at_random
from hopplus.models import actor_critic, goals
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.config import GoalsConfig
from hopplus.models.others import OpponentInput


class OpponentData(eqx.Module):
    """What one seat saw of its co-players; the seats of a learner are one more leading axis. Rows: environments."""

    observation: Observation | None
    """The seat's own views, [rows, time]; None for recorded episodes of other players."""
    goals: Float32[Array, "*seats rows time others goal"]
    """As inferred during the rollout."""
    actions: Int32[Array, "*seats rows time others"]
    best: Float32[Array, "*seats rows time others"]
    valid: Bool[Array, "*seats rows time others"]
    """Whether both were in the game."""
    labels: Int32[Array, "*seats rows time others"]
    """The next event of the co-player in this episode, or `other`; -1 where the episode is not over yet."""
    reset_before: Bool[Array, "*seats rows time"]
    before: Float32[Array, "*seats rows others evidence"]
    """The posterior's evidence when the first state was seen."""


class ActionExamples(eqx.Module):
    """Steps of each co-player, as training data of the model of its actions."""

    inputs: OpponentInput
    """[others, samples]"""
    goals: Float32[Array, "*others samples goal"]
    actions: Int32[Array, "*others samples"]
    weights: Float32[Array, "*others samples"]
    """0 for a co-player without data."""


class GoalTargets(eqx.Module):
    """What latent goals learn from; computed once in an update, before any gradient step."""

    inputs: OpponentInput
    """[rows, time, others]"""
    ahead: Int32[Array, "rows time others"]
    """The last step of this episode with both in the game."""
    selected: Int32[Array, "rows time others"]
    """The step whose state the selector chose."""
    encoded: Float32[Array, "rows time others outputs"]
    """The prior's encoding of every state, as of the start of the update."""


def opponent_data(
    config: LearnerConfig, game: Game, models: OpponentModels, envs: EnvState, steps: Trajectory
) -> OpponentData:
    """What the learning seats saw in the first environments, [seats, envs, ...]; `envs` as they were before."""
    num_learning = steps.legal.shape[2]
    count = min(config.modelling.envs, steps.reset_before.shape[0])
    steps = jax.tree.map(lambda leaf: leaf[:count], steps)
    modelled = modelled_players(game.spec)[:num_learning]

    def seats_first(leaf: Array) -> Array:
        return jnp.moveaxis(leaf, 2, 0)

    def of_others(leaf: Array) -> Array:
        return seats_first(leaf[:, :, modelled])

    valid = seats_first(steps.in_game[:, :, :num_learning, None]) & of_others(steps.in_game)
    if (kinds := steps.all_kinds) is not None:
        valid &= of_others(~acts_at_random(game.spec, kinds))
    observation = jax.tree.map(seats_first, steps.observation)
    goals = goal_model(config.opponents, game)
    return OpponentData(
        observation=observation,
        goals=seats_first(steps.goals),
        actions=of_others(steps.actions),
        best=of_others(steps.best),
        valid=valid,
        labels=of_others(next_events(steps.events, jnp.all(steps.terminated_after, axis=-1))),
        reset_before=jnp.broadcast_to(steps.reset_before, valid.shape[:3]),
        before=_evidence_before(goals, models, envs, observation, count),
    )


def first_envs(data: OpponentData | None, count: int) -> OpponentData | None:
    """The data of the first environments; leading axes: seats, envs."""
    return jax.tree.map(lambda leaf: leaf[:, :count], data)


def next_events(
    events: Bool[Array, "envs time events agents"], over_after: Bool[Array, "envs time"]
) -> Int32[Array, "envs time agents"]:
    """Hindsight labels: the next event of each seat in its episode, numbered as in the spec.

    The number of events where none follows; -1 where the rollout stops before the episode does.
    """
    return events_ahead(events, over_after)[0]


def events_ahead(
    events: Bool[Array, "envs time events agents"], over_after: Bool[Array, "envs time"]
) -> tuple[Int32[Array, "envs time agents"], Int32[Array, "envs time agents"]]:
    """The next event of each seat, and how many steps later it happens; arbitrary where none follows."""
    num_events = events.shape[2]

    def backwards(ahead, step):
        label, steps = ahead
        over, events = step
        happens = jnp.any(events, axis=1)
        label = jnp.where(happens, _first(events), jnp.where(over[:, None], num_events, label))
        ahead = label, jnp.where(happens | over[:, None], 0, steps + 1)
        return ahead, ahead

    by_time = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), (over_after, events))
    zeros = jnp.zeros((events.shape[0], events.shape[3]), jnp.int32)
    _, ahead = jax.lax.scan(backwards, (zeros - 1, zeros), by_time, reverse=True)
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), ahead)


def _first(events: Bool[Array, "envs events agents"]) -> Int32[Array, "envs agents"]:
    numbers = jnp.arange(events.shape[1], dtype=jnp.int32)[:, None]
    return jnp.min(jnp.where(events, numbers, events.shape[1]), axis=1, initial=events.shape[1])


def _evidence_before(
    goals: GoalModel, models: OpponentModels, envs: EnvState, observation: Observation, count: int
) -> Float32[Array, "seats envs others evidence"]:
    """The posterior's evidence when the first state was seen, the last action before it included."""
    output, _ = envs.policy_state
    beliefs = jax.tree.map(lambda leaf: jnp.moveaxis(leaf[:count], 1, 0), output.beliefs)
    unseen = jnp.full(beliefs.goals.shape[:3], NO_ACTION, jnp.int32)  # then no goals are inferred from actions
    acted = observation["last_actions"][:, :, 0, 1:] if "last_actions" in observation else unseen
    over_envs = jax.vmap(goals.evidence, in_axes=(None, 0, 0))
    return jax.vmap(over_envs)(models, beliefs, acted)


def goal_targets(
    config: LearnerConfig, game: Game, params: PolicyNetwork, models: OpponentModels, data: OpponentData
) -> GoalTargets:
    """The encoded states, and the selected goal of every step."""
    ahead = last_step_together(data.valid, data.reset_before)
    prior = models.prior
    assert prior is not None and data.observation is not None
    encoded = jax.vmap(jax.vmap(lambda view: goals.encode_others(prior, game.spec, view)))(data.observation)
    selected = select(config.modelling, config.opponents.goals, params, data, encoded, ahead)
    return GoalTargets(all_inputs(game, data), ahead, selected, encoded)


def all_inputs(game: Game, data: OpponentData) -> OpponentInput:
    """The inputs of the opponent models at every step, [rows, time, others]."""
    assert data.observation is not None
    views = jax.vmap(jax.vmap(partial(modelled_views, game.spec)))(data.observation)
    return jax.vmap(jax.vmap(partial(opponent_inputs, game)))(views)


def some_inputs(
    game: Game, data: OpponentData, rows: Int32[Array, "others samples"], steps: Int32[Array, "others samples"]
) -> OpponentInput:
    """The inputs of the opponent models at some steps of each co-player, [others, samples]."""
    observation = data.observation
    assert observation is not None

    def one_other(offset: int, rows: Int32[Array, " samples"], steps: Int32[Array, " samples"]) -> OpponentInput:
        own = jax.tree.map(lambda leaf: leaf[rows, steps], observation)
        if offset:
            own = jax.vmap(lambda view: view_of(game.spec, view, offset))(own)
        return opponent_inputs(game, own)

    inputs = [
        one_other(int(offset), rows[index], steps[index]) for index, offset in enumerate(modelled_players(game.spec)[0])
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *inputs)


def last_step_together(
    valid: Bool[Array, "rows time others"], reset_before: Bool[Array, "rows time"]
) -> Int32[Array, "rows time others"]:
    """For each step the last one of the same episode with both in the game; the step itself where there is none."""
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
    params: PolicyNetwork,
    data: OpponentData,
    encoded: Float32[Array, "rows time others outputs"],
    ahead: Int32[Array, "rows time others"],
) -> Int32[Array, "rows time others"]:
    """Among the next states of each co-player, the one whose encoding the seat's own critic values most, or least."""
    meant = jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, goals_config))))(encoded)
    now = jnp.arange(ahead.shape[1])[None, :, None]
    if not config.lookahead:
        return jnp.broadcast_to(now, ahead.shape)
    options = jnp.minimum(now[..., None] + 1 + jnp.arange(config.lookahead), ahead[..., None])

    def one_step(observation, inferred, options, of_row):
        """options [others, options]; of_row [time, others, goal]."""
        offered = jax.vmap(lambda other, at: of_row[at, other])(jnp.arange(len(options)), options)
        values = params.values_under(observation, inferred, offered)
        values = values if config.selector == "optimistic" else -values
        return jnp.take_along_axis(options, jnp.argmax(values, axis=-1)[:, None], axis=-1)[:, 0]

    over_time = jax.vmap(one_step, in_axes=(0, 0, 0, None))
    return jax.vmap(over_time)(data.observation, data.goals, options, meant)


def with_selected_goals(
    goals_config: GoalsConfig,
    params: PolicyNetwork,
    batch: Batch,
    *,
    data: OpponentData,
    targets: GoalTargets,
    share: Float32[Array, ""],
    keys: Key[Array, " seats"],
) -> Batch:
    """The batch with a share of its inferred goals replaced by the selected ones.

    Log-probabilities and values are recomputed, so that the first gradient step still has a ratio of 1. Rewards and so
    targets stay. Data and targets have a leading axis of seats.
    """
    num_seats = batch.actions.shape[0]

    def samples(leaf: Array) -> Array:
        """[seats, rows, time] -> [seats, samples]"""
        return leaf.reshape(num_seats, -1, *leaf.shape[3:])

    outputs = samples(jnp.take_along_axis(targets.encoded, targets.selected[..., None], axis=2))
    selected = jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, goals_config))))(outputs)
    count = selected.shape[1]
    replaced = jax.vmap(lambda key: jax.random.bernoulli(key, share, (count, 1)))(keys) & samples(data.valid)
    first = jax.tree.map(lambda leaf: leaf[:, :count], batch)
    given = jnp.where(replaced[..., None], selected, first.goals)
    over_samples = jax.vmap(jax.vmap(actor_critic.apply, in_axes=(None, 0, 0, 0)), in_axes=(None, 0, 0, 0))
    log_probabilities, values = over_samples(params, first.observation, first.legal, given)
    taken = jnp.take_along_axis(log_probabilities, first.actions[..., None], axis=-1)[..., 0]
    changed = jnp.any(replaced, axis=-1)
    values = jnp.where(changed, values, first.values)
    taken = jnp.where(changed, taken, first.log_probabilities)
    return replace(
        batch,
        goals=batch.goals.at[:, :count].set(given),
        log_probabilities=batch.log_probabilities.at[:, :count].set(taken),
        values=batch.values.at[:, :count].set(values),
        advantages=batch.advantages.at[:, :count].set(first.targets - values),
    )
