"""What one seat makes of its co-players while it plays: an impression of each, carried from step to step.

Everything is told from the seat's own view, turned to the co-player's, so that it works at any table. A co-player's
action is seen one step later; what is needed to learn from it then is remembered. All for one seat; mapped over seats.
"""

from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.coplayers import Memory, Policy
from hopplus.games.game import Game, GameSpec, Observation, views_of_others
from hopplus.models import actor_critic, goals, others
from hopplus.models.actor_critic import ActorCritic
from hopplus.models.goals import GoalsConfig, Posterior, Prior
from hopplus.models.inputs import features, read_for_others
from hopplus.models.others import Look, Others, OthersConfig
from hopplus.planning import beliefs


@dataclass(frozen=True)
class MindConfig:
    """What a seat knows of the others."""

    goals: GoalsConfig = field(default_factory=GoalsConfig)
    """What co-players may be after."""
    others: OthersConfig = field(default_factory=OthersConfig)
    """How they are predicted."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        self.goals.check()
        self.others.check()
        if self.goals.kind != "none" and self.others.models == "none":
            raise ValueError("--goals.kind needs a model of the others; give --others.models each or shared")


class Mind(eqx.Module):
    """The models of one seat; None where it has none."""

    others: Others | None
    """One set of parameters for each co-player, or one for all, stacked."""
    posterior: Posterior | None
    prior: Prior | None


class Filter(eqx.Module):
    """What a Bayes filter over hindsight goals remembers of each co-player."""

    belief: Float32[Array, "*seats others goals"]
    counts: Float32[Array, "*seats others goals"]
    """Across episodes."""
    revealed: Float32[Array, "*seats others goals"]
    """The goal it was seen to reach in this episode, one-hot; zeros as long as there is none."""
    predicted: Float32[Array, "*seats others goals actions"]
    legal: Bool[Array, "*seats others actions"]
    """In the state that was seen last."""


class Evidence(eqx.Module):
    """What the posterior remembers of each co-player."""

    total: Float32[Array, "*seats others evidence"]
    embedded: Float32[Array, "*seats others hidden"]
    """The view that was seen last."""


class Impression(eqx.Module):
    """What a seat thinks of its co-players, in seat order after it."""

    goals: Float32[Array, "*seats others goal"]
    """What the policy and the critic read."""
    kept: Filter | Evidence | None


def num_sets(config: OthersConfig, spec: GameSpec) -> int:
    """How many models a seat has."""
    return {"none": 0, "each": spec.num_agents - 1, "shared": 1}[config.models]


def init(config: MindConfig, spec: GameSpec, *, key: Key[Array, ""]) -> Mind:
    """The models of one seat before they have seen anything."""
    others_key, posterior_key, prior_key = jax.random.split(key, 3)
    size = goals.goal_size(config.goals, spec)
    sets = num_sets(config.others, spec)
    init_one = lambda key: others.init(config.others, spec, size, key=key)  # noqa: E731
    latent = config.goals.is_latent
    return Mind(
        others=jax.vmap(init_one)(jax.random.split(others_key, sets)) if sets else None,
        posterior=goals.init_posterior(config.goals, spec, key=posterior_key) if latent else None,
        prior=goals.init_prior(config.goals, spec, key=prior_key) if latent else None,
    )


def start(config: MindConfig, spec: GameSpec) -> Impression:
    """Of co-players never seen."""
    num_others, size = spec.num_agents - 1, goals.goal_size(config.goals, spec)
    zeros = lambda *shape: jnp.zeros((num_others, *shape), jnp.float32)  # noqa: E731
    if config.goals.kind == "hindsight":
        counts = jnp.broadcast_to(beliefs.first_counts(size), (num_others, size))
        belief = jax.vmap(beliefs.starting_belief)(counts)
        legal = jnp.ones((num_others, spec.num_actions), bool)
        return Impression(belief, Filter(belief, counts, zeros(size), zeros(size, spec.num_actions), legal))
    if config.goals.is_latent:
        return Impression(zeros(size), Evidence(zeros(config.goals.evidence), zeros(config.goals.hidden)))
    return Impression(zeros(0), None)


def again(config: MindConfig, spec: GameSpec, impression: Impression) -> Impression:
    """When another episode with the same co-players begins: what they were after counts, evidence starts anew."""
    fresh = start(config, spec)
    if not isinstance(impression.kept, Filter) or not isinstance(fresh.kept, Filter):
        return fresh
    kept = impression.kept
    seen = jnp.any(kept.revealed > 0, axis=-1, keepdims=True)
    counts = jax.vmap(beliefs.count)(kept.counts, jnp.where(seen, kept.revealed, kept.belief))
    belief = jax.vmap(beliefs.starting_belief)(counts)
    return Impression(belief, Filter(belief, counts, fresh.kept.revealed, fresh.kept.predicted, fresh.kept.legal))


def met_anew(impression: Impression) -> Impression:
    """After an update the co-players are not who they were: only this episode still tells what they are after.

    Counts of what they used to want would also hold a company where it is: who is known to hunt hares is left alone.
    """
    kept = impression.kept
    if not isinstance(kept, Filter):
        return impression
    counts = jnp.broadcast_to(beliefs.first_counts(kept.counts.shape[-1]), kept.counts.shape)
    return replace(impression, kept=replace(kept, counts=counts))


def perceive(
    config: MindConfig, game: Game, mind: Mind, observation: Observation, impression: Impression
) -> Impression:
    """Take in what the co-players did, and what they face now."""
    kept = impression.kept
    if kept is None:
        return impression
    acted = observation.last_actions[1:]
    num_actions = game.spec.num_actions
    if isinstance(kept, Filter):
        views = views_of_others(game.spec, observation)
        belief = jax.vmap(beliefs.update)(kept.belief, kept.predicted, kept.legal, acted)
        revealed = jnp.maximum(kept.revealed, _reached(game.spec, views, acted))
        seen = look_at(game, views)
        predicted = predict_by_goal(mind, seen, belief.shape[-1])
        return Impression(belief, Filter(belief, kept.counts, revealed, predicted, seen.legal))
    posterior = mind.posterior
    assert posterior is not None
    added = jax.vmap(lambda one, action: goals.evidence_of(posterior, one, action, num_actions))
    total = kept.total + added(kept.embedded, acted)
    embedded = jax.nn.relu(read_for_others(game.spec, posterior.view, features(observation, num_actions)))
    outputs = jax.vmap(lambda one, evidence: goals.infer(posterior, one, evidence))(embedded, total)
    return Impression(jax.vmap(lambda one: goals.mean_goal(config.goals, one))(outputs), Evidence(total, embedded))


def look_at(game: Game, views: PyTree[Array]) -> Look:
    """The co-players' views as their model reads them."""
    return jax.vmap(lambda view: others.look(game.spec, view, game.legal_in_view(view)))(views)


