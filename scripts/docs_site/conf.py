"""Settings of Sphinx."""

from typing import Any

from sphinx.application import Sphinx  # pyright: ignore[reportMissingImports]
from sphinx.search import languages  # pyright: ignore[reportMissingImports]

from docs_site import chinese_search
from docs_site import languages as site_languages
from hopplus import __version__

project = "hopplus"
copyright = "the hopplus developers"  # noqa: A001
author = "the hopplus developers"
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True
language = "en"
smartquotes_action = "qe"  # --flag is a flag, not a dash
html_theme = "furo"
html_title = f"hopplus {release}"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["hopplus.css"]
html_js_files = ["copy.js"]
html_search_language = chinese_search.LANGUAGE
languages[chinese_search.LANGUAGE] = chinese_search.EnglishAndChinese
pygments_style, pygments_dark_style = "tango", "github-dark"


def setup(app: Sphinx) -> None:
    """Without a date in the pages, the same sources give the same bytes. The sidebar shows one language."""
    app.config.html_last_updated_fmt = None
    app.connect("html-page-context", one_language, priority=900)


def one_language(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """What furo made for the sidebar, in the language of the page."""
    chinese = page.endswith(site_languages.CHINESE)
    if chinese:
        context["language"] = "zh-CN"
    if "furo_navigation_tree" in context:
        other = site_languages.other(page, set(app.env.found_docs))
        tree = site_languages.sections_of(context["furo_navigation_tree"], chinese=chinese)
        context["furo_navigation_tree"] = site_languages.with_link(tree, context["pathto"](other), chinese=chinese)
