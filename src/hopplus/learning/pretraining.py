"""Models of co-players from offline episodes, before any agent plays: goals, and what is done given a goal.

The same losses as on line. There is no seat that learns here, so there is no critic to select a goal by its value: the
posterior learns to foresee the state that a player comes to in `lookahead` steps, or last before it leaves.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jaxtyping import Array, Bool, Float32, Key, PyTree

from hopplus.games.game import NO_ACTION, Game
from hopplus.games.presets import make
from hopplus.games.rollout import paid_deeds
from hopplus.learning import minds, modelling
from hopplus.learning.minds import Mind, MindConfig
from hopplus.learning.modelling import Lesson
from hopplus.learning.modelling_config import ModellingConfig
from hopplus.learning.offline import Episodes, Recipe, views
from hopplus.learning.study import Prepared, Study, last_step_together, next_deeds
from hopplus.models import goals, others
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import Look, OthersConfig
from hopplus.planning import beliefs

EPISODES_AT_ONCE = 128
SAMPLES_PER_STEP = 256


@dataclass(frozen=True)
class PretrainConfig:
    """Data, models and how long."""

    data: Recipe = field(default_factory=Recipe)
    """The episodes to learn from."""
    mind: Annotated[MindConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: MindConfig(GoalsConfig(kind="continuous"), OthersConfig(models="shared"))
    )
    """The models. A seat of a run gets a copy of them for each co-player."""
    modelling: ModellingConfig = field(default_factory=ModellingConfig)
    """How they learn; its tables and minibatches are those of a run."""
    labels: Literal["hindsight", "types"] = "hindsight"
    """What a goal of kind `hindsight` means: what a player catches in the end, or the script that it is."""
    epochs: int = 10
    """Passes over the data."""
    held_out: float = 0.1
    """The share of episodes that the models are judged on and never see."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        self.data.check()
        self.mind.check()
        self.modelling.check()
        if self.mind.others.models != "shared":
            raise ValueError("--others.models must be shared for pretraining: a run makes a copy for each co-player")
        if self.epochs < 1:
            raise ValueError(f"--epochs is {self.epochs}; give 1 or more")
        if not 0 < self.held_out < 1:
            raise ValueError(f"--held-out is {self.held_out}; give a share between 0 and 1")
        names = goals.goal_names(make(self.data.game).spec)
        if self.labels == "types" and len(self.data.types) != len(names) - 1:
            raise ValueError(f"--labels types needs {len(names) - 1} types for the goals {', '.join(names[:-1])}")


class PretrainState(eqx.Module):
    """Everything between two epochs."""

    mind: Mind
    optimizer: PyTree[Array]
    key: Key[Array, ""]
    num_epochs: Array


def init(config: PretrainConfig, *, key: Key[Array, ""]) -> PretrainState:
    mind_key, run_key = jax.random.split(key)
    mind = minds.init(config.mind, make(config.data.game).spec, key=mind_key)
    return PretrainState(mind, modelling.optimizer_state(mind), run_key, jnp.int32(0))


class Material(eqx.Module):
    """Episodes as the models read them: rows are episodes, and every player is a co-player."""

    seen: Look
    study: Study


def material(config: PretrainConfig, game: Game, episodes: Episodes) -> Material:
    """Prepare a data set once."""
    return _in_chunks(_compiled_prepare(config, game), episodes, len(episodes.boards))


@lru_cache(maxsize=8)
def _compiled_prepare(config: PretrainConfig, game: Game) -> Any:
    return jax.jit(partial(_prepare, config, game))


@lru_cache(maxsize=8)
def _compiled_predict(config: PretrainConfig) -> Any:
    return jax.jit(jax.vmap(partial(_predict_row, config), in_axes=(None, 0)))


def _in_chunks(fn: Callable[[Any], Any], rows: Any, count: int) -> Any:
    """fn of so many rows, always as many at once, so that it is compiled for one shape; the last are filled up."""
    size = EPISODES_AT_ONCE
    fill = lambda leaf: np.zeros((-count % size, *leaf.shape[1:]), leaf.dtype)  # noqa: E731
    padded = jax.tree.map(lambda leaf: np.concatenate([leaf, fill(leaf)]), rows)
    chunk = lambda first: jax.tree.map(lambda leaf: leaf[first : first + size], padded)  # noqa: E731
    parts = [jax.device_get(fn(chunk(first))) for first in range(0, count, size)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)


def _prepare(config: PretrainConfig, game: Game, episodes: Episodes) -> Material:
    observation, legal = views(game, episodes)
    look = jax.vmap(jax.vmap(jax.vmap(partial(others.look, game.spec))))
    num_goals = goals.goal_size(config.mind.goals, game.spec)
    return Material(
        look(observation, legal),
        Study(
            observation=None,
            goals=jnp.zeros((*episodes.actions.shape, num_goals)),
            actions=episodes.actions,
            best=jnp.zeros(episodes.actions.shape),
            valid=episodes.in_game,
            labels=_labels(config, game, episodes, legal),
            reset_before=jnp.zeros(episodes.actions.shape[:2], bool).at[:, 0].set(True),
            before=jnp.zeros((len(episodes.boards), game.spec.num_agents, config.mind.goals.evidence)),
        ),
    )


def _labels(config: PretrainConfig, game: Game, episodes: Episodes, legal: Bool[Array, "..."]) -> Array:
    if config.labels == "types":
        return jnp.broadcast_to(episodes.kinds[:, None], episodes.actions.shape)
    deeds = jax.vmap(jax.vmap(partial(paid_deeds, game.spec)))(legal, episodes.actions, episodes.rewards)
    over = jnp.zeros(episodes.actions.shape[:2], bool).at[:, -1].set(True)
    return next_deeds(deeds & episodes.in_game[:, :, None], over)


