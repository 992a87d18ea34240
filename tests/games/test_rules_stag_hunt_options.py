"""How the Markov stag hunt begins, and its options: prey that moves, an early end, arenas and obstacles.

As in `test_rules_stag_hunt`, every sentence of the rules with the tests that fail where it is broken.
"""

from itertools import permutations

import numpy as np

from hopplus.games.board import Board
from hopplus.games.stag_hunt import StagHunt
from situations import (
    assert_as_likely,
    assert_even,
    assert_table_is_complete,
    first_states,
    hunt,
    look,
    parts,
    places,
    play,
    step,
    step_often,
)

UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
RULES = {
    "prey stand still by default": ["test_prey_stand_still_by_default"],
    "with prey_moves p: after the hunts": [
        "test_prey_is_caught_where_it_stood",
        "test_caught_prey_makes_room_before_the_others_move",
        "test_a_stag_that_is_not_caught_moves_after_the_hunt",
    ],
    "with prey_moves p: each live prey": ["test_caught_prey_neither_moves_nor_blocks"],
    "with prey_moves p: in a random order": ["test_prey_move_in_every_order_equally_often"],
    "with prey_moves p: with probability p a uniform step": ["test_each_prey_moves_with_its_own_chance_and_evenly"],
    "with prey_moves p: onto a neighbouring cell without obstacle or other prey": [
        "test_prey_keep_off_obstacles_and_each_other_but_not_off_players"
    ],
    "steps_after_first_catch: the episode ends that many steps after the first catch": [
        "test_the_episode_ends_so_many_steps_after_the_first_catch",
        "test_a_catch_may_end_the_episode_at_once",
        "test_the_first_catch_does_not_put_off_the_horizon",
    ],
    "steps_after_first_catch is off by default": ["test_a_catch_does_not_end_the_episode_by_default"],
    "arenas: off unless asked for": ["test_there_are_no_walls_by_default"],
    "arenas: a square of the board, the rest obstacle": ["test_all_but_a_square_is_obstacle"],
    "arenas: side uniform in a range, place uniform": [
        "test_arenas_have_every_side_and_place_equally_often",
        "test_arenas_with_obstacles_have_every_side_and_place_equally_often",
    ],
    # That a prototype learned 2.4 in arenas is a finding, not a rule.
    "obstacle pieces are random shapes of 3 or 4 cells": [
        "test_an_obstacle_piece_is_any_shape_of_three_or_four_cells",
        "test_there_are_as_many_pieces_as_asked_for",
    ],
    "all free cells stay connected": ["test_free_cells_are_connected"],
    "spawns: players and prey on distinct free cells": ["test_spawns_are_on_distinct_free_cells"],
    "spawns: uniformly": [
        "test_every_choice_of_distinct_cells_is_equally_likely",
        "test_every_cell_of_the_standard_board_is_equally_likely_for_everything",
        "test_every_choice_of_free_cells_between_walls_is_equally_likely",
    ],
}

SMALL = StagHunt(grid=Board(4, 4))
RESTLESS = StagHunt(grid=Board(3, 5), num_players=1, num_hares=1, prey_moves=0.3)
# Arenas make it a board with walls; a situation says which cells they are.
CROWDED = StagHunt(grid=Board(3, 3, arena_sides=(3, 3)), num_players=1, num_hares=1, prey_moves=1.0)
QUEUE = StagHunt(grid=Board(1, 4), num_players=1, num_hares=2, prey_moves=1.0)
SHORT = StagHunt(grid=Board(4, 4), steps_after_first_catch=2)
AT_ONCE = StagHunt(grid=Board(4, 4), steps_after_first_catch=0)
ARENAS = StagHunt(grid=Board(5, 6, arena_sides=(3, 4)))
# With nine players and prey no piece fits into an arena of nine cells: they fall outside, or into the larger ones.
ARENAS_AND_OBSTACLES = StagHunt(grid=Board(5, 6, obstacle_pieces=1, arena_sides=(3, 4)))
ONE_PIECE = StagHunt(grid=Board(6, 6, obstacle_pieces=1))
OBSTACLES = StagHunt(grid=Board(obstacle_pieces=5))


