"""What is drawn is what was measured: means, intervals and boxes against numbers worked by hand."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from hopplus.report import curves, summary
from hopplus.runs import records
from hopplus.runs.records import read_run
from hopplus_doctor.drawing import inline_svg, save_figure
from hopplus_doctor.statistics import seed_band, seed_interval
from report.run_folders import metric_lines, write_run

MEAN = "charts/episodic_return/mean"


@pytest.fixture
def run(tmp_path):
    return read_run(write_run(tmp_path / "run"))


def labelled_lines(figure):
    return [line for line in figure.axes[0].lines if not str(line.get_label()).startswith("_")]


def test_the_interval_worked_by_hand():
    """Without skewness it is Student's. With skewness the end of the longer tail is Hall's."""
    # 1, 2, 4, 5: mean 3, squares 4 + 1 + 1 + 4 = 10, s = sqrt(10 / 3), t(97.5%, 3) = 3.182446
    half = 3.182446305284263 * np.sqrt(10 / 3) / 2
    interval = seed_interval(np.array([1.0, 2.0, 4.0, 5.0]))
    np.testing.assert_allclose([interval.estimate, interval.low, interval.high], [3, 3 - half, 3 + half], rtol=1e-9)
    # 1, 2, 3, 6: s = sqrt(14 / 3); cubes -8 - 1 + 27 = 18, skewness 18 / 4 / 3.5^1.5 = 0.687, over sqrt(4) 0.344; 1.5
    # times that is 0.515, more than the limits 1.7 / 4 = 0.425 and 0.75 / 3.182446 = 0.235669
    error, limit, student = np.sqrt(14 / 3) / 2, 0.2356678, 3.182446305284263
    reach = 3 / limit * (1 - np.cbrt(1 - limit * (student + limit / 6)))
    for sign in (1, -1):
        interval = seed_interval(sign * np.array([1.0, 2.0, 3.0, 6.0]))
        ends = sorted(sign * np.array([3 - student * error, 3 + reach * error]))
        np.testing.assert_allclose([interval.estimate, interval.low, interval.high], [sign * 3, *ends], rtol=1e-5)
    assert reach > 1.3 * student


def test_an_interval_is_of_the_seeds_that_have_a_number():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, np.nan], [np.nan] * 3, [np.inf, 1.0, 3.0]])
    band = seed_band(values)
    half = 12.706204736 * np.sqrt(2) / np.sqrt(2)
    np.testing.assert_allclose(band.mean, [2, 5, np.nan, 2])
    np.testing.assert_allclose(band.low, [2 - half, np.nan, np.nan, 2 - half], rtol=1e-8)
    np.testing.assert_allclose(band.high, [2 + half, np.nan, np.nan, 2 + half], rtol=1e-8)


def test_smoothing_averages_what_is_known_and_is_narrower_at_the_ends():
    values = np.array([[np.nan], [1.0], [3.0], [np.nan], [8.0]])
    np.testing.assert_array_equal(summary.smooth(values, 1), values)
    np.testing.assert_array_equal(summary.smooth(values, 3)[:, 0], [1.0, 2.0, 2.0, 5.5, 8.0])
    gap = np.array([[1.0], [np.nan], [np.nan], [np.nan], [5.0]])
    np.testing.assert_array_equal(summary.smooth(gap, 3)[:, 0], [1.0, 1.0, np.nan, 5.0, 5.0])


@pytest.mark.parametrize(("num_updates", "window"), [(1, 1), (99, 1), (100, 3), (217, 5), (1000, 21)])
def test_many_updates_are_smoothed_and_the_caption_says_so(tmp_path, num_updates, window):
    assert summary.display_window(num_updates) == window
    run = read_run(write_run(tmp_path, metric_lines(num_updates, num_seeds=2, num_seats=1)))
    said = f"mean of {window} of the {num_updates} updates" if window > 1 else "Not smoothed"
    assert said in curves.curve_caption(run)


def test_the_end_of_training_is_the_last_fifth_of_the_steps(run):
    np.testing.assert_array_equal(np.flatnonzero(records.final_updates(run)), [7, 8, 9])
    # seat 1: 1 + 0.1 * update + 0.1 * seed over updates 8, 9 and 10
    expected = [1.9, 2.0, 2.1]
    np.testing.assert_allclose(records.final_means(run, "charts/episodic_return/player_1"), expected)


def test_two_runs_are_two_labelled_lines_over_all_their_seeds(tmp_path):
    first = read_run(write_run(tmp_path / "a", metric_lines(10, 3)))
    second = read_run(write_run(tmp_path / "b", metric_lines(6, 2)))
    figure = curves.learning_curve({"with arenas": first, "without": second})

    lines = labelled_lines(figure)
    assert [line.get_label() for line in lines] == ["with arenas", "without"]
    assert len(figure.axes[0].lines) == 2 + 3 + 2
    for line, run in zip(lines, (first, second), strict=True):
        np.testing.assert_allclose(line.get_xdata(), run.env_steps)
        np.testing.assert_allclose(line.get_ydata(), run.metrics[MEAN].mean(axis=1))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["with arenas", "without"]


def test_the_best_possible_is_a_line_with_its_number(run):
    best = labelled_lines(curves.learning_curve({"a": run}, best=3.0))[-1]
    assert best.get_label() == "best possible: 3" and set(best.get_ydata()) == {3.0}


def test_the_band_is_the_interval(run):
    band = seed_band(run.metrics[MEAN])
    (area,) = curves.learning_curve({"a": run}).axes[0].collections
    corners = area.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(band.low.min()) and corners[:, 1].max() == pytest.approx(
        band.high.max()
    )


def test_a_line_bridges_updates_without_an_episode(tmp_path):
    lines = metric_lines(5, 2)
    for update in (0, 2):
        lines[update][MEAN] = [None, None]
    lines[3][MEAN][0] = None
    run = read_run(write_run(tmp_path, lines))
    (mean,) = labelled_lines(curves.learning_curve({"a": run}))
    np.testing.assert_array_equal(mean.get_xdata(), [200, 400, 500])
    np.testing.assert_allclose(mean.get_ydata()[1], lines[3][MEAN][1])


def test_very_long_runs_are_thinned_out_but_keep_both_ends(tmp_path):
    run = read_run(write_run(tmp_path, metric_lines(1000, 1, 1)))
    steps, values = curves.shown_curve(run, MEAN)
    assert len(steps) == len(values) == curves.POINTS_SHOWN and steps[0] == 100 and steps[-1] == 100_000


def test_seats_are_drawn_in_seat_order_even_from_the_tenth_on(tmp_path):
    run = read_run(write_run(tmp_path, metric_lines(4, 2, num_seats=11)))
    names = [f"player_{seat}" for seat in range(1, 12)]
    assert [line.get_label() for line in labelled_lines(curves.seat_curves(run))] == names
    boxes = curves.seat_boxes(run).axes[0]
    assert [label.get_text() for label in boxes.get_xticklabels()] == names


def test_a_box_holds_every_seed_of_every_update_at_the_end(run):
    axes = curves.seat_boxes(run).axes[0]
    medians = [line.get_ydata()[0] for line in axes.lines if line.get_linewidth() == 2.2]
    points = [run.metrics[f"charts/episodic_return/player_{seat}"][7:] for seat in (1, 2, 3, 4)]
    np.testing.assert_allclose(medians, [np.median(each) for each in points])
    assert [len(dots.get_offsets()) for dots in axes.collections] == [3, 3, 3, 3]


def test_the_verdict_names_the_direction(run):
    trend, words = summary.seat_trend(run)
    assert trend is not None and trend.direction == "rising" and trend.p_value < 0.05
    assert "later seats do better" in words and "both directions" in words
    assert "player_4 has the highest, 2.03, and player_1 the lowest, 2.00" in summary.seat_spread(run)


@pytest.mark.parametrize(
    ("num_seeds", "num_seats", "reason"),
    [(3, 2, "needs 3 seats or more; this run has 2"), (2, 4, "needs 3 seeds or more; this run has 2")],
)
def test_the_trend_test_is_left_out_with_a_reason(tmp_path, num_seeds, num_seats, reason):
    run = read_run(write_run(tmp_path, metric_lines(4, num_seeds, num_seats)))
    trend, words = summary.seat_trend(run)
    assert trend is None and reason in words


def test_the_trend_test_is_left_out_where_a_seat_has_no_return(tmp_path):
    lines = metric_lines(4)
    for line in lines:
        line["charts/episodic_return/player_2"] = [None, 1.0, 1.0]
    trend, words = summary.seat_trend(read_run(write_run(tmp_path, lines)))
    assert trend is None and "a seed has no return" in words


def test_figures_are_saved_by_suffix(run, tmp_path):
    figure = curves.learning_curve({"a & b": run}, best=3.0)
    save_figure(figure, tmp_path / "curve.png")
    save_figure(figure, tmp_path / "curve.svg")
    with Image.open(tmp_path / "curve.png") as image:
        assert image.width > 800
    words = [element.text for element in ElementTree.parse(tmp_path / "curve.svg").iter() if element.text]
    assert any("a & b" in text for text in words)
    with pytest.raises(ValueError, match=r"give a path that ends in \.png or \.svg"):
        save_figure(figure, tmp_path / "curve.pdf")


def test_the_same_figure_gives_the_same_svg(run):
    first, second = (inline_svg(curves.learning_curve({"a": run}), "curve") for _ in range(2))
    assert first == second


def test_errors_have_a_mend(run):
    with pytest.raises(ValueError, match=r"a has no metric 'b'; give one of charts/"):
        curves.learning_curve({"a": run}, "b")
    with pytest.raises(ValueError, match="give one run at least"):
        curves.learning_curve({})
    with pytest.raises(ValueError, match="give a family of metrics that is recorded per seat"):
        curves.seat_curves(run, "policy/entropy")
    with pytest.raises(ValueError, match="give a tag that ends in /player_1"):
        summary.seat_index("policy/entropy")
