"""Every picture of the docs is made by `scripts/pictures.py` and shown by a page; figures are labelled and possible."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rcParams, style
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import pictures
from hopplus_doctor import drawing
from hopplus_doctor.names import PLAYER_COLOURS
from picture_parts.common import BEST, NotMeasuredError, results, share_ends

ROOT = Path(__file__).resolve().parents[1]
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)]*pictures/[^)]+)\)")
SLOW = {"beliefs.png"}
"""Figures that need a minute of training."""
WITHOUT_LABELS = {"<colorbar>"}


def shown() -> dict[str, list[str]]:
    """The pages that show each picture."""
    found: dict[str, list[str]] = {}
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("README*.md")]:
        for about, target in SHOWN.findall(page.read_text(encoding="utf-8")):
            assert about, f"{page.name} does not say what {target} shows"
            found.setdefault(Path(target).name, []).append(page.name)
    return found


def drawn(name: str) -> Figure:
    with style.context(drawing.STYLE):
        try:
            return pictures.FIGURES[name]()
        except NotMeasuredError as error:
            pytest.skip(str(error))


def test_every_picture_is_shown_and_made_by_the_script():
    there = {path.name for path in pictures.PICTURES.iterdir()}
    assert there - pictures.MADE == set() and there - {*shown()} == set() and len(there) > 20
    assert {*shown()} - there == set()
    assert pictures.MADE - {*pictures.NOTES} - there == set()


@pytest.mark.parametrize("name", sorted({*pictures.FIGURES} - SLOW))
def test_axes_are_labelled(name):
    sheet = drawn(name)
    plain = [axes for axes in sheet.axes if axes.get_label() not in WITHOUT_LABELS]
    assert plain
    for axes in plain:
        named_by_ticks = any(re.search("[a-zA-Z]", text.get_text()) for text in axes.get_yticklabels())
        shares_x = axes.get_subplotspec().rowspan.stop < axes.get_gridspec().nrows
        shares_y = axes.get_subplotspec().colspan.start > 0
        assert axes.get_xlabel() or shares_x or axes.get_xticklabels()[0].get_text(), name
        assert axes.get_ylabel() or named_by_ticks or shares_y, name


@pytest.mark.parametrize("name", ["arenas.png", "learning_curve.png", "study.png"])
def test_nothing_lies_above_the_best_possible_return(name):
    axes = drawn(name).axes[0]
    is_wide = name == "study.png"
    tops = [np.max(path.vertices[:, 0] if is_wide else path.vertices[:, 1]) for band in axes.collections
            for path in band.get_paths() if len(path.vertices) and not band.get_label().startswith("best")]  # fmt: skip
    assert max(tops) <= BEST + 1e-6


def test_a_band_that_was_recorded_above_the_best_is_cut_off():
    wide = results("curves_4x4") if (ROOT / "results" / "curves_4x4.json").exists() else None
    if wide is None:
        pytest.skip("there are no curves")
    axes = drawn("learning_curve.png").axes[0]
    bands = [band for band in axes.collections if isinstance(band, PolyCollection)]
    assert len(bands) == 2 and all(band.get_paths()[0].vertices[:, 1].max() <= BEST for band in bands)


def test_intervals_of_shares_hold_known_values_and_stay_within_0_and_1():
    low, high = share_ends(np.array([0.0, 5.0, 10.0]), np.array([10.0, 10.0, 10.0]))
    np.testing.assert_allclose(low, [0.0, 0.2366, 0.7225], atol=1e-3)
    np.testing.assert_allclose(high, [0.2775, 0.7634, 1.0], atol=1e-3)


def test_the_style_file_has_the_colours_of_the_drawings():
    with style.context(drawing.STYLE):
        assert to_hex("#" + rcParams["figure.facecolor"].lstrip("#")) == drawing.PAPER
        assert to_hex("#" + rcParams["axes.labelcolor"].lstrip("#")) == drawing.MUTED
        assert to_hex("#" + rcParams["grid.color"].lstrip("#")) == drawing.RULE
        assert to_hex("#" + rcParams["text.color"].lstrip("#")) == drawing.INK
        assert rcParams["savefig.dpi"] == drawing.PICTURE_DPI
        cycle = ["#" + one["color"].lstrip("#") for one in rcParams["axes.prop_cycle"]]
        assert cycle == [*PLAYER_COLOURS[: len(cycle)]]


def test_pictures_are_drawn_by_name(tmp_path, capsys):
    assert pictures.main(["crossplay"], tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["crossplay.png"]
    assert pictures.main(["no_such"], tmp_path) == 2 and "adaptation" in capsys.readouterr().err


def test_a_picture_without_data_is_left_and_the_command_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("picture_parts.common.RESULTS", tmp_path)
    assert pictures.main(["value_loss_attribution", "notes_seats"], tmp_path) == 0
    said = capsys.readouterr().out
    assert "docs/why_value_loss.md has the commands" in said and "benchmarks/notes_studies.py seats" in said
    assert list(tmp_path.iterdir()) == []
