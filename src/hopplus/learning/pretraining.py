"""Pretraining of opponent models on offline episodes: goals, and actions given a goal.

The losses are those of training. No seat learns a policy here, so there is no critic to select a goal by its value: the
posterior learns to predict the state that a player reaches in `lookahead` steps, or the last one before it leaves.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.agents import opponents as opponent_models
from hopplus.agents.goals import goal_model
from hopplus.agents.opponents import OpponentModels, predict_by_goal
from hopplus.games.game import NO_ACTION, Game, overrides, paid_events
from hopplus.games.presets import make
from hopplus.learning import opponents
from hopplus.learning.config import ModellingConfig
from hopplus.learning.goal_losses import posterior_outputs
from hopplus.learning.offline import Episodes, scripts_of, views
from hopplus.learning.opponent_data import GoalTargets, OpponentData, last_step_together, next_events
from hopplus.learning.opponents import OpponentBatch
from hopplus.learning.optim import Trained, init_trained
from hopplus.learning.pretrain_config import PretrainConfig
from hopplus.models import goals, others
from hopplus.models.config import GoalsConfig
from hopplus.models.others import OpponentInput
from hopplus.planning import beliefs

EPISODES_AT_ONCE = 128
SAMPLES_PER_STEP = 256


class PretrainState(eqx.Module):
    """Everything between two epochs."""

    opponents: Trained
    key: Key[Array, ""]
    num_epochs: Array


def check_data(config: PretrainConfig) -> None:
    """Raise if the data does not fit the game, or the labels do not fit the data."""
    scripts_of(config.data)
    names = goals.goal_names(make(config.data.game).spec)
    if config.labels == "types" and len(config.data.types) != len(names) - 1:
        raise ValueError(f"--labels types needs {len(names) - 1} types for the goals {', '.join(names[:-1])}")


def init(config: PretrainConfig, *, key: Key[Array, ""]) -> PretrainState:
    """The state before the first epoch."""
    models_key, run_key = jax.random.split(key)
    game = make(config.data.game)
    size = goal_model(config.opponents, game).size
    models = opponent_models.init(config.opponents, game.spec, size, key=models_key)
    return PretrainState(init_trained(opponents.optimizer(), models), run_key, jnp.int32(0))


class Material(eqx.Module):
    """Episodes as the models read them: rows are episodes, and every player is a co-player."""

    inputs: OpponentInput
    data: OpponentData


def material(config: PretrainConfig, game: Game, episodes: Episodes) -> Material:
    """A data set as the models read it."""
    return _in_chunks(_compiled_prepare(config, game), episodes, len(episodes.boards))


@lru_cache(maxsize=8)
def _compiled_prepare(config: PretrainConfig, game: Game) -> Any:
    return jax.jit(partial(_prepare, config, game))


@lru_cache(maxsize=8)
def _compiled_predict(config: PretrainConfig) -> Any:
    return jax.jit(jax.vmap(partial(_predict_row, config), in_axes=(None, 0)))


def _in_chunks(fn: Callable[[Any], Any], rows: Any, count: int) -> Any:
    """fn of all rows in chunks of one size, so that it is compiled once; the last chunk is padded."""
    size = EPISODES_AT_ONCE

    def pad(leaf: Any) -> Any:
        return np.concatenate([leaf, np.zeros((-count % size, *leaf.shape[1:]), leaf.dtype)])

    def chunk(padded: Any, first: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[first : first + size], padded)

    padded = jax.tree.map(pad, rows)
    parts = [jax.device_get(fn(chunk(padded, first))) for first in range(0, count, size)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)


def _prepare(config: PretrainConfig, game: Game, episodes: Episodes) -> Material:
    observation, legal = views(game, episodes)
    inputs = jax.vmap(jax.vmap(jax.vmap(partial(others.opponent_input, game.spec))))
    num_goals = goal_model(config.opponents, game).size
    return Material(
        inputs(observation, legal),
        OpponentData(
            observation=None,
            goals=jnp.zeros((*episodes.actions.shape, num_goals)),
            actions=episodes.actions,
            best=jnp.zeros(episodes.actions.shape),
            valid=episodes.in_game,
            labels=_labels(config, game, episodes, legal),
            reset_before=jnp.zeros(episodes.actions.shape[:2], bool).at[:, 0].set(True),
            before=jnp.zeros((len(episodes.boards), game.spec.num_agents, config.opponents.goals.evidence)),
        ),
    )


def _labels(config: PretrainConfig, game: Game, episodes: Episodes, legal: Bool[Array, "..."]) -> Array:
    if config.labels == "types":
        return jnp.broadcast_to(episodes.kinds[:, None], episodes.actions.shape)
    events = episodes.events
    if events is None:
        if overrides(game, "events"):
            raise ValueError(
                f"these episodes do not tell which events of {game.spec.name} happened, and rewards do not either; add "
                "the array events, [episodes, steps, events, agents], to the file"
            )
        events = jax.vmap(jax.vmap(partial(paid_events, game.spec)))(legal, episodes.actions, episodes.rewards)
    over = jnp.zeros(episodes.actions.shape[:2], bool).at[:, -1].set(True)
    return next_events(jnp.asarray(events) & episodes.in_game[:, :, None], over)


class Trainer:
    """Runs epochs; compiled once."""

    def __init__(self, config: PretrainConfig, data: Material):
        self.config = config
        self.num_rows = len(data.data.valid)
        self.chunk = min(EPISODES_AT_ONCE, self.num_rows)
        samples = int(np.sum(data.data.valid)) * self.chunk / self.num_rows
        players = data.data.valid.shape[-1]
        per_player = max(SAMPLES_PER_STEP // players, 1)
        modelling = replace(
            config.modelling,
            minibatch_size=per_player,
            minibatches=max(min(round(samples / SAMPLES_PER_STEP), self.chunk), 1),
            minibatch_envs=self.chunk,
            goal_minibatch_size=per_player,
        )
        self.learner = replace(config.learner, modelling=modelling)
        self.data = data
        self.game = make(config.data.game)
        self._step = jax.jit(self._one_chunk)

    def _one_chunk(self, state: PretrainState, chunk: Material, key: Key[Array, ""]):
        targets, data, models = None, chunk.data, state.opponents.params
        if self.config.opponents.goals.is_latent:
            targets = offline_targets(self.config.modelling, models, chunk)
            data = replace(data, goals=inferred_goals(self.config.opponents.goals, models, chunk))
        examples_key, update_key = jax.random.split(key)
        examples = opponents.pick_examples(self.learner, self.game, data, chunk.inputs, key=examples_key)
        one_seat = jax.tree.map(lambda leaf: leaf[None], ((examples,), data if targets else None, targets))
        batch = OpponentBatch(one_seat[0], data.valid.size, *one_seat[1:])
        update = partial(opponents.update, self.learner, state.opponents, batch, train_prior=True)
        temperature = temperature_in(self.config, state.num_epochs)
        trained, metrics = update(remaining=jnp.float32(1), temperature=temperature, keys=update_key[None])
        return replace(state, opponents=trained), metrics

    def epoch(self, state: PretrainState) -> tuple[PretrainState, dict[str, float]]:
        """One pass over all episodes in a new order."""
        key = jax.random.fold_in(state.key, int(state.num_epochs))
        order = np.asarray(jax.random.permutation(jax.random.fold_in(key, 0), self.num_rows))
        rows_of_metrics = []
        for index in range(self.num_rows // self.chunk):
            rows = order[index * self.chunk : (index + 1) * self.chunk]
            chunk = jax.tree.map(lambda leaf, rows=rows: leaf[rows], self.data)
            state, metrics = self._step(state, chunk, jax.random.fold_in(key, index + 1))
            rows_of_metrics.append(metrics)
        names = rows_of_metrics[0]
        means = {name: float(np.mean([each[name] for each in rows_of_metrics])) for name in names}
        state = replace(state, num_epochs=state.num_epochs + 1)
        return state, {name: value for name, value in means.items() if not name.startswith(("count", "buffer"))}


def temperature_in(config: PretrainConfig, epoch: Int32[Array, ""]) -> Float32[Array, ""]:
    """The temperature of symbols in an epoch, counted from 0: the final one is that of the last epoch."""
    remaining = 1 - epoch / jnp.maximum(config.epochs - 1, 1)
    return opponents.temperature_left(config.modelling, remaining.astype(jnp.float32))


def offline_targets(config: ModellingConfig, models: OpponentModels, data: Material) -> GoalTargets:
    """The state to predict is the one `lookahead` steps on, or the player's last."""
    prior = models.prior
    assert prior is not None
    ahead = last_step_together(data.data.valid, data.data.reset_before)
    now = jnp.arange(ahead.shape[1])[None, :, None]
    encode = jax.vmap(jax.vmap(jax.vmap(partial(goals.encode, prior))))
    encoded = encode(data.inputs.observation)
    return GoalTargets(data.inputs, ahead, jnp.minimum(now + config.lookahead, ahead), encoded)


