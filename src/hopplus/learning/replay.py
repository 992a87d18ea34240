"""The replay buffer of worlds and opponent models; rare rewards and events are drawn more often.

Self-play settles on one convention: in the end nobody takes a hare any more. A world that has seen a thousand hares
and five stags must still predict that stags pay, and an opponent model must still know how players go after hares.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import flashbax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.agents.opponents import modelled_players
from hopplus.games.fields import Observation
from hopplus.games.game import NO_ACTION, Game, GameSpec, knows_others, legal_of_other, views_of_others
from hopplus.learning.config import ReplayConfig
from hopplus.learning.opponent_data import ActionExamples, events_ahead
from hopplus.learning.rollout import Trajectory
from hopplus.models import others
from hopplus.models.learned_game import views_of_seats
from hopplus.models.others import OpponentInput
from hopplus.models.world import Outcome, Situation, Transition, board_shape, views_of_world

FADING = 0.6
"""The factor on the chance of a step for every further step until its event."""
ENOUGH = 2
"""Steps with an event after which it counts as seen."""
SIZES = np.sign(np.arange(-8, 9)) * np.expm1(np.abs(np.arange(-8, 9)))
"""Rewards nearest to the same number are of one size, in a game that declares no reward support."""
AT_ONCE = 16_384
"""Entries that the models of one update draw from: weighing all entries of a large buffer would cost more than the
gradient steps."""


class Kept(eqx.Module):
    """Steps of an environment, in seat order."""

    transition: Transition
    last_actions: Int32[Array, "*batch agents"]
    """Before the step."""
    labels: Int32[Array, "*batch agents"]
    """The next event of each seat in this episode, as in `opponent_data.next_events`."""
    until: Int32[Array, "*batch agents"]
    """How many steps later it happens."""


def buffer(config: ReplayConfig) -> Any:
    return flashbax.make_item_buffer(config.size, 1, 1, add_batches=True)


def empty(config: ReplayConfig, spec: GameSpec, views: Observation | None = None) -> PyTree[Array]:
    """`views`: arrays like the viewed fields of all seats."""
    agents = jnp.zeros(spec.num_agents)
    numbers = agents.astype(jnp.int32)
    board = jnp.zeros(board_shape(spec), jnp.uint8)
    now = Situation(board, jnp.int32(0), numbers, agents > 0, views)
    after = Outcome(board, agents, agents > 0, views)
    return buffer(config).init(Kept(Transition(now, after), numbers, numbers, numbers))


def views_like(game: Game) -> Observation | None:
    """Arrays like the viewed fields of all seats; None if there are none."""
    shapes = jax.eval_shape(lambda key: game.observe(game.reset(key=key)), jax.random.key(0))
    return views_of_world(game.spec, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))


def add_steps(
    config: ReplayConfig, replay: PyTree[Array] | None, steps: Trajectory
) -> tuple[PyTree[Array] | None, Transition | None]:
    """The buffer with the steps of the first environments added; also their transitions, [rows, ...]."""
    if steps.transition is None:
        return None, None
    last_seen = steps.observation.get("last_actions", jnp.full_like(steps.actions, NO_ACTION)[..., None, :])
    parts = (steps.transition, last_seen, steps.events, steps.terminated_after, steps.all_kinds)
    transition, last_actions, events, terminated, kinds = jax.tree.map(lambda leaf: leaf[: config.envs], parts)
    labels, until = events_ahead(events, jnp.all(terminated, axis=-1))
    if kinds is not None:  # who acts at random reaches events by chance
        labels = jnp.where(kinds <= events.shape[2], labels, events.shape[2])
    kept = Kept(transition, _in_seat_order(last_actions), labels, until)
    count = kept.labels.shape[0] * kept.labels.shape[1]
    rows = jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:])[: config.size], kept)
    return buffer(config).add(replay, rows), rows.transition


def _in_seat_order(last_actions: Int32[Array, "*batch seats agents"]) -> Int32[Array, "*batch agents"]:
    """The last joint action in seat order, read from the seats in the game: others' views show no actions."""
    turned = [jnp.roll(last_actions[..., seat, :], seat, axis=-1) for seat in range(last_actions.shape[-2])]
    return jnp.max(jnp.stack(turned), axis=0)


