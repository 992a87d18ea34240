"""The parts of `scripts/build_docs`: navigation, links, checks of the built HTML, search in Chinese."""

from pathlib import Path

import pytest

from docs_site import html_checks, navigation, pages, reference

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_is_in_one_section_of_the_navigation():
    sections = navigation.read(ROOT / "docs")
    known = pages.names(ROOT) | set(reference.PAGES)
    assert "glossary" in known and navigation.faults(sections, known) == []
    assert list(sections)[:4] == ["Start", "Tutorials", "Concepts", "Doctor"]


def test_faults_of_the_navigation_are_named():
    sections = {"Start": ["install", "gone"], "Games": ["games/*"], "Again": ["install"], "中文": ["*.zh-CN"]}
    known = {"index", "install", "games/stag_hunt", "games/stag_hunt.zh-CN", "forgotten"}
    assert navigation.resolved(sections, known)["Games"] == ["games/stag_hunt"]
    assert navigation.resolved(sections, known)["中文"] == ["games/stag_hunt.zh-CN"]
    assert navigation.faults(sections, known) == [
        "forgotten is in no section of docs/navigation.toml: add it",
        "docs/navigation.toml lists gone, which does not exist",
        "docs/navigation.toml has install twice",
    ]


def test_links_lead_to_the_places_of_the_site(tmp_path):
    docs = tmp_path / "docs"
    for name in ("docs/games/chess.md", "docs/start.md", "examples/own_game.py", "CONTRIBUTING.md", "setup.cfg",
                 "docs/notebooks/first.ipynb"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    text = (
        "[a](../start.md#b) [c](../../examples/own_game.py) [d](../../CONTRIBUTING.md) [e](#f) [g](https://x.org/y)\n"
        "```\n[in code](nowhere.md)\n```\n[h](../../setup.cfg) [i](nowhere.md) [j](../notebooks/first.ipynb)\n"
    )
    changed, lost = pages.with_links(text, docs / "games" / "chess.md", Path("games/chess.md"), tmp_path)
    assert "[a](../start.md#b) [c](../reference/examples.md#own_gamepy) [d](../project/contributing.md)" in changed
    assert "[e](#f) [g](https://x.org/y)" in changed and "[in code](nowhere.md)" in changed
    assert "[j](../notebooks/first.md)" in changed
    assert lost == ["../../setup.cfg", "nowhere.md"]


def test_all_links_of_the_pages_are_on_the_site(tmp_path):
    assert pages.collect(ROOT, tmp_path / "site") == []


GOOD = '<html><body><h1 id="top">x</h1><a href="b.html#there">y</a><a href="https://x.org">z</a></body></html>'
OTHER = '<html><head><link rel="stylesheet" href="s.css"></head><body><p id="there"><img src="p.png"></p></body></html>'


@pytest.fixture
def site(tmp_path):
    for name, text in {"a.html": GOOD, "b.html": OTHER, "s.css": "p { color: red }", "p.png": "", "x.js": ""}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_good_site_has_no_faults(site):
    assert html_checks.faults(site) == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.html", '<a href="c.html">', "a.html links to c.html, which does not exist"),
        ("a.html", '<a href="b.html#no">', "a.html links to b.html#no, but that page has no such anchor"),
        ("a.html", '<a href="#no">', "a.html links to #no, but that page has no such anchor"),
        ("a.html", '<img src="no.png">', "a.html loads no.png, which does not exist"),
        ("a.html", '<script src="https://x.org/y.js"></script>', "a.html loads https://x.org/y.js"),
        ("a.html", '<script src="//x.org/y.js"></script>', "a.html loads //x.org/y.js"),
        ("a.html", '<link rel="preconnect" href="https://fonts.org">', "a.html loads https://fonts.org"),
        ("s.css", '@import "https://x.org/y.css";', 's.css loads @import "https://x.org/y.css";'),
        ("s.css", "p { src: url(//x.org/f.woff) }", "s.css loads url(//x.org/f.woff) }"),
        ("x.js", 'fetch("https://x.org/y")', 'x.js loads fetch("https://x.org/y")'),
    ],
)
def test_faults_of_the_html_are_named(site, name, text, fault):
    (site / name).write_text(text)
    assert html_checks.faults(site) == [fault]


def test_chinese_is_cut_into_pairs_and_english_into_words():
    chinese_search = pytest.importorskip("docs_site.chinese_search", reason="needs Sphinx, of the extra docs")
    search = chinese_search.EnglishAndChinese({})
    assert search.split("对手模型 predicts 目标，鹿") == ["对手", "手模", "模型", "predicts", "目标", "鹿"]
    assert search.stem("predicts") == "predict"