def test_every_rule_has_its_tests():
    assert_table_is_complete(RULES, globals())


def spawns(game: StagHunt) -> np.ndarray:
    """[episodes, things]: the cells of the players, then of the prey."""
    first = first_states(game)
    return np.concatenate([first.position, first.prey_position], axis=-1)


def prey_places(game: StagHunt, states) -> list[tuple]:
    """For each state, where its prey is."""
    return [tuple(places(game, cells)) for cells in states.prey_position]


def test_prey_stand_still_by_default():
    assert StagHunt().prey_moves == 0.0
    state = hunt(SMALL, [(0, 0), (1, 1), (2, 2), (3, 3)], stags=[(1, 2)], hares=[(0, 0), (3, 0), (2, 1), (3, 3)])
    after, _ = play(SMALL, state, *[(STAY, RIGHT, LEFT, UP), (STAY, LEFT, RIGHT, DOWN)] * 3)
    assert after.prey_position.tolist() == state.prey_position.tolist()


def test_prey_is_caught_where_it_stood():
    state = hunt(CROWDED, players=[(1, 1)], stags=[(0, 0)], hares=[(1, 1)])
    after, rewards = step(CROWDED, state, HUNT_HARE)
    assert rewards == [1.0] and after.prey_alive.tolist() == [True, False]
    assert not step_often(CROWDED, state, HUNT_HARE).prey_alive[:, 1].any()


def test_caught_prey_makes_room_before_the_others_move():
    state = hunt(CROWDED, players=[(1, 1)], stags=[(1, 0)], hares=[(1, 1)], walls=[(0, 0), (2, 0)])
    after = step_often(CROWDED, state, HUNT_HARE)
    assert {stag for stag, _ in prey_places(CROWDED, after)} == {(1, 1)}


def test_a_stag_that_is_not_caught_moves_after_the_hunt():
    state = hunt(CROWDED, players=[(1, 1)], stags=[(1, 1)])
    after, rewards = step(CROWDED, state, HUNT_STAG)
    assert rewards == [0.0] and places(CROWDED, after.position) == [(1, 1)]
    moved_to = [stag for stag, _ in prey_places(CROWDED, step_often(CROWDED, state, HUNT_STAG))]
    assert_even(moved_to, [(0, 1), (1, 0), (1, 2), (2, 1)])


def test_caught_prey_neither_moves_nor_blocks():
    state = hunt(QUEUE, players=[(0, 0)], stags=[(0, 2)])  # the hares have been caught in the last cell
    after = step_often(QUEUE, state, STAY)
    assert_even([stag for stag, _, _ in prey_places(QUEUE, after)], [(0, 1), (0, 3)])
    assert {hare for _, *hares in prey_places(QUEUE, after) for hare in hares} == {(0, 3)}
    assert not after.prey_alive[:, 1:].any()


def test_prey_move_in_every_order_equally_often():
    """In a row with a gap at its end only the last can move; its neighbour can follow if its turn comes later."""
    state = hunt(QUEUE, players=[(0, 0)], stags=[(0, 0)], hares=[(0, 1), (0, 2)])
    columns = [tuple(column for _, column in prey) for prey in prey_places(QUEUE, step_often(QUEUE, state, STAY))]
    outcomes = {(0, 1, 3): 3 / 6, (0, 2, 3): 2 / 6, (1, 2, 3): 1 / 6}
    assert_as_likely(columns, outcomes)
    state = hunt(QUEUE, players=[(0, 0)], stags=[(0, 2)], hares=[(0, 1), (0, 0)])
    columns = [tuple(column for _, column in prey) for prey in prey_places(QUEUE, step_often(QUEUE, state, STAY))]
    assert_as_likely([tuple(reversed(column)) for column in columns], outcomes)


