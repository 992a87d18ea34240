"""Every sentence of the rules of foraging, with the tests that fail where it is broken."""

from itertools import permutations

import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.foraging import Foraging
from hopplus.games.presets import make
from situations import assert_even, assert_table_is_complete, camp, drawn, first_states, look, places, step

UP, DOWN, LEFT, RIGHT, STAY, LOAD = range(6)
RULES = {
    "defaults: 8x8, 4 players, 4 foods, levels up to 2 and 3, horizon 40": ["test_the_defaults_are_those_of_the_rules"],
    "levels above 3 are refused": ["test_levels_are_at_most_three"],
    "actions: four moves, stay, 5 load; an illegal action acts as stay": [
        "test_each_move_leads_to_the_neighbouring_cell",
        "test_load_is_legal_beside_food_only",
    ],
    "foods, players and walls block cells": ["test_nobody_walks_onto_food_players_or_walls"],
    "of players that move to the same cell none moves": ["test_of_several_who_want_a_cell_none_gets_it"],
    "nobody swaps places or follows": ["test_nobody_follows_or_swaps"],
    "last_actions show what was tried": ["test_of_several_who_want_a_cell_none_gets_it"],
    "a food is taken if the loaders' levels sum to its own or more": [
        "test_a_food_is_taken_by_those_who_are_strong_enough_together",
        "test_who_stands_beside_and_does_not_load_does_not_help",
        "test_diagonal_neighbours_do_not_load",
    ],
    "its level is split in proportion to theirs": ["test_shares_are_in_proportion_to_levels"],
    "a player that loads takes part in all foods around it": ["test_one_load_is_for_all_foods_around"],
    "levels are uniform, visible and constant": [
        "test_levels_and_cells_are_uniform_at_the_start",
        "test_every_seat_sees_players_foods_and_levels",
    ],
    "the episode ends when no food is left or at the horizon": [
        "test_the_last_food_ends_the_episode_for_all",
        "test_the_horizon_ends_the_episode_for_all",
    ],
    "events: a part in a food of each level": ["test_events_name_the_level_of_the_food"],
    "best mean return 2.0": ["test_an_episode_is_worth_the_sum_of_its_foods"],
}
GAME = Foraging(grid=Board(4, 5, arena_sides=(4, 4)), num_players=3, num_foods=2, player_levels=3)


def test_every_rule_has_its_tests():
    assert_table_is_complete(RULES, globals())


def test_the_defaults_are_those_of_the_rules():
    assert make("foraging-8x8") == Foraging(
        grid=Board(8, 8), num_players=4, num_foods=4, player_levels=2, food_levels=3, horizon=40
    )
    assert GAME.spec.action_names == ("up", "down", "left", "right", "stay", "load")


@pytest.mark.parametrize("levels", [{"player_levels": 4}, {"food_levels": 4}, {"food_levels": 0}])
def test_levels_are_at_most_three(levels):
    with pytest.raises(ValueError, match="give 1 to 3"):
        Foraging(**levels)


def test_each_move_leads_to_the_neighbouring_cell():
    state = camp(GAME, {(1, 1): 1, (2, 3): 1, (3, 0): 1}, {(0, 4): 1})
    for action, change in ((UP, (-1, 0)), (DOWN, (1, 0)), (LEFT, (0, -1)), (RIGHT, (0, 1)), (STAY, (0, 0))):
        after, _ = step(GAME, state, action, STAY, STAY)
        assert places(GAME, after.position)[0] == (1 + change[0], 1 + change[1])


def test_load_is_legal_beside_food_only():
    state = camp(GAME, {(1, 1): 1, (2, 3): 1, (0, 0): 1}, {(1, 2): 3})
    assert [LOAD in of_seat for of_seat in look(GAME, state).legal] == [True, False, False]
    after, rewards = step(GAME, state, STAY, LOAD, LOAD)
    assert after.last_actions.tolist() == [STAY] * 3 and rewards == [0.0] * 3


def test_nobody_walks_onto_food_players_or_walls():
    state = camp(GAME, {(1, 1): 1, (1, 0): 1, (3, 4): 1}, {(1, 2): 3}, walls=[(0, 1)])
    legal = look(GAME, state).legal
    assert legal[0] == {DOWN, STAY, LOAD} and legal[1] == {UP, DOWN, STAY} and legal[2] == {UP, LEFT, STAY}
    after, _ = step(GAME, state, RIGHT, RIGHT, DOWN)
    assert places(GAME, after.position) == [(1, 1), (1, 0), (3, 4)]


def test_of_several_who_want_a_cell_none_gets_it():
    state = camp(GAME, {(1, 1): 1, (1, 3): 2, (0, 2): 3}, {(3, 0): 3})
    after, _ = step(GAME, state, RIGHT, LEFT, DOWN)
    assert places(GAME, after.position) == [(1, 1), (1, 3), (0, 2)]
    assert after.last_actions.tolist() == [RIGHT, LEFT, DOWN]
    after, _ = step(GAME, state, RIGHT, LEFT, LEFT)
    assert places(GAME, after.position) == [(1, 1), (1, 3), (0, 1)]


