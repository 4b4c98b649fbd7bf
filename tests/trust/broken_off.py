"""A start of voiceapi that is broken off at one of its SQL statements.

    python broken_off.py DATABASE N

kills itself before the N-th statement, or in the middle of copying the file if that comes N-th. It prints the
statements, a line each, if it lives.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from voiceapi.config import Settings, names
from voiceapi.opening import open_service

SETTINGS = {"VOICEAPI_API_KEY": "key-of-broken-off-starts", "VOICEAPI_SECRET": "s" * 32, "VOICEAPI_WORKER": "off"}


@contextmanager
def counted(last: int, stop: Callable[[], Any]) -> Iterator[list[str]]:
    """The statements of all connections opened within the block, which are closed at its end.

    :param stop: called instead of the statement with the number `last`, counted from 1; it ends the process or raises.
    """
    statements: list[str] = []
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def count(statement: str) -> bool:
        statements.append(" ".join(statement.split()))
        return len(statements) == last

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if count(sql):
                stop()
            return super().execute(sql, *parameters)

    class Connection(sqlite3.Connection):
        def cursor(self, *_: Any) -> Any:
            return super().cursor(Cursor)

        def backup(self, target: sqlite3.Connection, **_: Any) -> None:  # type: ignore[override]
            stops = count("backup")
            super().backup(target, pages=4, progress=lambda *_: stop() if stops else None)

    thread = threading.get_ident()

    def counted_connect(*args: Any, **options: Any) -> sqlite3.Connection:
        if threading.get_ident() != thread:
            return connect(*args, **options)  # another test's service, whose jobs run on
        opened.append(connect(*args, **options, factory=Connection))
        return opened[-1]

    with patch.object(sqlite3, "connect", counted_connect):
        try:
            yield statements
        finally:
            for connection in opened:
                connection.close()


def start(database: Path) -> None:
    """Open the service as `create_app` does, without its routes, and close it."""
    given = {**dict.fromkeys(names()), **SETTINGS, "VOICEAPI_DATABASE": str(database)}
    open_service(Settings.read(given)).close()


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with counted(int(sys.argv[2]), kill) as passed:
        start(Path(sys.argv[1]))
    sys.stdout.write("\n".join(passed))
