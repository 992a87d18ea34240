"""The best possible prediction of scripted players, computed from their own action distributions.

    known      p(a | script, view)
    inferred   sum over scripts of b(script | history) p(a | script, view),  b the exact posterior

The mean of the largest probability is the Bayes ceiling: no predictor with the same knowledge is right more often.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from hopplus.games.coplayers import Policy
from hopplus.games.fields import Observation
from hopplus.learning.offline import script_predictions
from hopplus.learning.pretraining import filter_beliefs


class Best(eqx.Module):
    """The best predictions for every step of some episodes."""

    by_script: Float32[Array, "*episodes steps agents scripts actions"]
    beliefs: Float32[Array, "*episodes steps agents scripts"]
    """The posterior before the step's own action."""
    known: Float32[Array, "*episodes steps agents actions"]
    inferred: Float32[Array, "*episodes steps agents actions"]


def best_predictions(
    scripts: tuple[Policy, ...],
    kinds: Int32[Array, "episodes agents"],
    observations: Observation,
    legal: Bool[Array, "episodes steps agents actions"],
    actions: Int32[Array, "episodes steps agents"],
    in_game: Bool[Array, "episodes steps agents"],
    *,
    smoothing: float = 0.0,
) -> Best:
    """The predictions of a predictor that has the scripts; `smoothing` is that of the filter it is compared with."""
    return jax.jit(jax.vmap(partial(_one_episode, scripts, smoothing)))(kinds, observations, legal, actions, in_game)


def _one_episode(scripts, smoothing, kinds, observations, legal, actions, in_game) -> Best:
    over_agents = jax.vmap(partial(script_predictions, scripts), in_axes=1, out_axes=1)
    by_script = over_agents(observations, legal)
    beliefs = filter_beliefs(by_script, legal, actions, in_game, smoothing)
    own = jax.nn.one_hot(kinds, len(scripts))
    return Best(
        by_script=by_script,
        beliefs=beliefs,
        known=jnp.einsum("jk,sjka->sja", own, by_script),
        inferred=jnp.einsum("sjk,sjka->sja", beliefs, by_script),
    )