def test_nobody_follows_or_swaps():
    state = camp(GAME, {(1, 1): 1, (1, 2): 2, (3, 4): 3}, {(3, 0): 3})
    after, _ = step(GAME, state, RIGHT, RIGHT, STAY)
    assert places(GAME, after.position) == [(1, 1), (1, 3), (3, 4)]
    after, _ = step(GAME, state, RIGHT, LEFT, STAY)
    assert places(GAME, after.position) == [(1, 1), (1, 2), (3, 4)]


@pytest.mark.parametrize(("levels", "is_taken"), [((1, 1), False), ((1, 2), True), ((2, 2), True), ((1, 3), True)])
def test_a_food_is_taken_by_those_who_are_strong_enough_together(levels, is_taken):
    state = camp(GAME, {(1, 1): levels[0], (1, 3): levels[1], (3, 4): 3}, {(1, 2): 3, (3, 0): 1})
    after, rewards = step(GAME, state, LOAD, LOAD, STAY)
    assert after.food_remains.tolist() == [not is_taken, True]
    assert sum(rewards) == pytest.approx(3.0 * is_taken)


def test_who_stands_beside_and_does_not_load_does_not_help():
    state = camp(GAME, {(1, 1): 1, (1, 3): 3, (0, 2): 1}, {(1, 2): 3})
    after, rewards = step(GAME, state, LOAD, STAY, LOAD)
    assert after.food_remains[0] and rewards == [0.0] * 3


def test_diagonal_neighbours_do_not_load():
    state = camp(GAME, {(1, 1): 1, (0, 3): 3, (0, 1): 3}, {(1, 2): 3})
    assert LOAD not in look(GAME, state).legal[1]
    assert step(GAME, state, LOAD, LOAD, LOAD)[1] == [0.0] * 3


def test_shares_are_in_proportion_to_levels():
    state = camp(GAME, {(1, 1): 1, (1, 3): 2, (0, 2): 3}, {(1, 2): 3})
    assert step(GAME, state, LOAD, LOAD, STAY)[1] == [1.0, 2.0, 0.0]
    assert step(GAME, state, LOAD, LOAD, LOAD)[1] == [0.5, 1.0, 1.5]


def test_one_load_is_for_all_foods_around():
    state = camp(GAME, {(1, 1): 3, (3, 3): 1, (3, 4): 1}, {(1, 2): 3, (0, 1): 2})
    after, rewards = step(GAME, state, LOAD, STAY, STAY)
    assert rewards == [5.0, 0.0, 0.0] and not after.food_remains.any()


def test_levels_and_cells_are_uniform_at_the_start():
    first = first_states(GAME)
    for of_seat in first.level.T:
        assert_even(of_seat.tolist(), [1, 2, 3])
    for of_food in first.food_level.T:
        assert_even(of_food.tolist(), [1, 2, 3])
    cells = np.concatenate([first.position, first.food_position], axis=-1)
    assert all(len(set(row)) == 5 for row in cells.tolist())
    rows = first.position // 5 < first.food_position[:, :1] // 5
    assert np.ptp(rows.mean(axis=0)) < 0.03, "no seat spawns nearer to the top than another"


def test_every_seat_sees_players_foods_and_levels():
    players, foods, walls = {(0, 0): 1, (1, 1): 3, (2, 2): 3}, {(3, 0): 2, (3, 2): 3}, [(0, 4)]
    seen = look(GAME, camp(GAME, players, foods, walls=walls))
    where = list(players)
    for seat in range(3):
        shown = [[where[each]] for each in [*range(seat, 3), *range(seat)]]
        shown += [walls, [], [(3, 0)], [(3, 2)], [(0, 0)], [], [(1, 1), (2, 2)]]
        expected = np.stack([drawn(4, 5, marked) for marked in shown], axis=-1)
        np.testing.assert_array_equal(seen.planes[seat], expected)


def test_the_last_food_ends_the_episode_for_all():
    state = camp(GAME, {(1, 1): 3, (3, 3): 1, (3, 4): 1}, {(1, 2): 3})
    after, _ = step(GAME, state, LOAD, STAY, STAY)
    assert look(GAME, after).over == [True] * 3 and look(GAME, after).legal == [{STAY}] * 3


def test_the_horizon_ends_the_episode_for_all():
    state = camp(GAME, {(1, 1): 3, (3, 3): 1, (3, 4): 1}, {(1, 2): 3}, time=39)
    assert look(GAME, state).over == [False] * 3
    assert look(GAME, step(GAME, state, STAY, STAY, STAY)[0]).over == [True] * 3


def test_events_name_the_level_of_the_food():
    state = camp(GAME, {(1, 1): 1, (1, 3): 2, (3, 1): 1}, {(1, 2): 3, (3, 2): 1})
    after, rewards = step(GAME, state, LOAD, LOAD, LOAD)
    events = GAME.events(state, after.last_actions, after, jnp.asarray(rewards, jnp.float32))
    assert [event.name for event in GAME.spec.events] == ["foods_1", "foods_2", "foods_3"]
    assert events.tolist() == [[False, False, True], [False] * 3, [True, True, False]]


@pytest.mark.parametrize("levels", list(permutations((1, 2, 3))))
def test_an_episode_is_worth_the_sum_of_its_foods(levels):
    players = dict(zip([(1, 1), (1, 3), (0, 2)], levels, strict=True))
    after, rewards = step(GAME, camp(GAME, players, {(1, 2): 2, (3, 0): 1}), LOAD, LOAD, LOAD)
    assert sum(rewards) == pytest.approx(2.0) and not after.food_remains[0]
