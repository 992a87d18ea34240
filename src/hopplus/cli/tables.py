"""Tables that fit a terminal of 80 columns: long cells are wrapped, and nothing is cut."""

from collections.abc import Collection
from typing import Any

from rich import box
from rich import table as rich_table

RichTable: Any = vars(rich_table)["Table"]


def make_table(title: str, *columns: str, right: Collection[str] = (), whole: Collection[str] = ()) -> Any:
    """An empty table. Columns in `right` are aligned to the right; columns in `whole` are never wrapped."""
    table = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        justify = "right" if column in right else "left"
        table.add_column(column, overflow="fold", justify=justify, no_wrap=column in whole)
    return table
