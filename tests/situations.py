"""Situations built by hand, one compiled program for each question to a game, and counts held against chance."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chisquare

from hopplus.games.coins import Coins, CoinsState
from hopplus.games.foraging import Foraging, ForagingState
from hopplus.games.game import Game
from hopplus.games.harvest import Harvest, HarvestState
from hopplus.games.snowdrift import Snowdrift, SnowdriftState
from hopplus.games.stag_hunt import StagHunt, StagHuntState

Place = tuple[int, int]
FALSE_ALARM = 1e-9
"""The probability that a rule which is kept is called broken. Seeds are fixed, so a test that passed stays passed."""


def hunt(
    game: StagHunt,
    players: Iterable[Place | None],
    stags: Iterable[Place] = (),
    hares: Iterable[Place] = (),
    walls: Iterable[Place] = (),
    time: int = 0,
) -> StagHuntState:
    """Everybody where they are said to be, as (row, column). Players and prey that are None or not named have left."""
    state = _programs(game).reset(jax.random.key(0))
    position, present = _cells(game, players, game.num_players)
    stag_cells, stags_alive = _cells(game, stags, game.num_stags)
    hare_cells, hares_alive = _cells(game, hares, game.num_hares)
    return replace(
        state,
        position=position,
        present=present,
        prey_position=jnp.concatenate([stag_cells, hare_cells]),
        prey_alive=jnp.concatenate([stags_alive, hares_alive]),
        walls=_walls(game, walls),
        time=jnp.int32(time),
    )


def snow(
    game: Snowdrift,
    players: Iterable[Place],
    drifts: Iterable[Place] = (),
    walls: Iterable[Place] = (),
    time: int = 0,
) -> SnowdriftState:
    """Everybody where they are said to be, as (row, column). Drifts that are not named have been removed."""
    state = _programs(game).reset(jax.random.key(0))
    position, _ = _cells(game, players, game.num_players)
    drift_position, drift_remains = _cells(game, drifts, game.num_drifts)
    return replace(
        state,
        position=position,
        drift_position=drift_position,
        drift_remains=drift_remains,
        walls=_walls(game, walls),
        time=jnp.int32(time),
    )


def coined(
    game: Coins, players: Iterable[Place], coins: Iterable[Place], walls: Iterable[Place] = (), time: int = 0
) -> CoinsState:
    """Everybody and everybody's coin where they are said to be, as (row, column)."""
    state = _programs(game).reset(jax.random.key(0))
    position, _ = _cells(game, players, game.num_players)
    coin_position, _ = _cells(game, coins, game.num_players)
    return replace(
        state, position=position, coin_position=coin_position, walls=_walls(game, walls), time=jnp.int32(time)
    )


def camp(
    game: Foraging,
    players: Mapping[Place, int],
    foods: Mapping[Place, int],
    walls: Iterable[Place] = (),
    time: int = 0,
) -> ForagingState:
    """Players and foods by place, as (row, column), each with its level. Foods that are not named have been taken."""
    state = _programs(game).reset(jax.random.key(0))
    position, _ = _cells(game, players, game.num_players)
    food_position, food_remains = _cells(game, foods, game.num_foods)
    food_level = [*foods.values(), *[1] * (game.num_foods - len(foods))]
    return replace(
        state,
        position=position,
        level=jnp.array(list(players.values()), jnp.int32),
        food_position=food_position,
        food_level=jnp.array(food_level, jnp.int32),
        food_remains=food_remains,
        walls=_walls(game, walls),
        time=jnp.int32(time),
    )


def orchard(
    game: Harvest,
    players: Iterable[Place | int],
    apples: Iterable[Place] = (),
    walls: Iterable[Place] = (),
    time: int = 0,
) -> HarvestState:
    """Each player where it is said to be, as (row, column), or away for so many steps; and the apples."""
    players = list(players)
    state = _programs(game).reset(jax.random.key(0))
    position, _ = _cells(game, [None if isinstance(one, int) else one for one in players], game.num_players)
    return replace(
        state,
        position=position,
        away=jnp.array([one if isinstance(one, int) else 0 for one in players], jnp.int32),
        apples=jnp.array(drawn(game.spec.height, game.spec.width, apples), bool),
        walls=_walls(game, walls),
        time=jnp.int32(time),
    )


def step(game: Game, state: Any, *actions: int) -> tuple[Any, list[float]]:
    """The next state and the rewards; chance is the same every time."""
    after, rewards = _programs(game).step(state, jnp.array(actions, jnp.int32), jax.random.key(1))
    return after, rewards.tolist()


def play(game: Game, state: Any, *joint_actions: tuple[int, ...]) -> tuple[Any, list[float]]:
    """The state after these steps, and what each seat got in all of them."""
    total = np.zeros(game.spec.num_agents)
    for actions in joint_actions:
        state, rewards = step(game, state, *actions)
        total += rewards
    return state, total.tolist()


