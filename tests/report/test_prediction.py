"""Pictures of predictions show the score's own numbers, and the page has its section only where there is a file."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from matplotlib.colors import to_hex

from hopplus.evaluation.prediction import Predictions, score
from hopplus.games import Board, MatrixGame, StagHunt, draw, lineup, play_episode
from hopplus.games.matrix import CHICKEN
from hopplus.report import page, prediction, save_figure
from hopplus.runs.folder import OTHERS
from hopplus.runs.records import read_run
from hopplus_doctor.drawing import inline_svg
from report.run_folders import write_run
from report.test_page import HOSTILE, Tags

NAMES = ("up", "down", "hunt")
GOALS = ("stag", "hare", "other")


def six_samples(**changes) -> Predictions:
    """The decisions are 0, 0, 0, 1, 1, 0 and the actions 0, 0, 1, 1, 0, 0; nobody hunts."""
    decisions = np.array([0, 0, 0, 1, 1, 0])
    samples = Predictions(
        probabilities=np.where(np.eye(3)[decisions] > 0, 0.6, 0.2),
        actions=np.array([0, 0, 1, 1, 0, 0]),
        best=np.tile([0.7, 0.3, 0.0], (6, 1)),
        last_actions=np.array([-1, 0, 1, 1, 1, 0]),
        kinds=np.zeros(6, int),
        kind_names=("nearest_stag",),
        times=np.array([0.0, 0.1, 0.1, 0.55, 0.9, 0.9]),
    )
    return replace(samples, **changes)


@pytest.fixture(scope="module")
def one_score():
    return score(six_samples(), NAMES)


@pytest.fixture(scope="module")
def scores(one_score):
    return {
        "with goals": one_score,
        "without": score(six_samples(probabilities=np.tile([0.2, 0.6, 0.2], (6, 1))), NAMES),
    }


def others_of(scores, **more):
    return {
        "commands": ["hopplus train run", "hopplus others run"],
        "version": "0.1.0",
        "episodes": 1000,
        "co_players": "nearest_stag,nearest_hare",
        "models": scores,
        **more,
    }


def small_run(folder):
    return write_run(folder, [{"update": 1, "env_steps": 5, "other": [1.0]}])


def page_with(folder, others):
    small_run(folder)
    (folder / OTHERS).write_text(json.dumps(others))
    return page(read_run(folder), [])


def words_of(axes):
    return [text.get_text() for text in axes.texts]


def tick_words(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_the_confusion_shows_decisions_and_probabilities_row_by_row(one_score):
    decided, probable = prediction.confusion(one_score).axes
    assert words_of(decided) == ["0.75", "0.25", "0.00", "0.50", "0.50", "0.00", "-", "-", "-"]
    # Up is done four times: three times at 0.6, 0.2, 0.2 and once at 0.2, 0.6, 0.2.
    assert words_of(probable) == ["0.50", "0.30", "0.20", "0.40", "0.40", "0.20", "-", "-", "-"]
    assert tick_words(decided.yaxis) == tick_words(probable.xaxis) == list(NAMES)


def test_certain_cells_have_white_digits():
    certain = six_samples(probabilities=np.eye(3)[six_samples().actions])
    decided = prediction.confusion(score(certain, NAMES)).axes[0]
    assert [to_hex(text.get_color()) for text in decided.texts[:2]] == ["#ffffff", prediction.INK]


def test_the_reliability_curve_holds_the_filled_bins(one_score):
    curve, counts = prediction.reliability(one_score).axes
    np.testing.assert_allclose(curve.lines[1].get_xydata(), [[0.6, 4 / 6]])
    assert [bar.get_height() for bar in counts.patches] == [6]
    assert curve.get_title(loc="left") == "expected calibration error 0.067"


def test_the_shares_are_done_decided_and_probable(one_score):
    bars = prediction.class_distribution(one_score).axes[0].containers
    assert [bar.get_label() for bar in bars] == ["done", "most likely action", "mean probability"]
    heights = [[patch.get_height() for patch in bar] for bar in bars]
    np.testing.assert_allclose(heights, [[4 / 6, 2 / 6, 0], [4 / 6, 2 / 6, 0], [2.8 / 6, 2 / 6, 0.2]])


def test_models_stand_between_the_yardsticks(scores):
    axes = prediction.yardsticks(scores).axes[0]
    assert tick_words(axes.yaxis) == ["marginal", "last action", "with goals", "without", "ceiling"]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [4 / 6, 5 / 6, 4 / 6, 2 / 6, 0.7])
    assert words_of(axes) == ["0.667", "0.833", "0.667", "0.333", "0.700"]


def test_a_ceiling_of_its_own_is_named_after_its_model(scores):
    knows = score(six_samples(best=np.tile([0.9, 0.1, 0.0], (6, 1))), NAMES)
    blind = score(six_samples(best=None), NAMES)
    axes = prediction.yardsticks({**scores, "knows": knows, "blind": blind}).axes[0]
    assert tick_words(axes.yaxis)[-2:] == ["ceiling, with goals and without", "ceiling, knows"]
    assert tick_words(prediction.yardsticks({"blind": blind}).axes[0].yaxis) == ["marginal", "last action", "blind"]


def test_the_horizon_has_a_line_per_model_and_the_ceiling(scores):
    lines = prediction.by_phase(scores).axes[0].lines
    assert [line.get_label() for line in lines] == ["with goals", "without", "ceiling"]
    np.testing.assert_allclose(lines[0].get_ydata()[[0, 1, 5, 9]], [1, 0.5, 1, 0.5])
    assert np.isnan(lines[0].get_ydata()[2]) and np.nanmax(lines[2].get_ydata()) == pytest.approx(0.7)


def test_figures_of_no_samples_are_made():
    some = six_samples()
    names = ("probabilities", "actions", "best", "last_actions", "kinds", "times")
    empty = score(replace(some, **{name: getattr(some, name)[:0] for name in names}), NAMES)
    for draw_one in (prediction.confusion, prediction.reliability, prediction.class_distribution):
        inline_svg(draw_one(empty), "empty")
    for draw_all in (prediction.yardsticks, prediction.by_phase):
        inline_svg(draw_all({"empty": empty}), "empty")


def episode_of(game, seats):
    players = lineup(seats, game)
    return draw.frames(game, jax.jit(lambda key: play_episode(game, players, key=key))(jax.random.key(0)))


@pytest.fixture(scope="module")
def hunt():
    game = StagHunt(grid=Board(3, 4), num_players=3, num_hares=2, horizon=6)
    return game.spec, episode_of(game, "nearest_stag,nearest_stag,nearest_hare")


def beliefs_of(num_steps, num_others=2):
    rising = np.linspace(0.2, 0.8, num_steps)
    return np.stack([np.stack([rising, 0.9 - rising, np.full(num_steps, 0.1)], axis=-1)] * num_others, axis=1)


def test_a_strip_has_boards_and_a_panel_per_co_player(hunt, tmp_path):
    spec, frames = hunt
    beliefs = beliefs_of(len(frames))
    names = ["player_2, nearest_stag", "the third"]
    figure = prediction.belief_strip(spec, frames, beliefs, GOALS, names, at=[0, 1])
    assert [axes.get_title() for axes in figure.axes[:2]] == ["step 0", "step 1"]
    assert all(len(axes.images) == 1 for axes in figure.axes[:2])
    second, third = figure.axes[2:]
    assert [axes.get_title(loc="left") for axes in (second, third)] == names
    assert [line.get_xdata()[0] for line in second.lines] == [0, 1]
    lowest = second.collections[0].get_paths()[0].vertices
    assert lowest[:, 1].max() == pytest.approx(0.8) and lowest[:, 0].max() == len(frames) - 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(GOALS)
    save_figure(figure, tmp_path / "strip.png")
    assert (tmp_path / "strip.png").stat().st_size > 10_000


def test_the_board_is_cut_out_whole(hunt):
    """Its ratio is that of the board with a rim, and the player in the picture has its colour."""
    spec, frames = hunt
    figure = prediction.belief_strip(spec, frames, beliefs_of(1), GOALS, ["a", "b"], at=[0])
    pixels = np.asarray(figure.axes[0].images[0].get_array())
    cell, rim = prediction.pictures.layout_of(spec).cell, 2 * prediction.BOARD_PADDING
    assert pixels.shape[1] / pixels.shape[0] == pytest.approx((4 * cell + rim) / (3 * cell + rim), rel=0.01)
    colour = np.array([int(draw.player_colour(2)[at : at + 2], 16) for at in (1, 3, 5)])
    assert (abs(pixels[..., :3].astype(int) - colour).max(axis=-1) < 3).any()


def test_a_game_without_a_board_has_panels_only():
    game = MatrixGame(payoff=CHICKEN, horizon=4)
    frames = episode_of(game, "random,random")
    figure = prediction.belief_strip(game.spec, frames, beliefs_of(4, 1), GOALS, ["player_2"], at=[1])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["player_2"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"beliefs": beliefs_of(20)}, "give one per frame, from the first on"),
        ({"goal_names": ["stag"]}, "3 goals of 2 co-players; give one name for each"),
        ({"seat_names": ["a"]}, "give one name for each"),
        ({"at": []}, "give indices from 0 to"),
        ({"at": [99]}, r"no frames \[99\]; give indices from 0 to"),
    ],
)
def test_errors_have_a_mend(hunt, changes, words):
    given = {"beliefs": beliefs_of(2), "goal_names": GOALS, "seat_names": ["a", "b"], "at": [0]} | changes
    with pytest.raises(ValueError, match=words):
        prediction.belief_strip(*hunt, **given)


def test_the_page_has_the_section_where_the_file_is(tmp_path, scores):
    pair = {"player": "player_1", "other": "player_2", "top1": 0.6125, "ceiling": 0.7, "ratio": 0.875}
    text = page_with(tmp_path, others_of(scores, pairs=[pair]))
    tags = Tags(text)
    names = [attributes["id"] for _, attributes in tags.tags if "id" in attributes]
    assert (
        "others" in names
        and len(names) == len(set(names))
        and '<a href="#others">Evaluation of opponent models</a>' in text
    )
    for words in (
        "Predictions of the next actions of the co-players (nearest_stag,nearest_hare) over 1,000 episodes.",
        "with goals is right in 0.667 of 6 samples; the best possible predictor is right in 0.700.",
        "hopplus others run",
        "top-1 over ceiling",
        "Actions, by with goals",
        "recall ceiling",
        "expected calibration error 0.067",
        "player_1 of player_2",
        "0.875",
    ):
        assert words in tags.text
    drawn = {attributes["aria-label"] for tag, attributes in tags.tags if tag == "svg" and "aria-label" in attributes}
    assert {"Beside the yardsticks", "Calibration of with goals", "Over the horizon"} <= drawn
    assert "image" not in {tag for tag, _ in tags.tags}


def test_the_rows_of_the_tables_are_the_scores(scores):
    tables = {part.title: part for part in prediction.section(others_of(scores))[1] if hasattr(part, "rows")}
    models, actions = tables["Models"], tables["Actions, by with goals"]
    assert models.head == ["model", "top-1", "top-3", "cross entropy", "calibration error", "top-1 over ceiling"]
    # Decisions 0, 0, 0, 1, 1, 0 have true chances 0.7, 0.7, 0.7, 0.3, 0.3, 0.7: 3.4 of 4.2.
    cross_entropy = -(4 * np.log(0.6) + 2 * np.log(0.2)) / 6
    assert models.rows[0] == ["with goals", "0.667", "1.000", f"{cross_entropy:.3f}", "0.067", f"{3.4 / 4.2:.3f}"]
    assert actions.rows[0] == ["up", "4", "0.667", "0.667", "0.750", "0.750", "1.000", "0.750"]
    assert actions.rows[2] == ["hunt", "0", "0.000", "0.000", "-", "-", "-", "-"]
    assert "Pairs of players" not in tables


def test_the_page_has_no_section_without_the_file(tmp_path):
    run = read_run(small_run(tmp_path))
    text = page(run, [])
    assert run.others is None and "Evaluation of opponent models" not in text and 'id="others"' not in text


@pytest.mark.parametrize("others", [{}, {"models": None}, {"models": {"a": None, "b": {"top1": 0.5}}}])
def test_a_file_that_says_little_makes_a_page(tmp_path, others):
    assert "holds no score that can be shown" in Tags(page_with(tmp_path, others)).text


def test_a_model_without_a_ceiling_says_so():
    words, parts = prediction.section(others_of({"blind": score(six_samples(best=None), NAMES)}))
    assert "the ceiling is not known" in words and len(parts) == 6


def test_a_damaged_file_says_how_to_mend_it(tmp_path):
    (small_run(tmp_path) / OTHERS).write_text("{,}")
    with pytest.raises(ValueError, match=r"others\.json is damaged at line 1 .*; restore it"):
        read_run(tmp_path)


def test_hostile_names_are_shown_and_not_obeyed(tmp_path, one_score):
    hostile = {**one_score, "actions": [{**row, "name": HOSTILE} for row in one_score["actions"]]}
    pair = {"player": HOSTILE, "other": HOSTILE, "top1": None}
    content = others_of({HOSTILE: hostile}, pairs=[pair], co_players=HOSTILE, command=HOSTILE)
    text = page_with(tmp_path, content)
    tags = Tags(text).tags
    assert HOSTILE not in text and not {tag for tag, _ in tags} & {"img", "script"}
    assert not any(name.startswith("on") for _, attributes in tags for name in attributes)
