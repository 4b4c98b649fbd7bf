"""What a connection executes, on either database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def tracing(connection: Any, note: Callable[[str], Any]) -> Iterator[None]:
    """Call `note` with each statement that a connection executes in the block; PostgreSQL's have `%s` for values."""
    if isinstance(connection, sqlite3.Connection):
        connection.set_trace_callback(note)
        yield
        connection.set_trace_callback(None)
        return
    usual = connection.cursor_factory

    class Tracing(usual):  # type: ignore[misc,valid-type]
        def execute(self, query: Any, *args: Any, **options: Any) -> Any:
            note(query)
            return super().execute(query, *args, **options)

    connection.cursor_factory = Tracing
    yield
    connection.cursor_factory = usual