def num_kept(replay: PyTree[Array]) -> Int32[Array, ""]:
    """How many entries of the buffer are filled: the first ones."""
    num_places = replay.experience.labels.shape[1]
    return jnp.where(replay.is_full, num_places, replay.current_index).astype(jnp.int32)


def some_entries(replay: PyTree[Array], *, key: Key[Array, ""]) -> Kept:
    """Entries for one update, evenly spread over those that are filled: all of them while they are few."""
    count = min(AT_ONCE, replay.experience.labels.shape[1])
    filled = num_kept(replay)
    offsets = jnp.arange(count) + jax.random.uniform(key)
    places = jnp.minimum((offsets / count * filled).astype(jnp.int32), filled - 1)
    return jax.tree.map(lambda leaf: leaf[0, places], replay.experience)


def equal_chances(
    kind: Int32[Array, " places"], num_kinds: int, weights: Float32[Array, " places"]
) -> Float32[Array, " places"]:
    """Chances with which every kind that occurs is equally likely; within a kind they follow the weights."""
    sums = jnp.zeros(num_kinds).at[kind].add(weights)
    return weights / jnp.where(sums > 0, sums, 1.0)[kind] / jnp.maximum(jnp.sum(sums > 0), 1)


def draw_places(
    chances: Float32[Array, " places"], shape: tuple[int, ...], *, key: Key[Array, ""]
) -> Int32[Array, "..."]:
    """Entries drawn with these chances."""
    sums = jnp.cumsum(chances)
    uniforms = jax.random.uniform(key, shape) * sums[-1]
    last = jnp.max(jnp.where(chances > 0, jnp.arange(len(chances)), 0))
    return jnp.minimum(jnp.searchsorted(sums, uniforms, side="right"), last).astype(jnp.int32)


def by_reward(spec: GameSpec, kept: Kept) -> Float32[Array, " places"]:
    """Chances: half of the draws are uniform; for the other half every size of reward is equally likely."""
    rewards = kept.transition.after.rewards
    there = jnp.ones(len(rewards), jnp.float32)
    support = jnp.asarray(spec.reward_support or SIZES, jnp.float32)
    biggest = jnp.take_along_axis(rewards, jnp.argmax(jnp.abs(rewards), axis=-1)[:, None], axis=-1)[:, 0]
    kind = jnp.argmin(jnp.abs(biggest[:, None] - support), axis=-1)
    return 0.5 * equal_chances(kind, len(support), there) + 0.5 * there / len(rewards)


def all_events_seen(spec: GameSpec, replay: PyTree[Array], kept: Kept) -> Bool[Array, ""]:
    """Whether every event was seen in `ENOUGH` steps or more, estimated from some entries of the buffer."""
    numbers = np.arange(len(spec.events))
    now = jnp.any((kept.labels[..., None] == numbers) & (kept.until == 0)[..., None], axis=1)
    return jnp.all(jnp.mean(now, axis=0, dtype=jnp.float32) * num_kept(replay) >= ENOUGH)


def draw_examples(
    game: Game, kept: Kept, order: Int32[Array, " agents"], *, num_samples: int, key: Key[Array, ""]
) -> ActionExamples:
    """Steps of each co-player before an event, every kind of event equally likely; seats in `order`.

    For hindsight goals.

    The nearer the event, the likelier a step is drawn: actions long before an event are unrelated to it, and a model
    of them would walk at random for any goal.
    """
    spec = game.spec
    num_events = len(spec.events)
    playing = ~kept.transition.now.ended

    def one_other(seat, key_data):
        labels = kept.labels[:, seat]
        wanted = playing[:, order[0]] & playing[:, seat] & (labels >= 0) & (labels < num_events)
        weights = jnp.where(wanted, FADING ** kept.until[:, seat], 0.0)
        chances = equal_chances(jnp.clip(labels, 0, num_events - 1), num_events, weights)
        places = draw_places(chances, (num_samples,), key=jax.random.wrap_key_data(key_data))
        rows = jax.tree.map(lambda leaf: leaf[places], kept)
        inputs = jax.vmap(lambda row: _input(game, row, order[0], seat))(rows)
        weights = jnp.broadcast_to(jnp.any(wanted), places.shape).astype(jnp.float32)
        return ActionExamples(
            inputs, jax.nn.one_hot(labels[places], num_events + 1), kept.transition.now.actions[places, seat], weights
        )

    keys = jax.random.key_data(jax.random.split(key, spec.num_agents - 1))
    return jax.vmap(one_other)(order[1:], keys)


