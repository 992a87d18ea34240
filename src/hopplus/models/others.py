"""The opponent model: p(action of co-player j | view of j, goal of j).

It is a mixture of two predictors. One predicts where the co-player is going: every cell of the board is a destination
whose weight depends on what is there, how far it is and what the co-player wants. The prediction is then the first step
of a shortest path to it; the co-player's own cell stands for acting on the spot. This predictor is given the paths and
learns the destinations. The other is a plain network over the whole view, for any other behaviour. A gate weighs them.

    score(c) = q(g) . k(what is on c, distance) - rate(g) distance(c)
    p(a) = gate * sum_c softmax(score)(c) first_step(a | c) + (1 - gate) * softmax(f(view, g))(a)
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8

from hopplus.core.extensions import make_own
from hopplus.core.numerics import LEAST, MASKED, Metrics
from hopplus.games.board import MOVE_NAMES
from hopplus.games.fields import Field, Observation, features, num_features
from hopplus.games.game import GameSpec
from hopplus.games.paths import FAR, paths_around_walls, straight_paths
from hopplus.models.config import OthersConfig
from hopplus.models.learned_paths import LearnedPaths, init_learned_paths
from hopplus.models.networks import Dense, Heads, init_dense, init_heads


class OpponentInput(eqx.Module):
    """What the model reads of one view; it depends on neither parameters nor goal, so it is made once."""

    observation: Observation
    legal: Bool[Array, "*batch actions"]
    distance: UInt8[Array, "*batch height width"]
    """Steps to each cell; 255 where it cannot be reached."""
    first_moves: UInt8[Array, "*batch height width"]
    """Bit m: a shortest path to the cell starts with move m."""


class OpponentModel(eqx.Module):
    """A model of one co-player's actions; all leaves are parameters. Subclass it for a model of your own."""

    @abstractmethod
    def __call__(self, seen: OpponentInput, goal: Float32[Array, " goal"]) -> Float32[Array, " actions"]:
        """The log-probability of each action of the co-player, given what it sees and what it wants."""


class Others(OpponentModel):
    """The parameters of the mixture."""

    view: Dense | None
    mixed: Dense | None
    heads: Heads
    """Action logits, the logits of what is done on the spot, the gate; without a view, only their biases count."""
    cell: Dense | None
    key: Heads | None
    query: Heads | None
    """The goal's query, then its dislike of distance."""
    fields: tuple[Field, ...] = eqx.field(static=True)
    """What it reads of a view."""
    paths: LearnedPaths | None = None
    """In place of the destinations on shortest paths."""

    def __call__(self, seen, goal):
        num_actions = seen.legal.shape[0]
        outputs = self.heads.bias
        if self.view is not None and self.mixed is not None:
            from_view = jax.nn.relu(self.view(features(self.fields, seen.observation)))
            outputs = self.heads(jax.nn.relu(self.mixed(jnp.concatenate([from_view, goal]))))
        plain = jax.nn.softmax(jnp.where(seen.legal, outputs[:num_actions], MASKED))
        on_the_spot, gate = outputs[num_actions : 2 * num_actions], jax.nn.sigmoid(outputs[-1])
        if self.cell is not None:
            walking = destinations(self, seen, goal, on_the_spot)
        elif self.paths is not None:
            walking = self.paths(seen.observation["planes"], seen.legal, goal)
        else:
            return jnp.log(plain + LEAST)
        return jnp.log(gate * walking + (1 - gate) * plain + LEAST)


def init(config: OthersConfig, spec: GameSpec, goal_size: int, *, key: Key[Array, ""]) -> OpponentModel:
    """A model that starts almost uniform; the mixture, or a model of your own."""
    if config.network != "mixture":
        return make_own(config.network, "opponent model", OpponentModel, config, spec, goal_size, key=key)
    view_key, mixed_key, heads_key, cell_key, key_key, query_key = jax.random.split(key, 6)
    gains = [0.01] * (2 * spec.num_actions + 1)
    reads_view, walks_there = not config.marginal, not config.marginal and config.destinations and walks(spec)
    learns_paths = reads_view and not walks_there and config.learned_paths and spec.num_walkers > 0
    paths_key = jax.random.fold_in(key, 1)
    return Others(
        view=init_dense(num_features(spec.observation), config.hidden, 2**0.5, key=view_key) if reads_view else None,
        mixed=init_dense(config.hidden + goal_size, config.hidden, 2**0.5, key=mixed_key) if reads_view else None,
        heads=init_heads(config.hidden, gains, key=heads_key),
        cell=init_dense(len(spec.view_planes) + 2, 2 * config.keys, 2**0.5, key=cell_key) if walks_there else None,
        key=init_heads(2 * config.keys, [1.0] * config.keys, key=key_key) if walks_there else None,
        query=init_heads(goal_size + 1, [1.0] * config.keys + [0.1], key=query_key) if walks_there else None,
        fields=spec.observation,
        paths=init_learned_paths(config, spec, goal_size, key=paths_key) if learns_paths else None,
    )


