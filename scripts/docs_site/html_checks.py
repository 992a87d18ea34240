"""Checks of the built site: every link and anchor resolves, and a page loads nothing from elsewhere."""

import re
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
"""Elements that load what they name. A `link` element loads it too, unless it only names a page."""
PAGE_RELATIONS = {"index", "search", "next", "prev", "canonical", "author", "license"}
LOADS_IN_CODE = re.compile(
    r"""(?:@import\s+|url\(\s*|import\(\s*|fetch\(\s*|importScripts\(\s*|\b(?:src|href)\s*=\s*)["'`]?(?:https?:)?//""",
    re.IGNORECASE,
)


class Page(HTMLParser):
    """What an HTML page names: its anchors, its links, and what it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        if tag == "link" and not {*given.get("rel", "").split()} & PAGE_RELATIONS:
            self.loads.append(given.get("href", ""))
        if found := LOADS_IN_CODE.search(given.get("style", "")):
            self.loads.append(found[0])


def faults(site: Path) -> list[str]:
    """What is wrong with a built site."""
    read = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    wrong = [fault for path, page in read.items() for fault in _of_page(site, path, page, read)]
    for path in sorted([*site.rglob("*.css"), *site.rglob("*.js")]):
        wrong += [f"{path.relative_to(site)} loads {found}" for found in external(path.read_text(encoding="utf-8"))]
    return list(dict.fromkeys(wrong))


def external(code: str) -> list[str]:
    """Places in a style sheet or a script that load something from elsewhere."""
    return [code[found.start() : found.end() + 60].split("\n")[0] for found in LOADS_IN_CODE.finditer(code)]


def _of_page(site: Path, path: Path, page: Page, read: dict[Path, Page]) -> list[str]:
    name, wrong = path.relative_to(site), []
    anchors = defaultdict(set, {other: found.anchors for other, found in read.items()})
    for target in page.loads:
        parts = urlsplit(target)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            wrong.append(f"{name} loads {target}")
        elif not (path.parent / unquote(parts.path)).is_file():
            wrong.append(f"{name} loads {target}, which does not exist")
    for target in page.links:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        there = there / "index.html" if there.is_dir() else there
        if not there.is_file():
            wrong.append(f"{name} links to {target}, which does not exist")
        elif there.suffix == ".html" and parts.fragment and unquote(parts.fragment) not in anchors[there]:
            wrong.append(f"{name} links to {target}, but that page has no such anchor")
    return wrong
