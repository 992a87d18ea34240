"""Scores of world models on real episodes that they did not learn from.

A model is scored through one function: from a situation to the probability of each cell and the likeliest outcome.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.games.coplayers import usual_kinds
from hopplus.games.fields import Observation, features
from hopplus.games.game import Game, GameSpec, ego_order
from hopplus.games.lineups import read_policies
from hopplus.games.rollout import JointPolicy, play_episode
from hopplus.learning.offline import Cast
from hopplus.learning.worlds import SAME_REWARD
from hopplus.models import world
from hopplus.models.world import Outcome, Situation, Transition, WorldModel

OPEN_LOOP, FARTHEST = 5, 10
"""Steps that a model predicts on its own predictions: for one figure, and at most."""
BEFORE, AFTER = slice(None, -1), slice(1, None)
SAME_VIEW = 0.05
"""Numbers of a view that differ by less are the same."""
IMPOSSIBLE = ("jumped", "doubled", "revived", "reward outside the support")


class Predicted(eqx.Module):
    """A model's prediction of the next board."""

    planes: Float32[Array, "*batch height width planes"]
    """The probability of each cell of each plane to be on."""
    outcome: Outcome
    """The likeliest outcome."""
    view: Observation | None = None
    """The expected features of the viewed fields, by field; None if the board shows everything."""


Predict = Callable[[Situation], Predicted]


class Record(eqx.Module):
    """Recorded episodes as transitions: of the board, or as seats in turns see them."""

    transition: Transition
    """[episodes, steps]"""
    valid: Bool[Array, "*episodes steps"]


def record_episodes(
    game: Game, make_players: Callable[[Array], JointPolicy], count: int, *, key: Key[Array, ""]
) -> Record:
    """Record whole episodes; `make_players` draws the players of each episode."""
    return recorder(game, make_players, count)(key)


def recorder(game: Game, make_players: Callable[[Array], JointPolicy], count: int) -> Callable[[Array], Record]:
    """A compiled function from a key to recorded episodes; it can be called again for more episodes.

    Where a world keeps what its viewer alone sees, the viewers of the episodes are the seats in turns.
    """
    spec = game.spec
    orders = jnp.asarray(ego_order(spec.num_agents)[np.arange(count) % spec.num_agents], jnp.int32)

    def one(key_data, order):
        players_key, play_key = jax.random.split(jax.random.wrap_key_data(key_data))
        episode = play_episode(game, make_players(players_key), key=play_key)
        boards = jax.vmap(partial(world.board_of, game))(episode.states)
        ended = jax.vmap(game.terminated)(episode.states)
        times = jnp.arange(len(episode.actions), dtype=jnp.int32)
        views = None
        if world.viewed_fields(spec):
            views = world.views_of_world(spec, jax.vmap(game.observe)(episode.states))
        before, after = (jax.tree.map(lambda leaf, part=part: leaf[part], views) for part in (BEFORE, AFTER))
        transition = Transition(
            Situation(boards[:-1], times, episode.actions, ended[:-1], before),
            Outcome(boards[1:], episode.rewards, ended[1:], after),
        )
        if views is not None:
            transition = jax.vmap(lambda one: world.seen_by(spec, one, order))(transition)
        return Record(transition, ~jnp.all(ended[:-1], axis=-1))

    return jax.jit(lambda key: jax.vmap(one)(jax.random.key_data(jax.random.split(key, count)), orders))


def line_ups(game: Game, self_play: JointPolicy | None) -> dict[str, Callable[[Array], JointPolicy]]:
    """The line-ups that a world is scored on: each is a function of a key that draws the players of one episode."""
    spec = game.spec
    by_name: dict[str, Callable[[Array], JointPolicy]] = {
        "random play": lambda _: Cast(read_policies("random", game), jnp.zeros(spec.num_agents, jnp.int32))
    }
    *own_scripts, _ = usual_kinds(spec)
    if own_scripts:
        scripts = read_policies(own_scripts, game)

        def kinds(key):
            return jax.random.randint(key, (spec.num_agents,), 0, len(scripts), jnp.int32)

        by_name["mixed scripts"] = lambda key: Cast(scripts, kinds(key))
    if self_play is not None:
        by_name["self-play"] = lambda _: self_play
    return by_name


class Judged(eqx.Module):
    """The scores of learned worlds on real episodes that they did not learn from."""

    worlds: WorldModel
    """All of them, stacked."""
    first: WorldModel
    records: dict[str, Record]
    """By line-up."""
    figures: dict[str, dict[str, Any]]
    """By line-up, and of all line-ups together."""
    impossible_drawn: dict[str, int]
    """The impossible outcomes among samples of the first world, by kind."""


