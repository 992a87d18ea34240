"""Drawing is checked by what a viewer would see: letters in the terminal, colours and their places in pictures."""

import ast
import io
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from rich.cells import cell_len
from rich.console import Console

from hopplus.games import draw, pictures, shapes
from hopplus.games.board import Board
from hopplus.games.fields import Plane, board_fields
from hopplus.games.game import GameSpec
from hopplus.games.matrix import MatrixGame
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt

UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
REMOVE = 5
HUNT = StagHunt(grid=Board(4, 5), num_players=4, num_stags=1, num_hares=2, horizon=9)
NAMES = ["nearest_stag", "patient", "a<b & c", "random"]


@dataclass
class Episode:
    states: Any
    actions: Any
    rewards: Any
    num_steps: Any


reset = eqx.filter_jit(lambda game, key: game.reset(key=key))
step = eqx.filter_jit(lambda game, state, actions, key: game.step(state, actions, key=key))


def first_state(game, seed=0):
    return reset(game, jax.random.key(seed))


def play(game, state, joint_actions):
    """An episode from `state` on. A short one ends in unused steps whose rewards must not count."""
    num_steps, num_unused = len(joint_actions), max(0, 3 - len(joint_actions))
    states, rewards = [state], []
    for index, actions in enumerate(joint_actions):
        state, reward = step(game, state, jnp.array(actions, jnp.int32), jax.random.key(index))
        states.append(state)
        rewards.append(reward)
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *states, *[state] * num_unused)
    joint_actions = np.array([*joint_actions, *[joint_actions[-1]] * num_unused])
    return Episode(states, joint_actions, np.stack(rewards + [rewards[-1] + 7] * num_unused), jnp.int32(num_steps))


def hunt_episode(actions):
    """Three players on the stag in the middle of the board, player 4 on a hare in its corner."""
    positions = {"position": jnp.array([7, 7, 7, 0]), "prey_position": jnp.array([7, 0, 19])}
    return play(HUNT, replace(first_state(HUNT), **positions), actions)


def hunt_frames(actions):
    return draw.frames(HUNT, hunt_episode(actions))


def hand_made(num_players, cells, things=(), walls=(), side=4):
    """A spec and a frame with players and things on given cells; things are (plane, row, column)."""
    planes = [Plane(f"player_{seat}", "walker") for seat in range(num_players)]
    planes += [Plane("obstacles", "fixed"), *(Plane(name, "set") for name in ("stags", "hares", "drifts", "coins"))]
    names = ("up", "down", "left", "right", "stay", "take")
    fields = board_fields(tuple(planes), side, side, num_players, len(names))
    spec = GameSpec("hand_made", 1, num_players, names, fields, 20, STAY, (0.0, 1.0))
    board = np.zeros((side, side, len(planes)), np.uint8)
    for seat, (row, column) in enumerate(cells):
        board[row, column, seat] = 1
    for name, row, column in [*things, *(("obstacles", row, column) for row, column in walls)]:
        board[row, column, spec.plane_index(name)] = 1
    nothing = np.zeros(num_players)
    return spec, draw.Frame(board, 3, np.full(num_players, STAY), nothing, nothing, nothing.astype(bool))


def lines_of(renderable):
    console = Console(width=80, file=io.StringIO(), color_system=None)
    console.print(renderable)
    return console.file.getvalue().splitlines()


def board_letters(renderable):
    """What is inside the frame around the board."""
    return "".join(line.split("│")[1] for line in lines_of(renderable) if line.startswith("│"))


def pixels(spec, frame, folder, **more):
    path = folder / "picture.png"
    pictures.save_picture(spec, frame, path, **more)
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def crop(image, spec, row, column):
    layout = pictures.layout_of(spec)
    corners = layout.on_sheet([(column, row), (column + 1, row + 1)]) * pictures.PICTURE_DPI
    (left, top), (right, bottom) = corners.round().astype(int)
    return image[top:bottom, left:right]


def count_colour(image, colour, tolerance=0):
    wanted = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    return int((np.abs(image - wanted).max(axis=-1) <= tolerance).sum())


def test_frames_follow_the_episode():
    """Two hunt the stag while one looks on and one catches a hare; then the onlooker walks off."""
    actions = [[HUNT_STAG, HUNT_STAG, STAY, HUNT_HARE], [STAY, STAY, LEFT, STAY]]
    episode = hunt_episode(actions)
    assert len(episode.actions) == 3, "one step is unused"
    found = draw.frames(HUNT, episode)
    assert [frame.time for frame in found] == [0, 1, 2]
    assert found[0].actions.tolist() == [-1] * 4
    assert found[1].actions.tolist() == actions[0]
    assert found[2].actions.tolist() == [-1, -1, LEFT, -1], "who has left does not act"
    assert found[1].rewards.tolist() == found[2].returns.tolist() == [5, 5, 0, 1]
    assert found[2].rewards.tolist() == [0] * 4
    assert found[2].terminated.tolist() == [True, True, False, True]
    assert found[2].board.dtype == np.uint8
    assert np.argwhere(found[2].board[..., :4]).tolist() == [[1, 1, 2]]
    assert draw.has_left(HUNT.spec, found[2]).tolist() == [True, True, False, True]


