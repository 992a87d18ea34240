"""How coins, foraging and harvest are drawn: who took what, levels, and who is away."""

from io import StringIO

import jax
import numpy as np
from rich.console import Console

from hopplus.games import draw, pictures
from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.foraging import Foraging
from hopplus.games.game import NO_ACTION
from hopplus.games.harvest import Harvest
from situations import camp, coined, orchard, step

DOWN, LEFT, RIGHT, STAY, LOAD, ZAP_RIGHT = 1, 2, 3, 4, 5, 8
COINS = Coins(grid=Board(3, 4), num_players=3)
FORAGING = Foraging(grid=Board(3, 4), num_players=3, num_foods=2)
HARVEST = Harvest(grid=Board(3, 4), num_players=3, away_steps=4, growth=(0.0,))


def frames_of(game, state, *actions):
    """The frames before and after a step."""
    after, rewards = step(game, state, *actions)
    nobody, rewards = np.full(game.spec.num_agents, NO_ACTION), np.array(rewards)
    first = draw.Frame(np.asarray(game.board(state)), 0, nobody, 0 * rewards, 0 * rewards, nobody > 0)
    ends, acted = np.asarray(game.terminated(after)), np.asarray(after.last_actions)
    return first, draw.Frame(np.asarray(game.board(after)), 1, acted, rewards, rewards, ends)


def text_of(game, frame, previous=None):
    console = Console(width=80, record=True, file=StringIO())
    console.print(draw.terminal(game.spec, frame, previous))
    return console.export_text()


def test_a_coin_names_its_owner_and_who_took_it():
    state = coined(COINS, players=[(0, 0), (2, 2), (2, 0)], coins=[(1, 3), (0, 1), (2, 1)])
    before, after = frames_of(COINS, state, RIGHT, LEFT, RIGHT)
    assert draw.catches(COINS.spec, before, after) == [
        draw.Catch("coins_1", 0, 1, (0,), (1.0,)),
        draw.Catch("coins_2", 2, 1, (1, 2), (-1.5, -0.5)),
    ]
    text = text_of(COINS, after, before)
    assert "player_1 took a coin of player_2, +1.0" in text
    assert "player_2 and player_3 took a coin of player_3, -0.5 / -1.5" in text


def test_food_is_loaded_from_beside_by_those_who_were_paid():
    state = camp(FORAGING, {(0, 0): 1, (0, 2): 2, (2, 1): 2}, {(0, 1): 3, (2, 2): 3})
    before, after = frames_of(FORAGING, state, LOAD, LOAD, LOAD)
    assert draw.catches(FORAGING.spec, before, after) == [draw.Catch("food_3", 0, 1, (0, 1), (1.0, 2.0))]
    text = text_of(FORAGING, after, before)
    assert "player_1 and player_2 loaded a food of level 3, +2.0 / +1.0" in text
    assert "load, level 1" in text and "load, level 2" in text
    assert [draw.traits(FORAGING.spec, after, seat) for seat in range(3)] == ["level 1", "level 2", "level 2"]


def test_an_apple_is_eaten_where_a_player_goes_and_who_is_away_is_told():
    state = orchard(HARVEST, [(0, 0), (0, 2), 3], apples=[(1, 2), (0, 1)])
    before, after = frames_of(HARVEST, state, ZAP_RIGHT, DOWN, STAY)
    assert draw.catches(HARVEST.spec, before, after) == [draw.Catch("apples", 1, 2, (1,), (1.0,))]
    assert "player_2 ate an apple, +1.0" in text_of(HARVEST, after, before)
    assert draw.traits(HARVEST.spec, after, 2) == "away 2"
    assert draw.off_board(HARVEST.spec, after).tolist() == [False, False, True]
    assert not draw.has_left(HARVEST.spec, after).any(), "away is not left"


def test_pictures_can_be_drawn_of_each_game(tmp_path):
    states = {
        COINS: coined(COINS, players=[(0, 0), (2, 2), (2, 0)], coins=[(1, 3), (0, 1), (2, 1)]),
        FORAGING: camp(FORAGING, {(0, 0): 1, (0, 2): 2, (2, 1): 2}, {(0, 1): 3, (2, 2): 3}),
        HARVEST: orchard(HARVEST, [(0, 0), (0, 2), 3], apples=[(1, 2), (0, 1)]),
    }
    for game, state in states.items():
        before, after = frames_of(game, state, RIGHT, LEFT, STAY)
        pictures.save_picture(game.spec, after, tmp_path / f"{game.spec.name}.png", before, names=["random"] * 3)
        assert (tmp_path / f"{game.spec.name}.png").stat().st_size > 10_000


def test_sixty_four_players_are_told_apart_in_eighty_columns():
    game = Harvest(grid=Board(16, 16), num_players=64, others="summed")
    state = game.reset(key=jax.random.key(0))
    frame = draw.Frame(np.asarray(game.board(state)), 0, *(np.zeros(64),) * 3, np.zeros(64) > 0)
    assert len(set(draw.PLAYER_LETTERS)) == 64 and not set(draw.PLAYER_LETTERS) & set("abcho.*!#DHS")
    for names in (None, ["sustainable"] * 64):
        console = Console(width=80, record=True, file=StringIO())
        console.print(draw.terminal(game.spec, frame, names=names))
        text = console.export_text()
        board, table = text.split("last action", 1)
        assert all(letter in board for letter in draw.PLAYER_LETTERS)
        assert len(table.splitlines()) < 40 and " 64 " in table
