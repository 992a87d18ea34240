"""The opponent models of one seat: parameters, inputs and predictions.

Everything is computed from the seat's own view, rotated to the co-player's, so it works in any line-up. All functions
are written for one seat and mapped over seats.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Key, PyTree

from hopplus.agents.config import OpponentsConfig
from hopplus.games.fields import Observation
from hopplus.games.game import Game, GameSpec, ego_order, legal_of_other, views_of_others
from hopplus.models import goals, others
from hopplus.models.config import OthersConfig
from hopplus.models.goals import Posterior, Prior
from hopplus.models.others import OpponentInput, OpponentModel
from hopplus.planning import beliefs


class OpponentModels(eqx.Module):
    """The parameters of one seat's opponent models; None where it has none."""

    others: OpponentModel | None
    """One set of parameters for each co-player, or one for all, stacked."""
    posterior: Posterior | None
    prior: Prior | None


def parts_of(models: OpponentModels) -> tuple[Any, ...]:
    """The modules in the order of the fields."""
    return models.others, models.posterior, models.prior


def num_sets(config: OthersConfig, spec: GameSpec) -> int:
    """How many sets of parameters a seat has for its co-players' actions."""
    return {"none": 0, "each": spec.num_agents - 1, "shared": 1}[config.models]


def init(config: OpponentsConfig, spec: GameSpec, size: int, *, key: Key[Array, ""]) -> OpponentModels:
    """The opponent models of one seat before training; `size` is that of a goal."""
    others_key, posterior_key, prior_key = jax.random.split(key, 3)
    sets = num_sets(config.others, spec)

    def init_one(key: Key[Array, ""]) -> OpponentModel:
        return others.init(config.others, spec, size, key=key)

    latent = config.goals.is_latent
    return OpponentModels(
        others=jax.vmap(init_one)(jax.random.split(others_key, sets)) if sets else None,
        posterior=goals.init_posterior(config.goals, spec, key=posterior_key) if latent else None,
        prior=goals.init_prior(config.goals, spec, key=prior_key) if latent else None,
    )


def modelled_players(spec: GameSpec) -> np.ndarray:
    """Row i: whose actions seat i's opponent models learn and are judged by: those of its co-players, in seat order.

    Where views sum the others, a seat cannot tell who did what. The model is then of any player, and seats that share
    it learn it from every player once, from that player's own view, not once for each viewer.
    """
    order = ego_order(spec.num_agents)
    return order[:, :1] if spec.sums_others else order[:, 1:]


def modelled_views(spec: GameSpec, observation: Observation) -> Observation:
    """The views of these players, from the seat's own; stacked."""
    if spec.sums_others:
        return jax.tree.map(lambda leaf: leaf[None], observation)
    return views_of_others(spec, observation)


def opponent_inputs(game: Game, views: PyTree[Array]) -> OpponentInput:
    """The co-players' views as their models read them."""
    return jax.vmap(lambda view: others.opponent_input(game.spec, view, legal_of_other(game, view)))(views)


def predict(
    models: OpponentModels, inputs: OpponentInput, goal: Float32[Array, "others goal"]
) -> Float32[Array, "others actions"]:
    """Each co-player's action probabilities, given its goal."""
    return jnp.exp(jax.vmap(others.apply)(by_other(models, goal.shape[0]), inputs, goal))


def predict_by_goal(
    models: OpponentModels, inputs: OpponentInput, num_goals: int
) -> Float32[Array, "others goals actions"]:
    """Each co-player's action probabilities for every hindsight goal; the last, `other`, is uniform over legal ones."""
    num_others = inputs.legal.shape[0]
    each = [
        predict(models, inputs, jnp.broadcast_to(jax.nn.one_hot(goal, num_goals), (num_others, num_goals)))
        for goal in range(num_goals - 1)
    ]
    return jnp.stack([*each, jax.vmap(beliefs.uniform)(inputs.legal)], axis=1)


def by_other(models: OpponentModels, num_others: int) -> OpponentModel:
    """The parameters of each co-player's model, stacked; co-players that share a set get the same."""
    assert models.others is not None
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_others, *leaf.shape[1:])), models.others)