def judge(
    game: Game, worlds: WorldModel, self_play: JointPolicy, episodes: int, draws: int, *, key: Key[Array, ""]
) -> Judged:
    """Score worlds, [worlds, ...], on `episodes` of each line-up, and count impossible outcomes in `draws` samples."""
    records = {
        name: record_episodes(game, make, episodes, key=jax.random.fold_in(key, index))
        for index, (name, make) in enumerate(line_ups(game, self_play).items())
    }
    first = jax.tree.map(lambda leaf: leaf[0], worlds)
    transition = transitions_of(joined(records.values()))
    drawn = count_impossible(game.spec, first, transition, draws, key=jax.random.fold_in(key, len(records)))
    figures = judge_line_ups(game.spec, partial(sums_of_worlds, game.spec, worlds), records)
    return Judged(worlds, first, records, figures, drawn)


def joined(records: Iterable[Record]) -> Record:
    """All records as one."""
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *records)


def examples(spec: GameSpec, params: WorldModel, record: Record, count: int = 3) -> list[dict[str, Any]]:
    """Rewarded steps as lists, for a picture; those that the world predicted worst come first. None without a board."""
    if not world.has_shared_board(spec):
        return []
    rows = jax.tree.map(jnp.asarray, transitions_of(record))
    predicted = jax.jit(jax.vmap(by_world(spec, params)))(rows.now)
    misses = np.asarray(jnp.sum(jnp.abs(predicted.planes - rows.after.board), axis=(1, 2, 3)))
    paid = np.asarray(jnp.any((rows.after.rewards != 0) & ~rows.now.ended, axis=-1))
    chosen = np.argsort(np.where(paid, -misses, np.inf))[:count]
    boards = {"before": rows.now.board, "told": predicted.planes, "true": rows.after.board}
    return [
        {
            "actions": [spec.action_names[action] for action in np.asarray(rows.now.actions[index])],
            "rewards": np.asarray(rows.after.rewards[index]).tolist(),
            "told_rewards": np.asarray(predicted.outcome.rewards[index]).tolist(),
            **{name: np.round(np.asarray(board[index], np.float64), 4).tolist() for name, board in boards.items()},
        }
        for index in chosen
    ]


def transitions_of(record: Record) -> Transition:
    """All valid transitions of a record in one axis, without the padding after the ends of episodes."""
    valid = np.asarray(record.valid)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[valid], record.transition)


def by_world(spec: GameSpec, params: WorldModel) -> Predict:
    """The prediction function of a learned world."""

    def predict(now: Situation) -> Predicted:
        outputs = world.apply(params, spec, now)
        outcome = world.draw(spec, now, outputs, key=None)
        return Predicted(outputs.expected_board(spec, now), outcome, outputs.expected_view(spec, now))

    return predict


def judge_line_ups(
    spec: GameSpec, sums: Callable[[Record], dict[str, Array]], records: Mapping[str, Record]
) -> dict[str, dict[str, Any]]:
    """All figures on each record, and on `all` records together; `sums` takes one record and is compiled once."""
    compiled = jax.jit(sums)
    by_record = {
        name: jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), compiled(record))
        for name, record in records.items()
    }
    together = jax.tree.map(lambda *leaves: sum(leaves), *by_record.values())
    return {name: _figures(spec, each) for name, each in (by_record | {"all": together}).items()}


def sums_of_worlds(spec: GameSpec, worlds: WorldModel, record: Record) -> dict[str, Array]:
    """The sums of `sums_of` over several learned worlds, stacked; each is scored on the whole record."""
    each = jax.lax.map(lambda params: sums_of(spec, by_world(spec, params), record), worlds)
    return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), each)