def inferred_goals(
    config: GoalsConfig, models: OpponentModels, data: Material
) -> Float32[Array, "rows time agents goal"]:
    """The posterior's mean goal of every player at every step."""
    outputs = posterior_outputs(models, data.inputs, data.data)
    return jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, config))))(outputs)


class Predicted(eqx.Module):
    """The models' predictions for every step of a data set, [episodes, steps, agents, ...]."""

    by_goal: Float32[Array, "*episodes steps agents goals actions"]
    """Given each hindsight goal; no goals where there are none."""
    beliefs: Float32[Array, "*episodes steps agents goals"]
    """Of the filter, before the step's own action."""
    expected: Float32[Array, "*episodes steps agents actions"]
    """With inferred goals."""


def predict(config: PretrainConfig, models: OpponentModels, data: Material) -> Predicted:
    """The predictions for a data set, read step by step as a co-player would."""
    return _in_chunks(partial(_compiled_predict(config), models), data, len(data.data.valid))


def _predict_row(config: PretrainConfig, models: OpponentModels, row: Material) -> Predicted:
    num_goals = row.data.goals.shape[-1]
    if config.opponents.goals.has_labels:
        by_goal = jax.vmap(lambda inputs: predict_by_goal(models, inputs, num_goals))(row.inputs)
        believed = filter_beliefs(by_goal, row.inputs.legal, row.data.actions, row.data.valid)
        return Predicted(by_goal, believed, jnp.einsum("sjg,sjga->sja", believed, by_goal))
    goal = jnp.zeros((*row.data.actions.shape, num_goals))
    if config.opponents.goals.is_latent:
        whole = jax.tree.map(lambda leaf: leaf[None], (row.inputs, row.data))
        goal = inferred_goals(config.opponents.goals, models, Material(*whole))[0]
    expected = jax.vmap(partial(opponent_models.predict, models))(row.inputs, goal)
    nothing = jnp.zeros((*expected.shape[:2], 0))
    return Predicted(jnp.zeros((*nothing.shape, expected.shape[-1])), nothing, expected)


def filter_beliefs(
    by_goal: Float32[Array, "steps agents goals actions"],
    legal: Bool[Array, "steps agents actions"],
    actions: Array,
    valid: Bool[Array, "steps agents"],
    smoothing: float = beliefs.SMOOTHING,
) -> Float32[Array, "steps agents goals"]:
    """The belief about each player before each of its actions, from a uniform start."""
    num_goals = by_goal.shape[2]
    step = jax.vmap(partial(beliefs.update, smoothing=smoothing))

    def one_step(belief, step_data):
        predicted, legal, action = step_data
        return step(belief, predicted, legal, action), belief

    acted = jnp.where(valid, actions, NO_ACTION)
    first = jnp.full((by_goal.shape[1], num_goals), 1 / num_goals)
    return jax.lax.scan(one_step, first, (by_goal, legal, acted))[1]
