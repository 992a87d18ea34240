"""How well is the world learned? Held-out episodes of random play, mixed scripts and self-play.

python benchmarks/world.py                      4x4 (50,000 transitions), 8x8 with obstacles and arenas, and snowdrift
                                                (500,000): the worlds of cells and of fields, and the regression
python benchmarks/world.py --quick              4x4, 20,000 transitions without self-play, some minutes
python benchmarks/world.py --fields 50000       the world of fields on 4x4 with so many transitions, without self-play.
                                                Written to results/world_fields.json
python benchmarks/world.py --errors             the world of fields on games without a board, beside "nothing changes"
                                                and a linear model. Written to results/world_errors.json
python benchmarks/world.py --beyond             the world of cells where players act beyond their own cell, with 200,000
                                                transitions: foraging, coins and harvest; the last two beside the
                                                entropy of their own random draws; some 10 to 30 minutes a game.
                                                Written to results/world_beyond.json
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from hopplus.core.devices import use_cores
from hopplus.core.mesh import MeshConfig, num_cores
from hopplus.evaluation.world import (
    OPEN_LOOP,
    Predict,
    Predicted,
    Record,
    by_world,
    count_impossible,
    joined,
    judge_line_ups,
    line_ups,
    record_episodes,
    recorder,
    sums_of,
    transitions_of,
)
from hopplus.games.coins import Coins
from hopplus.games.fields import features
from hopplus.games.game import Game, GameSpec
from hopplus.games.harvest import CHANCES, Harvest
from hopplus.games.presets import make
from hopplus.games.rollout import play_episode
from hopplus.learning.config import LearnerConfig
from hopplus.learning.worlds import fit
from hopplus.models import world
from hopplus.models.config import WorldConfig
from hopplus.models.world import Outcome, Situation, Transition, WorldModel, viewed_fields
from hopplus.models.world_kinds import init_world
from hopplus.runs.config import RunConfig
from hopplus.runs.training import train
from measure import PROGRESS, print_json, print_table, write_result

GAMES: dict[str, Any] = {
    "stag-hunt-4x4": {"transitions": 50_000, "epochs": 12},
    "stag-hunt-8x8-obstacles": {"transitions": 500_000, "epochs": 3},
    "snowdrift-8x8": {"transitions": 500_000, "epochs": 3},
}
MODELS = {"world": "cells", "regression": "regression", "fields": "fields"}
"""The name in the results, and the kind."""
FIELDS = {50_000: (512, 30), 200_000: (768, 12)}
"""Of the world of fields: from so many transitions on, the width and the epochs."""
FOREIGN = {
    "jaxmarl:coin_game": {"episodes": 2_000, "held_out": 100, "epochs": 12, "hidden": 256},
    "jaxmarl:MPE_simple_spread_v3": {"episodes": 7_700, "held_out": 400, "epochs": 20, "hidden": 256},
    "jaxmarl:overcooked": {"episodes": 500, "held_out": 20, "epochs": 8, "hidden": 256},
}
BEYOND = {
    "foraging-8x8": {"transitions": 200_000, "epochs": 12},
    "coins-5x5": {"transitions": 200_000, "epochs": 20},
    "harvest-8x8": {"transitions": 200_000, "epochs": 6},
}
HIDDEN = 64
RESULTS = Path(__file__).resolve().parent.parent / "results"
SELF_PLAY_STEPS = 400_000
EPISODES, HELD_OUT = 512, 400
SAMPLED = 1_000_000
OTHERS = "nothing changes", "linear"
RULES = "the rules from the true state"
SAMPLES = 64
"""Rollouts whose mean is the expected view some steps on."""


def self_play(name: str) -> Any:
    """Players that ppo trained for some minutes."""
    with tempfile.TemporaryDirectory() as folder:
        learner = LearnerConfig(mesh=MeshConfig(envs=num_cores()))
        run = train(RunConfig(game=name, seeds=1, steps=SELF_PLAY_STEPS, learner=learner), folder)
        return jax.tree.map(lambda leaf: leaf[0], run.lineup())


def collect(game: Game, players: Any, wanted: int, seed: int) -> Transition:
    """So many transitions of one line-up."""
    parts, count, play = [], 0, recorder(game, players, EPISODES)
    while count < wanted:
        parts.append(transitions_of(play(jax.random.fold_in(jax.random.key(seed), len(parts)))))
        count += len(parts[-1].now.time)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:wanted], *parts)


def collected(name: str, game: Game, transitions: int, trained: Any) -> tuple[Transition, dict[str, Record]]:
    """Transitions to learn from, of all line-ups in equal parts, and held-out episodes of each."""
    groups = line_ups(game, trained)
    PROGRESS.print(f"{name}: {transitions:,} transitions of {', '.join(groups)}")
    parts = [collect(game, players, transitions // len(groups), 1) for players in groups.values()]
    held_out = {
        group: record_episodes(game, players, HELD_OUT, key=jax.random.key(2)) for group, players in groups.items()
    }
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts), held_out


def one_game(
    name: str, transitions: int, epochs: int, with_self_play: bool, sampled: int, kinds: Sequence[str] = tuple(MODELS)
) -> dict[str, Any]:
    """The scores of worlds of these kinds, and impossible outcomes among samples of the first."""
    game = RunConfig(game=name).task.game
    spec = game.spec
    data, held_out = collected(name, game, transitions, self_play(name) if with_self_play else None)
    key, seconds, worlds, scores = jax.random.key(3), {}, {}, {}
    for model in kinds:
        started = time.perf_counter()
        worlds[model] = trained(spec, model, data, epochs, key)
        seconds[model] = time.perf_counter() - started
        predict = by_world(spec, worlds[model])
        scores[model] = judge_line_ups(spec, partial(sums_of, spec, predict), held_out)
    rows = transitions_of(joined(held_out.values()))
    draws = math.ceil(sampled / len(rows.now.time))
    found = count_impossible(spec, worlds[kinds[0]], rows, draws, key=key)
    return {
        "scores": scores,
        "transitions": transitions,
        "seconds": seconds[kinds[0]],
        "seconds_by_model": seconds,
        "epochs": epochs,
        "sampled": draws * len(rows.now.time),
        "impossible_sampled": found,
    }


def trained(spec: GameSpec, model: str, data: Transition, epochs: int, key: Any) -> WorldModel:
    """A world of that kind, trained on the data."""
    hidden = {"cells": HIDDEN, "regression": 256, "fields": 512}[MODELS[model]]
    if model == "fields":
        least = max((least for least in FIELDS if least <= len(data.now.time)), default=min(FIELDS))
        hidden, epochs = FIELDS[least]
    params = init_world(WorldConfig(members=1, kind=MODELS[model], hidden=hidden), spec, key=key)
    return fitted(model, params, spec, data, epochs, learning_rate=1e-3 if model == "regression" else None, key=key)


def fitted(
    name: str,
    params: WorldModel,
    spec: GameSpec,
    data: Transition,
    epochs: int,
    *,
    learning_rate: float | None = None,
    key: Any,
) -> WorldModel:
    return fit(
        lambda params, transition: world.loss(params, spec, transition),
        params,
        data,
        epochs=epochs,
        learning_rate=learning_rate or params.learning_rate,
        weight_decay=params.weight_decay,
        key=key,
        on_epoch=lambda epoch, _: PROGRESS.print(f"{name}: epoch {epoch + 1} of {epochs}"),
    )


def beyond(name: str, transitions: int, epochs: int, hidden: int) -> dict[str, Any]:
    """The scores of the world of cells; where the rules draw at random, its surprise at boards beside their entropy."""
    game = make(name)
    spec = game.spec
    data, held_out = collected(name, game, transitions, None)
    started = time.perf_counter()
    params = init_world(WorldConfig(1, "cells", hidden), spec, key=jax.random.key(3))
    params = fitted("cells", params, spec, data, epochs, key=jax.random.key(4))
    seconds = time.perf_counter() - started
    scores = judge_line_ups(spec, partial(sums_of, spec, by_world(spec, params)), held_out)["all"]
    rows = jax.tree.map(jnp.asarray, transitions_of(joined(held_out.values())))
    found = {"transitions": transitions, "epochs": epochs, "hidden": hidden, "seconds": seconds, "scores": scores}
    if spec.name in ENTROPIES:
        surprise = jax.jit(jax.vmap(lambda row: board_surprise(spec, params, row)))(rows)
        entropy, draws = jax.jit(jax.vmap(partial(ENTROPIES[spec.name], game)))(rows)
        nats, least, number = (float(np.sum(np.asarray(each, np.float64))) for each in (surprise, entropy, draws))
        found |= {"surprise": nats / number, "entropy": least / number, "above": (nats - least) / number}
    return found


def board_surprise(spec: GameSpec, params: WorldModel, row: Transition) -> Array:
    """The negative log-likelihood of the next board."""
    parts = world.loss(params, spec, row)[1]
    return parts["walkers"] + parts["sets"]


def entropy_of_coins(game: Coins, row: Transition) -> tuple[Array, Array]:
    """Of the cells where coins came back, all free ones alike, one coin after another; and how many did."""
    spec, players = game.spec, game.num_players
    before, after = row.now.board, row.after.board
    coins = slice(players, 2 * players)
    walkers = jnp.any(after[..., :players] > 0, axis=-1)
    taken = jnp.any((before[..., coins] > 0) & walkers[..., None], axis=(0, 1))
    left = jnp.any((before[..., coins] > 0) & ~taken, axis=-1)
    walls = before[..., spec.plane_index("obstacles")] > 0
    free, count = jnp.sum(~(walkers | left | walls)), jnp.sum(taken)
    places = np.arange(players)
    logs = jnp.log(jnp.maximum(free - places, 1).astype(jnp.float32))
    return jnp.sum(jnp.where(places < count, logs, 0.0)), count


def entropy_of_harvest(game: Harvest, row: Transition) -> tuple[Array, Array]:
    """Of the growth on every cell without a wall, a player or an apple; and how many such cells there are."""
    spec, players = game.spec, game.num_players
    walkers = jnp.any(row.after.board[..., :players] > 0, axis=-1)
    walls, apples = (row.now.board[..., spec.plane_index(name)] > 0 for name in ("obstacles", "apples"))
    left = apples & ~walkers
    padded = jnp.pad(left.astype(jnp.int32), 1)
    across = padded[:-2] + padded[1:-1] + padded[2:]
    around = across[:, :-2] + across[:, 1:-1] + across[:, 2:]
    chance = jnp.asarray([round(each * CHANCES) / CHANCES for each in game.growth], jnp.float32)
    grows = chance[jnp.minimum(around, len(game.growth) - 1)]
    each = jax.scipy.special.entr(grows) + jax.scipy.special.entr(1 - grows)
    open_cells = ~(walls | walkers | left)
    return jnp.sum(jnp.where(open_cells, each, 0.0)), jnp.sum(open_cells)


ENTROPIES: dict[str, Any] = {"coins": entropy_of_coins, "harvest": entropy_of_harvest}


def errors(name: str, episodes: int, held_out: int, epochs: int, hidden: int) -> dict[str, Any]:
    """The squared errors of the next view and of the view five steps on, in episodes of random play.

    The other two get the rewards and ends of the world of fields: only their views are compared.
    """
    game = make(name)
    spec = game.spec
    PROGRESS.print(f"{name}: {episodes} episodes of random play")
    players = line_ups(game, None)["random play"]
    record = recorder(game, players, episodes + held_out)(jax.random.key(1))
    seen, unseen = (jax.tree.map(lambda leaf, part=part: leaf[part], record) for part in parts_of(episodes))
    rows = transitions_of(seen)
    params = init_world(WorldConfig(members=1, kind="fields", hidden=hidden), spec, key=jax.random.key(3))
    started = time.perf_counter()
    params = fitted("fields", params, spec, rows, epochs, key=jax.random.key(4))
    seconds = time.perf_counter() - started
    models = {
        "fields": (by_world(spec, params), unseen),
        OTHERS[0]: (by_change(spec, lambda _: 0.0), with_floats(unseen)),
        OTHERS[1]: (by_change(spec, linear(spec, rows)), with_floats(unseen)),
    }
    found = {
        model: judge_line_ups(spec, partial(sums_of, spec, predict), {"random play": record})["random play"]
        for model, (predict, record) in models.items()
    }
    by_model = {
        model: {"one step": one["view_mse"], "five steps": one["by_steps"][OPEN_LOOP - 1]["view_mse"]}
        for model, one in found.items()
    }
    by_model["fields"]["five steps"] = mean_far_error(spec, params, unseen)
    by_model[RULES] = errors_of_rules(game, players, held_out)
    own = by_model["fields"]
    share = {steps: own[steps] / min(by_model[other][steps] for other in OTHERS) for steps in own}
    return {
        "transitions": len(rows.now.time),
        "seconds": seconds,
        "reward_mse": found["fields"]["reward_mse"],
        "reward_variance": reward_variance(unseen),
        "errors": by_model,
        "share": share,
        "linear_with_view_before": error_with_view_before(spec, seen, unseen),
    }


def mean_far_error(spec: GameSpec, params: WorldModel, record: Record) -> float:
    """The squared error of the view five steps on, as expected: the mean of sampled rollouts.

    A single rollout of likeliest steps is no mean where the rules draw at random; those of the other models are.
    """
    fields = viewed_fields(spec)

    def sampled(now: Situation, key: Array) -> Array:
        """The expected features after the last step of one rollout."""

        def step(carry: Any, data: Any) -> Any:
            view, ended = carry
            actions, time, key = data
            here = Situation(now.board[0], time, actions, ended, view)
            outputs = world.apply(params, spec, here)
            outcome = world.draw(spec, here, outputs, key=key)
            expected = outputs.expected_view(spec, here) or {}
            flat = jnp.concatenate([expected[field.name].reshape(-1) for field in fields])
            return (outcome.view, outcome.ended), flat

        first = jax.tree.map(lambda leaf: leaf[0], now.view), now.ended[0]
        return jax.lax.scan(step, first, (now.actions, now.time, jax.random.split(key, OPEN_LOOP)))[1][-1]

    def one(numbers: tuple[Transition, Array]) -> Array:
        rows, number = numbers
        keys = jax.random.split(jax.random.fold_in(jax.random.key(5), number), SAMPLES)
        expected = jnp.mean(jax.vmap(lambda key: sampled(rows.now, key))(keys), axis=0)
        view = jax.tree.map(lambda leaf: leaf[-1], rows.after.view)
        return jnp.mean(jnp.square(expected - features(fields, view)))

    starts = range(0, record.valid.shape[1] - OPEN_LOOP + 1, OPEN_LOOP)
    cut = [jax.tree.map(lambda leaf, start=start: leaf[:, start : start + OPEN_LOOP], record) for start in starts]
    windows = jax.tree.map(lambda *leaves: np.concatenate(leaves), *cut)
    whole = np.asarray(windows.valid).all(axis=1)
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[whole], windows.transition)
    found = jax.jit(lambda *numbers: jax.lax.map(one, numbers, batch_size=64))(rows, np.arange(whole.sum()))
    return float(np.mean(np.asarray(found, np.float64)))


def parts_of(episodes: int) -> tuple[slice, slice]:
    return slice(None, episodes), slice(episodes, None)


def reward_variance(record: Record) -> float:
    """Of the rewards of seats that are in the game: the error of their mean."""
    rows = transitions_of(record)
    return float(np.var(rows.after.rewards[~rows.now.ended]))


def with_floats(record: Record) -> Record:
    """The record with floats in the views, because models without rounding predict floats."""
    now, after = record.transition.now, record.transition.after
    views = (jax.tree.map(lambda leaf: leaf.astype(np.float32), moment.view) for moment in (now, after))
    now, after = replace(now, view=next(views)), replace(after, view=next(views))
    return replace(record, transition=Transition(now, after))


def by_change(spec: GameSpec, change: Callable[[Situation], Any]) -> Predict:
    """A model that adds a change to the features of the view."""
    fields = viewed_fields(spec)

    def predict(now: Situation) -> Predicted:
        assert now.view is not None
        after = features(fields, now.view) + change(now)
        cuts = np.cumsum([field.num_features for field in fields])[:-1]
        view = {
            field.name: part.reshape(field.shape) for field, part in zip(fields, jnp.split(after, cuts), strict=True)
        }
        outcome = Outcome(now.board, jnp.zeros(spec.num_agents), now.ended, view)
        return Predicted(now.board.astype(jnp.float32), outcome, view)

    return predict


def linear(spec: GameSpec, rows: Transition) -> Callable[[Situation], Any]:
    """The change as a linear function of the view and the joint action, by least squares."""

    def inputs(now: Situation) -> Any:
        assert now.view is not None
        did = jax.nn.one_hot(now.actions, spec.num_actions).reshape(-1)
        return jnp.concatenate([features(viewed_fields(spec), now.view), did, jnp.ones(1)])

    def change(transition: Transition) -> Any:
        views = (transition.now.view, transition.after.view)
        before, after = (features(viewed_fields(spec), view) for view in views if view is not None)
        return after - before

    read, changed = (np.asarray(jax.jit(jax.vmap(each))(part)) for each, part in ((inputs, rows.now), (change, rows)))
    products = read.T.astype(np.float64) @ read
    ridge = 1e-6 * len(read) * np.eye(read.shape[1])
    weights = jnp.asarray(np.linalg.solve(products + ridge, read.T.astype(np.float64) @ changed), jnp.float32)
    return lambda now: inputs(now) @ weights


def errors_of_rules(game: Game, make_players: Callable[[Array], Any], episodes: int) -> dict[str, float]:
    """The errors of the mean of steps that are played again from the true state: no model can have less."""
    spec = game.spec

    def seen(state: Any) -> Array:
        views = game.observe(state)
        return features(viewed_fields(spec), {name: view[0] for name, view in views.items()})

    def one(key: Array) -> tuple[Array, Array]:
        players_key, play_key, again_key = jax.random.split(key, 3)
        episode = play_episode(game, make_players(players_key), key=play_key)
        starts = np.arange(0, len(episode.actions) - OPEN_LOOP + 1, OPEN_LOOP)

        def again(start: Array, key: Array) -> Array:
            """The views of the next steps."""

            def step(state: Any, data: Any) -> Any:
                action, key = data
                state, _ = game.step(state, action, key=key)
                return state, seen(state)

            first = jax.tree.map(lambda leaf: leaf[start], episode.states)
            actions = jax.lax.dynamic_slice_in_dim(episode.actions, start, OPEN_LOOP)
            return jax.lax.scan(step, first, (actions, jax.random.split(key, OPEN_LOOP)))[1]

        def error(start: Array, key: Array) -> Array:
            """Of the mean after one step and after the last."""
            expected = jnp.mean(jax.vmap(lambda key: again(start, key))(jax.random.split(key, SAMPLES)), axis=0)
            came = jax.vmap(seen)(jax.tree.map(lambda leaf: leaf[start + 1 + np.arange(OPEN_LOOP)], episode.states))
            return jnp.mean(jnp.square(expected - came), axis=-1)[np.array([0, OPEN_LOOP - 1])]

        each = jax.vmap(error)(jnp.asarray(starts), jax.random.split(again_key, len(starts)))
        return each, jnp.asarray(starts + OPEN_LOOP) <= episode.num_steps

    keys = jax.random.split(jax.random.key(6), episodes)
    found, whole = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
    one_step, far = np.asarray(found, np.float64)[np.asarray(whole)].mean(axis=0)
    return {"one step": float(one_step), "five steps": float(far)}


def error_with_view_before(spec: GameSpec, seen: Record, unseen: Record) -> float:
    """The error of the next view, for a linear model that also reads the view before.

    Where it is far below that of `linear`, a single view hides what comes next, such as the speed of others.
    """

    def numbers(transition: Transition) -> tuple[Array, Array]:
        did = jax.nn.one_hot(transition.now.actions, spec.num_actions).reshape(-1)
        seen = (transition.now.view or {}, transition.after.view or {})
        view, after = (features(viewed_fields(spec), each) for each in seen)
        return jnp.concatenate([view, did, jnp.ones(1)]), after - view

    def pairs(record: Record) -> tuple[np.ndarray, np.ndarray]:
        read, changed = map(np.asarray, jax.jit(jax.vmap(jax.vmap(numbers)))(record.transition))
        later = np.asarray(record.valid)[:, 1:]
        both = np.concatenate([read[:, 1:], read[:, :-1]], axis=-1)
        return both[later].astype(np.float64), changed[:, 1:][later].astype(np.float64)

    read, changed = pairs(seen)
    ridge = 1e-6 * len(read) * np.eye(read.shape[1])
    weights = np.linalg.solve(read.T @ read + ridge, read.T @ changed)
    read, changed = pairs(unseen)
    return float(np.mean(np.square(read @ weights - changed)))


def show_errors(found: dict[str, Any]) -> None:
    rows = []
    for name, one in found.items():
        for model, by_steps in one["errors"].items():
            shares = (f"{share:.3f}" if model == "fields" else "" for share in one["share"].values())
            rows.append((name, model, *(f"{error:.2e}" for error in by_steps.values()), *shares))
        rows.append((name, "linear, and the view before", f"{one['linear_with_view_before']:.2e}", "", "", ""))
    columns = ("game", "model", "one step", "five steps", "over the better other", "five steps on")
    print_table("squared errors of the features of the next view, held-out episodes", columns, rows)


def show_beyond(found: dict[str, Any]) -> None:
    rows = []
    for name, one in found.items():
        scores, chance = one["scores"], [f"{one[part]:.4f}" if part in one else "-" for part in ("entropy", "above")]
        exact = f"{scores['exact_next_state']:.3%}", f"{scores['exact_rewards']:.3%}", f"{scores['reward_mse']:.1e}"
        rows.append((name, *exact, str(sum(scores["impossible"].values())), *chance, f"{one['seconds']:.0f}"))
    columns = ("game", "exact boards", "rewards", "reward MSE", "impossible", "entropy of a draw", "above", "seconds")
    print_table("the world of cells, held-out episodes", columns, rows)


def add_to(name: str, flags: str, found: dict[str, Any]) -> None:
    """Add these games to results/NAME.json."""
    path = RESULTS / f"{name}.json"
    before = json.loads(path.read_text()) if path.exists() else {"commands": [], "games": {}}
    commands = dict.fromkeys([*before["commands"], f"python benchmarks/world.py {flags}"])
    write_result(path, {"commands": list(commands), "games": {**before["games"], **found}})


def show(name: str, found: dict[str, Any]) -> None:
    columns = ("model", "line-up", "exact", "obs. MSE", "PSNR", "reward MSE", "ends", "recall", "5 steps", "impossible")
    rows = []
    for model, by_group in found["scores"].items():
        for group, one in by_group.items():
            rows.append(
                (
                    model,
                    group,
                    f"{one['exact_next_state']:.4%}",
                    f"{one['observation_mse']:.1e}",
                    f"{one['psnr']:.1f}",
                    f"{one['reward_mse']:.1e}",
                    f"{one['end_error']:.1e}",
                    f"{one['paid_recall']:.4f}",
                    f"{one['open_loop_exact']:.4f}",
                    str(sum(one["impossible"].values())),
                )
            )
    print_table(f"{name}, held-out episodes", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4x4 only, less data, some minutes")
    parser.add_argument("--fields", nargs="+", type=int, default=[], help="only this kind on 4x4: transitions")
    parser.add_argument(
        "--errors", nargs="*", choices=list(FOREIGN), help="games without a board; all if none is given"
    )
    parser.add_argument(
        "--beyond", nargs="*", choices=list(BEYOND), help="the world of cells on the new games; all if none is given"
    )
    parser.add_argument(
        "--hidden", type=int, default=HIDDEN, help="width of the world of cells with --beyond; another writes no file"
    )
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), help="which games")
    given = parser.parse_args()
    use_cores(num_cores())
    if given.errors is not None:
        found = {name: errors(name, **FOREIGN[name]) for name in given.errors or FOREIGN}
        show_errors(found)
        add_to("world_errors", f"--errors {' '.join(found)}", found)
        print_json({"games": found}, ["jax", "jaxmarl"])
        return
    if given.beyond is not None:
        found = {name: beyond(name, **BEYOND[name], hidden=given.hidden) for name in given.beyond or BEYOND}
        show_beyond(found)
        if given.hidden == HIDDEN:
            add_to("world_beyond", f"--beyond {' '.join(found)}", found)
        print_json({"games": found}, ["jax"])
        return
    if given.fields:
        shared: dict[str, Any] = {"with_self_play": False, "sampled": SAMPLED // 10, "kinds": ("fields",)}
        games = {f"{count:,} transitions": one_game("stag-hunt-4x4", count, 0, **shared) for count in given.fields}
        add_to("world_fields", f"--fields {' '.join(map(str, given.fields))}", games)
    elif given.quick:
        games = {"stag-hunt-4x4": one_game("stag-hunt-4x4", 20_000, 8, with_self_play=False, sampled=SAMPLED // 10)}
    else:
        games = {name: one_game(name, **GAMES[name], with_self_play=True, sampled=SAMPLED) for name in given.games}
    for name, found in games.items():
        show(name, found)
        total = sum(found["impossible_sampled"].values())
        print(
            f"{name}: {total} impossible outcomes among {found['sampled']:,} that were drawn; {found['seconds']:.0f} s"
        )
    first = next(iter(games.values()))
    best = next(iter(first["scores"].values()))["all"]
    fields = {name: game["scores"]["fields"]["all"] for name, game in games.items()}
    print_json(
        {
            "fields_exact": next(iter(fields.values()))["exact_next_state"],
            "fields_rewards": next(iter(fields.values()))["exact_rewards"],
            "exact_next_state": best["exact_next_state"],
            "observation_mse": best["observation_mse"],
            "reward_mse": best["reward_mse"],
            "impossible": sum(first["impossible_sampled"].values()),
            "games": games,
        },
        ["jax"],
    )


if __name__ == "__main__":
    main()
