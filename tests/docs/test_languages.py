"""Pages in Chinese beside those in English: the same commands, code, pictures, sections, figures, and links."""

import re
from pathlib import Path

import pytest

from docs_site import languages, navigation, pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CHINESE = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.zh-CN.md"))
WRITTEN_APART = {"glossary", "notes"}
"""Pages that are not translated section by section."""
PAIRS = [name.removesuffix(".zh-CN.md") for name in CHINESE]
LINK = re.compile(r"\]\(([^)#:\s]+\.md)(#[^)]*)?\)")
SECTIONS = ("Start", "Tutorials", "Concepts", "Doctor", "Papers")


def text(name: str, end: str = "") -> str:
    """A page without its tables of results, of which a Chinese page may lead to those in English."""
    written = (DOCS / f"{name}{end}.md").read_text(encoding="utf-8")
    return re.sub(r"<!-- results:(\w+) -->.*?<!-- /results:\1 -->", "", written, flags=re.DOTALL)


def test_every_page_of_these_sections_is_in_both_languages():
    listed = navigation.resolved(navigation.read(DOCS), pages.names(ROOT))
    wanted = {page for section in SECTIONS for page in listed[section] if (DOCS / f"{page}.md").exists()}
    assert wanted - {*PAIRS} == set()
    assert len(PAIRS) > 30


@pytest.mark.parametrize("name", PAIRS)
def test_each_language_leads_to_the_other(name):
    base = Path(name).name
    if name != "index":
        assert f"[中文]({base}.zh-CN.md)" in text(name).split("\n## ")[0]
    assert f"[English]({base}.md)" in text(name, ".zh-CN").split("\n## ")[0]


@pytest.mark.parametrize("name", PAIRS)
def test_links_of_a_chinese_page_lead_to_chinese_pages(name):
    page = DOCS / f"{name}.zh-CN.md"
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        other = (page.parent / target).resolve()
        is_translated = not target.endswith(".zh-CN.md") and other.with_suffix(".zh-CN.md").exists()
        assert not is_translated or other == (DOCS / f"{name}.md").resolve(), f"{name} links to {target}"


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in WRITTEN_APART])
def test_both_languages_have_the_same_commands_code_pictures_and_sections(name):
    english, chinese = text(name), text(name, ".zh-CN")
    for pattern in (r"^    (\S.*)$", r"^```(\w*\n.*?)^```$", r"!\[[^\]]*\]\(([^)]*)\)", r"^(#+) ", r"^(\|)"):
        found = [re.findall(pattern, page, re.MULTILINE | re.DOTALL if "```" in pattern else re.MULTILINE)
                 for page in (english, chinese)]  # fmt: skip
        assert found[0] == found[1], pattern


@pytest.mark.parametrize("name", PAIRS)
def test_numbers_of_a_page_are_those_of_the_other_language(name):
    """A figure that changes in one language must change in the other."""
    figures = [{*map(float, re.findall(r"(?<![\w.])-?\d*\.\d+", text(name, end)))} for end in ("", ".zh-CN")]
    assert figures[0] == figures[1] or name in WRITTEN_APART, figures[0] ^ figures[1]


TREE = "".join(
    f'<p class="caption" role="heading"><span class="caption-text">{caption}</span></p><ul><li>{caption}-page</li></ul>'
    for caption in ("Start", "Results", "Tutorial: your own game", "入门")
)


def test_the_sidebar_shows_the_sections_of_a_language():
    english = languages.sections_of(TREE, chinese=False)
    chinese = languages.sections_of(TREE, chinese=True)
    assert "Start-page" in english and "Results-page" in english and "入门-page" not in english
    assert ">Your own game-page<" in english
    assert "Start-page" not in chinese and chinese.index("入门-page") < chinese.index("Results-page")
    assert languages.with_link("x", "a.html", chinese=True).startswith(
        '<p class="language"><a href="a.html" lang="en">'
    )


def test_the_other_language_of_a_page():
    known = {"index", "index.zh-CN", "ppo", "ppo.zh-CN", "runs"}
    found = [languages.other(page, known) for page in ("ppo", "ppo.zh-CN", "runs", "gone.zh-CN")]
    assert found == ["ppo.zh-CN", "ppo", "index.zh-CN", "index"]
