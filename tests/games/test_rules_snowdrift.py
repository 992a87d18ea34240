"""Every sentence of the rules of the Markov snowdrift, with the tests that fail where it is broken."""

from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.presets import make
from hopplus.games.snowdrift import Snowdrift
from situations import assert_even, assert_table_is_complete, drawn, first_states, look, places, play, snow, step

UP, DOWN, LEFT, RIGHT, STAY, REMOVE = range(6)
RULES = {
    "defaults: 8x8, 4 players, 6 drifts, horizon 50": ["test_the_defaults_are_those_of_the_rules"],
    "actions: four moves, stay, 5 remove": [
        "test_the_actions_are_numbered_as_in_the_rules",
        "test_each_move_leads_to_the_neighbouring_cell",
    ],
    "remove is legal on a drift": [
        "test_remove_is_legal_only_on_a_drift",
        "test_remove_is_illegal_where_the_drift_is_gone",
    ],
    "a removed drift gives +6 to every player": [
        "test_a_removed_drift_pays_six_to_every_player",
        "test_drifts_that_go_in_the_same_step_add_up",
        "test_nothing_is_paid_where_nothing_is_removed",
    ],
    "its cost of 4 is split among those who removed it in that step": [
        "test_the_cost_is_split_among_the_removers",
        "test_a_bystander_on_the_drift_does_not_pay",
        "test_one_who_arrives_or_leaves_in_that_step_does_not_pay",
        "test_each_drift_is_paid_by_its_own_removers",
    ],
    "a removed drift is gone": ["test_a_removed_drift_pays_only_once"],
    "nobody leaves": ["test_nobody_leaves"],
    "the episode ends when no drift is left": ["test_the_last_drift_ends_the_episode_for_everybody"],
    "or at the horizon": ["test_the_horizon_ends_the_episode_for_everybody", "test_nothing_happens_after_the_end"],
    "players may share cells": ["test_players_may_share_a_cell"],
    "planes: players in ego order, obstacles, drifts": [
        "test_every_seat_sees_itself_first_then_the_next_seats_then_obstacles_and_drifts",
        "test_planes_hold_zeros_and_ones_by_row_and_column",
    ],
    "best mean return 30": [
        "test_every_way_to_remove_a_drift_is_worth_five_on_average",
        "test_an_episode_with_all_drifts_removed_has_a_mean_return_of_thirty",
    ],
    # What the snowdrift takes over from the stag hunt without saying it again.
    "as there: a move is legal onto a free cell of the board": ["test_edges_and_obstacles_cannot_be_walked_on"],
    "as there: an illegal action acts as stay": ["test_an_illegal_action_acts_as_stay"],
    "as there: everything in a step happens at once": ["test_players_who_swap_cells_pass_through_each_other"],
    "as there: players and drifts begin on distinct free cells, uniformly": [
        "test_every_choice_of_distinct_cells_is_equally_likely",
        "test_every_cell_of_the_standard_board_is_equally_likely_for_everything",
        "test_spawns_keep_off_obstacles",
    ],
    "as there: time and the last joint action are observed": [
        "test_time_is_seen_as_a_share_of_the_horizon",
        "test_the_last_joint_action_is_seen_in_ego_order",
    ],
}

SMALL = Snowdrift(grid=Board(3, 4))
# Arenas make it a board with walls; a situation says which cells they are.
WALLED = Snowdrift(grid=Board(4, 5, arena_sides=(4, 4)))


def test_every_rule_has_its_tests():
    assert_table_is_complete(RULES, globals())


def test_the_defaults_are_those_of_the_rules():
    game = Snowdrift()
    assert (game.grid.height, game.grid.width, game.num_players, game.num_drifts, game.horizon) == (8, 8, 4, 6, 50)
    assert (game.benefit, game.cost) == (6.0, 4.0)
    assert (game.grid.obstacle_pieces, game.grid.arena_sides) == (0, None)
    assert make("snowdrift-8x8") == game


def test_the_actions_are_numbered_as_in_the_rules():
    assert SMALL.spec.action_names == ("up", "down", "left", "right", "stay", "remove")


def test_each_move_leads_to_the_neighbouring_cell():
    state = snow(WALLED, players=[(1, 1), (2, 2), (1, 3), (2, 1)], drifts=[(0, 0)])
    after, _ = step(WALLED, state, UP, DOWN, LEFT, RIGHT)
    assert places(WALLED, after.position) == [(0, 1), (3, 2), (1, 2), (2, 2)]
    after, _ = step(WALLED, state, STAY, STAY, STAY, STAY)
    assert places(WALLED, after.position) == [(1, 1), (2, 2), (1, 3), (2, 1)]


