"""Settings of Sphinx."""

from sphinx.application import Sphinx  # pyright: ignore[reportMissingImports]
from sphinx.search import languages  # pyright: ignore[reportMissingImports]

from docs_site import chinese_search
from hopplus import __version__

project = "hopplus"
copyright = "the hopplus developers"  # noqa: A001
author = "the hopplus developers"
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True
language = "en"
html_theme = "furo"
html_title = f"hopplus {release}"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["hopplus.css"]
html_search_language = chinese_search.LANGUAGE
languages[chinese_search.LANGUAGE] = chinese_search.EnglishAndChinese
pygments_style, pygments_dark_style = "tango", "github-dark"


def setup(app: Sphinx) -> None:
    """Without a date in the pages, the same sources give the same bytes."""
    app.config.html_last_updated_fmt = None
