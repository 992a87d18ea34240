"""Search for pages in English and Chinese: Chinese text is cut into overlapping pairs of characters, also in queries.

Chinese has no spaces between words. Pairs need no dictionary, and a query finds every page that has all of its pairs.
"""

import re

from sphinx.search.en import SearchEnglish  # pyright: ignore[reportMissingImports]

LANGUAGE = "en-zh"
HAN = "一-鿿㐀-䶿"
PARTS = re.compile(rf"[{HAN}]+|[^\W{HAN}]+")


class EnglishAndChinese(SearchEnglish):
    """Words of English, stemmed, and pairs of Chinese characters."""

    lang = LANGUAGE
    language_name = "English and Chinese"
    js_splitter_code = (
        """
var splitQuery = (query) => (query.match(/[HAN]+|[^\\s\\p{P}\\p{S}HAN]+/gu) || []).flatMap((part) =>
  /[HAN]/.test(part) && part.length > 1
    ? Array.from({length: part.length - 1}, (_, i) => part.slice(i, i + 2))
    : [part]);
"""
    ).replace("HAN", HAN)

    def split(self, input: str) -> list[str]:  # noqa: A002
        """The words of a text."""
        found = []
        for part in PARTS.findall(input):
            is_chinese = re.match(rf"[{HAN}]", part)
            found += [part[i : i + 2] for i in range(len(part) - 1)] if is_chinese and len(part) > 1 else [part]
        return found