def step_often(game: Game, state: Any, *actions: int, times: int = 4_000) -> Any:
    """The next states, stacked, for many draws of chance."""
    after, _ = _programs(game).step_often(
        state, jnp.array(actions, jnp.int32), jax.random.split(jax.random.key(2), times)
    )
    return jax.device_get(after)


def look(game: Game, state: Any) -> SimpleNamespace:
    """All that can be asked of a state: `legal` as a set of actions for each seat, `over`, and what each seat sees."""
    legal, terminated, seen = jax.device_get(_programs(game).look(state))
    return SimpleNamespace(
        legal=[set(np.flatnonzero(of_seat).tolist()) for of_seat in legal],
        over=terminated.tolist(),
        planes=seen["planes"],
        time=seen["time"].tolist(),
        last_actions=seen["last_actions"].tolist() if "last_actions" in seen else None,
    )


@cache
def first_states(game: Game, times: int = 6_000) -> Any:
    """The first states of many episodes, stacked."""
    return jax.device_get(_programs(game).reset_often(jax.random.split(jax.random.key(3), times)))


def places(game: Game, cells: Any) -> list[Place]:
    """Flat cells as (row, column)."""
    return [divmod(cell, game.spec.width) for cell in np.asarray(cells).tolist()]


def drawn(height: int, width: int, marked: Iterable[Place]) -> np.ndarray:
    """A plane with these places on it."""
    plane = np.zeros((height, width), np.uint8)
    for place in marked:
        plane[place] = 1
    return plane


def assert_as_likely(outcomes: Iterable[Hashable], expected: Mapping[Hashable, float]) -> None:
    """Nothing else happened than what is expected, and each as often as chance would have it."""
    outcomes = list(outcomes)
    assert set(outcomes) <= set(expected), f"impossible: {set(outcomes) - set(expected)}"
    assert np.isclose(sum(expected.values()), 1.0)
    counts = dict.fromkeys(expected, 0)
    for outcome in outcomes:
        counts[outcome] += 1
    likely = np.array(list(expected.values())) * len(outcomes)
    assert likely.min() >= 5, "too few samples for a chi-square test"
    p_value = chisquare(list(counts.values()), likely).pvalue
    assert p_value > FALSE_ALARM, f"p = {p_value:.1e} for {counts}"


def assert_even(outcomes: Iterable[Hashable], options: Iterable[Hashable]) -> None:
    """Every option is as likely as every other, and there are no more."""
    options = list(options)
    assert_as_likely(outcomes, dict.fromkeys(options, 1 / len(options)))


def parts(marked: np.ndarray) -> list[set[Place]]:
    """The connected parts of the marked cells, by flood fill."""
    left = {(int(row), int(column)) for row, column in np.argwhere(marked)}
    found = []
    while left:
        part, edge = set(), [left.pop()]
        while edge:
            row, column = edge.pop()
            part.add((row, column))
            near = {(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)} & left
            left -= near
            edge.extend(near)
        found.append(part)
    return found


def assert_table_is_complete(rules: Mapping[str, list[str]], names: Mapping[str, Any]) -> None:
    """Every test that a rule names exists, and every test belongs to a rule."""
    listed = {test for tests in rules.values() for test in tests}
    written = {name for name in names if name.startswith("test_")} - {"test_every_rule_has_its_tests"}
    assert listed - written == set(), "listed, but not written"
    assert written - listed == set(), "written, but not listed"
    assert all(rules.values()), "a rule without a test"


@cache
def _programs(game: Game) -> SimpleNamespace:
    return SimpleNamespace(
        reset=jax.jit(lambda key: game.reset(key=key)),
        reset_often=jax.jit(jax.vmap(lambda key: game.reset(key=key))),
        step=jax.jit(lambda state, actions, key: game.step(state, actions, key=key)),
        step_often=jax.jit(
            jax.vmap(lambda state, actions, key: game.step(state, actions, key=key), in_axes=(None, None, 0))
        ),
        look=jax.jit(lambda state: (game.legal(state), game.terminated(state), game.observe(state))),
    )


def _cells(game: Game, wanted: Iterable[Place | None], count: int) -> tuple[jax.Array, jax.Array]:
    """Flat cells, and which of them are in the game. Those that are not stand in the last corner."""
    spec, wanted = game.spec, list(wanted)
    assert len(wanted) <= count, f"{len(wanted)} places for {count}"
    wanted += [None] * (count - len(wanted))
    corner = (spec.height - 1, spec.width - 1)
    cells = [row * spec.width + column for row, column in (place or corner for place in wanted)]
    return jnp.array(cells, jnp.int32), jnp.array([place is not None for place in wanted], bool)


def _walls(game: Game, walls: Iterable[Place]) -> jax.Array:
    walls = list(walls)
    assert game.grid.has_walls or not walls, "this board is set up without walls, and does not look at them"
    return jnp.array(drawn(game.spec.height, game.spec.width, walls), bool)