def predict(mind: Mind, seen: Look, goal: Float32[Array, "others goal"]) -> Float32[Array, "others actions"]:
    """What each co-player will do, its goal being known."""
    assert mind.others is not None
    num_others = goal.shape[0]
    by_other = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_others, *leaf.shape[1:])), mind.others)
    return jnp.exp(jax.vmap(others.apply)(by_other, seen, goal))


def predict_by_goal(mind: Mind, seen: Look, num_goals: int) -> Float32[Array, "others goals actions"]:
    """The same for each hindsight goal; the last, `other`, is uniform over the legal actions."""
    num_others = seen.legal.shape[0]
    each = [
        predict(mind, seen, jnp.broadcast_to(jax.nn.one_hot(goal, num_goals), (num_others, num_goals)))
        for goal in range(num_goals - 1)
    ]
    return jnp.stack([*each, jax.vmap(beliefs.uniform)(seen.legal)], axis=1)


def expected(
    config: MindConfig, mind: Mind, seen: Look, goal: Float32[Array, "others goal"]
) -> Float32[Array, "others actions"]:
    """What each co-player will do, as far as the seat knows what it is after."""
    if config.goals.kind == "hindsight":
        return jax.vmap(beliefs.predictive)(goal, predict_by_goal(mind, seen, goal.shape[-1]))
    return predict(mind, seen, goal)


def _reached(spec: GameSpec, views: Observation, acted: Int32[Array, " others"]) -> Float32[Array, "others goals"]:
    """The goal of a co-player who did a deed and is gone: it must have been paid for it."""
    gone = ~jnp.any(views.planes[..., 0] > 0, axis=(-1, -2))
    did = acted[:, None] == np.append(spec.deed_actions, spec.num_actions)
    return (did & gone[:, None]).astype(jnp.float32)


class Player(Policy):
    """A trained agent as a player: a pure function of what its seat sees and remembers, in whatever seat it sits."""

    params: ActorCritic
    mind: Mind
    game: Game
    config: MindConfig = eqx.field(static=True)
    greedy: bool = eqx.field(static=True, default=False)
    """Whether it always takes its most likely action."""

    def start(self) -> Memory:
        return start(self.config, self.game.spec)

    def again(self, memory: Memory) -> Memory:
        return again(self.config, self.game.spec, memory)

    def perceive(self, observation: Observation, impression: Impression) -> Impression:
        """Take in what the co-players did."""
        return perceive(self.config, self.game, self.mind, observation, impression)

    def __call__(self, observation, legal, memory):
        memory = self.perceive(observation, memory)
        log_probabilities, _ = actor_critic.apply(self.params, observation, legal, memory.goals)
        if self.greedy:
            return jax.nn.one_hot(jnp.argmax(log_probabilities), legal.shape[0]), memory
        return jnp.exp(log_probabilities), memory