def test_each_prey_moves_with_its_own_chance_and_evenly():
    state = hunt(RESTLESS, players=[(2, 4)], stags=[(0, 3)], hares=[(1, 1)])
    of_stag = {(0, 3): 0.7, (0, 2): 0.1, (0, 4): 0.1, (1, 3): 0.1}
    of_hare = {(1, 1): 0.7, (0, 1): 0.075, (2, 1): 0.075, (1, 0): 0.075, (1, 2): 0.075}
    expected = {(stag, hare): of_stag[stag] * of_hare[hare] for stag in of_stag for hare in of_hare}
    assert_as_likely(prey_places(RESTLESS, step_often(RESTLESS, state, STAY)), expected)


def test_prey_keep_off_obstacles_and_each_other_but_not_off_players():
    """The hare in the middle has a wall above, the stag to its left, and a player below; the stag only the hare."""
    state = hunt(CROWDED, players=[(2, 1)], stags=[(1, 0)], hares=[(1, 1)], walls=[(0, 0), (0, 1), (2, 0)])
    after = step_often(CROWDED, state, STAY)
    assert_even(prey_places(CROWDED, after), [(stag, hare) for stag in [(1, 0), (1, 1)] for hare in [(2, 1), (1, 2)]])


def test_the_episode_ends_so_many_steps_after_the_first_catch():
    state = hunt(SHORT, [(1, 1), (2, 2), (3, 3), (3, 3)], stags=[(3, 3)], hares=[(1, 1), (2, 2)], time=9)
    uncaught, _ = step(SHORT, state, STAY, STAY, HUNT_STAG, STAY)
    waited, _ = play(SHORT, uncaught, *[(STAY, STAY, STAY, STAY)] * 3)
    assert look(SHORT, waited).over == [False] * 4, "a lone hunter catches nothing"
    first, _ = step(SHORT, waited, HUNT_HARE, STAY, STAY, STAY)
    assert look(SHORT, first).over == [True, False, False, False]
    second, _ = step(SHORT, first, STAY, HUNT_HARE, STAY, STAY)
    assert look(SHORT, second).over == [True, True, False, False]
    third, _ = step(SHORT, second, STAY, STAY, STAY, STAY)
    assert look(SHORT, third).over == [True] * 4, "a second catch gives no more time"


def test_a_catch_may_end_the_episode_at_once():
    state = hunt(AT_ONCE, players=[(1, 1), (2, 2), (3, 3), (3, 3)], hares=[(1, 1), (2, 2)])
    after, rewards = step(AT_ONCE, state, HUNT_HARE, STAY, STAY, STAY)
    assert rewards == [1.0, 0.0, 0.0, 0.0]
    assert look(AT_ONCE, after).over == [True] * 4


def test_the_first_catch_does_not_put_off_the_horizon():
    state = hunt(SHORT, players=[(1, 1), (2, 2), (3, 3), (3, 3)], hares=[(1, 1), (2, 2)], time=33)
    caught, _ = step(SHORT, state, HUNT_HARE, STAY, STAY, STAY)
    assert look(SHORT, caught).over == [True, False, False, False]
    after, _ = step(SHORT, caught, STAY, STAY, STAY, STAY)
    assert look(SHORT, after).over == [True] * 4


def test_a_catch_does_not_end_the_episode_by_default():
    assert StagHunt().steps_after_first_catch is None
    state = hunt(SMALL, players=[(1, 1), (2, 2), (3, 3), (3, 3)], hares=[(1, 1)])
    after, _ = play(SMALL, state, (HUNT_HARE, STAY, STAY, STAY), *[(STAY, STAY, STAY, STAY)] * 33)
    assert after.time == 34 and look(SMALL, after).over == [True, False, False, False]


def test_there_are_no_walls_by_default():
    assert not first_states(StagHunt()).walls.any()


def arena_of(walls: np.ndarray) -> tuple[int, int, int]:
    """The side, the top and the left of the smallest square around the free cells."""
    rows, columns = np.nonzero(~walls)
    side = max(rows.max() - rows.min(), columns.max() - columns.min()) + 1
    return int(side), int(rows.min()), int(columns.min())


