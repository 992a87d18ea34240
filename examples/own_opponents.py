"""An opponent model of your own: a table of action frequencies, one row for each last action of the co-player.

    hopplus train direct_om --others.network own_opponents:make --game matrix-chicken --steps 20000 --out runs/table
    hopplus evaluate runs/table --others

A model is a module whose arrays are its parameters. It reads what the co-player sees (`OpponentInput`) and its goal,
and gives log-probabilities. It is trained by cross-entropy like the built-in one.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from hopplus.models.others import OpponentInput, OpponentModel


class ByLastAction(OpponentModel):
    """Scores of each action, by what the co-player did before; the last row is for "nothing yet"."""

    scores: Float32[Array, "last actions"]

    def __call__(self, seen: OpponentInput, goal: Float32[Array, " goal"]) -> Float32[Array, " actions"]:
        own_last_action = seen.observation["last_actions"][0]  # the view is the co-player's, so it comes first
        row = self.scores[own_last_action]  # -1 is the last row
        return jax.nn.log_softmax(jnp.where(seen.legal, row, -1e9))


def make(_config, spec, _goal_size, *, key) -> ByLastAction:
    """The factory gets the settings, the game's spec, the size of a goal and a key."""
    return ByLastAction(0.01 * jax.random.normal(key, (spec.num_actions + 1, spec.num_actions)))
