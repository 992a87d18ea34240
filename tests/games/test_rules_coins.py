"""Every sentence of the rules of the coin game, with the tests that fail where it is broken."""

import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.presets import make
from situations import (
    assert_even,
    assert_table_is_complete,
    coined,
    drawn,
    first_states,
    look,
    places,
    step,
    step_often,
)

UP, DOWN, LEFT, RIGHT, STAY = range(5)
RULES = {
    "2 to 4 players; presets 3x3 with two and 5x5 with four; horizon 40": [
        "test_the_presets_are_those_of_the_rules",
        "test_other_numbers_of_players_are_refused",
    ],
    "actions: four moves, stay; an illegal action acts as stay": ["test_moves_stop_at_edges_and_walls"],
    "a coin of each player is on the board": ["test_everything_begins_on_a_cell_of_its_own_uniformly"],
    "whoever is on a coin after the moves takes it": [
        "test_a_coin_is_taken_by_walking_onto_it",
        "test_one_who_leaves_the_neighbouring_cell_takes_nothing",
    ],
    "+1 for any coin": ["test_a_coin_is_taken_by_walking_onto_it", "test_an_own_coin_costs_nobody"],
    "-2 for the owner when another takes it": ["test_a_coin_of_another_costs_its_owner_two"],
    "those who land on a coin in the same step share it equally, and the owner pays for the others' share": [
        "test_two_who_are_not_the_owner_share_and_the_owner_pays_two",
        "test_an_owner_who_shares_pays_for_the_others_share",
    ],
    "a taken coin comes back on a cell without wall, player or coin, uniformly": [
        "test_a_coin_comes_back_on_every_free_cell_alike",
        "test_two_coins_come_back_on_different_cells_in_every_way_alike",
        "test_a_coin_that_is_not_taken_stays",
    ],
    "players may share a cell and pass through each other": ["test_players_share_cells_and_pass_through_each_other"],
    "the episode ends for all at the horizon": ["test_the_horizon_ends_the_episode_for_all"],
    "planes: players in ego order, their coins in the same order, obstacles": [
        "test_every_seat_sees_its_own_coin_first"
    ],
    "events: own coins and coins of others": ["test_events_tell_own_coins_from_those_of_others"],
    "players who do not look at colours earn 1 - 2 (n - 1) / n for each coin": [
        "test_a_round_of_all_owners_and_takers_has_the_stated_sum"
    ],
}
TWO, THREE = Coins(), Coins(grid=Board(4, 5, arena_sides=(4, 4)), num_players=3)


def test_every_rule_has_its_tests():
    assert_table_is_complete(RULES, globals())


def test_the_presets_are_those_of_the_rules():
    assert make("coins-3x3") == Coins(grid=Board(3, 3), num_players=2, horizon=40, coin_reward=1.0, cost=2.0)
    assert make("coins-5x5") == Coins(grid=Board(5, 5), num_players=4, horizon=40)
    assert TWO.spec.action_names == ("up", "down", "left", "right", "stay")


@pytest.mark.parametrize("players", [1, 5])
def test_other_numbers_of_players_are_refused(players):
    with pytest.raises(ValueError, match="give 2 to 4"):
        Coins(num_players=players)


def test_moves_stop_at_edges_and_walls():
    state = coined(THREE, players=[(1, 1), (0, 0), (2, 3)], coins=[(3, 0), (3, 1), (3, 2)], walls=[(1, 2)])
    assert look(THREE, state).legal == [{UP, DOWN, LEFT, STAY}, {DOWN, RIGHT, STAY}, {UP, DOWN, LEFT, RIGHT, STAY}]
    after, _ = step(THREE, state, RIGHT, UP, 7)
    assert places(THREE, after.position) == [(1, 1), (0, 0), (2, 3)]
    assert after.last_actions.tolist() == [STAY, STAY, STAY]


def test_everything_begins_on_a_cell_of_its_own_uniformly():
    first = first_states(TWO)
    cells = np.concatenate([first.position, first.coin_position], axis=-1)
    assert all(len(set(row)) == 4 for row in cells.tolist())
    for column in cells.T:
        assert_even(column.tolist(), range(9))


def test_a_coin_is_taken_by_walking_onto_it():
    state = coined(TWO, players=[(0, 0), (2, 2)], coins=[(0, 1), (1, 1)])
    after, rewards = step(TWO, state, RIGHT, STAY)
    assert rewards == [1.0, 0.0]
    assert places(TWO, after.coin_position)[0] != (0, 1)


def test_one_who_leaves_the_neighbouring_cell_takes_nothing():
    state = coined(TWO, players=[(0, 0), (2, 2)], coins=[(0, 1), (1, 1)])
    assert step(TWO, state, DOWN, LEFT)[1] == [0.0, 0.0]


def test_an_own_coin_costs_nobody():
    state = coined(TWO, players=[(0, 0), (2, 1)], coins=[(0, 1), (1, 1)])
    assert step(TWO, state, RIGHT, UP)[1] == [1.0, 1.0]


