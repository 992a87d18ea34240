"""Collect the written pages into one folder, with links that lead to the places they have on the site."""

import os
import re
import shutil
from pathlib import Path

from docs_site import notebooks

ELSEWHERE = {
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changes",
    "SECURITY.md": "project/security",
    "README.md": "index",
}
"""Pages outside docs, and where the site has them."""
REFERENCE = "reference/README"
WRITTEN_LATER = {
    "commands": "cli",
    "settings": "settings",
    "metric-tags": "metrics",
    "run-folder": "run_folder",
    "python-api": "api",
    "examples": "examples",
    "planted-faults": "faults",
}
"""Sections of the reference's first page, and the pages that are written from the code for them."""
LINK = re.compile(r"\]\(([^)#:\s]*)(#[^):\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def names(root: Path) -> set[str]:
    """The names of all written pages."""
    docs = root / "docs"
    written = {path.relative_to(docs).with_suffix("").as_posix() for path in sources(docs)}
    return written | {place for place in ELSEWHERE.values() if place != "index"}


def sources(docs: Path) -> list[Path]:
    """The files that become pages: Markdown and notebooks."""
    return sorted([*docs.rglob("*.md"), *docs.rglob("*.ipynb")])


def collect(root: Path, out: Path) -> list[str]:
    """Copy pages and pictures; return links that lead to nothing that the site has."""
    docs = root / "docs"
    shutil.copytree(docs, out, ignore=shutil.ignore_patterns("*.md", "*.toml"))
    wrong = []
    places = {path: path.relative_to(docs).with_suffix(".md") for path in sources(docs)}
    places |= {root / name: Path(f"{place}.md") for name, place in ELSEWHERE.items() if place != "index"}
    for path, place in sorted(places.items()):
        is_notebook = path.suffix == ".ipynb"
        written = (
            notebooks.page(path, (out / place).parent / "drawn") if is_notebook else path.read_text(encoding="utf-8")
        )
        text, lost = with_links(written, path, place, root, beside=("drawn",) if is_notebook else ())
        if place == Path(f"{REFERENCE}.md"):
            text = re.sub(r"^## (.*)$", _with_page, text, flags=re.MULTILINE)
        wrong += [f"{path.relative_to(root)} links to {target}, which is not on the site" for target in lost]
        (out / place).parent.mkdir(parents=True, exist_ok=True)
        (out / place).write_text(text, encoding="utf-8")
    return wrong


def with_links(text: str, path: Path, place: Path, root: Path, beside: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """A page's text with links as the site needs them, and the targets that it does not have.

    Folders in `beside` lie beside the page and are written with it.
    """
    lost: list[str] = []

    def link(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if not target or target.split("/")[0] in beside:
            return match[0]
        file = Path(os.path.normpath(path.parent / target))
        if (found := place_of(file, root)) is None:
            lost.append(target)
            return match[0]
        there, own = found
        if there.suffix == ".ipynb" != path.suffix:
            there = there.with_suffix(".md")
        if there == Path(f"{REFERENCE}.md") and anchor[1:] in WRITTEN_LATER:
            there, anchor = there.with_name(f"{WRITTEN_LATER[anchor[1:]]}.md"), ""
        return f"]({os.path.relpath(there, place.parent)}{anchor or own})"

    code = FENCE.findall(text)
    parts = FENCE.split(text)
    changed = [LINK.sub(link, part) for part in parts]
    return "".join(part + block for part, block in zip(changed, [*code, ""], strict=True)), lost


def _with_page(heading: re.Match[str]) -> str:
    """A heading of the reference's first page, and a link to the page of its section."""
    return f"{heading[0]}\n\n[The page]({WRITTEN_LATER[heading[1].lower().replace(' ', '-')]}.md)."


def place_of(file: Path, root: Path) -> tuple[Path, str] | None:
    """Where the site has a file of the repository, and the anchor there."""
    if not file.exists() or not file.is_relative_to(root):
        return None
    name = file.relative_to(root)
    if name.as_posix() in ELSEWHERE:
        return Path(ELSEWHERE[name.as_posix()] + ".md"), ""
    if name.parts[0] == "examples" and file.is_file():
        return Path("reference/examples.md"), f"#{example_anchor(name.name)}"
    if name.parts[0] == "docs" and file.is_file():
        return Path(*name.parts[1:]), ""
    return None


def example_anchor(name: str) -> str:
    """The anchor of an example's heading, as GitHub and MyST write it."""
    return re.sub(r"[^\w\- ]", "", name.lower())