def opponent_input(spec: GameSpec, observation: Observation, legal: Bool[Array, " actions"]) -> OpponentInput:
    """The input of the model for one view of the co-player."""
    if not walks(spec):
        none = jnp.zeros((spec.height, spec.width), jnp.uint8)
        return OpponentInput(observation, legal, none, none)
    own, free = observation["planes"][..., 0] > 0, observation["planes"][..., spec.view_index("obstacles")] == 0
    if spec.straight_paths:
        distance, moves = straight_paths(own)
        distance = jnp.where(free, distance, FAR)
    else:
        distance, moves = paths_around_walls(free, own)
    return OpponentInput(observation, legal, jnp.minimum(distance, 255).astype(jnp.uint8), moves)


def walks(spec: GameSpec) -> bool:
    """Whether players have positions on a board with obstacles, and the four moves."""
    return spec.num_walkers > 0 and spec.has_plane("obstacles") and spec.action_names[: len(MOVE_NAMES)] == MOVE_NAMES


def apply(params: OpponentModel, seen: OpponentInput, goal: Float32[Array, " goal"]) -> Float32[Array, " actions"]:
    """The log-probability of each action of the co-player."""
    return params(seen, goal)


def destinations(
    params: Others, seen: OpponentInput, goal: Float32[Array, " goal"], on_the_spot: Float32[Array, " actions"]
) -> Float32[Array, " actions"]:
    """The action probabilities of a co-player that walks to a destination."""
    return walk_to(destination_weights(params, seen, goal), seen, on_the_spot)


def walk_to(
    weights: Float32[Array, "height width"], seen: OpponentInput, on_the_spot: Float32[Array, " actions"]
) -> Float32[Array, " actions"]:
    """The action probabilities of a player whose destinations have these probabilities."""
    starts_with = (seen.first_moves[..., None] >> np.arange(len(MOVE_NAMES), dtype=np.uint8)) & 1
    share = starts_with / jnp.maximum(jnp.sum(starts_with, axis=-1, keepdims=True), 1)
    moves = jnp.sum(weights[..., None] * share, axis=(0, 1))
    here = jnp.sum(jnp.where(seen.distance == 0, weights, 0.0))
    stands = seen.legal & (np.arange(seen.legal.shape[0]) >= len(MOVE_NAMES))
    acts = jax.nn.softmax(jnp.where(stands, on_the_spot, MASKED))
    return (here * acts).at[: len(MOVE_NAMES)].add(moves)


def destination_weights(
    params: Others, seen: OpponentInput, goal: Float32[Array, " goal"]
) -> Float32[Array, "height width"]:
    """The probability of every cell to be the co-player's destination."""
    assert params.cell is not None and params.key is not None and params.query is not None
    keys, near = cell_keys(params.cell, seen)
    wanted = params.query(jnp.concatenate([goal, jnp.ones(1)]))
    query, rate = wanted[:-1], jax.nn.softplus(wanted[-1])
    scores = jnp.tensordot(keys, query @ params.key.weight, 1) + query @ params.key.bias - rate * near
    return over_reachable(scores, seen)


def cell_keys(
    cell: Dense, seen: OpponentInput
) -> tuple[Float32[Array, "height width keys"], Float32[Array, "height width"]]:
    """What is compared at every cell, from what is on it and how far it is; and its distance, 0 if out of reach."""
    distance = seen.distance.astype(jnp.float32)
    near = jnp.where(seen.distance < 255, distance, 0.0)
    content = jnp.concatenate([seen.observation["planes"].astype(jnp.float32), near[..., None] / 8], axis=-1)
    content = jnp.concatenate([content, (distance == 0)[..., None].astype(jnp.float32)], axis=-1)
    return jax.nn.relu(content @ cell.weight + cell.bias), near


def over_reachable(scores: Float32[Array, "height width"], seen: OpponentInput) -> Float32[Array, "height width"]:
    """The softmax of the scores over the cells that can be reached."""
    scores = jnp.where(seen.distance < 255, scores, MASKED)
    return jax.nn.softmax(scores.reshape(-1)).reshape(scores.shape)


def loss(
    params: OpponentModel,
    seen: OpponentInput,
    goals: Float32[Array, "samples goal"],
    actions: Int32[Array, " samples"],
    weights: Float32[Array, " samples"],
) -> tuple[Float32[Array, ""], Metrics]:
    """Cross-entropy of the co-player's actions over the samples of weight 1; weight 0 marks padding."""
    log_probabilities = jax.vmap(apply, in_axes=(None, 0, 0))(params, seen, goals)
    taken = jnp.arange(log_probabilities.shape[-1]) == actions[:, None]
    losses = -jnp.sum(jnp.where(taken, log_probabilities, 0.0), axis=-1)
    total = jnp.maximum(jnp.sum(weights), 1)
    right = jnp.argmax(log_probabilities, axis=-1) == actions
    ce_loss = jnp.sum(losses * weights) / total
    return ce_loss, {"ce_loss": ce_loss, "top1": jnp.sum(right * weights) / total}
