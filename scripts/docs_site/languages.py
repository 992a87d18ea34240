"""Two languages on one site: a page shows the sections of its language, and leads to itself in the other one."""

import re
from html import escape

CHINESE = ".zh-CN"
TRANSLATED = {"Start", "Tutorials", "Concepts", "Doctor", "Papers"}
"""Sections that are in both languages; a Chinese page shows the others in English."""
TITLE = re.compile(r">(?:Tutorial: |教程：)(.)")
"""What the title of a page repeats of its section."""
CAPTION = re.compile(r'<span class="caption-text">(.*?)</span>')


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)


def other(page: str, pages: set[str]) -> str:
    """The same page in the other language, or its first page where there is none."""
    if page.endswith(CHINESE):
        same, first = page.removesuffix(CHINESE), "index"
    else:
        same, first = f"{page}{CHINESE}", f"index{CHINESE}"
    return same if same in pages else first


def sections_of(tree: str, *, chinese: bool) -> str:
    """The tree of the sidebar, with the sections that a page of this language shows."""
    start, *parts = re.split(r'(?=<p class="caption")', tree)
    shown = []
    for part in parts:
        found = CAPTION.search(part)
        caption = found[1] if found else ""
        if is_chinese(caption) == chinese or (chinese and caption not in TRANSLATED):
            shown.append(part)
    if chinese:
        shown.sort(key=lambda part: not is_chinese(CAPTION.search(part)[1]))  # type: ignore[index]
    return TITLE.sub(lambda found: f">{found[1].upper()}", "".join([start, *shown]))


def with_link(tree: str, address: str, *, chinese: bool) -> str:
    """The tree of the sidebar, after a link to the other language."""
    words, code = ("English", "en") if chinese else ("中文", "zh-CN")
    return f'<p class="language"><a href="{escape(address)}" lang="{code}">{words}</a></p>{tree}'