def draw_any_examples(
    game: Game,
    kept: Kept,
    order: Int32[Array, " agents"],
    encode: Callable[[Observation], Float32[Array, " goal"]],
    *,
    ahead: bool,
    num_samples: int,
    key: Key[Array, ""],
) -> ActionExamples:
    """Steps of each co-player, all equally likely; seats in `order`.

    The goal is what `encode` makes of the co-player's view one step later; of the current one if not `ahead`, or if the
    co-player has left by then and sees nothing.
    """
    playing = ~kept.transition.now.ended

    def one_other(seat: Int32[Array, ""], key_data: Array) -> ActionExamples:
        wanted = (playing[:, order[0]] & playing[:, seat]).astype(jnp.float32)
        places = draw_places(wanted, (num_samples,), key=jax.random.wrap_key_data(key_data))
        weights = jnp.broadcast_to(jnp.any(wanted > 0), places.shape).astype(jnp.float32)

        def one(place: Int32[Array, ""]) -> tuple[OpponentInput, Float32[Array, " goal"]]:
            row = jax.tree.map(lambda leaf: leaf[place], kept)
            seen = _view(game, row, seat)
            if ahead:
                has_left = row.transition.after.ended[seat]
                seen = jax.tree.map(partial(jnp.where, has_left), seen, _view(game, row, seat, ahead=True))
            return _input(game, row, order[0], seat), encode(seen)

        inputs, goals = jax.vmap(one)(places)
        return ActionExamples(inputs, goals, kept.transition.now.actions[places, seat], weights)

    modelled = order[modelled_players(game.spec)[0]]
    return jax.vmap(one_other)(modelled, jax.random.key_data(jax.random.split(key, len(modelled))))


def draw_views(
    game: Game, kept: Kept, seat: Int32[Array, ""], count: int, *, key: Key[Array, ""]
) -> tuple[Observation, Int32[Array, " count"]]:
    """What a seat saw in steps in which it was in the game, and their times, [count]."""
    places = draw_places((~kept.transition.now.ended[:, seat]).astype(jnp.float32), (count,), key=key)
    views = jax.vmap(lambda place: _view(game, jax.tree.map(lambda leaf: leaf[place], kept), seat))(places)
    return views, kept.transition.now.time[places]


def _input(game: Game, kept: Kept, viewer: Int32[Array, ""], seat: Int32[Array, ""]) -> OpponentInput:
    """What the viewer's model of the co-player in a seat reads in a kept step."""
    if knows_others(game.spec):
        view = _view(game, kept, seat)
    else:
        place = (seat - viewer) % game.spec.num_agents - 1
        views = views_of_others(game.spec, _view(game, kept, viewer))
        view = jax.tree.map(lambda leaf: leaf[place], views)
    return others.opponent_input(game.spec, view, legal_of_other(game, view))


def _view(game: Game, kept: Kept, seat: Int32[Array, ""], *, ahead: bool = False) -> Observation:
    """What a seat saw in a kept step, or one step later."""
    now, after = kept.transition.now, kept.transition.after
    seen = (after.board, ~after.ended, now.time + 1, now.actions) if ahead else (now.board, ~now.ended, now.time)
    own = after.view if ahead else now.view
    views = views_of_seats(game.spec, *seen, *(() if ahead else (kept.last_actions,)), own=own or {})
    return jax.tree.map(lambda leaf: leaf[seat], views)
