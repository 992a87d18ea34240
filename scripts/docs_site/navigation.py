"""The order of the pages: docs/navigation.toml lists sections, and each lists pages, or patterns such as `games/*`.

A pattern takes pages that no section lists by name, in alphabetical order. Every page must be in one section.
"""

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

FILE = "navigation.toml"
CHINESE = ".zh-CN"
Sections = dict[str, list[str]]


def read(docs: Path) -> Sections:
    """The sections of the file, with the pages and patterns of each."""
    return tomllib.loads((docs / FILE).read_text(encoding="utf-8"))["sections"]


def resolved(sections: Sections, pages: set[str]) -> Sections:
    """The pages of each section. A pattern takes Chinese pages only if it says so."""
    named = {page for listed in sections.values() for page in listed}
    found: Sections = {}
    for section, listed in sections.items():
        found[section] = []
        for entry in listed:
            free = (page for page in pages - named if fnmatchcase(page, entry))
            same_language = (page for page in free if page.endswith(CHINESE) == entry.endswith(CHINESE))
            found[section] += [entry] if "*" not in entry else sorted(same_language)
    return found


def faults(sections: Sections, pages: set[str]) -> list[str]:
    """Pages that no section has, that several have, and entries without a page."""
    placed = [page for listed in resolved(sections, pages).values() for page in listed]
    where = f"docs/{FILE}"
    return [
        *(f"{page} is in no section of {where}: add it" for page in sorted(pages - {*placed, "index"})),
        *(f"{where} lists {page}, which does not exist" for page in sorted({*placed} - pages)),
        *(f"{where} has {page} twice" for page in sorted({page for page in placed if placed.count(page) > 1})),
    ]


def write(sections: Sections, pages: set[str], index: Path) -> None:
    """Add the sections to the first page, where Sphinx reads them."""
    trees = [
        f"```{{toctree}}\n:hidden:\n:caption: {section}\n\n" + "\n".join(listed) + "\n```\n"
        for section, listed in resolved(sections, pages).items()
    ]
    index.write_text("\n".join([index.read_text(encoding="utf-8"), *trees]), encoding="utf-8")