def test_catches_are_seen_where_they_happen():
    before, after = hunt_frames([[HUNT_STAG, HUNT_STAG, STAY, HUNT_HARE]])
    assert draw.catches(HUNT.spec, before, after) == [
        draw.Catch("stags", 1, 2, (0, 1), (5.0, 5.0)),
        draw.Catch("hares", 0, 0, (3,), (1.0,)),
    ]
    assert draw.catches(HUNT.spec, None, after) == []
    assert draw.catches(HUNT.spec, before, replace(before, time=1)) == []


def test_prey_that_walks_away_is_no_catch():
    """Player 4 catches a hare, so there is a reward in the step in which the stag walks away from the others."""
    before, after = hunt_frames([[STAY, HUNT_STAG, STAY, HUNT_HARE]])
    moved = after.board.copy()
    stags = HUNT.spec.plane_index("stags")
    moved[1, 2, stags], moved[1, 3, stags] = 0, 1
    caught = draw.catches(HUNT.spec, before, replace(after, board=moved))
    assert [(catch.plane, catch.row, catch.column) for catch in caught] == [("hares", 0, 0)]


def test_a_catch_shows_even_when_other_prey_walks_onto_the_cell():
    before, after = hunt_frames([[STAY, STAY, STAY, HUNT_HARE]])
    refilled = after.board.copy()
    refilled[0, 0, HUNT.spec.plane_index("hares")] = 1
    caught = draw.catches(HUNT.spec, before, replace(after, board=refilled))
    assert [(catch.plane, catch.row, catch.column, catch.seats) for catch in caught] == [("hares", 0, 0, (3,))]


def test_all_catches_of_random_play_are_seen():
    """With prey that moves: as many catches as prey lost, and their rewards are all the rewards there are."""
    game = StagHunt(grid=Board(3, 3), num_stags=1, num_hares=3, prey_moves=0.7, horizon=25)
    rng = np.random.default_rng(0)
    likely = [0.08] * 4 + [0.08, 0.3, 0.3]
    num_catches = 0
    for seed in range(4):
        actions = rng.choice(7, (game.horizon, 4), p=likely)
        found = draw.frames(game, play(game, first_state(game, seed), actions))
        for before, after in pairwise(found):
            caught = draw.catches(game.spec, before, after)
            prey_lost = before.board[..., -2:].sum(dtype=int) - after.board[..., -2:].sum(dtype=int)
            assert len(caught) == prey_lost
            assert sum(sum(catch.rewards) for catch in caught) == pytest.approx(after.rewards.sum())
            num_catches += len(caught)
    assert num_catches > 8


def test_only_who_removes_a_drift_is_named():
    """Everybody gains, but of those on the drift one removes it, one stays and one walks off."""
    game = Snowdrift(grid=Board(4, 4), num_drifts=2)
    positions = {"position": jnp.array([5, 5, 5, 9]), "drift_position": jnp.array([5, 9])}
    state = replace(first_state(game), **positions)
    before, after = draw.frames(game, play(game, state, [[STAY, REMOVE, UP, STAY]]))
    assert after.rewards.tolist() == [6, 2, 6, 6]
    assert draw.catches(game.spec, before, after) == [draw.Catch("drifts", 1, 1, (1,), (2.0,))]
    assert "player_2 removed a drift, +2.0" in "\n".join(lines_of(draw.terminal(game.spec, after, before)))


def test_terminal_shows_every_thing_and_every_player():
    first, after = hunt_frames([[HUNT_STAG, HUNT_STAG, STAY, RIGHT]])
    letters = board_letters(draw.terminal(HUNT.spec, first))
    assert [letters.count(letter) for letter in "Sh#1234!"] == [1, 2, 0, 1, 1, 1, 1, 0]
    letters = board_letters(draw.terminal(HUNT.spec, after, first))
    assert [letters.count(letter) for letter in "Sh#1234!"] == [0, 2, 0, 1, 1, 1, 1, 1], "the hunters show once more"
    letters = board_letters(draw.terminal(HUNT.spec, after))
    assert [letters.count(letter) for letter in "Sh#1234!"] == [0, 2, 0, 0, 0, 1, 1, 0]


