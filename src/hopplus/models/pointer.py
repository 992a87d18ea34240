"""A policy that points at cells of the board and walks there on shortest paths.

It is given the paths and learns the destinations, as the opponent models do (`models.others`): a plain network learns
the way to a hare anew for every place of hunter and hare. The trunk says what is looked for, and every cell is
compared with it by what is on it and how far it is. A gate weighs walking against the plain network's actions.

    score(c) = q(trunk) . k(what is on c, distance) - rate(trunk) distance(c)
    p(a) = gate * sum_c softmax(score)(c) first_step(a | c) + (1 - gate) * plain(a)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Key

from hopplus.core.numerics import LEAST, MASKED
from hopplus.games.fields import Observation
from hopplus.games.game import GameSpec
from hopplus.models.networks import Dense, Heads, init_dense, init_heads
from hopplus.models.others import cell_keys, opponent_input, over_reachable, walk_to

FIRST_GATE = -1.0
"""The gate's logit before training: the plain network explores, the pointer has to earn its weight."""


class Pointer(eqx.Module):
    """The parameters of the pointer."""

    cell: Dense
    heads: Heads
    """From the trunk: the query, the dislike of distance, the logits of what is done on the spot, the gate."""
    spec: GameSpec = eqx.field(static=True)

    def __call__(
        self,
        trunk: Float32[Array, " hidden"],
        observation: Observation,
        legal: Bool[Array, " actions"],
        plain: Float32[Array, " actions"],
    ) -> Float32[Array, " actions"]:
        """The log-probability of each action; `plain` are those of the plain network."""
        seen = opponent_input(self.spec, observation, legal)
        outputs, size = self.heads(trunk), self.cell.weight.shape[-1]
        query, rate, gate = outputs[:size], jax.nn.softplus(outputs[size]), jax.nn.sigmoid(outputs[-1] + FIRST_GATE)
        keys, near = cell_keys(self.cell, seen)
        walking = walk_to(over_reachable(keys @ query - rate * near, seen), seen, outputs[size + 1 : -1])
        mixed = gate * walking + (1 - gate) * jnp.exp(plain)
        return jnp.where(legal, jnp.log(mixed + LEAST), MASKED)


def init_pointer(num_inputs: int, num_keys: int, spec: GameSpec, *, key: Key[Array, ""]) -> Pointer:
    """A pointer without a preference beyond near cells."""
    cell_key, heads_key = jax.random.split(key)
    gains = [0.1] * num_keys + [0.01] * (spec.num_actions + 2)
    return Pointer(
        cell=init_dense(len(spec.view_planes) + 2, num_keys, 2**0.5, key=cell_key),
        heads=init_heads(num_inputs, gains, key=heads_key),
        spec=spec,
    )