def test_remove_is_legal_only_on_a_drift():
    legal = look(SMALL, snow(SMALL, players=[(1, 1), (1, 2), (1, 1), (0, 1)], drifts=[(1, 1), (2, 2)])).legal
    assert [REMOVE in of_seat for of_seat in legal] == [True, False, True, False]
    assert all(STAY in of_seat for of_seat in legal)


def test_remove_is_illegal_where_the_drift_is_gone():
    state = snow(SMALL, players=[(1, 1)] * 4, drifts=[(1, 1), (2, 2)])
    after, _ = step(SMALL, state, REMOVE, STAY, STAY, STAY)
    assert all(REMOVE not in of_seat for of_seat in look(SMALL, after).legal)


def test_a_removed_drift_pays_six_to_every_player():
    state = snow(SMALL, players=[(1, 1), (0, 0), (2, 3), (1, 2)], drifts=[(1, 1), (2, 2)])
    _, rewards = step(SMALL, state, REMOVE, STAY, UP, STAY)
    assert rewards == [6.0 - 4.0, 6.0, 6.0, 6.0]


def test_drifts_that_go_in_the_same_step_add_up():
    state = snow(SMALL, players=[(0, 0), (0, 1), (0, 2), (2, 3)], drifts=[(0, 0), (0, 1), (0, 2), (1, 0)])
    _, rewards = step(SMALL, state, REMOVE, REMOVE, REMOVE, STAY)
    assert rewards == [18.0 - 4.0, 18.0 - 4.0, 18.0 - 4.0, 18.0]


def test_nothing_is_paid_where_nothing_is_removed():
    state = snow(SMALL, players=[(0, 0), (0, 1), (0, 2), (2, 3)], drifts=[(0, 0), (1, 1)])
    after, rewards = step(SMALL, state, STAY, REMOVE, DOWN, UP)
    assert rewards == [0.0] * 4
    assert after.drift_remains.tolist() == state.drift_remains.tolist()


@pytest.mark.parametrize("removers", [1, 2, 3, 4])
def test_the_cost_is_split_among_the_removers(removers):
    state = snow(SMALL, players=[(1, 1)] * removers + [(2, 3)] * (4 - removers), drifts=[(1, 1), (2, 2)])
    _, rewards = step(SMALL, state, *[REMOVE] * removers, *[STAY] * (4 - removers))
    share = float(np.float32(6) - np.float32(4) / np.float32(removers))
    assert rewards == [share] * removers + [6.0] * (4 - removers)


def test_a_bystander_on_the_drift_does_not_pay():
    state = snow(SMALL, players=[(1, 1)] * 4, drifts=[(1, 1), (2, 2)])
    _, rewards = step(SMALL, state, STAY, REMOVE, STAY, REMOVE)
    assert rewards == [6.0, 4.0, 6.0, 4.0]


def test_one_who_arrives_or_leaves_in_that_step_does_not_pay():
    state = snow(SMALL, players=[(1, 1), (1, 0), (1, 1), (0, 1)], drifts=[(1, 1), (2, 2)])
    after, rewards = step(SMALL, state, REMOVE, RIGHT, RIGHT, REMOVE)
    assert rewards == [2.0, 6.0, 6.0, 6.0]
    assert places(SMALL, after.position) == [(1, 1), (1, 1), (1, 2), (0, 1)]


def test_each_drift_is_paid_by_its_own_removers():
    state = snow(SMALL, players=[(0, 0), (0, 0), (2, 2), (1, 1)], drifts=[(0, 0), (2, 2), (2, 3)])
    _, rewards = step(SMALL, state, REMOVE, REMOVE, REMOVE, STAY)
    assert rewards == [12.0 - 2.0, 12.0 - 2.0, 12.0 - 4.0, 12.0]


def test_a_removed_drift_pays_only_once():
    state = snow(SMALL, players=[(1, 1)] * 4, drifts=[(1, 1), (2, 2)])
    after, _ = step(SMALL, state, REMOVE, STAY, STAY, STAY)
    assert np.array_equal(look(SMALL, after).planes[0, :, :, -1], drawn(3, 4, [(2, 2)]))
    _, rewards = step(SMALL, after, REMOVE, REMOVE, STAY, STAY)
    assert rewards == [0.0] * 4


