"""Pages of lists: which rows are on a page, and the records of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from .base import Record, select

Found = TypeVar("Found", bound=Record)


class Window(NamedTuple):
    """The rows of a page: `size` of them after `offset` others, counted from the end of the list if `from_end`."""

    size: int
    offset: int
    from_end: bool


def window(total: int, page: int, limit: int) -> Window:
    """The rows of a page, from 1, of a list with `total` rows; its size is 0 after the last page.

    A page in the second half is read from the end, so that the last page is as quick as the first.
    """
    offset = (page - 1) * limit
    size = max(0, min(limit, total - offset))
    if offset > total // 2:
        return Window(size, total - offset - size, from_end=True)
    return Window(size, offset, from_end=False)


def order(columns: Sequence[str], *, descending: bool) -> str:
    return ", ".join(f"{column} {'DESC' if descending else 'ASC'}" for column in columns)


def records(
    model: type[Found], where: str, values: Sequence[Any], columns: Sequence[str], rows: Window, *, descending: bool
) -> list[Found]:
    """The records of a page in the order of these columns.

    :param where: a condition in SQL, with `?` for each of `values`, which are in their stored form.
    """
    if not rows.size:
        return []
    # Ids first, which an index answers alone; whole rows only for the page. The size as text: PostgreSQL, which may
    # plan without the values, would take it for a tenth of the list.
    ids = (
        f'SELECT id FROM "{model._meta.table_name}" WHERE {where} '
        f"ORDER BY {order(columns, descending=descending != rows.from_end)} LIMIT {rows.size} OFFSET ?"
    )
    chosen = f"WHERE id IN ({ids}) ORDER BY {order(columns, descending=descending)}"
    return select(model, chosen, *values, rows.offset)
