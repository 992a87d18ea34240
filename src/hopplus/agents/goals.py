"""What a seat believes about its co-players' goals while it plays: one protocol, three implementations.

    NoGoals          nothing is inferred
    HindsightGoals   a Bayes filter over the game's events, with counts across episodes (`planning.beliefs`)
    LatentGoals      a learned posterior that sums evidence over an episode (`models.goals`)

A co-player's action is visible one step later; the state keeps what is needed to learn from it then. Everything is
written for one seat and mapped over seats.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.opponents import OpponentModels, modelled_players, opponent_inputs, predict, predict_by_goal
from hopplus.core.extensions import make_own
from hopplus.core.numerics import LEAST
from hopplus.games.fields import Observation, features
from hopplus.games.game import Game, GameSpec, views_of_others
from hopplus.models import goals as latent
from hopplus.models.goals import goal_names, goal_size
from hopplus.models.inputs import read_for_others
from hopplus.models.others import OpponentInput
from hopplus.planning import beliefs


class BeliefState(eqx.Module):
    """What a seat believes about its co-players, in seat order after it."""

    goals: Float32[Array, "*seats others goal"]
    """What the policy and the critic read."""
    memory: Any
    """What the implementation keeps: a GoalFilter, a LatentEvidence, or None."""
    hidden: Float32[Array, "*seats hidden"] | None = None
    """The recurrent state of the seat's own policy; the player sets it, a goal model may leave it out."""


class GoalFilter(eqx.Module):
    """What the Bayes filter keeps for each co-player."""

    belief: Float32[Array, "*seats others goals"]
    counts: Float32[Array, "*seats others goals"]
    """Across episodes."""
    revealed: Float32[Array, "*seats others goals"]
    """The goal that it was seen to reach in this episode, one-hot; zeros as long as there is none."""
    predicted: Float32[Array, "*seats others goals actions"]
    """Its action probabilities for each goal in the last state."""
    legal: Bool[Array, "*seats others actions"]
    """Its legal actions in the last state."""


class LatentEvidence(eqx.Module):
    """What the learned posterior keeps for each co-player."""

    total: Float32[Array, "*seats others evidence"]
    embedded: Float32[Array, "*seats others hidden"]
    """Of the last view."""


@runtime_checkable
class GoalModel(Protocol):
    """How a seat infers goals, and what it predicts from them."""

    @property
    def size(self) -> int:
        """How many numbers describe a goal."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """What each entry of a belief stands for; empty where goals have no names."""
        ...

    def start(self) -> BeliefState:
        """The belief about co-players that were never seen."""
        ...

    def next_episode(self, state: BeliefState) -> BeliefState:
        """The belief at the start of another episode with the same co-players."""
        ...

    def reset_counts(self, state: BeliefState) -> BeliefState:
        """The belief after the co-players' policies have changed: only the current episode still counts."""
        ...

    def update(self, models: OpponentModels, observation: Observation, state: BeliefState) -> BeliefState:
        """The belief after the co-players' last actions."""
        ...

    @property
    def is_drawn(self) -> bool:
        """Whether an imagined co-player has a goal that is drawn from the belief; otherwise it acts by the belief."""
        ...

    def draw(
        self, models: OpponentModels, state: BeliefState, count: int, *, key: Key[Array, ""]
    ) -> Float32[Array, "draws others goal"]:
        """Goals drawn from the belief."""
        ...

    def draw_unseen(
        self, shape: tuple[int, ...], seen: Float32[Array, "draws goal"] | None = None, *, key: Key[Array, ""]
    ) -> tuple[Float32[Array, "*shape goal"], int]:
        """Goals that do not depend on what this co-player did, and how many kinds there are.

        `seen` are goals drawn from the beliefs about all co-players of real play, for models with `is_drawn`.
        """
        ...

    def expected(
        self, models: OpponentModels, inputs: OpponentInput, goal: Float32[Array, "others goal"]
    ) -> Float32[Array, "others actions"]:
        """The co-players' action probabilities under a belief, or under a goal vector."""
        ...

    def given(
        self,
        models: OpponentModels,
        inputs: OpponentInput,
        legal: Bool[Array, "others actions"],
        goal: Float32[Array, "others goal"],
    ) -> Float32[Array, "others actions"]:
        """The action probabilities of co-players that have these drawn goals."""
        ...

    def now(
        self, models: OpponentModels, views: Observation, state: BeliefState, goal: Array
    ) -> Float32[Array, "others actions"]:
        """The co-players' action probabilities in the state of the last update, under a belief or a goal vector."""
        ...

    def pursue(
        self, predicted: Float32[Array, "others actions"], goal: Float32[Array, "others goal"]
    ) -> Float32[Array, "others actions"]:
        """The probabilities of co-players that pursue one goal and no other."""
        ...

    def evidence(
        self, models: OpponentModels, state: BeliefState, actions: Int32[Array, " others"]
    ) -> Float32[Array, "others evidence"]:
        """The posterior's evidence after these actions; of width 0 where there is no posterior."""
        ...