def _figures(spec: GameSpec, sums: dict[str, Any]) -> dict[str, Any]:
    def ratio(name):
        return float(sums[name] / np.maximum(sums["count"], 1))

    planes = sums["plane_errors"] / np.maximum(sums["count"], 1)
    in_a_row, wrong_cells, far_off = (
        sums[name] / np.maximum(sums["open_loops"], 1) for name in ("open_loop", "wrong_cells", "far_errors")
    )
    mse = float(planes.mean()) if world.has_shared_board(spec) else ratio("view_errors")
    names = [plane.name for plane in spec.planes] if world.has_shared_board(spec) else []
    return {
        "transitions": int(sums["count"]),
        "exact_next_state": ratio("exact"),
        "observation_mse": mse,
        "psnr": float(-10 * np.log10(max(mse, 1e-12))),
        "plane_mse": {name: float(value) for name, value in zip(names, planes, strict=True)},
        "view_mse": ratio("view_errors"),
        "reward_mse": ratio("reward_errors"),
        "exact_rewards": ratio("exact_rewards"),
        "end_error": ratio("end_errors"),
        "paid_recall": float(sums["paid_right"] / np.maximum(sums["paid"], 1)),
        "paid": int(sums["paid"]),
        "open_loop_exact": float(in_a_row[OPEN_LOOP - 1]),
        "by_steps": [
            {"steps": steps + 1, "exact": float(exact), "wrong_cells": float(wrong), "view_mse": float(error)}
            for steps, (exact, wrong, error) in enumerate(zip(in_a_row, wrong_cells, far_off, strict=True))
        ],
        "players": int(sums["players"]),
        "vanished": int(sums["vanished"]),
        "impossible": {name: int(value) for name, value in zip(IMPOSSIBLE, sums["impossible"], strict=True)},
    }


def sums_of(spec: GameSpec, predict: Predict, record: Record) -> dict[str, Array]:
    """Counts and sums of errors, which add up over records and which the figures are computed from."""
    transition, valid = record.transition, record.valid

    def everywhere(fn: Any) -> Any:
        return jax.vmap(jax.vmap(fn))

    predicted = everywhere(predict)(transition.now)
    true, playing = transition.after, ~transition.now.ended

    def counted(numbers):
        return jnp.sum(jnp.where(valid, numbers, 0.0))

    misses = jnp.mean(jnp.square(predicted.planes - true.board), axis=(2, 3))
    reward_errors = jnp.abs(predicted.outcome.rewards - true.rewards)
    paid = playing & (true.rewards != 0)
    right = (reward_errors < SAME_REWARD) & (predicted.outcome.ended == true.ended)
    open_loop, wrong_cells, far_errors, whole = _open_loop(spec, predict, record)
    impossible_kinds = everywhere(partial(impossible, spec))(transition.now, predicted.outcome)
    present, predicted_present = (
        everywhere(lambda board: world.on_board(board[..., : spec.num_walkers]))(boards)
        for boards in (true.board, predicted.outcome.board)
    )
    return {
        "count": jnp.sum(valid),
        "exact": counted(everywhere(same)(predicted.outcome, true)),
        "view_errors": counted(everywhere(partial(_view_error, spec))(predicted, true)),
        "plane_errors": jnp.sum(jnp.where(valid[..., None], misses, 0.0), (0, 1)),
        "reward_errors": counted(jnp.mean(jnp.square(predicted.outcome.rewards - true.rewards), axis=-1)),
        "end_errors": counted(jnp.mean(predicted.outcome.ended != true.ended, axis=-1)),
        "exact_rewards": counted(jnp.all((reward_errors < SAME_REWARD) | ~playing, axis=-1)),
        "paid": counted(jnp.sum(paid, axis=-1)),
        "paid_right": counted(jnp.sum(paid & right, axis=-1)),
        "open_loop": jnp.sum(open_loop & whole, (0, 1)),
        "open_loops": jnp.sum(whole, (0, 1)),
        "wrong_cells": jnp.sum(jnp.where(whole, wrong_cells, 0.0), (0, 1)),
        "players": counted(jnp.sum(present, axis=-1)),
        "vanished": counted(jnp.sum(present & ~predicted_present, axis=-1)),
        "far_errors": jnp.sum(jnp.where(whole, far_errors, 0.0), (0, 1)),
        "impossible": jnp.sum(jnp.where(valid[..., None], impossible_kinds, 0), (0, 1)),
    }


def same(one: Outcome, other: Outcome) -> Bool[Array, ""]:
    """Whether two outcomes have equal boards, cell for cell, equal views, and equal seats out of the game."""
    views = zip(jax.tree.leaves(one.view), jax.tree.leaves(other.view), strict=True)
    equal = jnp.all(one.board == other.board) & jnp.all(one.ended == other.ended)
    return equal & jnp.all(jnp.array([True, *(jnp.all(_near(guess, true)) for guess, true in views)]))


def _near(one: Array, other: Array) -> Bool[Array, "..."]:
    if jnp.issubdtype(one.dtype, jnp.floating):
        return jnp.abs(one - other) < SAME_VIEW
    return one == other