def test_all_but_a_square_is_obstacle():
    for walls in first_states(ARENAS).walls[:500]:
        side, top, left = arena_of(walls)
        expected = np.ones((5, 6), bool)
        expected[top : top + side, left : left + side] = False
        assert np.array_equal(walls, expected)


def test_arenas_have_every_side_and_place_equally_often():
    of_three = {(3, top, left): 1 / 2 / 12 for top in range(3) for left in range(4)}
    of_four = {(4, top, left): 1 / 2 / 6 for top in range(2) for left in range(3)}
    assert_as_likely(map(arena_of, first_states(ARENAS).walls), of_three | of_four)


def test_arenas_with_obstacles_have_every_side_and_place_equally_often():
    arenas = [arena_of(walls) if (~walls).sum() == 9 else 4 for walls in first_states(ARENAS_AND_OBSTACLES).walls]
    assert_as_likely(arenas, {4: 1 / 2} | {(3, top, left): 1 / 2 / 12 for top in range(3) for left in range(4)})


def test_an_obstacle_piece_is_any_shape_of_three_or_four_cells():
    """Counting each turn and mirror image, there are 6 shapes of three connected cells and 19 of four."""
    shapes, covered = set(), np.zeros((6, 6), bool)
    for walls in np.unique(first_states(ONE_PIECE).walls, axis=0):
        (piece,) = parts(walls)
        top, left = min(row for row, _ in piece), min(column for _, column in piece)
        shapes.add(frozenset((row - top, column - left) for row, column in piece))
        covered |= walls
    assert sorted(map(len, shapes)) == [3] * 6 + [4] * 19
    assert covered.all(), "a piece may lie anywhere"


def test_there_are_as_many_pieces_as_asked_for():
    """Pieces may touch: a part of s cells is made of s/4 pieces at least and of s/3 at most."""
    for walls in np.unique(first_states(OBSTACLES).walls, axis=0)[:1_000]:
        sizes = np.array([len(part) for part in parts(walls)])
        fewest, most = -(-sizes // 4), sizes // 3
        assert np.all(fewest <= most) and fewest.sum() <= 5 <= most.sum(), sizes


def test_free_cells_are_connected():
    for game in (OBSTACLES, ARENAS_AND_OBSTACLES):
        for walls in np.unique(first_states(game).walls, axis=0)[:1_000]:
            assert len(parts(~walls)) == 1


def test_spawns_are_on_distinct_free_cells():
    for game in (StagHunt(), ARENAS, ARENAS_AND_OBSTACLES, OBSTACLES):
        first, cells = first_states(game), spawns(game)
        assert first.present.all() and first.prey_alive.all()
        assert all(len(set(of_episode)) == 9 for of_episode in cells.tolist())
        assert not np.take_along_axis(first.walls.reshape(len(cells), -1), cells, axis=1).any()


def test_every_choice_of_distinct_cells_is_equally_likely():
    game = StagHunt(grid=Board(2, 3), num_players=2, num_hares=1)
    assert_even(map(tuple, spawns(game).tolist()), permutations(range(6), 4))


def test_every_cell_of_the_standard_board_is_equally_likely_for_everything():
    cells = spawns(StagHunt())
    assert cells.shape[1] == 9
    for of_one in cells.T.tolist():
        assert_even(of_one, range(64))


def test_every_choice_of_free_cells_between_walls_is_equally_likely():
    game = StagHunt(grid=Board(3, 3, arena_sides=(2, 2)), num_players=2, num_hares=1)
    chosen = zip(map(arena_of, first_states(game).walls), map(tuple, spawns(game).tolist()), strict=True)
    corners = [(top, left, 3 * top + left) for top in range(2) for left in range(2)]
    assert_even(
        chosen,
        [
            ((2, top, left), order)
            for top, left, corner in corners
            for order in permutations([corner, corner + 1, corner + 3, corner + 4])
        ],
    )
