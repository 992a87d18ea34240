"""Paths that are learned: every cell is worth something, and so are the cells from which one gets there.

After value iteration networks (Tamar et al., 2016), with values in place of planes of features:

    value(c) = max(worth(c | goal), max over the four neighbours n of value(n) - cost(n))

What a cell is worth and what it costs to enter it are read from what is on it. Nothing is known of walls or of what the
actions do; the first number of a view's planes says where its player is. Several such maps are read at the player's
cell: how much worse than the best of them are the four neighbours and the cell itself.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Key, UInt8

from hopplus.core.numerics import MASKED
from hopplus.games.game import GameSpec
from hopplus.models.config import OthersConfig
from hopplus.models.networks import Dense, Heads, init_dense, init_heads

MAPS = 4
FARTHEST = -8.0
"""What is worse than the best by more is not read as worse still."""
OUTSIDE = -1e3
"""The value of cells beyond the edge."""
OWN_WORTH = 4
"""The choice of a place whose own worth is more than what its four neighbours have."""


class LearnedPaths(eqx.Module):
    """The parameters."""

    cell: Dense
    worth: Heads
    """Of a cell: what it is worth in each map for each number of the goal and, last, for any goal."""
    cost: Heads
    """Of a cell: what it costs to enter it in each map."""
    action: Heads
    """From what is read at the player's cell, and the goal: the logits of the actions."""

    def __call__(
        self,
        planes: UInt8[Array, "height width planes"],
        legal: Bool[Array, " actions"],
        goal: Float32[Array, " goal"],
    ) -> Float32[Array, " actions"]:
        """The probability of each action."""
        cells = planes.reshape(-1, planes.shape[-1]).astype(jnp.float32)
        keys = jax.nn.relu(cells @ self.cell.weight + self.cell.bias)
        wanted = jnp.concatenate([goal, jnp.ones(1)])
        worths = (keys @ self.worth.weight.T + self.worth.bias).reshape(len(cells), len(wanted), MAPS)
        worth = jnp.sum(worths * wanted[:, None], axis=1)
        cost = jax.nn.softplus(keys @ self.cost.weight.T + self.cost.bias)
        worth, cost = (
            _with_edge(each.T.reshape(MAPS, *planes.shape[:2]), edge)
            for each, edge in ((worth, OUTSIDE), (cost, -OUTSIDE))
        )
        step = planes.shape[1] + 1

        values: Array = spread(worth, cost, step, sum(planes.shape[:2]))  # pyright: ignore[reportAssignmentType]
        around = [_moved(values - cost, step, OUTSIDE, start) for start in _starts(step)]
        choices = jnp.stack([*around, worth])
        own = _with_edge(planes[..., 0].astype(jnp.float32)[None], 0.0)[0]
        there = jnp.sum(jnp.where(own > 0, choices, 0.0), axis=-1)
        worse = jnp.maximum(there - jnp.max(there, axis=0), FARTHEST)
        logits = self.action(jnp.concatenate([worse.reshape(-1), goal, jnp.ones(1)]))
        return jax.nn.softmax(jnp.where(legal, logits, MASKED))


def init_learned_paths(config: OthersConfig, spec: GameSpec, goal_size: int, *, key: Key[Array, ""]) -> LearnedPaths:
    """Maps in which no cell is worth more than another."""
    cell_key, worth_key, cost_key, action_key = jax.random.split(key, 4)
    return LearnedPaths(
        cell=init_dense(len(spec.view_planes), 2 * config.keys, 2**0.5, key=cell_key),
        worth=init_heads(2 * config.keys, [1.0] * (MAPS * (goal_size + 1)), key=worth_key),
        cost=init_heads(2 * config.keys, [0.1] * MAPS, key=cost_key),
        action=init_heads(5 * MAPS + goal_size + 1, [1.0] * spec.num_actions, key=action_key),
    )


def _with_edge(maps: Float32[Array, "maps height width"], edge: float) -> Float32[Array, "maps places"]:
    """The rows one after the other, with a place outside after each."""
    outside = jnp.pad(maps, ((0, 0), (0, 0), (0, 1)), constant_values=edge)
    return outside.reshape(len(maps), -1)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def spread(
    worth: Float32[Array, "maps places"], cost: Float32[Array, "maps places"], step: int, count: int
) -> Float32[Array, "maps places"]:
    """The values after so many rounds. The gradient goes along the best paths.

    Written by hand because XLA's own gradient takes ten times as long on a CPU: it computes each place's neighbours
    anew for every round after it.
    """
    return _spread(worth, cost, step, count)[0]


def _spread(
    worth: Float32[Array, "maps places"], cost: Float32[Array, "maps places"], step: int, count: int
) -> tuple[Float32[Array, "maps places"], Int8[Array, "rounds maps places"]]:
    """The values, and in each round where each place's value is from: a neighbour, or its own worth."""

    def one_round(values: Array, _: None) -> tuple[Array, Array]:
        best, chosen = worth, jnp.full(worth.shape, OWN_WORTH, jnp.int8)
        for number, start in enumerate(_starts(step)):
            there = _moved(values - cost, step, OUTSIDE, start)
            chosen = jnp.where(there > best, jnp.int8(number), chosen)
            best = jnp.maximum(best, there)
        return best, chosen

    return jax.lax.scan(one_round, worth, None, length=count)


def _spread_back(
    step: int, count: int, chosen: Int8[Array, "rounds maps places"], gradient: Float32[Array, "maps places"]
) -> tuple[Float32[Array, "maps places"], Float32[Array, "maps places"]]:
    del count

    def one_round(carry: tuple[Array, Array, Array], chosen: Array) -> tuple[tuple[Array, Array, Array], None]:
        of_values, of_worth, of_cost = carry
        of_worth = of_worth + jnp.where(chosen == OWN_WORTH, of_values, 0.0)
        came = jnp.zeros_like(of_values)
        for number, start in enumerate(_starts(step)):
            came = came + _moved(jnp.where(chosen == number, of_values, 0.0), step, 0.0, 2 * step - start)
        return (came, of_worth, of_cost - came), None

    zeros = jnp.zeros_like(gradient)
    (of_values, of_worth, of_cost), _ = jax.lax.scan(one_round, (gradient, zeros, zeros), chosen, reverse=True)
    return of_worth + of_values, of_cost


spread.defvjp(_spread, _spread_back)


def _starts(step: int) -> tuple[int, ...]:
    """Where the neighbours of the first place are, counted from a row before it: up, down, left, right."""
    return 0, 2 * step, step - 1, step + 1


def _moved(
    values: Float32[Array, "maps places"], step: int, outside: float, start: int
) -> Float32[Array, "maps places"]:
    """What lies at one neighbour of each place; `step` is the length of a row."""
    padded = jnp.pad(values, ((0, 0), (step, step)), constant_values=outside)
    return padded[:, start : start + values.shape[1]]
