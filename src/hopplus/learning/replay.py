"""What happened, kept for models to learn from again, and drawn so that what is rare is not forgotten.

Self-play settles on one convention: in the end nobody takes a hare any more. A world that has seen a thousand hares
and five stags must not think that stags do not pay, and a model of co-players must still know how they go after hares.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import flashbax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.games.game import Game, GameSpec, ego_views
from hopplus.learning.ppo import check_counts
from hopplus.learning.rollout import Trajectory
from hopplus.learning.study import Examples, deeds_ahead
from hopplus.models import others
from hopplus.models.others import Look
from hopplus.models.world import Outcome, Situation, Transition

FADING = 0.6
"""How much less likely a step is to be recalled for every further step that its deed lay ahead."""


@dataclass(frozen=True)
class ReplayConfig:
    """What is kept."""

    size: int = 131_072
    """Transitions that are kept, for each seed."""
    tables: int = 32
    """How many of the tables of an update are added to them."""

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        check_counts("replay", self, "size", "tables")


class Kept(eqx.Module):
    """Steps of a table, in seat order."""

    transition: Transition
    last_actions: Int32[Array, "*batch agents"]
    """Before the step."""
    labels: Int32[Array, "*batch agents"]
    """The next deed of each seat in this episode, as `study.next_deeds` tells it."""
    until: Int32[Array, "*batch agents"]
    """How many steps later it does it."""


def buffer(config: ReplayConfig) -> Any:
    return flashbax.make_item_buffer(config.size, 1, 1, add_batches=True)


def empty(config: ReplayConfig, spec: GameSpec) -> PyTree[Array]:
    agents = jnp.zeros(spec.num_agents)
    numbers = agents.astype(jnp.int32)
    board = jnp.zeros((spec.height, spec.width, len(spec.planes)), jnp.uint8)
    now = Situation(board, jnp.int32(0), numbers, agents > 0)
    return buffer(config).init(Kept(Transition(now, Outcome(board, agents, agents > 0)), numbers, numbers, numbers))


def remember(
    config: ReplayConfig, replay: PyTree[Array] | None, steps: Trajectory
) -> tuple[PyTree[Array] | None, Transition | None]:
    """Keep what happened at the first so many tables; also its transitions, [rows, ...]."""
    if steps.transition is None:
        return None, None
    parts = (steps.transition, steps.observation.last_actions, steps.did, steps.terminated_after)
    happened, last_actions, did, terminated = jax.tree.map(lambda leaf: leaf[: config.tables], parts)
    kept = Kept(happened, _in_seat_order(last_actions), *deeds_ahead(did, jnp.all(terminated, axis=-1)))
    rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: config.size], kept)
    return buffer(config).add(replay, rows), rows.transition


def _in_seat_order(last_actions: Int32[Array, "*batch seats agents"]) -> Int32[Array, "*batch agents"]:
    """Told by whoever is still there: views of those who left say that nothing was done."""
    turned = [jnp.roll(last_actions[..., seat, :], seat, axis=-1) for seat in range(last_actions.shape[-2])]
    return jnp.max(jnp.stack(turned), axis=0)


def is_kept(replay: PyTree[Array]) -> Bool[Array, " places"]:
    """Which places of the buffer are filled."""
    num_places = replay.experience.labels.shape[1]
    return jnp.arange(num_places) < jnp.where(replay.is_full, num_places, replay.current_index)


def alike(
    kind: Int32[Array, " places"], num_kinds: int, weights: Float32[Array, " places"]
) -> Float32[Array, " places"]:
    """Chances by which every kind that occurs is as likely as every other; within a kind they follow the weights."""
    sums = jnp.zeros(num_kinds).at[kind].add(weights)
    return weights / jnp.where(sums > 0, sums, 1.0)[kind] / jnp.maximum(jnp.sum(sums > 0), 1)


def draw_places(
    chances: Float32[Array, " places"], shape: tuple[int, ...], *, key: Key[Array, ""]
) -> Int32[Array, "..."]:
    """Places drawn with these chances."""
    sums = jnp.cumsum(chances)
    levels = jax.random.uniform(key, shape) * sums[-1]
    last = jnp.max(jnp.where(chances > 0, jnp.arange(len(chances)), 0))
    return jnp.minimum(jnp.searchsorted(sums, levels, side="right"), last).astype(jnp.int32)


def by_reward(spec: GameSpec, replay: PyTree[Array]) -> Float32[Array, " places"]:
    """Half of the draws are of everything; for the other half every size of reward is equally likely."""
    rewards = replay.experience.transition.after.rewards[0]
    there = is_kept(replay).astype(jnp.float32)
    support = jnp.asarray(spec.reward_support, jnp.float32)
    biggest = jnp.take_along_axis(rewards, jnp.argmax(jnp.abs(rewards), axis=-1)[:, None], axis=-1)[:, 0]
    kind = jnp.argmin(jnp.abs(biggest[:, None] - support), axis=-1)
    return 0.5 * alike(kind, len(support), there) + 0.5 * there / jnp.sum(there)


def recall(
    game: Game, replay: PyTree[Array], order: Int32[Array, " agents"], num_samples: int, *, key: Key[Array, ""]
) -> Examples:
    """What each co-player did on its way to a deed, every kind of deed being equally likely; seats in `order`.

    The nearer the deed, the more likely a step is: long before it, most that is done has nothing to do with it, and a
    model of all that would wander about for whatever goal it is given.
    """
    spec = game.spec
    num_deeds = len(spec.deeds)
    kept = jax.tree.map(lambda leaf: leaf[0], replay.experience)
    playing = ~kept.transition.now.ended & is_kept(replay)[:, None]

    def one_other(seat, key_data):
        labels = kept.labels[:, seat]
        wanted = playing[:, order[0]] & playing[:, seat] & (labels >= 0) & (labels < num_deeds)
        weights = jnp.where(wanted, FADING ** kept.until[:, seat], 0.0)
        chances = alike(jnp.clip(labels, 0, num_deeds - 1), num_deeds, weights)
        places = draw_places(chances, (num_samples,), key=jax.random.wrap_key_data(key_data))
        seen = jax.vmap(lambda place: _view(game, jax.tree.map(lambda leaf: leaf[place], kept), seat))(places)
        weights = jnp.broadcast_to(jnp.any(wanted), places.shape).astype(jnp.float32)
        return Examples(
            seen, jax.nn.one_hot(labels[places], num_deeds + 1), kept.transition.now.actions[places, seat], weights
        )

    keys = jax.random.key_data(jax.random.split(key, spec.num_agents - 1))
    return jax.vmap(one_other)(order[1:], keys)


def _view(game: Game, kept: Kept, seat: Int32[Array, ""]) -> Look:
    now = kept.transition.now
    views = ego_views(game.spec, now.board, ~now.ended, now.time, kept.last_actions)
    view = jax.tree.map(lambda leaf: leaf[seat], views)
    return others.look(game.spec, view, game.legal_in_view(view))
