"""Every sentence of the rules of the Markov stag hunt, with the tests that fail where it is broken."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.presets import make
from hopplus.games.stag_hunt import StagHunt
from situations import assert_table_is_complete, drawn, hunt, look, places, play, step

UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
NOTHING = [0.0] * 4
RULES = {
    "defaults: 8x8, 4 players, 1 stag, 4 hares, horizon 35, rewards 10 and 1, no obstacles": [
        "test_the_defaults_are_those_of_the_rules"
    ],
    "4x4 is the small standard, 5 obstacle pieces the harder setting": ["test_the_standard_settings_have_names"],
    "actions: 0 up, 1 down, 2 left, 3 right, 4 stay, 5 hunt stag, 6 hunt hare": [
        "test_the_actions_are_numbered_as_in_the_rules",
        "test_each_move_leads_to_the_neighbouring_cell",
    ],
    "legal: a move onto a free cell of the board": [
        "test_edges_and_obstacles_cannot_be_walked_on",
        "test_players_and_prey_do_not_block_a_move",
    ],
    "legal: stay": ["test_staying_is_always_legal"],
    "legal: hunt X only on a cell with a live X": ["test_hunting_is_legal_only_on_live_prey_of_that_kind"],
    "an illegal action acts as stay": ["test_an_illegal_action_acts_as_stay"],
    "a player who has left has only stay": ["test_a_player_who_has_left_has_only_stay"],
    "everything in a step happens at once": [
        "test_players_who_swap_cells_pass_through_each_other",
        "test_one_who_arrives_or_leaves_in_the_step_of_a_catch_has_no_part_in_it",
        "test_catches_in_different_places_happen_in_the_same_step",
    ],
    "players may share a cell": ["test_players_may_share_a_cell"],
    "hunters do not move": ["test_hunters_do_not_move"],
    "a stag is caught when at least two players on its cell hunt it in the same step": [
        "test_two_hunters_on_different_stags_catch_neither",
        "test_two_hunters_in_different_steps_catch_nothing",
        "test_the_reward_of_a_stag_is_split_among_its_hunters",
    ],
    "its reward is split equally among exactly those hunters": [
        "test_the_reward_of_a_stag_is_split_among_its_hunters",
        "test_a_bystander_on_the_cell_of_a_stag_gets_nothing",
    ],
    "a lone hunter gets nothing and stays in the game": ["test_a_lone_hunter_of_a_stag_gets_nothing_and_plays_on"],
    "a hare is caught by one hunter or more, its reward split equally among them": [
        "test_the_reward_of_a_hare_is_split_among_its_hunters",
        "test_a_bystander_on_the_cell_of_a_hare_gets_nothing",
    ],
    "the caught prey and its hunters leave the board": ["test_caught_prey_and_its_hunters_leave_the_board"],
    "no more observations, actions or rewards for them": [
        "test_one_who_has_left_sees_nothing",
        "test_one_who_has_left_does_and_gets_nothing",
        "test_caught_prey_cannot_be_caught_again",
    ],
    "the episode ends for everybody when all players have left": [
        "test_the_episode_ends_when_all_have_left",
        "test_the_episode_goes_on_while_a_player_is_left_even_without_prey",
    ],
    "or the horizon is reached": ["test_the_horizon_ends_the_episode_for_everybody"],
    "time is observed": ["test_time_is_seen_as_a_share_of_the_horizon"],
    "the horizon is a real end": ["test_nothing_happens_after_the_horizon"],
    # Spawns, moving prey, an early end, arenas and obstacles: test_rules_stag_hunt_options.py.
    "observation: H x W x (players + 3) planes of zeros and ones": [
        "test_planes_hold_zeros_and_ones_by_row_and_column"
    ],
    "own position, others in seat order after the viewer, obstacles, stags, hares": [
        "test_every_seat_sees_itself_first_then_the_next_seats_then_obstacles_stags_and_hares"
    ],
    "also given: time t/horizon": ["test_time_is_seen_as_a_share_of_the_horizon"],
    "also given: the last joint action in the same seat order": ["test_the_last_joint_action_is_seen_in_ego_order"],
    "a player who has left has an empty plane": [
        "test_every_seat_sees_itself_first_then_the_next_seats_then_obstacles_stags_and_hares",
        "test_caught_prey_and_its_hunters_leave_the_board",
    ],
    "best mean return 3.0, all on the stag 2.5, all on hares 1.0": [
        "test_the_best_of_all_ways_to_hunt_has_a_mean_return_of_three",
        "test_an_episode_with_two_on_the_stag_and_two_on_hares_has_a_mean_return_of_three",
    ],
}

SMALL = StagHunt(grid=Board(4, 4))
# Arenas make it a board with walls; a situation says which cells they are.
WALLED = StagHunt(grid=Board(3, 4, arena_sides=(3, 3)))
TWO_STAGS = StagHunt(grid=Board(2, 2), num_players=2, num_stags=2, num_hares=0)


def test_every_rule_has_its_tests():
    assert_table_is_complete(RULES, globals())


def test_the_defaults_are_those_of_the_rules():
    game = StagHunt()
    assert (game.grid.height, game.grid.width, game.grid.obstacle_pieces, game.grid.arena_sides) == (8, 8, 0, None)
    assert (game.num_players, game.num_stags, game.num_hares, game.horizon) == (4, 1, 4, 35)
    assert (game.stag_reward, game.hare_reward) == (10.0, 1.0)


def test_the_standard_settings_have_names():
    assert make("stag-hunt-4x4") == SMALL
    assert make("stag-hunt-8x8") == StagHunt()
    assert make("stag-hunt-8x8-obstacles") == StagHunt(grid=Board(obstacle_pieces=5))


def test_the_actions_are_numbered_as_in_the_rules():
    assert SMALL.spec.action_names == ("up", "down", "left", "right", "stay", "hunt stag", "hunt hare")


def test_each_move_leads_to_the_neighbouring_cell():
    state = hunt(SMALL, players=[(1, 1), (2, 2), (1, 3), (2, 0)])
    after, _ = step(SMALL, state, UP, DOWN, LEFT, RIGHT)
    assert places(SMALL, after.position) == [(0, 1), (3, 2), (1, 2), (2, 1)]
    after, _ = step(SMALL, state, STAY, STAY, STAY, STAY)
    assert after.position.tolist() == state.position.tolist()


def test_edges_and_obstacles_cannot_be_walked_on():
    state = hunt(WALLED, players=[(0, 0), (2, 3), (1, 2), (2, 1)], walls=[(0, 2), (1, 1)])
    assert look(WALLED, state).legal == [
        {DOWN, RIGHT, STAY},
        {UP, LEFT, STAY},
        {DOWN, RIGHT, STAY},
        {LEFT, RIGHT, STAY},
    ]
    corners = look(SMALL, hunt(SMALL, players=[(0, 0), (0, 3), (3, 0), (3, 3)])).legal
    assert corners == [{DOWN, RIGHT, STAY}, {DOWN, LEFT, STAY}, {UP, RIGHT, STAY}, {UP, LEFT, STAY}]


def test_players_and_prey_do_not_block_a_move():
    state = hunt(SMALL, players=[(1, 1), (0, 1), (1, 0), (3, 3)], stags=[(1, 2)], hares=[(2, 1)])
    assert look(SMALL, state).legal[0] == {UP, DOWN, LEFT, RIGHT, STAY}
    after, _ = step(SMALL, state, RIGHT, STAY, RIGHT, UP)
    assert places(SMALL, after.position) == [(1, 2), (0, 1), (1, 1), (2, 3)]


def test_staying_is_always_legal():
    state = hunt(WALLED, players=[(0, 0), (1, 2), (2, 3), None], stags=[(1, 2)], hares=[(2, 3)], walls=[(0, 1), (1, 0)])
    assert look(WALLED, state).legal[0] == look(WALLED, state).legal[3] == {STAY}
    assert all(STAY in of_seat for of_seat in look(WALLED, state).legal)


def test_hunting_is_legal_only_on_live_prey_of_that_kind():
    prey = {"stags": [(1, 1)], "hares": [(2, 2), None, None, (2, 1)]}  # dead hares lie in the last corner
    legal = look(SMALL, hunt(SMALL, players=[(1, 1), (2, 1), (1, 2), (3, 3)], **prey)).legal
    assert [of_seat & {HUNT_STAG, HUNT_HARE} for of_seat in legal] == [{HUNT_STAG}, {HUNT_HARE}, set(), set()]
    legal = look(SMALL, hunt(SMALL, players=[(3, 3), (1, 1), (1, 1), (2, 2)], hares=[(2, 2)])).legal  # so does the stag
    assert [of_seat & {HUNT_STAG, HUNT_HARE} for of_seat in legal] == [set(), set(), set(), {HUNT_HARE}]


def test_an_illegal_action_acts_as_stay():
    players = [(0, 0), (2, 3), (1, 2), (2, 1)]
    state = hunt(WALLED, players, stags=[(1, 2)], hares=[(2, 1)], walls=[(0, 2), (1, 1)])
    hunts = [(LEFT, RIGHT, LEFT, HUNT_STAG), (HUNT_STAG, HUNT_HARE, HUNT_HARE, HUNT_STAG)]
    for actions in [(UP, DOWN, UP, UP), *hunts, (-1, 99, -7, 7)]:
        after, rewards = step(WALLED, state, *actions)
        assert places(WALLED, after.position) == players
        assert rewards == NOTHING
        assert look(WALLED, after).over == [False] * 4
        assert look(WALLED, after).last_actions == [[STAY] * 4] * 4


def test_a_player_who_has_left_has_only_stay():
    # The two who have left lie on the hare in the last corner.
    state = hunt(SMALL, players=[None, (3, 3), None, (1, 1)], hares=[(3, 3)])
    assert look(SMALL, state).legal == [{STAY}, {UP, LEFT, STAY, HUNT_HARE}, {STAY}, {UP, DOWN, LEFT, RIGHT, STAY}]
    after, _ = step(SMALL, state, UP, STAY, LEFT, STAY)
    assert after.position.tolist() == state.position.tolist()


def test_players_who_swap_cells_pass_through_each_other():
    state = hunt(SMALL, players=[(1, 1), (1, 2), (0, 0), (1, 0)])
    after, _ = step(SMALL, state, RIGHT, LEFT, DOWN, UP)
    assert places(SMALL, after.position) == [(1, 2), (1, 1), (1, 0), (0, 0)]


def test_one_who_arrives_or_leaves_in_the_step_of_a_catch_has_no_part_in_it():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (1, 0), (1, 1)], stags=[(1, 1)])
    after, rewards = step(SMALL, state, HUNT_STAG, HUNT_STAG, RIGHT, RIGHT)
    assert rewards == [5.0, 5.0, 0.0, 0.0]
    assert look(SMALL, after).over == [True, True, False, False]
    assert places(SMALL, after.position)[2:] == [(1, 1), (1, 2)]
    _, rewards = step(SMALL, state, HUNT_STAG, RIGHT, RIGHT, RIGHT)
    assert rewards == NOTHING


def test_catches_in_different_places_happen_in_the_same_step():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (0, 0), (2, 2)], stags=[(1, 1)], hares=[(0, 0), (2, 2), (3, 0)])
    after, rewards = step(SMALL, state, HUNT_STAG, HUNT_STAG, HUNT_HARE, HUNT_HARE)
    assert rewards == [5.0, 5.0, 1.0, 1.0]
    assert after.prey_alive.tolist() == [False, False, False, True, False]


def test_players_may_share_a_cell():
    after, _ = step(SMALL, hunt(SMALL, players=[(0, 1), (2, 1), (1, 0), (1, 2)]), DOWN, UP, RIGHT, LEFT)
    assert places(SMALL, after.position) == [(1, 1)] * 4


def test_hunters_do_not_move():
    state = hunt(SMALL, players=[(1, 1), (2, 2), (2, 2), (0, 0)], stags=[(1, 1)], hares=[(2, 2)])
    after, _ = step(SMALL, state, HUNT_STAG, HUNT_HARE, HUNT_HARE, RIGHT)
    assert places(SMALL, after.position)[0] == (1, 1)
    assert places(SMALL, after.position)[3] == (0, 1)


def test_two_hunters_on_different_stags_catch_neither():
    apart = hunt(TWO_STAGS, players=[(0, 0), (1, 1)], stags=[(0, 0), (1, 1)])
    after, rewards = step(TWO_STAGS, apart, HUNT_STAG, HUNT_STAG)
    assert rewards == [0.0, 0.0] and after.prey_alive.tolist() == [True, True]
    together = hunt(TWO_STAGS, players=[(1, 1), (1, 1)], stags=[(0, 0), (1, 1)])
    after, rewards = step(TWO_STAGS, together, HUNT_STAG, HUNT_STAG)
    assert rewards == [5.0, 5.0] and after.prey_alive.tolist() == [True, False]


def test_two_hunters_in_different_steps_catch_nothing():
    state = hunt(SMALL, players=[(1, 1), (1, 1)], stags=[(1, 1)])
    turns = [(HUNT_STAG, STAY, STAY, STAY), (STAY, HUNT_STAG, STAY, STAY)]
    after, rewards = play(SMALL, state, *turns)
    assert rewards == NOTHING and after.prey_alive[0]


@pytest.mark.parametrize("hunters", [2, 3, 4])
def test_the_reward_of_a_stag_is_split_among_its_hunters(hunters):
    state = hunt(SMALL, players=[(1, 1)] * hunters + [(2, 3)] * (4 - hunters), stags=[(1, 1)], hares=[(2, 3)])
    after, rewards = step(SMALL, state, *[HUNT_STAG] * hunters, *[STAY] * (4 - hunters))
    assert rewards == [float(np.float32(10) / np.float32(hunters))] * hunters + [0.0] * (4 - hunters)
    assert after.prey_alive[:2].tolist() == [False, True]


def test_a_bystander_on_the_cell_of_a_stag_gets_nothing():
    state = hunt(SMALL, players=[(1, 1)] * 4, stags=[(1, 1)])
    after, rewards = step(SMALL, state, STAY, HUNT_STAG, HUNT_HARE, HUNT_STAG)
    assert rewards == [0.0, 5.0, 0.0, 5.0]
    assert look(SMALL, after).over == [False, True, False, True]


def test_a_lone_hunter_of_a_stag_gets_nothing_and_plays_on():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (0, 0), (0, 0)], stags=[(1, 1)])
    after, rewards = step(SMALL, state, HUNT_STAG, STAY, HUNT_STAG, STAY)
    assert rewards == NOTHING
    assert look(SMALL, after).over == [False] * 4
    assert look(SMALL, after).legal[0] == {UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG}
    assert look(SMALL, after).planes[0, 1, 1].tolist() == [1, 1, 0, 0, 0, 1, 0]
    _, rewards = step(SMALL, after, HUNT_STAG, HUNT_STAG, STAY, STAY)
    assert rewards == [5.0, 5.0, 0.0, 0.0]


@pytest.mark.parametrize("hunters", [1, 2, 3, 4])
def test_the_reward_of_a_hare_is_split_among_its_hunters(hunters):
    state = hunt(SMALL, players=[(1, 1)] * hunters + [(2, 3)] * (4 - hunters), hares=[(0, 0), (2, 3), (1, 1)])
    after, rewards = step(SMALL, state, *[HUNT_HARE] * hunters, *[STAY] * (4 - hunters))
    assert rewards == [float(np.float32(1) / np.float32(hunters))] * hunters + [0.0] * (4 - hunters)
    assert after.prey_alive.tolist() == [False, True, True, False, False]
    assert look(SMALL, after).over == [True] * hunters + [False] * (4 - hunters)


def test_a_bystander_on_the_cell_of_a_hare_gets_nothing():
    state = hunt(SMALL, players=[(1, 1)] * 4, hares=[(1, 1)])
    after, rewards = step(SMALL, state, HUNT_HARE, STAY, HUNT_STAG, UP)
    assert rewards == [1.0, 0.0, 0.0, 0.0]
    assert look(SMALL, after).over == [True, False, False, False]


def test_caught_prey_and_its_hunters_leave_the_board():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1)], hares=[(2, 2), (3, 3)])
    after, _ = step(SMALL, state, HUNT_STAG, HUNT_STAG, HUNT_HARE, STAY)
    seen_by_the_last = look(SMALL, after).planes[3]
    marked = [[(0, 0)], [], [], [], [], [], [(3, 3)]]
    assert np.array_equal(seen_by_the_last, np.stack([drawn(4, 4, cells) for cells in marked], axis=-1))


def test_one_who_has_left_sees_nothing():
    state = hunt(SMALL, players=[(1, 1), (2, 2), (0, 0), (0, 1)], stags=[(3, 0)], hares=[(1, 1), (3, 3)], time=7)
    after, _ = step(SMALL, state, HUNT_HARE, UP, STAY, STAY)
    seen = look(SMALL, after)
    assert not seen.planes[0].any() and seen.time[0] == 0.0 and seen.last_actions[0] == [-1] * 4
    assert all(seen.planes[seat].any() and seen.time[seat] > 0.0 for seat in (1, 2, 3))


def test_one_who_has_left_does_and_gets_nothing():
    # Seat 0 has left, but what is left of it lies on the stag, where seat 1 hunts alone, and later with seat 2.
    state = hunt(SMALL, players=[None, (3, 3), (3, 3), (0, 0)], stags=[(3, 3)])
    after, rewards = step(SMALL, state, HUNT_STAG, HUNT_STAG, STAY, STAY)
    assert rewards == NOTHING and after.prey_alive[0]
    _, rewards = step(SMALL, state, HUNT_STAG, HUNT_STAG, HUNT_STAG, STAY)
    assert rewards == [0.0, 5.0, 5.0, 0.0]
    _, rewards = step(SMALL, hunt(SMALL, players=[None, (0, 0)], hares=[(3, 3)]), HUNT_HARE, STAY, STAY, STAY)
    assert rewards == NOTHING


def test_caught_prey_cannot_be_caught_again():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (1, 1), (1, 1)], hares=[(1, 1)])
    after, _ = step(SMALL, state, HUNT_HARE, STAY, STAY, STAY)
    _, rewards = step(SMALL, after, HUNT_HARE, HUNT_HARE, HUNT_HARE, STAY)
    assert rewards == NOTHING


def test_the_episode_ends_when_all_have_left():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1)], hares=[(2, 2), (0, 0)])
    one_left, _ = step(SMALL, state, HUNT_STAG, HUNT_STAG, HUNT_HARE, STAY)
    assert look(SMALL, one_left).over == [True, True, True, False]
    none_left, _ = step(SMALL, one_left, STAY, STAY, STAY, HUNT_HARE)
    assert look(SMALL, none_left).over == [True] * 4 and none_left.time == 2


def test_the_episode_goes_on_while_a_player_is_left_even_without_prey():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1)])
    after, _ = step(SMALL, state, HUNT_STAG, HUNT_STAG, STAY, STAY)
    assert look(SMALL, after).over == [True, True, False, False]
    after, _ = step(SMALL, after, STAY, STAY, UP, RIGHT)
    assert places(SMALL, after.position)[2:] == [(1, 2), (0, 1)]
    assert look(SMALL, after).over == [True, True, False, False]


def test_the_horizon_ends_the_episode_for_everybody():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1)], hares=[(0, 0)], time=33)
    before, _ = step(SMALL, state, STAY, STAY, STAY, STAY)
    assert look(SMALL, before).over == [False] * 4
    at_horizon, rewards = step(SMALL, before, HUNT_STAG, HUNT_STAG, STAY, STAY)
    assert look(SMALL, at_horizon).over == [True] * 4
    assert rewards == [5.0, 5.0, 0.0, 0.0], "the last step counts"


def test_nothing_happens_after_the_horizon():
    state = hunt(SMALL, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1)], hares=[(2, 2)], time=35)
    assert look(SMALL, state).legal == [{STAY}] * 4
    after, rewards = step(SMALL, state, HUNT_STAG, HUNT_STAG, HUNT_HARE, DOWN)
    assert rewards == NOTHING
    assert after.position.tolist() == state.position.tolist()
    assert look(SMALL, after).over == [True] * 4


@pytest.mark.parametrize("time", [0, 7, 34, 35])
def test_time_is_seen_as_a_share_of_the_horizon(time):
    state = hunt(SMALL, players=[(0, 0)] * 4, time=time)
    assert look(SMALL, state).time == [float(np.float32(time) / np.float32(35))] * 4


def test_planes_hold_zeros_and_ones_by_row_and_column():
    views = look(WALLED, hunt(WALLED, players=[(1, 1)] * 4, stags=[(1, 1)], hares=[(2, 2)], walls=[(0, 0)])).planes
    assert views.shape == (4, 3, 4, 4 + 3)
    assert views.dtype == np.uint8
    assert set(np.unique(views)) == {0, 1}


def test_every_seat_sees_itself_first_then_the_next_seats_then_obstacles_stags_and_hares():
    players, walls, stags, hares = [(0, 0), (1, 3), None, (2, 2)], [(0, 2), (0, 3)], [(1, 1)], [(2, 2), (2, 0)]
    views = look(WALLED, hunt(WALLED, players, stags, hares, walls)).planes
    for viewer, order in {0: (0, 1, 2, 3), 1: (1, 2, 3, 0), 3: (3, 0, 1, 2)}.items():
        marked = [[players[seat]] if players[seat] else [] for seat in order] + [walls, stags, hares]
        assert np.array_equal(views[viewer], np.stack([drawn(3, 4, cells) for cells in marked], axis=-1))
    assert [plane.name for plane in WALLED.spec.planes[4:]] == ["obstacles", "stags", "hares"]


def test_the_last_joint_action_is_seen_in_ego_order():
    state = hunt(SMALL, players=[(1, 1), (0, 0), (1, 2), (2, 3)], hares=[(1, 1)])
    assert look(SMALL, state).last_actions == [[-1] * 4] * 4
    after, _ = step(SMALL, state, HUNT_HARE, RIGHT, UP, STAY)
    turned = [[RIGHT, UP, STAY, HUNT_HARE], [UP, STAY, HUNT_HARE, RIGHT], [STAY, HUNT_HARE, RIGHT, UP]]
    assert look(SMALL, after).last_actions[1:] == turned, "the catch of one who leaves is still seen"
    after, _ = step(SMALL, after, HUNT_HARE, LEFT, DOWN, STAY)
    assert look(SMALL, after).last_actions[1] == [LEFT, DOWN, STAY, -1], "one who has left does nothing"


def test_the_best_of_all_ways_to_hunt_has_a_mean_return_of_three():
    """A player catches one thing at most and then leaves, so who hunts what is all that a return depends on."""
    stag, hares, nothing = (0, 0), [(1, 0), (1, 1), (1, 2), (1, 3)], (3, 3)
    base = hunt(SMALL, players=[nothing] * 4, stags=[stag], hares=hares)
    things = jnp.array([0, 4, 5, 6, 7, 15], jnp.int32)
    choices = np.array(list(product(range(6), repeat=4)))
    actions = jnp.array([HUNT_STAG, *[HUNT_HARE] * 4, STAY], jnp.int32)[choices]
    each_way = jax.jit(
        jax.vmap(lambda cells, acts: SMALL.step(replace(base, position=cells), acts, key=jax.random.key(0))[1])
    )
    returns = np.asarray(each_way(things[choices], actions)).mean(axis=1)
    assert returns.max() == (10 + 1 + 1) / 4 == 3.0
    assert returns[np.all(choices == 0, axis=1)] == 10 / 4 == 2.5
    on_hares = np.all((choices > 0) & (choices < 5), axis=1)
    assert returns[on_hares].max() == 4 * 1 / 4 == 1.0


def test_an_episode_with_two_on_the_stag_and_two_on_hares_has_a_mean_return_of_three():
    state = hunt(SMALL, [(0, 0), (3, 0), (0, 2), (2, 3)], [(1, 1)], [(0, 3), (3, 3), (0, 1), (2, 0)])
    turns = [(RIGHT, UP, RIGHT, DOWN), (DOWN, UP, HUNT_HARE, HUNT_HARE), (HUNT_STAG, RIGHT, STAY, STAY)]
    end, returns = play(SMALL, state, *turns, (HUNT_STAG, HUNT_STAG, STAY, STAY))
    assert look(SMALL, end).over == [True] * 4
    assert returns == [5.0, 5.0, 1.0, 1.0] and np.mean(returns) == 3.0