def test_nobody_leaves():
    state = snow(SMALL, players=[(1, 1)] * 4, drifts=[(1, 1), (1, 2)])
    after, _ = step(SMALL, state, REMOVE, REMOVE, REMOVE, STAY)
    seen = look(SMALL, after)
    assert seen.over == [False] * 4
    assert seen.legal == [{UP, DOWN, LEFT, RIGHT, STAY}] * 4
    assert np.array_equal(seen.planes[0, 1, 1, :4], [1, 1, 1, 1])
    _, again = play(SMALL, after, (RIGHT, STAY, STAY, STAY), (REMOVE, STAY, STAY, STAY))
    assert again == [2.0, 6.0, 6.0, 6.0]


def test_the_last_drift_ends_the_episode_for_everybody():
    state = snow(SMALL, players=[(0, 0), (0, 1), (2, 2), (2, 3)], drifts=[(0, 0), (0, 1)])
    one_left, _ = step(SMALL, state, REMOVE, STAY, STAY, STAY)
    assert look(SMALL, one_left).over == [False] * 4
    none_left, _ = step(SMALL, one_left, STAY, REMOVE, STAY, STAY)
    assert look(SMALL, none_left).over == [True] * 4


def test_the_horizon_ends_the_episode_for_everybody():
    state = snow(SMALL, players=[(0, 0), (0, 1), (2, 2), (2, 3)], drifts=[(0, 0)], time=48)
    before, _ = step(SMALL, state, STAY, STAY, STAY, STAY)
    assert look(SMALL, before).over == [False] * 4
    at_horizon, _ = step(SMALL, before, STAY, STAY, STAY, STAY)
    assert look(SMALL, at_horizon).over == [True] * 4


def test_nothing_happens_after_the_end():
    state = snow(SMALL, players=[(0, 0), (0, 1), (2, 2), (2, 3)], drifts=[(0, 0)], time=50)
    assert look(SMALL, state).legal == [{STAY}] * 4
    after, rewards = step(SMALL, state, REMOVE, DOWN, UP, LEFT)
    assert rewards == [0.0] * 4
    assert after.position.tolist() == state.position.tolist()
    assert look(SMALL, after).over == [True] * 4


def test_players_may_share_a_cell():
    state = snow(SMALL, players=[(0, 1), (2, 1), (1, 0), (1, 2)], drifts=[(0, 0)])
    after, _ = step(SMALL, state, DOWN, UP, RIGHT, LEFT)
    assert places(SMALL, after.position) == [(1, 1)] * 4


def test_every_seat_sees_itself_first_then_the_next_seats_then_obstacles_and_drifts():
    players, walls, drifts = [(0, 0), (1, 4), (3, 2), (0, 3)], [(2, 2), (2, 3)], [(3, 4), (1, 1), (0, 3)]
    views = look(WALLED, snow(WALLED, players, drifts, walls)).planes
    for viewer, order in enumerate([(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)]):
        marked = [[players[seat]] for seat in order] + [walls, drifts]
        assert np.array_equal(views[viewer], np.stack([drawn(4, 5, cells) for cells in marked], axis=-1))


def test_planes_hold_zeros_and_ones_by_row_and_column():
    views = look(WALLED, snow(WALLED, players=[(1, 1)] * 4, drifts=[(1, 1)], walls=[(0, 0)])).planes
    assert views.shape == (4, 4, 5, 4 + 2)
    assert views.dtype == np.uint8
    assert set(np.unique(views)) == {0, 1}
    assert [plane.name for plane in SMALL.spec.planes[-2:]] == ["obstacles", "drifts"]


def test_every_way_to_remove_a_drift_is_worth_five_on_average():
    base = snow(SMALL, players=[(1, 1)] * 4, drifts=[(1, 1), (2, 2)])
    all_ways = jnp.array(list(product([STAY, REMOVE], repeat=4)), jnp.int32)
    step_each = jax.jit(jax.vmap(lambda actions: SMALL.step(base, actions, key=jax.random.key(0))[1]))
    means = np.asarray(step_each(all_ways)).mean(axis=1)
    assert means[0] == 0.0
    np.testing.assert_allclose(means[1:], (4 * 6 - 4) / 4, rtol=1e-6)
    assert Snowdrift().num_drifts * (4 * 6 - 4) / 4 == 30.0