@dataclass(frozen=True)
class Goals:
    """What goal models share: settings, and the game that is played. Subclass it for a goal model of your own."""

    config: OpponentsConfig
    game: Game

    @property
    def size(self) -> int:
        return goal_size(self.config.goals, self.game.spec)

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def _zeros(self, *shape: int) -> Array:
        return jnp.zeros((modelled_players(self.game.spec).shape[1], *shape), jnp.float32)

    def reset_counts(self, state: BeliefState) -> BeliefState:
        return state

    @property
    def is_drawn(self) -> bool:
        return False

    def draw(
        self, models: OpponentModels, state: BeliefState, count: int, *, key: Key[Array, ""]
    ) -> Float32[Array, "draws others goal"]:
        return jnp.broadcast_to(state.goals, (count, *state.goals.shape))

    def expected(
        self, models: OpponentModels, inputs: OpponentInput, goal: Float32[Array, "others goal"]
    ) -> Float32[Array, "others actions"]:
        return predict(models, inputs, goal)

    def given(
        self,
        models: OpponentModels,
        inputs: OpponentInput,
        legal: Bool[Array, "others actions"],
        goal: Float32[Array, "others goal"],
    ) -> Float32[Array, "others actions"]:
        return predict(models, inputs, goal)

    def now(
        self, models: OpponentModels, views: Observation, state: BeliefState, goal: Array
    ) -> Float32[Array, "others actions"]:
        return predict(models, opponent_inputs(self.game, views), goal)

    def pursue(
        self, predicted: Float32[Array, "others actions"], goal: Float32[Array, "others goal"]
    ) -> Float32[Array, "others actions"]:
        return predicted

    def evidence(
        self, models: OpponentModels, state: BeliefState, actions: Int32[Array, " others"]
    ) -> Float32[Array, "others evidence"]:
        return self._zeros(0)


class NoGoals(Goals):
    """Nothing is inferred."""

    def start(self) -> BeliefState:
        return BeliefState(self._zeros(0), None)

    def next_episode(self, state: BeliefState) -> BeliefState:
        return self.start()

    def update(self, models: OpponentModels, observation: Observation, state: BeliefState) -> BeliefState:
        return state

    def draw_unseen(
        self, shape: tuple[int, ...], seen: Float32[Array, "draws goal"] | None = None, *, key: Key[Array, ""]
    ) -> tuple[Float32[Array, "*shape goal"], int]:
        return jnp.zeros((*shape, 0), jnp.float32), 1


