"""Finds secrets where none may be: in a database, in answers, and in log lines with their tracebacks.

What a test hands to the vault is a secret, and so is every text with the mark `s3cr3t`, which tests use for secrets
that go in anywhere. The parts of what is encrypted as JSON count only under the names of secrets.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from voiceapi.store.database import Store, database, execute

MARK = re.compile(rb"s3cr3t[\w.-]*")
NAMES = re.compile("token|secret|password|private_key|api_key|header_value|aws_|credentials")
SHORTEST = 10
# How PostgreSQL writes bytes within the text of a row.
HEXADECIMAL = re.compile(r"\\x((?:[0-9a-f]{2})+)")
# What an answer shows once, when it is made: it is no secret from its owner then.
SHOWN_ONCE = (b"whsec_", b"va_")


def texts(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from texts(below, key)
    elif isinstance(value, list):
        for below in value:
            yield from texts(below, name)
    elif isinstance(value, str) and NAMES.search(name):
        yield value


def secrets_in(text: str) -> set[bytes]:
    """The secrets in a text that is encrypted: the text itself, or parts of the JSON object that it is."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(value, dict) and "application_id" in value:
        # Vonage calls the name of an account its API key, and a configuration is found by it.
        value.pop("api_key", None)
    found = texts(value) if isinstance(value, dict) else [text]
    return {each.encode() for each in found if len(each) >= SHORTEST}


def rows_of(store: Store) -> bytes:
    """All rows of a PostgreSQL database."""
    with store.session():
        tables = (f'SELECT whole::text FROM "{name}" AS whole' for name in database.get_tables())
        rows = "\n".join(row for (row,) in execute(" UNION ALL ".join(tables)))
    store.close()
    return b"\n".join((rows.encode(), *(bytes.fromhex(each) for each in HEXADECIMAL.findall(rows))))


class Scan(logging.Handler):
    """Collects the secrets of a test, and what is logged while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[bytes] = set()
        self.lines: list[str] = []

    def begin(self) -> None:
        self.known.clear()
        self.lines.clear()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def found_in(self, content: bytes) -> set[bytes]:
        """The secrets in some bytes."""
        marked = MARK.findall(content) if b"s3cr3t" in content else []  # much quicker than the expression alone
        return {each for each in self.known if each in content}.union(marked)

    def found_in_answer(self, content: bytes) -> set[bytes]:
        return {each for each in self.found_in(content) if not each.startswith(SHOWN_ONCE)}

    def found_in_database(self, store: Store) -> set[bytes]:
        """The secrets in the files of a database, those in free pages and in the WAL included; else in its rows."""
        if store.path is None:
            return self.found_in(rows_of(store))
        files = [Path(f"{store.path}{end}") for end in ("", "-wal", "-shm")]
        return set().union(*(self.found_in(file.read_bytes()) for file in files if file.exists()))

    def found_in_log(self) -> set[bytes]:
        return self.found_in("\n".join(self.lines).encode("utf-8", "replace"))


SCAN = Scan()