def test_a_coin_of_another_costs_its_owner_two():
    state = coined(TWO, players=[(0, 0), (2, 1)], coins=[(1, 1), (0, 1)])
    assert step(TWO, state, RIGHT, STAY)[1] == [1.0, -2.0]
    assert step(TWO, state, RIGHT, UP)[1] == [-1.0, -1.0]


def test_two_who_are_not_the_owner_share_and_the_owner_pays_two():
    state = coined(THREE, players=[(1, 1), (1, 3), (3, 3)], coins=[(3, 0), (3, 1), (1, 2)])
    assert step(THREE, state, RIGHT, LEFT, STAY)[1] == [0.5, 0.5, -2.0]


def test_an_owner_who_shares_pays_for_the_others_share():
    state = coined(THREE, players=[(1, 1), (1, 3), (3, 3)], coins=[(1, 2), (3, 0), (3, 1)])
    assert step(THREE, state, RIGHT, LEFT, STAY)[1] == [0.5 - 1.0, 0.5, 0.0]


def test_a_coin_comes_back_on_every_free_cell_alike():
    state = coined(TWO, players=[(0, 0), (2, 2)], coins=[(0, 1), (1, 1)])
    after = step_often(TWO, state, RIGHT, UP)
    free = [(0, 0), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert_even(places(TWO, after.coin_position[:, 0]), free)


def test_two_coins_come_back_on_different_cells_in_every_way_alike():
    state = coined(TWO, players=[(0, 0), (2, 2)], coins=[(0, 1), (2, 1)])
    after = step_often(TWO, state, RIGHT, LEFT)
    free = [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 2)]
    pairs = [(one, other) for one in free for other in free if one != other]
    seen = zip(places(TWO, after.coin_position[:, 0]), places(TWO, after.coin_position[:, 1]), strict=True)
    assert_even(seen, pairs)


def test_a_coin_that_is_not_taken_stays():
    state = coined(TWO, players=[(0, 0), (2, 2)], coins=[(0, 1), (1, 1)])
    after = step_often(TWO, state, RIGHT, STAY, times=100)
    assert set(places(TWO, after.coin_position[:, 1])) == {(1, 1)}


def test_players_share_cells_and_pass_through_each_other():
    state = coined(TWO, players=[(0, 0), (0, 1)], coins=[(2, 0), (2, 1)])
    assert places(TWO, step(TWO, state, RIGHT, LEFT)[0].position) == [(0, 1), (0, 0)]
    assert places(TWO, step(TWO, state, RIGHT, STAY)[0].position) == [(0, 1), (0, 1)]


def test_the_horizon_ends_the_episode_for_all():
    state = coined(TWO, players=[(0, 0), (2, 2)], coins=[(0, 1), (1, 1)], time=39)
    assert look(TWO, state).over == [False, False]
    after, rewards = step(TWO, state, RIGHT, STAY)
    assert rewards == [1.0, 0.0] and look(TWO, after).over == [True, True]
    assert look(TWO, after).legal == [{STAY}, {STAY}]


def test_every_seat_sees_its_own_coin_first():
    players, coins, walls = [(0, 0), (1, 1), (2, 2)], [(3, 0), (3, 1), (3, 2)], [(0, 4)]
    seen = look(THREE, coined(THREE, players=players, coins=coins, walls=walls))
    for seat in range(3):
        order = [*range(seat, 3), *range(seat)]
        shown = [[players[each]] for each in order] + [[coins[each]] for each in order] + [walls]
        expected = np.stack([drawn(4, 5, marked) for marked in shown], axis=-1)
        np.testing.assert_array_equal(seen.planes[seat], expected)


def test_events_tell_own_coins_from_those_of_others():
    state = coined(THREE, players=[(1, 1), (1, 3), (0, 3)], coins=[(1, 2), (3, 0), (0, 2)])
    after, rewards = step(THREE, state, RIGHT, LEFT, LEFT)
    events = THREE.events(state, after.last_actions, after, jnp.asarray(rewards, jnp.float32))
    assert [event.name for event in THREE.spec.events] == ["own_coins", "others_coins"]
    assert events.tolist() == [[True, False, True], [False, True, False]]


def test_a_round_of_all_owners_and_takers_has_the_stated_sum():
    """One coin, taken by each of n players once: n - 1 of n times it costs its owner 2."""
    for game in (TWO, THREE):
        count, total = game.num_players, 0.0
        for taker in range(count):
            far = [(2, 0), (2, 1), (2, 2)][:count]
            players = [(0, 0) if seat == taker else far[seat] for seat in range(count)]
            coins = [(0, 1), (1, 1), (1, 0)][:count]
            actions = [RIGHT if seat == taker else STAY for seat in range(count)]
            total += sum(step(game, coined(game, players, coins), *actions)[1])
        assert total / count == pytest.approx(1 - 2 * (count - 1) / count)