class HindsightGoals(Goals):
    """A Bayes filter over the game's events and `other`."""

    @property
    def names(self) -> tuple[str, ...]:
        return goal_names(self.game.spec)

    def start(self) -> BeliefState:
        num_others, size = self.game.spec.num_agents - 1, self.size
        counts = jnp.broadcast_to(beliefs.first_counts(size), (num_others, size))
        belief = jax.vmap(beliefs.starting_belief)(counts)
        legal = jnp.ones((num_others, self.game.spec.num_actions), bool)
        predicted = self._zeros(size, self.game.spec.num_actions)
        return BeliefState(belief, GoalFilter(belief, counts, self._zeros(size), predicted, legal))

    def next_episode(self, state: BeliefState) -> BeliefState:
        """Revealed goals are counted; the filter restarts from the counts."""
        kept, fresh = state.memory, self.start().memory
        seen = jnp.any(kept.revealed > 0, axis=-1, keepdims=True)
        counts = jax.vmap(beliefs.count)(kept.counts, jnp.where(seen, kept.revealed, kept.belief))
        belief = jax.vmap(beliefs.starting_belief)(counts)
        return BeliefState(belief, replace(fresh, belief=belief, counts=counts))

    def reset_counts(self, state: BeliefState) -> BeliefState:
        """Counts of earlier policies would also keep a group in its convention: hare hunters would be left alone."""
        kept = state.memory
        counts = jnp.broadcast_to(beliefs.first_counts(kept.counts.shape[-1]), kept.counts.shape)
        return replace(state, memory=replace(kept, counts=counts))

    def update(self, models: OpponentModels, observation: Observation, state: BeliefState) -> BeliefState:
        kept, acted = state.memory, observation["last_actions"][1:]
        views = views_of_others(self.game.spec, observation)
        belief = jax.vmap(beliefs.update)(kept.belief, kept.predicted, kept.legal, acted)
        revealed = jnp.maximum(kept.revealed, self._revealed(observation))
        inputs = opponent_inputs(self.game, views)
        predicted = predict_by_goal(models, inputs, belief.shape[-1])
        return BeliefState(belief, GoalFilter(belief, kept.counts, revealed, predicted, inputs.legal))

    def _revealed(self, observation: Observation) -> Float32[Array, "others goals"]:
        """The goals that co-players were seen to reach in the last step; `other` is never seen."""
        seen = self.game.events_in_view(observation)[1:]
        return jnp.pad(seen, ((0, 0), (0, 1))).astype(jnp.float32)

    def draw(
        self, models: OpponentModels, state: BeliefState, count: int, *, key: Key[Array, ""]
    ) -> Float32[Array, "draws others goal"]:
        goals = state.goals
        chosen = jax.random.categorical(key, jnp.log(goals), shape=(count, goals.shape[0]))
        return jax.nn.one_hot(chosen, goals.shape[-1])

    def draw_unseen(
        self, shape: tuple[int, ...], seen: Float32[Array, "draws goal"] | None = None, *, key: Key[Array, ""]
    ) -> tuple[Float32[Array, "*shape goal"], int]:
        return _symbols(self.size, shape, key=key)

    def expected(
        self, models: OpponentModels, inputs: OpponentInput, goal: Float32[Array, "others goal"]
    ) -> Float32[Array, "others actions"]:
        return jax.vmap(beliefs.predictive)(goal, predict_by_goal(models, inputs, goal.shape[-1]))

    def given(
        self,
        models: OpponentModels,
        inputs: OpponentInput,
        legal: Bool[Array, "others actions"],
        goal: Float32[Array, "others goal"],
    ) -> Float32[Array, "others actions"]:
        predicted = predict(models, inputs, goal)
        return jnp.where(goal[:, -1:] > 0, jax.vmap(beliefs.uniform)(legal), predicted)

    def now(
        self, models: OpponentModels, views: Observation, state: BeliefState, goal: Array
    ) -> Float32[Array, "others actions"]:
        return jax.vmap(beliefs.predictive)(goal, state.memory.predicted)

    def pursue(
        self, predicted: Float32[Array, "others actions"], goal: Float32[Array, "others goal"]
    ) -> Float32[Array, "others actions"]:
        return only_wanted_events(self.game.spec, predicted, goal)