def test_an_episode_with_all_drifts_removed_has_a_mean_return_of_thirty():
    drifts = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 2)]
    state = snow(SMALL, players=[(0, 2), (1, 2), (2, 1), (2, 3)], drifts=drifts)
    end, returns = play(
        SMALL,
        state,
        (LEFT, LEFT, LEFT, LEFT),
        (REMOVE, REMOVE, REMOVE, REMOVE),
        (LEFT, LEFT, UP, STAY),
        (REMOVE, REMOVE, REMOVE, STAY),
    )
    assert look(SMALL, end).over == [True] * 4
    assert returns == [36 - 4 - 4, 36 - 4 - 2, 36 - 4 - 2, 36 - 4]
    assert np.mean(returns) == (6 * 4 * 6 - 6 * 4) / 4 == 30.0


def test_edges_and_obstacles_cannot_be_walked_on():
    players, walls = [(0, 0), (3, 4), (1, 2), (2, 2)], [(0, 2), (1, 1)]
    state = snow(WALLED, players, drifts=[(1, 3), (3, 3)], walls=walls)
    assert look(WALLED, state).legal == [
        {DOWN, RIGHT, STAY},
        {UP, LEFT, STAY},
        {DOWN, RIGHT, STAY},
        {UP, DOWN, LEFT, RIGHT, STAY},
    ]


def test_an_illegal_action_acts_as_stay():
    players = [(0, 0), (3, 4), (1, 2), (2, 2)]
    state = snow(WALLED, players, drifts=[(1, 1)], walls=[(0, 2)])
    for actions in [(UP, DOWN, UP, REMOVE), (LEFT, RIGHT, REMOVE, -1), (6, 99, -7, 6)]:
        after, rewards = step(WALLED, state, *actions)
        assert places(WALLED, after.position) == players
        assert rewards == [0.0] * 4
        assert look(WALLED, after).last_actions == [[STAY] * 4] * 4


def test_players_who_swap_cells_pass_through_each_other():
    state = snow(SMALL, players=[(1, 1), (1, 2), (0, 0), (1, 0)], drifts=[(2, 0)])
    after, _ = step(SMALL, state, RIGHT, LEFT, DOWN, UP)
    assert places(SMALL, after.position) == [(1, 2), (1, 1), (1, 0), (0, 0)]


def test_every_choice_of_distinct_cells_is_equally_likely():
    first = first_states(Snowdrift(grid=Board(2, 3), num_players=2, num_drifts=2))
    chosen = np.concatenate([first.position, first.drift_position], axis=-1).tolist()
    assert_even(map(tuple, chosen), permutations(range(6), 4))


def test_every_cell_of_the_standard_board_is_equally_likely_for_everything():
    first = first_states(Snowdrift())
    cells = np.concatenate([first.position, first.drift_position], axis=-1)
    assert cells.shape[1] == 10 and np.all(first.drift_remains) and not np.any(first.walls)
    assert all(len(set(of_episode)) == 10 for of_episode in cells.tolist())
    for of_one in cells.T.tolist():
        assert_even(of_one, range(64))


def test_spawns_keep_off_obstacles():
    first = first_states(WALLED)
    cells = np.concatenate([first.position, first.drift_position], axis=-1)
    assert np.all(first.walls.sum(axis=(1, 2)) == 4)
    assert not np.any(np.take_along_axis(first.walls.reshape(len(cells), -1), cells, axis=1))
    assert all(len(set(of_episode)) == 10 for of_episode in cells.tolist())


@pytest.mark.parametrize("time", [0, 7, 49, 50])
def test_time_is_seen_as_a_share_of_the_horizon(time):
    state = snow(SMALL, players=[(0, 0)] * 4, drifts=[(1, 1)], time=time)
    assert look(SMALL, state).time == [float(np.float32(time) / np.float32(50))] * 4


def test_the_last_joint_action_is_seen_in_ego_order():
    state = snow(SMALL, players=[(1, 1), (0, 0), (1, 2), (2, 3)], drifts=[(1, 1), (2, 2)])
    assert look(SMALL, state).last_actions == [[-1] * 4] * 4
    after, _ = step(SMALL, state, REMOVE, RIGHT, UP, STAY)
    assert look(SMALL, after).last_actions == [
        [REMOVE, RIGHT, UP, STAY],
        [RIGHT, UP, STAY, REMOVE],
        [UP, STAY, REMOVE, RIGHT],
        [STAY, REMOVE, RIGHT, UP],
    ]