class Trainer:
    """Runs epochs; compiled once."""

    def __init__(self, config: PretrainConfig, data: Material):
        self.config = config
        self.num_rows = len(data.study.valid)
        self.chunk = min(EPISODES_AT_ONCE, self.num_rows)
        samples = int(np.sum(data.study.valid)) * self.chunk / self.num_rows
        players = data.study.valid.shape[-1]
        per_player = max(SAMPLES_PER_STEP // players, 1)
        self.settings = replace(
            config.modelling,
            minibatch_size=per_player,
            minibatches=max(min(round(samples / SAMPLES_PER_STEP), self.chunk), 1),
            minibatch_tables=self.chunk,
            goal_minibatch_size=per_player,
        )
        self.data = data
        self.num_deeds = len(make(config.data.game).spec.deeds)
        self._step = jax.jit(self._one_chunk)

    def _one_chunk(self, state: PretrainState, chunk: Material, key: Key[Array, ""]):
        prepared, study = None, chunk.study
        if self.config.mind.goals.is_latent:
            prepared = prepare_offline(self.config.modelling, state.mind, chunk)
            study = replace(study, goals=inferred_goals(self.config.mind.goals, state.mind, chunk))
        examples_key, update_key = jax.random.split(key)
        look = partial(modelling.at_samples, chunk.seen)
        pick = partial(modelling.pick_examples, self.settings, self.config.mind, self.num_deeds)
        examples = pick(study, look, key=examples_key)
        lesson = Lesson((examples,), study.valid.size, study if prepared else None, prepared)
        learner = (state.mind, state.optimizer, lesson, update_key)
        mind, optimizer, metrics = modelling.update(self.settings, self.config.mind, True, jnp.float32(1), learner)
        return replace(state, mind=mind, optimizer=optimizer), metrics

    def epoch(self, state: PretrainState) -> tuple[PretrainState, dict[str, float]]:
        """One pass over all episodes in a new order."""
        key = jax.random.fold_in(state.key, int(state.num_epochs))
        order = np.asarray(jax.random.permutation(jax.random.fold_in(key, 0), self.num_rows))
        found = []
        for index in range(self.num_rows // self.chunk):
            rows = order[index * self.chunk : (index + 1) * self.chunk]
            chunk = jax.tree.map(lambda leaf, rows=rows: leaf[rows], self.data)
            state, metrics = self._step(state, chunk, jax.random.fold_in(key, index + 1))
            found.append(metrics)
        means = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
        state = replace(state, num_epochs=state.num_epochs + 1)
        return state, {name: value for name, value in means.items() if not name.startswith(("count", "buffer"))}


def prepare_offline(config: ModellingConfig, mind: Mind, data: Material) -> Prepared:
    """The state to foresee is the one `lookahead` steps on, or the player's last."""
    prior, num_actions = mind.prior, data.seen.legal.shape[-1]
    assert prior is not None
    ahead = last_step_together(data.study.valid, data.study.reset_before)
    now = jnp.arange(ahead.shape[1])[None, :, None]
    encode = lambda view: goals.encode(prior, view, num_actions)  # noqa: E731
    encoded = jax.vmap(jax.vmap(jax.vmap(encode)))(data.seen.observation)
    return Prepared(data.seen, ahead, jnp.minimum(now + config.lookahead, ahead), encoded)


def inferred_goals(config: GoalsConfig, mind: Mind, data: Material) -> Float32[Array, "rows time agents goal"]:
    """What the posterior makes of every player at every step."""
    outputs = modelling.posterior_outputs(mind, data.seen, data.study)
    return jax.vmap(jax.vmap(jax.vmap(partial(goals.mean_goal, config))))(outputs)


class Predicted(eqx.Module):
    """What the models say of every step of a data set, [episodes, steps, agents, ...]."""

    by_goal: Float32[Array, "*episodes steps agents goals actions"]
    """Given each hindsight goal; no goals where there are none."""
    beliefs: Float32[Array, "*episodes steps agents goals"]
    """Of the filter, before the step's own action."""
    expected: Float32[Array, "*episodes steps agents actions"]
    """As far as the goal can be inferred."""


def predict(config: PretrainConfig, mind: Mind, data: Material) -> Predicted:
    """Read a data set step by step, as a co-player at the table would."""
    return _in_chunks(partial(_compiled_predict(config), mind), data, len(data.study.valid))


def _predict_row(config: PretrainConfig, mind: Mind, row: Material) -> Predicted:
    num_goals = row.study.goals.shape[-1]
    if config.mind.goals.kind == "hindsight":
        by_goal = jax.vmap(lambda seen: minds.predict_by_goal(mind, seen, num_goals))(row.seen)
        believed = filter_beliefs(by_goal, row.seen.legal, row.study.actions, row.study.valid)
        return Predicted(by_goal, believed, jnp.einsum("sjg,sjga->sja", believed, by_goal))
    goal = jnp.zeros((*row.study.actions.shape, num_goals))
    if config.mind.goals.is_latent:
        whole = jax.tree.map(lambda leaf: leaf[None], (row.seen, row.study))
        goal = inferred_goals(config.mind.goals, mind, Material(*whole))[0]
    expected = jax.vmap(partial(minds.predict, mind))(row.seen, goal)
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