def _view_error(spec: GameSpec, predicted: Predicted, true: Outcome) -> Float32[Array, ""]:
    """The mean squared error of the expected features of the view."""
    fields = world.viewed_fields(spec)
    if predicted.view is None or true.view is None:
        return jnp.float32(0)
    guess = jnp.concatenate([predicted.view[field.name].reshape(-1) for field in fields])
    return jnp.mean(jnp.square(guess - features(fields, true.view)))


def _open_loop(spec: GameSpec, predict: Predict, record: Record) -> tuple[Array, Array, Array, Array]:
    """Of each step as a start and each number of further steps, [episodes, starts, FARTHEST], on its own predictions:

    whether the model was right all the way, the share of cells that are wrong then, the error of the view, and whether
    the episode goes on that long.
    """
    transition, num_steps = record.transition, record.valid.shape[1]

    def one(now: Situation, after: Outcome):
        def step(carry, data):
            board, view, ended, right = carry
            actions, time, true = data
            predicted = predict(Situation(board, time, actions, ended, view))
            outcome = predicted.outcome
            right &= same(outcome, true)
            wrong = jnp.sum(outcome.board != true.board) / max(outcome.board.size, 1)
            error = _view_error(spec, predicted, true)
            return (outcome.board, outcome.view, outcome.ended, right), (right, wrong, error)

        view = jax.tree.map(lambda leaf: leaf[0], now.view)
        first = (now.board[0], view, now.ended[0], jnp.bool_(True))
        return jax.lax.scan(step, first, (now.actions, now.time, after))[1]

    ahead = np.arange(num_steps)[:, None] + np.arange(FARTHEST)
    windows = np.minimum(ahead, num_steps - 1)

    def cut(tree):
        return jax.tree.map(lambda leaf: leaf[:, windows], tree)

    right, wrong_cells, errors = jax.vmap(jax.vmap(one))(cut(transition.now), cut(transition.after))
    is_there = record.valid[:, windows] & (ahead < num_steps)
    return right, wrong_cells, errors, jnp.cumsum(~is_there, axis=-1) == 0


def impossible(spec: GameSpec, now: Situation, after: Outcome) -> Int32[Array, " kinds"]:
    """How many seats show each impossible change; `IMPOSSIBLE` has the names. Without a board no player can jump."""
    outside = jnp.zeros(spec.num_agents, bool)
    if spec.reward_support:
        support = jnp.asarray(spec.reward_support, jnp.float32)
        outside = jnp.min(jnp.abs(after.rewards[:, None] - support), axis=-1) > SAME_REWARD
    none, comes_back = jnp.zeros_like(outside), now.ended & ~after.ended
    if not world.has_shared_board(spec):
        return _counts(none, none, comes_back, outside & ~now.ended)
    before, walkers = now.board[..., : spec.num_walkers] > 0, after.board[..., : spec.num_walkers] > 0
    reach = before
    for move in range(world.NUM_STEPS):
        reach |= world.shifted(before, move)
    was_there = jnp.any(before, axis=(0, 1))
    jumped = jnp.any(walkers & ~reach, axis=(0, 1)) & was_there
    doubled = jnp.sum(walkers, axis=(0, 1)) > 1
    returned = jnp.any(walkers, axis=(0, 1)) & ~was_there
    revived = comes_back if spec.walkers_return else returned | comes_back
    return _counts(jumped, doubled, revived, outside & ~now.ended)


def _counts(*flags: Bool[Array, " agents"]) -> Int32[Array, " kinds"]:
    return jnp.stack([jnp.sum(each, dtype=jnp.int32) for each in flags])


def count_impossible(
    spec: GameSpec, params: WorldModel, transition: Transition, draws: int, *, key: Key[Array, ""]
) -> dict[str, int]:
    """The impossible changes, by kind, among `draws` sampled outcomes of each situation."""

    def one(now, key_data):
        outputs = world.apply(params, spec, now)
        keys = jax.random.split(jax.random.wrap_key_data(key_data), draws)
        drawn = jax.vmap(lambda key: impossible(spec, now, world.draw(spec, now, outputs, key=key)))(keys)
        return jnp.sum(drawn, axis=0)

    count = len(transition.now.time)
    keys = jax.random.key_data(jax.random.split(key, count))
    total = jax.jit(lambda now, keys: jnp.sum(jax.lax.map(lambda row: one(*row), (now, keys), batch_size=1024), axis=0))
    return dict(zip(IMPOSSIBLE, np.asarray(total(transition.now, keys)).tolist(), strict=True))