def test_terminal_tells_what_happened():
    first, after, last = hunt_frames([[HUNT_STAG, HUNT_STAG, STAY, RIGHT], [STAY, STAY, LEFT, STAY]])
    text = "\n".join(lines_of(draw.terminal(HUNT.spec, after, first, NAMES)))
    assert "stag hunt, step 1 of 9" in text
    assert "player_1 and player_2 caught a stag, +5.0 each" in text
    assert all(name in text for name in NAMES)
    rows = [line.split("│")[-1].split() for line in lines_of(draw.terminal(HUNT.spec, last, after))]
    assert ["1", "has", "left", "5.0"] in rows
    assert ["3", "left", "0.0"] in rows


def test_terminal_fits_80_columns_however_crowded():
    cells = [(1, 1)] * 20
    spec, frame = hand_made(20, cells, things=[("stags", 1, 1), ("coins", 0, 3)], walls=[(2, 2)])
    long_names = ["noisy(patient_stag(4), 0.1) trained for ever and ever and a day"] * 20
    lines = lines_of(draw.terminal(spec, frame, names=long_names))
    assert max(map(cell_len, lines)) <= 80
    assert sum(line.count(" 0.0") for line in lines) == 20, "long names leave room for the return"
    letters = board_letters(draw.terminal(spec, frame))
    assert all(letters.count(letter) == 1 for letter in draw.PLAYER_LETTERS[:20] + "So")

    walls = [(row, 8) for row in range(10)]
    things = [("stags", 15, column) for column in range(3)] + [("hares", row, 15) for row in range(6)]
    spec, frame = hand_made(12, [(12, seat) for seat in range(12)], things, walls, side=16)
    lines = lines_of(draw.terminal(spec, frame, names=long_names[:12]))
    assert max(map(cell_len, lines)) <= 80
    letters = board_letters(draw.terminal(spec, frame))
    assert (letters.count("S"), letters.count("h"), letters.count("#")) == (3, 6, 10 * 4)


def test_matrix_games_are_a_table(tmp_path):
    game = MatrixGame()
    found = draw.frames(game, play(game, first_state(game), [[0, 1], [1, 1]]))
    rows = [line.split() for line in lines_of(draw.terminal(game.spec, found[1], found[0]))]
    assert ["1", "cooperate", "0.0"] in rows
    assert ["2", "defect", "3.0"] in rows
    pictures.save_picture(game.spec, found[1], tmp_path / "matrix.svg", found[0])
    text = (tmp_path / "matrix.svg").read_text()
    assert ">cooperate<" in text
    assert ">defect<" in text


@pytest.mark.parametrize(("num_players", "with_stag"), [(4, False), (4, True), (12, False), (12, True)])
def test_each_player_of_a_shared_cell_can_be_seen(num_players, with_stag, tmp_path):
    things = [("stags", 2, 1)] if with_stag else []
    spec, frame = hand_made(num_players, [(2, 1)] * num_players, things)
    image = pixels(spec, frame, tmp_path)
    shared, elsewhere = crop(image, spec, 2, 1), crop(image, spec, 0, 3)
    for seat in range(num_players):
        colour = draw.player_colour(seat)
        assert count_colour(shared, colour) > 40
        assert count_colour(elsewhere, colour) == 0
    assert (count_colour(shared, shapes.STAG[3].face) > 100) == with_stag


def test_player_colours_differ():
    colours = [draw.player_colour(seat) for seat in range(40)]
    assert len(set(colours)) == 40


def test_things_and_walls_look_different_and_stand_where_they_are(tmp_path):
    places = {"stags": (0, 1), "hares": (1, 3), "drifts": (3, 0), "coins": (2, 2)}
    spec, frame = hand_made(1, [(3, 3)], [(name, *cell) for name, cell in places.items()], walls=[(0, 3)])
    image = pixels(spec, frame, tmp_path)
    faces = {"stags": shapes.STAG[3].face, "hares": shapes.HARE[2].face, "drifts": shapes.DRIFT[2].face}
    faces["coins"] = shapes.MARKER[0].face
    for name, face in faces.items():
        for other, cell in places.items():
            assert (count_colour(crop(image, spec, *cell), face) > 100) == (name == other)
    assert count_colour(crop(image, spec, 0, 3), pictures.WALL) > 5000
    assert count_colour(image, pictures.WALL) == count_colour(crop(image, spec, 0, 3), pictures.WALL)


