"""The doctor's page says everything, hides nothing that is wrong, trusts no string, and needs nothing but itself."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from hopplus_doctor import evidence
from hopplus_doctor.answer import VERDICTS, Answer, Examination, Finding, Picture, Significance
from hopplus_doctor.page import doctor_page, judged_words
from report.examinations import BARS, BOXES, HOSTILE, LINES, MATRIX, examination

VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page whose tags are closed in the order in which they were opened; its text outside and inside folds."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.shown, self.folded = [], [], "", ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            is_folded = "details" in self.open and "summary" not in self.open
            self.folded += data if is_folded else ""
            self.shown += "" if is_folded else data


@pytest.fixture(scope="module")
def text():
    return doctor_page(examination())


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_every_finding_verdict_and_command_is_named(page):
    said = page.shown + page.folded
    for finding in examination().findings:
        for words in (finding.check, finding.module, finding.verdict, finding.says, finding.next or ""):
            assert words in said
    assert all(verdict in said for verdict in VERDICTS)
    for words in ("hopplus doctor runs/x", "hopplus 0.4.0", "12.3", "0.42 (0.31 to 0.53) return", "400 updates"):
        assert words in said
    assert "test: p = 2.0e-04; 0.1 would matter" in said
    assert "no check was possible" in said and "2 broken, 1 suspicious, 1 not enough evidence, 3 fine" in said


def test_only_what_compares_equal_things_is_called_exact(page):
    said = page.shown + page.folded
    kinds = [finding.kind for finding in examination().findings]
    assert said.count("exact: no chance is involved") == kinds.count("exact") == 2
    assert "judgement: broken above 0.3" in said
    assert said.count("judgement: ") == kinds.count("judgement") == 2
    method = page.shown[page.shown.index("How false alarms are limited") :]
    assert "2 exact." in method and "3 tests." in method and "2 judgements." in method
    assert "No bound on false alarms holds for judgements" in method


@pytest.mark.parametrize(
    ("test", "threshold", "words"),
    [
        (Significance(4e-88, 0.1), "", "test: p < 1e-6; 0.1 would matter"),
        (Significance(0.012, 0.1, 0.12), "", "test: p = 0.012, adjusted p = 0.12; 0.1 would matter"),
        (None, "", "test: too little data for a p-value"),
        (None, "below its own level", "test: below its own level"),
    ],
)
def test_a_test_says_how_sure_it_is(test, threshold, words):
    finding = Finding("check", "module", "test", "not enough evidence", "So.", test=test, threshold=threshold)
    assert judged_words(finding).startswith(words)
    if test is None and not threshold:
        assert judged_words(replace(finding, verdict="fine")) == "test: nothing differs: no p-value"


def test_what_is_wrong_is_open_and_what_is_fine_is_folded(page):
    for finding in examination().findings:
        assert (finding.says in page.shown) == (finding.verdict != "fine")
        assert (finding.says in page.folded) == (finding.verdict == "fine")
        if finding.picture is not None:
            assert (finding.picture.title in page.folded) == (finding.verdict == "fine")
    assert "1 fine: config" in page.shown


def test_suspects_are_blamed_in_the_order_of_the_examination(page):
    blame = page.shown[page.shown.index("What to blame") : page.shown.index("All questions")]
    places = [blame.index(words) for words in ("Seat 2 has none.", HOSTILE, "Seats differ.")]
    assert places == sorted(places) and "Few seeds." not in blame


def test_the_page_loads_nothing_and_its_links_lead_somewhere(text, page):
    assert not any(words in text for words in ("http://", "https://", "@import", "url(http", "data:"))
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "image", "iframe", "object", "base", "form"}
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in page.tags:
        assert not any(name == "src" or name.startswith("on") for name in attributes)
    assert {attributes["href"][1:] for tag, attributes in page.tags if tag == "a"} <= set(names)
    assert "default-src 'none'" in text and "script-src" not in text


def test_hostile_strings_are_shown_and_not_obeyed(text, page):
    assert HOSTILE not in text and page.shown.count(HOSTILE) > 5
    assert HOSTILE in {attributes.get("aria-label") for _, attributes in page.tags}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_one_verdict_alone_makes_a_page(verdict):
    finding = Finding("check", "module", "exact", verdict, "It says.")
    page = Page(doctor_page(Examination("game", "command", "1", (Answer("game", "Fair?", (finding,)),))))
    is_wrong = verdict in ("suspicious", "broken")
    assert ("What to blame" in page.shown) == is_wrong
    assert verdict in page.shown


def test_an_examination_of_nothing_makes_a_page():
    assert "not enough evidence to clear everything" in Page(doctor_page(Examination("game", "command", "1", ()))).shown


def test_bars_and_their_intervals_are_where_the_numbers_are():
    (axes,) = evidence.bars(BARS).axes
    assert [bar.get_height() for bar in axes.patches] == [400, 0, 400, 400, 0, -3]
    ends = [segment[:, 1].tolist() for segment in axes.collections[0].get_segments() if len(segment)]
    assert ends == [[390, 410], [395, 405]]
    assert sorted(text.get_text() for text in axes.texts) == sorted(["400", "?", "400", "400", "0", "-3"])


def test_numbers_that_do_not_fit_above_their_bars_are_left_out():
    many = Picture("bars", "many", tuple(map(str, range(40))), {"a": [0.123] * 39 + [None]})
    (axes,) = evidence.bars(many).axes
    assert [text.get_text() for text in axes.texts] == ["?"] and len(axes.get_xticks()) <= evidence.NAMED


def test_boxes_hold_the_samples_that_are_known():
    (axes,) = evidence.boxes(BOXES).axes
    dots = [dots.get_offsets()[:, 1].tolist() for dots in axes.collections]
    assert dots == [[1, 2], [], [3]] and [text.get_text() for text in axes.texts] == ["?"]


def test_lines_run_over_numbers_or_from_label_to_label():
    (axes,) = evidence.lines(LINES).axes
    assert axes.lines[0].get_xydata().tolist() == [[0, 1], [20, 3]] and not len(axes.lines[1].get_xydata())
    (axes,) = evidence.lines(replace(LINES, labels=("0", "20", "10"))).axes
    assert axes.lines[0].get_xydata().tolist() == [[0, 1], [2, 3]]


def test_a_cell_is_red_below_zero_and_pale_where_nothing_is_known():
    (axes,) = evidence.matrix(MATRIX).axes
    assert [text.get_text() for text in axes.texts] == ["-0.5", "1", "?", "2"]
    red, blue, unknown, strong = (cell.get_facecolor() for cell in axes.patches)
    assert red[0] > red[2] and blue[2] > blue[0] and unknown[3] == 0 and strong[3] == evidence.STRONGEST


@pytest.mark.parametrize("kind", ["bars", "boxes", "lines", "matrix"])
def test_a_picture_of_nothing_is_left_out_and_one_of_unknown_numbers_is_drawn(kind):
    assert evidence.drawn(Picture(kind, "empty", (), {"a": []})) is None
    assert evidence.drawn(Picture(kind, "empty", ("a",), {})) is None
    assert evidence.drawn(Picture(kind, "unknown", ("a",), {"a": [None]})) is not None


def test_cells_that_are_all_alike_are_told_apart():
    (axes,) = evidence.matrix(replace(MATRIX, series={"a": [2.1, 2.2], "b": [2.3, 2.2]})).axes
    np.testing.assert_allclose([cell.get_facecolor()[3] for cell in axes.patches], [0, 0.65, 0.325, 0.325])
    (axes,) = evidence.matrix(replace(MATRIX, series={"a": [2.0, 2.0]})).axes
    assert len(axes.patches) == 2