class LatentGoals(Goals):
    """A learned posterior over goal vectors or symbols."""

    def start(self) -> BeliefState:
        settings = self.config.goals
        return BeliefState(
            self._zeros(self.size), LatentEvidence(self._zeros(settings.evidence), self._zeros(settings.hidden))
        )

    def next_episode(self, state: BeliefState) -> BeliefState:
        return self.start()

    def update(self, models: OpponentModels, observation: Observation, state: BeliefState) -> BeliefState:
        posterior = models.posterior
        assert posterior is not None
        total = self.evidence(models, state, observation["last_actions"][1:])
        seen = features(posterior.fields, observation)
        read = read_for_others(posterior.fields, self.game.spec.num_agents, posterior.view, seen)
        embedded = jax.nn.relu(read)
        outputs = jax.vmap(lambda one, evidence: latent.infer(posterior, one, evidence))(embedded, total)
        goals = jax.vmap(lambda one: latent.mean_goal(self.config.goals, one))(outputs)
        return BeliefState(goals, LatentEvidence(total, embedded))

    @property
    def is_drawn(self) -> bool:
        return True

    def draw(
        self, models: OpponentModels, state: BeliefState, count: int, *, key: Key[Array, ""]
    ) -> Float32[Array, "draws others goal"]:
        posterior, memory = models.posterior, state.memory
        assert posterior is not None
        numbers = jax.random.key_data(jax.random.split(key, (count, len(memory.total))))

        def one(embedded: Array, total: Array, numbers: Array) -> Array:
            drawing = jax.random.wrap_key_data(numbers)
            return latent.draw_for_play(self.config.goals, posterior, embedded, total, key=drawing)

        return jax.vmap(jax.vmap(one), in_axes=(None, None, 0))(memory.embedded, memory.total, numbers)

    def draw_unseen(
        self, shape: tuple[int, ...], seen: Float32[Array, "draws goal"] | None = None, *, key: Key[Array, ""]
    ) -> tuple[Float32[Array, "*shape goal"], int]:
        """Vectors of other co-players (the aggregate posterior): far from all of them nothing was ever learned."""
        if self.config.goals.kind == "discrete":
            return _symbols(self.size, shape, key=key)
        if seen is None:
            return jax.random.normal(key, (*shape, self.size)), shape[-1]
        return seen[jax.random.randint(key, shape, 0, len(seen))], shape[-1]

    def evidence(
        self, models: OpponentModels, state: BeliefState, actions: Int32[Array, " others"]
    ) -> Float32[Array, "others evidence"]:
        posterior = models.posterior
        assert posterior is not None
        num_actions = self.game.spec.num_actions
        added = jax.vmap(lambda one, action: latent.evidence_of(posterior, one, action, num_actions))
        return state.memory.total + added(state.memory.embedded, actions)


def policy_inputs(
    config: OpponentsConfig,
    game: Game,
    models: OpponentModels,
    observation: Observation,
    goals: Float32[Array, "others goal"],
) -> Float32[Array, "others inputs"]:
    """What a policy reads about its co-players: their goals and, if the settings say so, their predicted actions."""
    if not config.others.as_input:
        return goals
    inputs = opponent_inputs(game, views_of_others(game.spec, observation))
    predicted = jnp.where(inputs.legal, goal_model(config, game).expected(models, inputs, goals), 0.0)
    return jnp.concatenate([goals, predicted], axis=-1)


def num_policy_inputs(config: OpponentsConfig, game: Game) -> int:
    """How many numbers a policy reads about one co-player."""
    return goal_model(config, game).size + (game.spec.num_actions if config.others.as_input else 0)


def goal_model(config: OpponentsConfig, game: Game) -> GoalModel:
    """The implementation that the settings name."""
    kinds = {"none": NoGoals, "hindsight": HindsightGoals, "continuous": LatentGoals, "discrete": LatentGoals}
    if config.goals.kind in kinds:
        return kinds[config.goals.kind](config, game)
    return make_own(config.goals.kind, "goal model", GoalModel, config, game)


def only_wanted_events(
    spec: GameSpec, predicted: Float32[Array, "others actions"], goals: Float32[Array, "others goals"]
) -> Float32[Array, "others actions"]:
    """The probabilities without the actions of events other than the goal.

    A co-player that wants hares hunts no stag on the way, though many players that caught a hare in the end did. The
    goal `other` forbids nothing.
    """
    num_events = goals.shape[-1] - 1
    of_event = np.asarray(spec.event_actions)[:, None] == np.arange(spec.num_actions)
    unwanted = (1 - goals[:, :num_events]) * jnp.sum(goals[:, :num_events], axis=-1, keepdims=True)
    left = predicted * (1 - jnp.minimum(unwanted @ of_event.astype(np.float32), 1.0))
    return left / jnp.maximum(jnp.sum(left, axis=-1, keepdims=True), LEAST)


def _symbols(size: int, shape: tuple[int, ...], *, key: Key[Array, ""]) -> tuple[Float32[Array, "*shape goal"], int]:
    return jax.nn.one_hot(jax.random.randint(key, shape, 0, size), size), size
