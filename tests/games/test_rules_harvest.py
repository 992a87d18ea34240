"""Every sentence of the rules of harvest, with the tests that fail where it is broken."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.harvest import Harvest
from hopplus.games.presets import make
from situations import (
    assert_as_likely,
    assert_even,
    assert_table_is_complete,
    drawn,
    first_states,
    look,
    orchard,
    places,
    play,
    step,
    step_often,
)

UP, DOWN, LEFT, RIGHT, STAY, ZAP_UP, ZAP_DOWN, ZAP_LEFT, ZAP_RIGHT = range(9)
RULES = {
    "defaults: 8x8, 4 players, horizon 100; away for 10 steps in the preset with beams": [
        "test_the_presets_are_those_of_the_rules"
    ],
    "actions: four moves, stay, with beams four zaps; an illegal action acts as stay": [
        "test_beams_are_actions_only_where_there_are_beams",
        "test_moves_stop_at_edges_and_walls",
    ],
    "those on an apple after the moves eat it and share it equally": [
        "test_an_apple_is_eaten_by_walking_onto_it",
        "test_an_apple_is_shared_by_all_on_its_cell",
    ],
    "players may share a cell": ["test_an_apple_is_shared_by_all_on_its_cell"],
    "an apple grows by the number of apples on the eight cells around it": ["test_growth_follows_the_apples_around"],
    "no apple grows on a wall, a player or where none is around": ["test_nothing_grows_where_it_may_not"],
    "each cell has its own draw": ["test_cells_grow_independently"],
    "the apple that is eaten in a step does not count for growth": ["test_an_eaten_apple_lets_nothing_grow"],
    "at the start each free cell has an apple with probability .3": ["test_first_apples_and_players"],
    "a beam hits all players in line up to its length": ["test_a_beam_hits_all_in_its_line"],
    "walls stop it": ["test_walls_stop_a_beam"],
    "players are hit where they are after the moves": ["test_players_are_hit_where_they_moved_to"],
    "two can hit each other": ["test_two_can_hit_each_other"],
    "who is hit is away for so many steps, sees the board and can only stay": ["test_who_is_hit_is_away_and_returns"],
    "then it returns to a uniformly random cell, all of one step to the same": [
        "test_players_return_anywhere_together"
    ],
    "the horizon ends the episode for all": ["test_the_horizon_ends_the_episode_for_all"],
    "planes: players, steps away, obstacles, apples": ["test_every_seat_sees_who_is_away_for_how_long"],
    "planes with the others summed: own and sum of the places, own and sum of the steps away, obstacles, apples": [
        "test_the_others_are_summed"
    ],
    "views with the others summed are of one size for any number of players": ["test_a_summed_view_does_not_grow"],
    "events: apples and zaps": ["test_events_tell_of_apples_and_hits"],
}
PLAIN = Harvest(grid=Board(3, 4), num_players=2)
BARREN = Harvest(grid=Board(4, 5, arena_sides=(4, 4)), num_players=3, growth=(0.0,), away_steps=3, beam_length=3)


def test_every_rule_has_its_tests():
    assert_table_is_complete(RULES, globals())


def test_the_presets_are_those_of_the_rules():
    defaults = {"num_players": 4, "horizon": 100, "first_apples": 0.3, "growth": (0.0, 0.01, 0.02, 0.04)}
    assert make("harvest-8x8") == Harvest(grid=Board(8, 8), away_steps=0, **defaults)
    for seats in (16, 64):
        many = Harvest(grid=Board(16, 16), **defaults | {"num_players": seats}, others="summed")
        assert make(f"harvest-16x16-{seats}") == many and many.grid != Board(8, 8)
    assert make("harvest-8x8-beam") == Harvest(grid=Board(8, 8), away_steps=10, beam_length=4, **defaults)


def test_beams_are_actions_only_where_there_are_beams():
    assert PLAIN.spec.action_names == ("up", "down", "left", "right", "stay")
    assert BARREN.spec.action_names[5:] == ("zap up", "zap down", "zap left", "zap right")
    assert not any(plane.returns for plane in PLAIN.spec.planes) and BARREN.spec.walkers_return


def test_moves_stop_at_edges_and_walls():
    state = orchard(BARREN, [(1, 1), (0, 0), (3, 4)], walls=[(1, 2)])
    zaps = {ZAP_UP, ZAP_DOWN, ZAP_LEFT, ZAP_RIGHT}
    assert look(BARREN, state).legal == [
        {UP, DOWN, LEFT, STAY} | zaps,
        {DOWN, RIGHT, STAY} | zaps,
        {UP, LEFT, STAY} | zaps,
    ]
    after, _ = step(BARREN, state, RIGHT, UP, RIGHT)
    assert places(BARREN, after.position) == [(1, 1), (0, 0), (3, 4)]


def test_an_apple_is_eaten_by_walking_onto_it():
    after, rewards = step(BARREN, orchard(BARREN, [(1, 1), (0, 0), (3, 4)], apples=[(1, 2), (3, 3)]), RIGHT, STAY, UP)
    assert rewards == [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(after.apples, drawn(4, 5, [(3, 3)]))


def test_an_apple_is_shared_by_all_on_its_cell():
    state = orchard(BARREN, [(1, 1), (1, 3), (0, 2)], apples=[(1, 2)])
    assert step(BARREN, state, RIGHT, LEFT, STAY)[1] == [0.5, 0.5, 0.0]
    after, rewards = step(BARREN, state, RIGHT, LEFT, DOWN)
    assert rewards == pytest.approx([1 / 3] * 3) and places(BARREN, after.position) == [(1, 2)] * 3


@pytest.mark.parametrize("around", [0, 1, 2, 3, 5])
def test_growth_follows_the_apples_around(around):
    game = replace(PLAIN, growth=(0.0, 0.25, 0.5, 0.75))
    apples = [(0, 1), (0, 2), (1, 1), (2, 1), (2, 3)][:around]
    after = step_often(game, orchard(game, [(0, 0), (2, 0)], apples=apples), STAY, STAY)
    chance = (0.0, 0.25, 0.5, 0.75)[min(around, 3)]
    if chance == 0:
        assert not after.apples[:, 1, 2].any()
    else:
        assert_as_likely(after.apples[:, 1, 2].tolist(), {True: chance, False: 1 - chance})


def test_nothing_grows_where_it_may_not():
    game = replace(BARREN, growth=(0.0, 1.0))
    state = orchard(game, [(0, 0), (1, 1), (3, 4)], apples=[(0, 1)], walls=[(0, 2)])
    after, _ = step(game, state, STAY, STAY, STAY)
    np.testing.assert_array_equal(after.apples, drawn(4, 5, [(0, 1), (1, 0), (1, 2)]))


def test_cells_grow_independently():
    game = replace(PLAIN, growth=(0.5,))
    after = step_often(game, orchard(game, [(0, 0), (0, 1)]), STAY, STAY)
    pairs = zip(after.apples[:, 1, 1].tolist(), after.apples[:, 2, 2].tolist(), strict=True)
    assert_even(pairs, [(one, other) for one in (True, False) for other in (True, False)])


def test_an_eaten_apple_lets_nothing_grow():
    game = replace(PLAIN, growth=(0.0, 1.0))
    after, rewards = step(game, orchard(game, [(0, 0), (2, 3)], apples=[(0, 1)]), RIGHT, STAY)
    assert rewards == [1.0, 0.0] and not after.apples.any()


def test_first_apples_and_players():
    first = first_states(PLAIN)
    for of_seat in first.position.T:
        assert_even(of_seat.tolist(), range(12))
    on_player = np.take_along_axis(first.apples.reshape(-1, 12), first.position, axis=-1)
    assert not on_player.any()
    cell = first.apples[(first.position != 5).all(axis=-1), 1, 1]
    assert_as_likely(cell.tolist(), {True: 0.3, False: 0.7})


def test_a_beam_hits_all_in_its_line():
    line = replace(BARREN, grid=Board(2, 6), num_players=4)
    state = orchard(line, [(0, 0), (0, 1), (0, 3), (0, 4)])
    after, _ = step(line, state, ZAP_RIGHT, STAY, STAY, STAY)
    assert after.away.tolist() == [0, 3, 3, 0]
    after, _ = step(line, state, ZAP_DOWN, ZAP_UP, STAY, ZAP_LEFT)
    assert after.away.tolist() == [0, 3, 3, 0]


def test_walls_stop_a_beam():
    state = orchard(BARREN, [(1, 0), (1, 1), (1, 3)], walls=[(1, 2)])
    assert step(BARREN, state, ZAP_RIGHT, STAY, ZAP_LEFT)[0].away.tolist() == [0, 3, 0]


def test_players_are_hit_where_they_moved_to():
    state = orchard(BARREN, [(1, 0), (1, 1), (2, 3)], apples=[(1, 3)])
    after, rewards = step(BARREN, state, ZAP_RIGHT, DOWN, UP)
    assert after.away.tolist() == [0, 0, 3] and rewards == [0.0, 0.0, 1.0]


def test_two_can_hit_each_other():
    state = orchard(BARREN, [(1, 0), (1, 2), (3, 4)])
    assert step(BARREN, state, ZAP_RIGHT, ZAP_LEFT, STAY)[0].away.tolist() == [3, 3, 0]


def test_who_is_hit_is_away_and_returns():
    state = orchard(BARREN, [(1, 0), (1, 2), (3, 4)], apples=[(0, 0)])
    state, _ = step(BARREN, state, ZAP_RIGHT, STAY, STAY)
    for left in (3, 2, 1):
        seen = look(BARREN, state)
        assert state.away.tolist() == [0, left, 0] and seen.legal[1] == {STAY} and seen.over == [False] * 3
        assert not seen.planes[1, ..., 0].any() and seen.planes[1, 0, 0, -1]
        state, rewards = step(BARREN, state, ZAP_RIGHT, UP, STAY)
        assert rewards == [0.0] * 3
    assert state.away.tolist() == [0, 0, 0] and look(BARREN, state).planes[1, ..., 0].sum() == 1


def test_players_return_anywhere_together():
    game = replace(BARREN, grid=Board(3, 4))
    after = step_often(game, orchard(game, [1, 1, 2]), STAY, STAY, STAY)
    assert_even(after.position[:, 0].tolist(), range(12))
    np.testing.assert_array_equal(after.position[:, 0], after.position[:, 1])
    assert (after.away == [0, 0, 1]).all()


def test_the_horizon_ends_the_episode_for_all():
    state = orchard(BARREN, [(1, 0), 3, (3, 4)], time=99)
    assert look(BARREN, state).over == [False] * 3
    after, _ = play(BARREN, state, (STAY, STAY, STAY))
    assert look(BARREN, after).over == [True] * 3 and look(BARREN, after).legal == [{STAY}] * 3


def test_every_seat_sees_who_is_away_for_how_long():
    state = orchard(BARREN, [(0, 0), 2, (2, 2)], apples=[(3, 0)], walls=[(0, 4)])
    seen = look(BARREN, state)
    players, away = [[(0, 0)], [], [(2, 2)]], [[], [(0, 0), (0, 1)], []]
    for seat in range(3):
        order = [*range(seat, 3), *range(seat)]
        shown = [*(players[each] for each in order), *(away[each] for each in order), [(0, 4)], [(3, 0)]]
        expected = np.stack([drawn(4, 5, marked) for marked in shown], axis=-1)
        np.testing.assert_array_equal(seen.planes[seat], expected)


def test_the_others_are_summed():
    game = replace(BARREN, num_players=4, others="summed")
    state = orchard(game, [(2, 2), 2, (2, 2), 1], apples=[(3, 0)], walls=[(0, 4)])
    planes = look(game, state).planes
    both_there, one_there = 2 * drawn(4, 5, [(2, 2)]), drawn(4, 5, [(2, 2)]) * 1
    two, one = drawn(4, 5, [(0, 0), (0, 1)]) * 1, drawn(4, 5, [(0, 0)]) * 1
    nothing, last = 0 * one, [drawn(4, 5, [(0, 4)]), drawn(4, 5, [(3, 0)])]
    expected = {
        0: [one_there, one_there, nothing, two + one, *last],
        1: [nothing, both_there, two, one, *last],
        2: [one_there, one_there, nothing, two + one, *last],
        3: [nothing, both_there, one, two, *last],
    }
    for seat, shown in expected.items():
        np.testing.assert_array_equal(planes[seat], np.stack(shown, axis=-1))


def test_a_summed_view_does_not_grow():
    of = {seats: replace(PLAIN, grid=Board(16, 16), num_players=seats, others="summed").spec for seats in (4, 64)}
    assert of[4].observation != of[64].observation  # the boards differ
    assert [field.shape for field in of[4].observation] == [field.shape for field in of[64].observation]
    assert [plane.name for plane in of[64].view_planes] == ["player_0", "others", "obstacles", "apples"]
    assert len(of[64].planes) == 66
    with pytest.raises(ValueError, match="300 players cannot be summed"):
        _ = replace(PLAIN, grid=Board(32, 32), num_players=300, others="summed").spec


def test_events_tell_of_apples_and_hits():
    state = orchard(BARREN, [(1, 0), (1, 2), (3, 4)], apples=[(3, 3)])
    after, rewards = step(BARREN, state, ZAP_RIGHT, ZAP_UP, LEFT)
    events = BARREN.events(state, after.last_actions, after, jnp.asarray(rewards, jnp.float32))
    assert [event.name for event in BARREN.spec.events] == ["apples", "zaps"]
    assert events.tolist() == [[False, False, True], [True, False, False]]