def test_a_catch_bursts_on_its_cell_and_the_hunters_fade(tmp_path):
    before, after = hunt_frames([[HUNT_STAG, HUNT_STAG, STAY, RIGHT]])
    spec, burst = HUNT.spec, shapes.BURST[0].face
    image = pixels(spec, after, tmp_path, previous=before)
    assert count_colour(crop(image, spec, 1, 2), burst) > 1000
    assert count_colour(crop(image, spec, 1, 2), shapes.STAG[3].face) > 100, "what was caught shows once more"
    assert count_colour(crop(image, spec, 3, 0), burst) == 0
    hunter, onlooker = draw.player_colour(0), draw.player_colour(2)
    assert count_colour(crop(image, spec, 1, 2), hunter) == 0
    assert count_colour(crop(image, spec, 1, 2), onlooker) > 100
    assert count_colour(pixels(spec, before, tmp_path), burst) == 0
    assert count_colour(pixels(spec, after, tmp_path), burst) == 0


def test_what_was_gained_hides_nobody(tmp_path):
    """Two hunters leave the middle of the board; there are players above and below it."""
    spec, before = hand_made(4, [(1, 1), (1, 1), (0, 1), (2, 1)], [("stags", 1, 1)])
    board, leaves = before.board.copy(), np.array([True, True, False, False])
    board[1, 1] = 0
    after = replace(before, board=board, rewards=5.0 * leaves, terminated=leaves, actions=np.full(4, 5))
    assert [catch.seats for catch in draw.catches(spec, before, after)] == [(0, 1)]
    plain, bursting = pixels(spec, after, tmp_path), pixels(spec, after, tmp_path, previous=before)
    for seat, row in ((2, 0), (3, 2)):
        areas = [count_colour(crop(image, spec, row, 1), draw.player_colour(seat)) for image in (plain, bursting)]
        assert areas[1] == areas[0] > 1000
    assert count_colour(crop(bursting, spec, 1, 2), "#ffffff") > count_colour(crop(plain, spec, 1, 2), "#ffffff") + 500


def test_svg_is_text_with_names_and_always_the_same(tmp_path):
    before, after = hunt_frames([[HUNT_STAG, HUNT_STAG, STAY, HUNT_HARE]])
    path, again = tmp_path / "one.svg", tmp_path / "two.svg"
    pictures.save_picture(HUNT.spec, after, path, before, NAMES)
    pictures.save_picture(HUNT.spec, after, again, before, NAMES)
    assert path.read_bytes() == again.read_bytes()
    words = [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert {*NAMES, "player_1", "player_4", "hunt stag, left", "hunt hare, left", "+1.0"} <= set(words)
    assert words.count("+5.0") == 3, "once on the board, once for each hunter"
    assert words.count("5.0") == 2


def test_gif_of_a_whole_episode(tmp_path):
    """Players and prey jump about, which takes more room than any game would."""
    rng, found = np.random.default_rng(0), []
    for time in range(36):
        cells = [divmod(cell, 8) for cell in rng.choice(64, 9, replace=False).tolist()]
        things = [("stags", *cells[4]), *(("hares", *cell) for cell in cells[5:])]
        spec, frame = hand_made(4, cells[:4], things, side=8)
        found.append(replace(frame, time=time))
    path = tmp_path / "episode.gif"
    pictures.save_gif(spec, found, path, NAMES, seconds_per_frame=0.25)
    assert path.stat().st_size < 500_000
    with Image.open(path) as animation:
        assert animation.n_frames == 36
        assert animation.info["loop"] == 0
        durations = []
        for index in (0, 17, 35):
            animation.seek(index)
            durations.append(animation.info["duration"])
            image = np.asarray(animation.convert("RGB")).astype(int)
            assert all(count_colour(image, draw.player_colour(seat), tolerance=8) > 300 for seat in range(4))
            assert count_colour(image, pictures.FLOOR, tolerance=8) > 20_000
    assert durations == [250, 250, 2000]


def test_what_cannot_be_drawn_is_refused(tmp_path):
    spec, frame = hand_made(2, [(0, 0), (1, 1)])
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        pictures.save_picture(spec, frame, tmp_path / "picture.bmp")
    with pytest.raises(ValueError, match="3 names for 2 seats"):
        pictures.save_picture(spec, frame, tmp_path / "picture.png", names=["a", "b", "c"])
    with pytest.raises(ValueError, match="3 names for 2 seats"):
        draw.terminal(spec, frame, names=["a", "b", "c"])
    with pytest.raises(ValueError, match="at least one frame"):
        pictures.save_gif(spec, [], tmp_path / "empty.gif")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", [draw, pictures, shapes])
def test_drawing_knows_no_game_no_learner_and_no_pyplot(module):
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert "matplotlib.pyplot" not in imported
    allowed = {"hopplus.games", "hopplus.games.game", "hopplus.games.draw", "hopplus.games.shapes"}
    allowed.add("hopplus_doctor.names")  # names and colours of players
    assert {name for name in imported if name.startswith("hopplus")} <= allowed
